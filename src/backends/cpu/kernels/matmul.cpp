#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"
#include "rlx/ops/fused_matmul.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kMaxBatchDims = 8;
// Panels of a packed weight are a few vectors wide: much wider than so few columns, which are as fast unpacked.
constexpr int64_t kFewColumns = 8;

using Sizes = std::span<const int64_t>;

// A product with its batch dims, which Gemm only points to.
struct BatchedGemm {
  gemm::Gemm gemm;
  std::array<gemm::BatchDim, kMaxBatchDims> dims;
  int64_t num_dims = 0;

  const gemm::Gemm& get() {
    gemm.batch = {dims.data(), static_cast<size_t>(num_dims)};
    return gemm;
  }
};

// What any b.data of a packed product is when only its sizes are asked for.
const std::byte kSomePacked = {};

// [..., M, K] times [..., K, N] with leading dims broadcast. Dims that are adjacent for all operands become one, and
// rows of batches that share B become rows of one product. `packed` is null for B as it is.
BatchedGemm make_gemm(Sizes a, Sizes b, Sizes c, DType dtype, const std::byte* packed) {
  BatchedGemm out;
  gemm::Gemm& g = out.gemm;
  const auto dim = [](Sizes s, size_t from_end) { return from_end <= s.size() ? s[s.size() - from_end] : 1; };
  g.m = dim(a, 2);
  g.k = dim(a, 1);
  g.n = dim(b, 1);
  g.a = {nullptr, dtype, g.k, 1};
  g.b = {nullptr, dtype, g.n, 1};
  g.c = {nullptr, dtype, g.n, 1};
  g.packed_b = packed;

  const int64_t b_matrix = packed ? gemm::packed_b_bytes(g.k, g.n, dtype) : g.k * g.n;
  int64_t a_step = g.m * g.k, b_step = b_matrix, c_step = g.m * g.n;
  std::array<gemm::BatchDim, kMaxBatchDims> inner_first;
  int64_t count = 0;
  for (size_t axis = 3; axis <= c.size(); ++axis) {
    const int64_t size = dim(c, axis), a_size = dim(a, axis), b_size = dim(b, axis);
    const gemm::BatchDim d = {size, a_size == 1 ? 0 : a_step, b_size == 1 ? 0 : b_step, c_step, 0};
    a_step *= a_size;
    b_step *= b_size;
    c_step *= size;
    if (size == 1) continue;
    if (count == 0 && d.b == 0 && d.a == g.m * g.k) {
      g.m *= size;
      continue;
    }
    if (count > 0) {
      gemm::BatchDim& last = inner_first[static_cast<size_t>(count - 1)];
      if (d.a == last.a * last.size && d.b == last.b * last.size) {
        last.size *= size;
        continue;
      }
    }
    inner_first[static_cast<size_t>(count++)] = d;
  }
  out.num_dims = count;
  for (int64_t i = 0; i < count; ++i)
    out.dims[static_cast<size_t>(i)] = inner_first[static_cast<size_t>(count - 1 - i)];
  return out;
}

int64_t scratch_of(const Signature& s, const std::byte* packed, int threads) {
  BatchedGemm g = make_gemm(s.input(0).shape.sizes(), s.input(1).shape.sizes(), s.output(0).shape.sizes(),
                            s.input(0).dtype, packed);
  return gemm::scratch_bytes(g.get(), threads);
}

void run(const Call& call, bool packed, const gemm::Epilogue& epilogue) {
  const auto &a = call.input(0), &b = call.input(1), &c = call.output(0);
  BatchedGemm g = make_gemm(a.sizes, b.sizes, c.sizes, c.dtype, packed ? b.data : nullptr);
  g.gemm.a.data = a.data;
  g.gemm.b.data = packed ? nullptr : b.data;
  g.gemm.c.data = c.data;
  g.gemm.epilogue = epilogue;
  gemm::run(g.get(), call.pool(), call.scratch());
}

gemm::Epilogue bias_and_activation(const Call& call) {
  return {.bias = {call.input(2).data, call.input(2).dtype, 0, 1},
          .activation = call.attrs<ops::FusedMatmulBiasActAttrs>().activation};
}

bool packs(const Signature& s, const TensorType& w) {
  const Dim& columns = w.dim(w.rank() - 1);
  return s.is_static(1) && (!columns.is_static() || columns.value() > kFewColumns);
}

// The matrices of a weight of any rank, one after the other.
int64_t packed_weight_bytes(const Signature& s) {
  const std::vector<int64_t> sizes = s.input(1).shape.sizes();
  const size_t rank = sizes.size();
  return product(Sizes(sizes).first(rank - 2)) *
         gemm::packed_b_bytes(sizes[rank - 2], sizes[rank - 1], s.input(1).dtype);
}

