#include "backends/cpu/conv/implicit_gemm.h"

#include <algorithm>

#include "backends/cpu/conv/patches.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kDepth = 384;     // rows of patches at a time: a panel of them stays in the caches
constexpr int64_t kBlockRows = 8;   // panels of weights that are multiplied with a panel of patches in one go
constexpr int64_t kMostPanels = 4;  // of patches per task
constexpr int64_t kMostSums = 256;  // rows per task where sums cannot be made in y

int64_t part_begin(int64_t size, int64_t parts, int64_t i) { return size * i / parts; }

// How the work is cut: tasks are (image, group, block of windows, block of rows).
struct Cut {
  int64_t panels, blocks, row_panels, row_blocks, depth;
  bool dense;  // sums are made in y

  Cut(const ImplicitGemm& g, int threads) {
    const gemm::TileKernels& kernels = gemm::tile_kernels();
    panels = div_up(windows_of(g.axes), kernels.panel());
    row_panels = weight_panels(g.rows);
    const int64_t outer = g.images * g.groups, wanted = threads == 1 ? 1 : 4 * threads;
    blocks = std::min(panels, std::max(div_up(panels, kMostPanels), div_up(wanted, outer)));
    row_blocks = std::min(row_panels, div_up(threads == 1 ? 1 : 2 * threads, outer * blocks));
    depth = std::clamp<int64_t>(g.k(), 1, kDepth * 5 / 4);
    const WindowAxes& a = g.axes;
    dense = g.dtype == DType::F32 && g.y_first == 0 && g.y_step[2] == 1 && (a[1].out == 1 || g.y_step[1] == a[2].out) &&
            (a[0].out == 1 || g.y_step[0] == a[1].out * a[2].out);
    if (!dense) row_blocks = std::max(row_blocks, div_up(row_panels * kernels.rows, kMostSums));
    row_blocks = std::min(row_blocks, row_panels);
  }

  // Floats of one thread.
  int64_t patches(int panel) const { return div_up(panels, blocks) * panel * depth + 64; }
  int64_t sums(int panel, int rows) const {
    return dense ? 0 : div_up(row_panels, row_blocks) * rows * div_up(panels, blocks) * panel;
  }
};

class Task {
 public:
  Task(const ImplicitGemm& g, const Cut& cut, float* scratch)
      : g_(g), cut_(cut), kernels_(gemm::tile_kernels()), panel_(kernels_.panel()), packed_(scratch) {
    sums_ = scratch + cut.patches(static_cast<int>(panel_));
  }

  void run(int64_t image, int64_t group, int64_t block, int64_t row_block) {
    first_panel_ = part_begin(cut_.panels, cut_.blocks, block);
    panels_ = part_begin(cut_.panels, cut_.blocks, block + 1) - first_panel_;
    i0_ = part_begin(cut_.row_panels, cut_.row_blocks, row_block);
    i1_ = part_begin(cut_.row_panels, cut_.row_blocks, row_block + 1);
    const int64_t windows = windows_of(g_.axes);
    windows_ = std::min(panels_ * panel_, windows - first_panel_ * panel_);
    first_row_ = weight_panel_row(g_.rows, i0_);
    const int64_t k = g_.k(), outer = image * g_.groups + group;
    patches_ = {g_.x + outer * g_.channels * plane_of(g_.axes), g_.axes};
    weights_ = g_.weights + group * packed_weights_size(g_.rows, k);
    if (cut_.dense) {
      c_ = reinterpret_cast<float*>(g_.y) + (outer * g_.rows + first_row_) * g_.y_plane + first_panel_ * panel_;
      c_row_ = g_.y_plane;
    } else {
      c_ = sums_;
      c_row_ = panels_ * panel_;
    }
    const int64_t taps = taps_of(g_.axes);
    int64_t k0 = 0;
    do {  // once also when there is no channel: that makes zeros
      const int64_t k1 = k0 + next_depth(k - k0, taps);
      pack(k0, k1);
      for (int64_t i = i0_; i < i1_; i += kBlockRows) multiply(i, std::min(i + kBlockRows, i1_), k0, k1);
      k0 = k1;
    } while (k0 < k);
    if (!cut_.dense) store(outer);
  }

 private:
  // A rest much shorter than a pass is spread over the last two.
  static int64_t next_depth(int64_t left, int64_t taps) {
    const int64_t depth = left <= kDepth * 5 / 4 ? left : left < 2 * kDepth ? left / 2 : kDepth;
    return depth == left || depth < taps ? depth : depth / taps * taps;  // whole channels
  }

  void pack(int64_t k0, int64_t k1) {
    for (int64_t j = 0; j < panels_ && k0 < k1; ++j)
      pack_patches(patches_, k0, k1, (first_panel_ + j) * panel_, std::min(panel_, windows_ - j * panel_), panel_,
                   packed_ + j * panel_ * (k1 - k0));
  }

