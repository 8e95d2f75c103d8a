// Quantisation: codes of integers and small floats, and products of them.
#include "import/onnx/ops.h"
#include "import/onnx/ops/cast.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/conv.h"
#include "import/onnx/ops/integer.h"

namespace rlx::onnx {

namespace {

// A scale or zero point as something that broadcasts with x: one number, one per index of the axis, or one per block.
Value spread(OnnxNode& n, const Value& s, const Shape& x, int64_t axis, int64_t block) {
  if (s.shape().rank() == 0 || (s.shape().rank() == 1 && s.shape()[0].is(1))) return reshape_to(s, {});
  axis = normalize_axis(axis, x.rank());
  if (block == 0) {
    std::vector<Dim> shape(static_cast<size_t>(x.rank()), Dim(1));
    shape[static_cast<size_t>(axis)] = s.shape()[0];
    return reshape_to(s, shape);
  }
  std::vector<Dim> apart, repeated, joined;
  for (int64_t i = 0; i < x.rank(); ++i) {
    apart.push_back(s.shape()[i]);
    repeated.push_back(s.shape()[i]);
    joined.push_back(i == axis ? n.symbols().mul(s.shape()[i], block) : s.shape()[i]);
    if (i != axis) continue;
    apart.emplace_back(1);
    repeated.emplace_back(block);
  }
  const Value all = reshape_to(expand_to(reshape_to(s, apart), Shape(repeated)), joined);
  if (joined[static_cast<size_t>(axis)] == x[axis]) return all;
  return ops::narrow(all, {.axis = axis, .start = 0, .len = x[axis]});  // the last block is not full
}

// A list of one element is one number.
Value one_or_list(const Value& v) { return v.shape().rank() == 1 && v.shape()[0].is(1) ? reshape_to(v, {}) : v; }

struct Range {
  std::optional<int64_t> low, high;
};

Range range_of(ElemType elem) {
  switch (elem) {
    case ElemType::kInt4: return {-8, 7};
    case ElemType::kUint4: return {0, 15};
    case ElemType::kInt2: return {-2, 1};
    case ElemType::kUint2: return {0, 3};
    default: return {};
  }
}

Built quantize_linear(OnnxNode& n) {
  const Value x = n.input(0);
  Value scale = one_or_list(n.input(1));
  std::optional<Value> zero;
  if (n.has(2)) zero = one_or_list(n.input(2));
  ElemType to = ElemType::kUint8;
  if (const int64_t given = n.attr("output_dtype", 0); given != 0) to = static_cast<ElemType>(given);
  if (n.has(2)) to = n.elem(2);
  const int64_t axis = n.attr("axis", 1), block = n.attr("block_size", 0);
  if (is_code(to)) {
    Value wide = cast_to(x, DType::F32) / spread(n, cast_to(scale, DType::F32), x.shape(), axis, block);
    if (zero) wide = wide + spread(n, decode(*zero, to, DType::F32), x.shape(), axis, block);
    return encode(n, wide, to, n.attr("saturate", true));
  }
  const Range range = range_of(to);
  const ops::QuantizeLinearAttrs attrs{
      .axis = axis, .block_size = block, .to = storage_of(to), .low = range.low, .high = range.high};
  if (is_int(x.dtype())) {  // int32 is allowed as well
    const Value wide = cast_to(x, scale.dtype());
    return n.result(zero ? ops::quantize_linear(wide, scale, *zero, attrs) : ops::quantize_linear(wide, scale, attrs),
                    to);
  }
  scale = cast_to(scale, x.dtype());
  return n.result(zero ? ops::quantize_linear(x, scale, *zero, attrs) : ops::quantize_linear(x, scale, attrs), to);
}

Built dequantize_linear(OnnxNode& n) {
  const Value q = n.input(0), scale = one_or_list(n.input(1));
  const int64_t axis = n.attr("axis", 1), block = n.attr("block_size", 0);
  const int64_t given = n.attr("output_dtype", 0);
  const DType to = given != 0 ? storage_of(static_cast<ElemType>(given)) : scale.dtype();
  if (is_code(n.elem(0))) {
    Value x = decode(q, n.elem(0), DType::F32);
    if (n.has(2)) x = x - spread(n, decode(n.input(2), n.elem(0), DType::F32), q.shape(), axis, block);
    return cast_to(x * spread(n, cast_to(scale, DType::F32), q.shape(), axis, block), to);
  }
  const ops::DequantizeLinearAttrs attrs{.axis = axis, .block_size = block, .to = to};
  return n.has(2) ? ops::dequantize_linear(q, scale, one_or_list(n.input(2)), attrs)
                  : ops::dequantize_linear(q, scale, attrs);
}

// To uint8, with the range of x (0 included) as the range of codes.
Built dynamic_quantize_linear(OnnxNode& n) {
  const Value x = n.input(0);
  const Value zero = scalar_like(n, x, 0), top = scalar_like(n, x, 255);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.shape().rank(); ++i) axes.push_back(i);
  const Value low = ops::min(ops::reduce_min(x, {.axes = axes}), zero);
  const Value high = ops::max(ops::reduce_max(x, {.axes = axes}), zero);
  const Value scale = (high - low) / top;
  const Value is_flat = ops::eq(scale, zero);  // all zeros: any scale does
  const Value divisor = ops::where(is_flat, scalar_like(n, x, 1), scale);
  const Value point = ops::round(ops::min(ops::max(-(low / divisor), zero), top));
  const Value zero_point = cast_to(point, DType::U8);
  const Value y = ops::quantize_linear(x, divisor, zero_point, {.to = DType::U8});
  return Values{y, scale, zero_point};
}

std::optional<Value> optional_input(OnnxNode& n, int64_t i) {
  return n.has(i) ? std::optional<Value>(n.input(i)) : std::nullopt;
}

Built matmul_integer(OnnxNode& n) {
  return matmul_integer_of(n, n.input(0), n.input(1), optional_input(n, 2), optional_input(n, 3));
}

// Sums of products of codes as codes of the result.
Item requantize(OnnxNode& n, const Value& sums, const Value& factor, int64_t scale, int64_t zero) {
  const Value real = cast_to(sums, DType::F32) * factor;
  const Value code_scale = reshape_to(cast_to(n.input(scale), DType::F32), {});
  return n.result(ops::quantize_linear(real, code_scale, reshape_to(n.input(zero), {}), {.to = n.input(zero).dtype()}),
                  n.elem(zero));
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
Built qlinear_matmul(OnnxNode& n) {
  const Value a = n.input(0), b = n.input(3);
  const Value sums = matmul_integer_of(n, a, b, n.input(2), n.input(5));
  Value a_scale = cast_to(n.input(1), DType::F32);
  const Value b_scale = cast_to(n.input(4), DType::F32);  // [N] broadcasts along the last axis
  if (a_scale.shape().rank() == 1 && !a_scale.shape()[0].is(1)) a_scale = unsqueeze(a_scale, {1});  // one per row
  return requantize(n, sums, a_scale * b_scale, 6, 7);
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, optional bias (int32, of scale x_scale * w_scale).
Built qlinear_conv(OnnxNode& n) {
  const Value x = n.input(0), w = n.input(3);
  const auto channels = [&](const Value& v) {
    std::vector<Dim> shape(static_cast<size_t>(x.shape().rank()), Dim(1));
    if (v.shape().rank() == 1) shape[1] = v.shape()[0];
    return reshape_to(v, shape);
  };
  Value sums = conv_integer_of(n, x, w, reshape_to(n.input(2), {}), n.input(5));
  if (n.has(8)) sums = sums + channels(n.input(8));
  const Value factor = reshape_to(cast_to(n.input(1), DType::F32), {}) * channels(cast_to(n.input(4), DType::F32));
  return requantize(n, sums, factor, 6, 7);
}

}  // namespace

Value matmul_integer_of(OnnxNode& n, Value a, Value b, const std::optional<Value>& a_zero,
                        const std::optional<Value>& b_zero) {
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = unsqueeze(a, {0});
  if (column) b = unsqueeze(b, {1});
  Values operands{a, b};
  if (a_zero || b_zero) operands.push_back(a_zero ? *a_zero : n.scalar(0, a.dtype()));
  if (b_zero) operands.push_back(*b_zero);
  Value y = ops::matmul_integer(operands);
  if (column) y = squeeze(y, {-1});
  if (row) y = squeeze(y, {column ? -1 : -2});
  return y;
}

Rows contrib_quantize_rows() {
  return {
      {"DequantizeLinear", 1, dequantize_linear},
      {"QuantizeLinear", 1, quantize_linear},
  };
}

Rows quantize_rows() {
  return {
      {"DequantizeLinear", 10, dequantize_linear}, {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
      {"MatMulInteger", 10, matmul_integer},       {"QLinearConv", 10, qlinear_conv},
      {"QLinearMatMul", 10, qlinear_matmul},       {"QuantizeLinear", 10, quantize_linear},
  };
}

}  // namespace rlx::onnx