void pack_weight(const Call& call) {
  const auto& w = call.input(0);
  const int64_t k = w.dim(w.rank() - 2), n = w.dim(w.rank() - 1);
  const int64_t bytes = gemm::packed_b_bytes(k, n, w.dtype);
  for (int64_t i = 0; i < product(w.sizes.first(w.sizes.size() - 2)); ++i)
    gemm::pack_b({w.data + i * k * n * static_cast<int64_t>(size_of(w.dtype)), w.dtype, n, 1}, k, n,
                 call.output(0).data + i * bytes, call.pool());
}

}  // namespace

const host::Packing kMatmulPacking = {1, packed_weight_bytes, pack_weight};

bool matmul_supports(const Signature& s) { return floats<0, 1>(s) && s.output(0).rank() <= kMaxBatchDims + 2; }
bool matmul_packed_supports(const Signature& s) { return matmul_supports(s) && packs(s, s.input(1)); }

int64_t matmul_scratch(const Signature& s, int threads) { return scratch_of(s, nullptr, threads); }
int64_t matmul_packed_scratch(const Signature& s, int threads) { return scratch_of(s, &kSomePacked, threads); }

void matmul(const Call& call) { run(call, false, {}); }
void matmul_packed(const Call& call) { run(call, true, {}); }
void fused_matmul_bias_act(const Call& call) { run(call, false, bias_and_activation(call)); }
void fused_matmul_bias_act_packed(const Call& call) { run(call, true, bias_and_activation(call)); }

// ---- fused_matmul_split: one product per part of the columns, each written to a result of its own ----

namespace {

// A product for one part; what it reads and writes is set by the kernel.
gemm::Gemm part_gemm(Sizes x, Sizes w, int64_t columns, DType dtype, const std::byte* packed) {
  gemm::Gemm g = {.m = product(x.first(x.size() - 1)), .n = columns, .k = w[0]};
  g.a = {nullptr, dtype, g.k, 1};
  g.b = {nullptr, dtype, w[1], 1};
  g.c = {nullptr, dtype, columns, 1};
  g.packed_b = packed;
  return g;
}

int64_t split_scratch_of(const Signature& s, const std::byte* packed, int threads) {
  const auto x = s.input(0).shape.sizes(), w = s.input(1).shape.sizes();
  int64_t most = 0;
  for (const TensorType& part : s.outputs) {
    const int64_t columns = part.dim(part.rank() - 1).value();
    if (columns > 0)
      most = std::max(most, gemm::scratch_bytes(part_gemm(x, w, columns, s.input(0).dtype, packed), threads));
  }
  return most;
}

void run_split(const Call& call, bool packed) {
  const auto &x = call.input(0), &w = call.input(1), &bias = call.input(2);
  const auto element = static_cast<int64_t>(size_of(x.dtype));
  int64_t start = 0, packed_at = 0;
  for (int64_t i = 0; i < call.num_outputs(); ++i) {
    const auto& y = call.output(i);
    const int64_t columns = y.dim(y.rank() - 1);
    if (columns == 0) continue;
    if (call.wants(i)) {
      gemm::Gemm g = part_gemm(x.sizes, w.sizes, columns, x.dtype, packed ? w.data + packed_at : nullptr);
      g.a.data = x.data;
      g.b.data = packed ? nullptr : w.data + start * element;
      g.c.data = y.data;
      g.epilogue.bias = {bias.data + start * element, bias.dtype, 0, 1};
      gemm::run(g, call.pool(), call.scratch());
    }
    start += columns;
    packed_at += gemm::packed_b_bytes(w.dim(0), columns, w.dtype);
  }
}

// The parts one after the other, each packed by itself.
int64_t packed_split_bytes(const Signature& s) {
  int64_t bytes = 0;
  for (const TensorType& part : s.outputs)
    bytes += gemm::packed_b_bytes(s.input(1).dim(0).value(), part.dim(part.rank() - 1).value(), s.input(1).dtype);
  return bytes;
}

void pack_split(const Call& call) {
  const auto& w = call.input(0);
  int64_t start = 0, at = 0;
  for (const Dim& width : call.attrs<ops::FusedMatmulSplitAttrs>().widths) {
    const int64_t columns = width.value();
    gemm::pack_b({w.data + start * static_cast<int64_t>(size_of(w.dtype)), w.dtype, w.dim(1), 1}, w.dim(0), columns,
                 call.output(0).data + at, call.pool());
    start += columns;
    at += gemm::packed_b_bytes(w.dim(0), columns, w.dtype);
  }
}

}  // namespace

const host::Packing kMatmulSplitPacking = {1, packed_split_bytes, pack_split};

bool fused_matmul_split_supports(const Signature& s) {
  return floats<0, 1, 2>(s) && s.input(0).rank() >= 1 && s.input(1).rank() == 2;
}
bool fused_matmul_split_packed_supports(const Signature& s) {
  return fused_matmul_split_supports(s) && packs(s, s.input(1));
}
int64_t fused_matmul_split_scratch(const Signature& s, int threads) { return split_scratch_of(s, nullptr, threads); }
int64_t fused_matmul_split_packed_scratch(const Signature& s, int threads) {
  return split_scratch_of(s, &kSomePacked, threads);
}
void fused_matmul_split(const Call& call) { run_split(call, false); }
void fused_matmul_split_packed(const Call& call) { run_split(call, true); }

