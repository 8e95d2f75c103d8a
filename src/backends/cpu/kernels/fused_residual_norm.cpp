// A residual sum and its norm in one pass over memory. The sum is rounded to the storage type before it is normalised:
// the results are those of the ops one after the other.
#include "rlx/ops/fused_residual_norm.h"

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/simd/norm.h"

namespace rlx::cpu {

namespace {

// Each thread: the sum, and the residual as f32 or the result.
RowScratch row_scratch(const RowGroups& g, DType dtype) { return {dtype, g.cols, 2 * g.buffer}; }

// A row as its storage type would hold it.
void round_to(DType dtype, float* v, float* spare, int64_t n) {
  if (dtype == DType::F32) return;
  auto* stored = reinterpret_cast<std::byte*>(spare);
  from_f32(dtype, v, stored, 0, n);
  to_f32(dtype, stored, 0, v, n);
}

void run(const Call& call, bool has_bias, bool centred, double eps) {
  const host::View &x = call.input(0), &residual = call.input(1), &y = call.output(0);
  const RowGroups g = trailing_rows(x.sizes, -1);
  const RowScratch scratch = row_scratch(g, x.dtype);
  int64_t next = 2;
  const auto param = [&](bool present) -> const float* {
    if (!present) return nullptr;
    const int64_t i = next++;
    return all_as_f32(call.input(i), scratch.of_param(call, i - 2));
  };
  const float* bias = param(has_bias);
  Affine affine;
  affine.gamma = param(true);
  affine.beta = param(next < call.num_inputs());
  const bool in_place = y.data == x.data || y.data == residual.data;
  const bool wants_norm = call.wants(0), wants_sum = call.wants(1);
  const RowWriter out(y, in_place), sum(call.output(wants_sum ? 1 : 0), false);
  g.each(call.pool(), [&](int64_t row, int64_t rows) {
    float* v = scratch.of_thread(call);
    float* spare = v + g.buffer;
    const int64_t first = row * g.cols, n = rows * g.cols;
    const float* a = row_as_f32(x.dtype, x.data, first, v, n);
    const float* b = row_as_f32(x.dtype, residual.data, first, spare, n);
    if (x.dtype != DType::F32 && bias != nullptr) {
      residual_rows(a, b, nullptr, v, rows, g.cols);
      round_to(x.dtype, v, spare, n);
      for (int64_t r = 0; r < rows; ++r) residual_rows(v + r * g.cols, bias, nullptr, v + r * g.cols, 1, g.cols);
    } else {
      residual_rows(a, b, bias, v, rows, g.cols);
    }
    round_to(x.dtype, v, spare, n);
    if (wants_sum) sum.copy(first, v, n);
    if (!wants_norm) return;
    const Ahead ahead = x.dtype == DType::F32 ? Ahead{a + n, b + n} : Ahead{};
    if (out.streams_rows(g.cols)) return norm_rows(v, out.at(first), rows, g.cols, affine, centred, eps, true, ahead);
    float* to = out.target(first, spare);
    norm_rows(v, to, rows, g.cols, affine, centred, eps, false, ahead);
    out.finish(first, to, n);
  });
}

}  // namespace

bool fused_residual_norm_supports(const Signature& s) { return is_small_float(s.input(0).dtype); }

int64_t fused_residual_norm_scratch(const Signature& s, int threads) {
  const TensorType& x = s.input(0);
  return row_scratch(trailing_rows(x.shape.sizes(), -1), x.dtype).bytes(threads);
}

void fused_residual_ln(const Call& call) {
  const auto& [has_bias, eps] = call.attrs<ops::FusedResidualLnAttrs>();
  run(call, has_bias, true, eps);
}

void fused_residual_rms_norm(const Call& call) {
  const auto& [has_bias, eps] = call.attrs<ops::FusedResidualRmsNormAttrs>();
  run(call, has_bias, false, eps);
}

}  // namespace rlx::cpu
