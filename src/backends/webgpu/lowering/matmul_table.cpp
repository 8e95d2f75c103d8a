// The table of the kernels of float products, and which of them a shape takes.
#include "backends/webgpu/lowering/matmul_table.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }

// clang-format off
constexpr MatmulVariant kVariants[] = {  // tm, tn, tk, rm, rn, alone, busy
    {"matmul_small", "matmul_small", 1, 4},
    {"matmul_gemv", "matmul_gemv"},
    {"matmul_16x64", {}, 16, 64, 32, 4, 4, 54, 98},
    {"matmul_32x64", {}, 32, 64, 16, 4, 4, 77, 120},
    {"matmul_64x64", {}, 64, 64, 16, 4, 4, 100, 126},
    {"matmul_64x128", {}, 64, 128, 16, 8, 8, 117, 162},
};
// clang-format on
constexpr const MatmulVariant &kSmall = kVariants[0], &kGemv = kVariants[1];
static_assert(kGemv.name == "matmul_gemv");
constexpr auto kTiles = std::span(kVariants).subspan(2);

constexpr int64_t kMaxGemvRows = 8;
constexpr int64_t kUnits = 128;      // of a large GPU: WebGPU does not tell how many there are
constexpr double kCombineNs = 4000;  // another dispatch, and what it reads and writes
constexpr double kCombineBytesPerNs = 3000;

// How long a product takes, cut into parts along k: the unit with the most workgroups is the last to be done.
double nanoseconds(const MatmulVariant& v, const MatmulShape& s, int64_t splits) {
  const auto rounds =
      static_cast<double>(ceil_div(s.matrices() * ceil_div(s.m, v.tm) * ceil_div(s.n, v.tn) * splits, kUnits));
  const double work = rounds * v.tm * v.tn * static_cast<double>(ceil_div(s.k, splits));
  const double time = work / std::min(v.busy, rounds * v.alone);
  if (splits == 1) return time;
  return time + kCombineNs + 8.0 * static_cast<double>(splits * s.m * s.n) / kCombineBytesPerNs;
}

thread_local MatmulChoice forced;

MatmulChoice fastest_tile(const MatmulShape& shape, int64_t most_splits) {
  MatmulChoice best{&kTiles.back()};
  double least = nanoseconds(*best.variant, shape, 1);
  for (const MatmulVariant& v : kTiles)
    for (int64_t splits = 1; splits <= most_splits; ++splits)
      if (const double time = nanoseconds(v, shape, splits); time < least) {
        least = time;
        best = {&v, splits};
      }
  return best;
}

}  // namespace

std::span<const MatmulVariant> matmul_variants() { return kVariants; }
const MatmulVariant& matmul_gemv() { return kGemv; }

const MatmulVariant& choose_matmul_tile(const MatmulShape& shape) { return *fastest_tile(shape, 1).variant; }

MatmulChoice choose_matmul(const MatmulShape& shape) {
  // A part is long enough to be worth a dispatch that adds the parts up.
  const int64_t most_splits = shape.matrices() == 1 ? std::clamp<int64_t>(shape.k / 256, 1, 64) : 1;
  if (forced.variant) {
    if (forced.splits != 0 || forced.variant == &kGemv) return forced;
    return {forced.variant, 1};
  }
  if (shape.m * shape.n <= 64 && shape.k <= 64) return {&kSmall};
  if (shape.m <= kMaxGemvRows) return {&kGemv, 0};
  return fastest_tile(shape, most_splits);
}

ForceMatmul::ForceMatmul(std::string_view name, int64_t splits) {
  for (const MatmulVariant& v : kVariants)
    if (v.name == name) forced = {&v, splits};
  require(forced.variant != nullptr, "There is no kernel '", name, "' for products.");
}
ForceMatmul::~ForceMatmul() { forced = {nullptr, 0}; }
const MatmulChoice& ForceMatmul::current() { return forced; }

}  // namespace rlx::webgpu