// ---- grouped_matmul: rows sorted by expert, one product per expert that has any ----

namespace {

// Parts of the scratch memory.
struct Grouped {
  int64_t m, k, n, experts, element;
  int64_t order, first, x, y, gemm, bytes;  // offsets; `order`: the sorted rows, `first`: of each expert

  Grouped(Sizes x_sizes, Sizes w_sizes, DType dtype)
      : m(x_sizes[0]),
        k(x_sizes[1]),
        n(w_sizes[2]),
        experts(w_sizes[0]),
        element(static_cast<int64_t>(size_of(dtype))) {
    order = 0;
    first = order + round_up(m * 8, 64);
    x = first + round_up((experts + 1) * 8, 64);
    y = x + round_up(m * k * element, 64);
    gemm = y + round_up(m * n * element, 64);
  }
};

gemm::Gemm expert_gemm(const Grouped& l, int64_t rows, DType dtype, const std::byte* packed) {
  gemm::Gemm g = {.m = rows, .n = l.n, .k = l.k};
  g.a = {nullptr, dtype, l.k, 1};
  g.b = {nullptr, dtype, l.n, 1};
  g.c = {nullptr, dtype, l.n, 1};
  g.packed_b = packed;
  return g;
}

int64_t grouped_scratch_of(const Signature& s, const std::byte* packed, int threads) {
  const DType dtype = s.input(0).dtype;
  const Grouped l(s.input(0).shape.sizes(), s.input(1).shape.sizes(), dtype);
  int64_t most = 0;  // how many rows an expert gets is known when it runs
  for (int64_t rows = 1; rows <= l.m; ++rows)
    most = std::max(most, gemm::scratch_bytes(expert_gemm(l, rows, dtype, packed), threads));
  return l.gemm + most;
}

// Counting sort of the rows by their expert.
void sort_rows(const Call& call, const Grouped& l, int64_t* order, int64_t* first) {
  const host::IntReader expert = call.int_reader(2);
  std::fill(first, first + l.experts + 1, 0);
  for (int64_t row = 0; row < l.m; ++row) {
    const int64_t e = expert[row];
    if (e < 0 || e >= l.experts)
      fail(ErrorKind::kRuntime,
           str("Expert index (", e, ") of row ", row, " is not one of the ", l.experts, " experts."));
    ++first[e + 1];
  }
  for (int64_t e = 0; e < l.experts; ++e) first[e + 1] += first[e];
  for (int64_t row = 0; row < l.m; ++row) order[first[expert[row]]++] = row;
  for (int64_t e = l.experts; e > 0; --e) first[e] = first[e - 1];  // each has moved on to the next one's first
  first[0] = 0;
}

void run_grouped(const Call& call, bool packed) {
  const auto &x = call.input(0), &w = call.input(1), &y = call.output(0);
  const Grouped l(x.sizes, w.sizes, x.dtype);
  std::byte* scratch = call.scratch();
  auto* order = reinterpret_cast<int64_t*>(scratch + l.order);
  auto* first = reinterpret_cast<int64_t*>(scratch + l.first);
  sort_rows(call, l, order, first);

  const int64_t x_row = l.k * l.element, y_row = l.n * l.element;
  const auto copy_rows = [&](int64_t bytes, auto&& copy) {
    call.pool().parallel_for(0, l.m, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, bytes)),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t i = begin; i < end; ++i) copy(i, order[i]);
                             });
  };
  if (x_row > 0)
    copy_rows(x_row, [&](int64_t i, int64_t row) {
      std::memcpy(scratch + l.x + i * x_row, x.data + row * x_row, static_cast<size_t>(x_row));
    });
  const int64_t matrix = packed ? gemm::packed_b_bytes(l.k, l.n, w.dtype) : l.k * y_row;
  for (int64_t e = 0; e < l.experts; ++e) {
    const int64_t rows = first[e + 1] - first[e];
    if (rows == 0) continue;
    gemm::Gemm g = expert_gemm(l, rows, x.dtype, packed ? w.data + e * matrix : nullptr);
    g.a.data = scratch + l.x + first[e] * x_row;
    g.b.data = packed ? nullptr : w.data + e * matrix;
    g.c.data = scratch + l.y + first[e] * y_row;
    gemm::run(g, call.pool(), scratch + l.gemm);
  }
  copy_rows(y_row, [&](int64_t i, int64_t row) {
    std::memcpy(y.data + row * y_row, scratch + l.y + i * y_row, static_cast<size_t>(y_row));
  });
}

}  // namespace

int64_t grouped_matmul_scratch(const Signature& s, int threads) { return grouped_scratch_of(s, nullptr, threads); }
int64_t grouped_matmul_packed_scratch(const Signature& s, int threads) {
  return grouped_scratch_of(s, &kSomePacked, threads);
}
void grouped_matmul(const Call& call) { run_grouped(call, false); }
void grouped_matmul_packed(const Call& call) { run_grouped(call, true); }

}  // namespace rlx::cpu
