// Products of float and integer matrices, and the fused ops that are a product and something more.
#include "rlx/ops/matmul.h"

#include <algorithm>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/matmul.h"
#include "rlx/ops/fused_matmul.h"

namespace rlx::webgpu {

namespace {

std::vector<BatchAxis> merge_batch(const Shape& lhs, const Shape& rhs, int64_t m, int64_t k, int64_t n) {
  const int64_t rank = std::max(lhs.rank(), rhs.rank()) - 2;
  std::vector<BatchAxis> axes(static_cast<size_t>(rank));
  int64_t lhs_stride = m * k, rhs_stride = k * n;
  for (int64_t i = rank; i-- > 0;) {
    BatchAxis& axis = axes[static_cast<size_t>(i)];
    const auto add = [&](const Shape& s, int64_t& stride, int64_t& own) {
      const int64_t d = i - (rank - (s.rank() - 2));
      const int64_t size = d < 0 ? 1 : s[d].value();
      own = size == 1 ? 0 : stride;
      stride *= size;
      if (size != 1) axis.size = size;
    };
    add(lhs, lhs_stride, axis.lhs_stride);
    add(rhs, rhs_stride, axis.rhs_stride);
  }
  std::vector<BatchAxis> merged;
  for (const BatchAxis& a : axes) {
    if (a.size == 1) continue;
    if (!merged.empty() && merged.back().lhs_stride == a.lhs_stride * a.size &&
        merged.back().rhs_stride == a.rhs_stride * a.size) {
      merged.back() = {merged.back().size * a.size, a.lhs_stride, a.rhs_stride};
      continue;
    }
    merged.push_back(a);
  }
  return merged;
}

// Products of floats that a kernel sums in f32.
bool is_short_float(DType dtype) { return is_float(dtype) && dtype != DType::F64; }

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}

bool batch_fits(const TensorType& lhs, const TensorType& rhs) {
  if (!is_static(lhs.shape) || !is_static(rhs.shape)) return true;  // seen again when sizes are known
  return matmul_shape(lhs.shape, rhs.shape).batch.size() <= kMaxBatchAxes;
}

MatmulShape shape_of(const LowerCall& call) { return matmul_shape(call.input_type(0).shape, call.input_type(1).shape); }

// The operands that all have: x and w.
Matmul start_matmul(LowerCall& call, MatmulShape shape) {
  Matmul mm{.shape = std::move(shape), .lhs = call.read(0)};
  const Operand packed = call.read_packed(1);
  mm.rhs_is_bf16 = call.input_type(1).dtype == DType::BF16 && call.storage(packed) == Storage::kPacked &&
                   mm.shape.n % 4 == 0 && call.starts_at_multiple_of(packed, 8);
  mm.rhs = mm.rhs_is_bf16 ? packed : call.read(1);
  if (!mm.rhs_is_bf16 && !call.options().webgpu.matmul_f32_only) mm.rhs = call.f16_weight(1).value_or(mm.rhs);
  return mm;
}

}  // namespace

int64_t MatmulShape::matrices() const {
  int64_t count = 1;
  for (const BatchAxis& a : batch) count *= a.size;
  return count;
}

MatmulShape matmul_shape(const Shape& lhs, const Shape& rhs) {
  MatmulShape s{.m = lhs[lhs.rank() - 2].value(), .n = rhs[rhs.rank() - 1].value(), .k = lhs[lhs.rank() - 1].value()};
  s.batch = merge_batch(lhs, rhs, s.m, s.k, s.n);
  // Matrices that share rhs and lie one after the other are one taller matrix.
  while (!s.batch.empty() && s.batch.back().rhs_stride == 0 && s.batch.back().lhs_stride == s.m * s.k) {
    s.m *= s.batch.back().size;
    s.batch.pop_back();
  }
  return s;
}

bool matmul_supports(const LowerSignature& s, const Device&) {
  return is_short_float(s.input(0).dtype) && batch_fits(s.input(0), s.input(1));
}

void lower_matmul(LowerCall& call) {
  Matmul mm = start_matmul(call, shape_of(call));
  mm.results = {{call.write(0), mm.shape.n}};
  emit_matmul(call, mm);
}

bool matmul_int_supports(const LowerSignature& s, const Device&) {
  return is_int(s.input(0).dtype) && batch_fits(s.input(0), s.input(1));
}

void lower_matmul_int(LowerCall& call) {
  const Operand lhs = call.read(0), rhs = call.read(1);
  emit_matmul_int(call, shape_of(call), lhs, rhs, call.write(0));
}

bool fused_matmul_bias_act_supports(const LowerSignature& s, const Device&) {
  return is_short_float(s.input(0).dtype) && batch_fits(s.input(0), s.input(1));
}

void lower_fused_matmul_bias_act(LowerCall& call) {
  Matmul mm = start_matmul(call, shape_of(call));
  mm.bias = call.read(2);
  mm.activation = call.attrs<ops::FusedMatmulBiasActAttrs>().activation;
  mm.results = {{call.write(0), mm.shape.n}};
  emit_matmul(call, mm);
}

// More parts than bindings: the definition, which cuts the product afterwards.
bool fused_matmul_split_supports(const LowerSignature& s, const Device&) {
  return is_short_float(s.input(0).dtype) && s.attrs.as<ops::FusedMatmulSplitAttrs>().widths.size() <= 4;
}

void lower_fused_matmul_split(LowerCall& call) {
  Matmul mm = start_matmul(call, shape_of(call));
  mm.bias = call.read(2);
  const auto& widths = call.attrs<ops::FusedMatmulSplitAttrs>().widths;
  for (size_t i = 0; i < widths.size(); ++i) {
    MatmulPart part{.width = widths[i].value()};
    if (call.wants(static_cast<int64_t>(i)) && part.width > 0) part.result = call.write(static_cast<int64_t>(i));
    mm.results.push_back(part);
  }
  emit_matmul(call, mm);
}

bool grouped_matmul_supports(const LowerSignature& s, const Device&) {
  return is_short_float(s.input(0).dtype) || is_int(s.input(0).dtype);
}

void lower_grouped_matmul(LowerCall& call) {
  const Shape &x = call.input_type(0).shape, &w = call.input_type(1).shape;
  const int64_t rows = x[0].value(), k = x[1].value(), experts = w[0].value(), n = w[2].value();
  to_u32(checked_mul(checked_mul(experts, k), n));
  check_indices(call, 2, IndexRange{0, experts}, [](int64_t value, int64_t row, int64_t end) {
    return str("Expert index (", value, ") of row ", row, " is not one of the ", end, " experts.");
  });
  MatmulShape shape{.batch = {{rows, k, 0}}, .m = 1, .n = n, .k = k};
  if (is_int(call.input_type(0).dtype)) {
    const Operand lhs = call.read(0), rhs = call.read(1), index = call.read(2);
    emit_matmul_int(call, shape, lhs, rhs, call.write(0), index, experts);
    return;
  }
  Matmul mm = start_matmul(call, std::move(shape));
  mm.index = call.read(2);
  mm.experts = experts;
  mm.results = {{call.write(0), n}};
  emit_matmul(call, mm);
}

}  // namespace rlx::webgpu