  void multiply(int64_t i0, int64_t i1, int64_t k0, int64_t k1) {
    const int64_t k = g_.k(), depth = k1 - k0;
    int64_t width = 1;
    for (int64_t j = 0; j < panels_; j += width) {
      width = wide_panels(j);
      const int64_t cols = std::min(width * panel_, windows_ - j * panel_);
      for (int64_t i = i0; i < i1; ++i) {
        const int64_t row = part_begin(g_.rows, cut_.row_panels, i);
        const int64_t rows = part_begin(g_.rows, cut_.row_panels, i + 1) - row;
        const gemm::Tile tile = {.k = depth,
                                 .a = weights_ + row * k + k0 * rows,
                                 .a_row = 1,
                                 .a_k = rows,
                                 .b = packed_ + j * panel_ * depth,
                                 .b_k = panel_,
                                 .b_panel = panel_ * depth,
                                 .c = c_ + (row - first_row_) * c_row_ + j * panel_,
                                 .c_row = c_row_,
                                 .cols = cols,
                                 .accumulate = k0 > 0};
        if (width > 1)
          kernels_.wide_tile[0][rows](tile);
        else if (cols <= kernels_.lanes)
          kernels_.half_tile[rows](tile);
        else
          kernels_.tile[0][rows](tile);
      }
    }
  }

  // Tiles of few rows span several panels, to keep the multipliers busy.
  int64_t wide_panels(int64_t j) const {
    if (g_.rows > gemm::kMaxWideRows || kernels_.wide_tile[0][g_.rows] == nullptr) return 1;
    const int64_t wide = gemm::kWidePanels[g_.rows];
    return j + wide <= panels_ && (j + wide) * panel_ <= windows_ ? wide : 1;
  }

  void store(int64_t outer) const {
    const int64_t rows = weight_panel_row(g_.rows, i1_) - first_row_;
    const WindowAxis &ay = g_.axes[1], &ax = g_.axes[2];
    const auto size = static_cast<int64_t>(size_of(g_.dtype));
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = c_ + r * c_row_;
      std::byte* plane = g_.y + (outer * g_.rows + first_row_ + r) * g_.y_plane * size;
      for (int64_t i = 0; i < windows_;) {
        const int64_t w = first_panel_ * panel_ + i, x = w % ax.out, y = w / ax.out % ay.out, z = w / ax.out / ay.out;
        const int64_t n = std::min(windows_ - i, ax.out - x);
        const int64_t to = g_.y_first + z * g_.y_step[0] + y * g_.y_step[1] + x * g_.y_step[2];
        if (g_.y_step[2] == 1)
          from_f32(g_.dtype, from + i, plane, to, n);
        else if (g_.dtype == DType::F32)
          for (int64_t e = 0; e < n; ++e) reinterpret_cast<float*>(plane)[to + e * g_.y_step[2]] = from[i + e];
        else
          for (int64_t e = 0; e < n; ++e) from_f32(g_.dtype, from + i + e, plane, to + e * g_.y_step[2], 1);
        i += n;
      }
    }
  }

  const ImplicitGemm& g_;
  const Cut& cut_;
  const gemm::TileKernels& kernels_;
  const int64_t panel_;
  float* packed_;
  float* sums_;

  // The task at hand.
  Patches patches_;
  const float* weights_ = nullptr;
  float* c_ = nullptr;
  int64_t c_row_ = 0, first_panel_ = 0, panels_ = 0, windows_ = 0, i0_ = 0, i1_ = 0, first_row_ = 0;
};

int64_t floats_per_thread(const Cut& cut) {
  const gemm::TileKernels& kernels = gemm::tile_kernels();
  return div_up(cut.patches(kernels.panel()) + cut.sums(kernels.panel(), kernels.rows), 16) * 16;
}

}  // namespace

int64_t packed_weights_size(int64_t rows, int64_t k) { return rows * k; }
int weight_panels(int64_t rows) { return static_cast<int>(div_up(rows, gemm::tile_kernels().rows)); }
int64_t weight_panel_row(int64_t rows, int64_t panel) { return part_begin(rows, weight_panels(rows), panel); }

int64_t implicit_gemm_scratch(const ImplicitGemm& g, int threads) {
  if (windows_of(g.axes) == 0 || g.images == 0 || g.rows == 0) return 0;
  return threads * floats_per_thread(Cut(g, threads)) * static_cast<int64_t>(sizeof(float));
}

void run_implicit_gemm(const ImplicitGemm& g, ThreadPool& pool, std::byte* scratch) {
  if (windows_of(g.axes) == 0 || g.images == 0 || g.rows == 0) return;
  const Cut cut(g, pool.threads());
  const int64_t own = floats_per_thread(cut), tasks = cut.blocks * cut.row_blocks;
  pool.parallel_for(0, g.images * g.groups * tasks, 1, [&](int64_t begin, int64_t end) {
    Task task(g, cut, reinterpret_cast<float*>(scratch) + ThreadPool::this_thread() * own);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / tasks;
      task.run(outer / g.groups, outer % g.groups, i % tasks / cut.row_blocks, i % cut.row_blocks);
    }
  });
}

}  // namespace rlx::cpu
