// Quantised ops of ONNX Runtime's domain, com.microsoft.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/conv.h"
#include "import/onnx/ops/integer.h"

namespace rlx::onnx {

namespace {

// Input i of a shape that broadcasts as one number does: files have scalars and [1] alike.
Value number(OnnxNode& n, int64_t i) {
  const Value x = n.input(i);
  return x.shape().rank() == 1 && x.shape()[0].is(1) ? reshape_to(x, {}) : x;
}

std::optional<Value> optional_number(OnnxNode& n, int64_t i) {
  return n.has(i) ? std::optional(number(n, i)) : std::nullopt;
}

// Inputs i, i + 1, i + 2: codes, scale, zero point.
Value dequantized_input(OnnxNode& n, int64_t i) {
  const Value scale = number(n, i + 1);
  return n.has(i + 2) ? ops::dequantize_linear(n.input(i), scale, number(n, i + 2))
                      : ops::dequantize_linear(n.input(i), scale);
}

Value quantized(const Value& x, const Value& scale, const std::optional<Value>& zero, DType dtype) {
  return zero ? ops::quantize_linear(x, scale, *zero, {.to = dtype}) : ops::quantize_linear(x, scale, {.to = dtype});
}

// Round to the codes of `dtype`; the cast takes what lies outside to the nearest one.
Value rounded(const Value& x, const std::optional<Value>& zero, DType dtype) {
  const Value whole = ops::round(x);
  return cast_to(zero ? whole + cast_to(*zero, DType::F32) : whole, dtype);
}

// As MLAS sums: the ratios of the scales first, and all zero points as one number.
Built q_linear_add(OnnxNode& n) {
  const Value a = n.input(0), b = n.input(3);
  const Value ratio_a = number(n, 1) / number(n, 6), ratio_b = number(n, 4) / number(n, 6);
  const auto zero = [&](int64_t i) { return n.has(i) ? cast_to(number(n, i), DType::F32) : n.scalar(0, DType::F32); };
  const Value zeros = ratio_a * zero(2) + ratio_b * zero(5);
  const Value fixed = zero(7) - zeros;
  const Value sum = cast_to(b, DType::F32) * ratio_b + (cast_to(a, DType::F32) * ratio_a + fixed);
  return cast_to(ops::round(sum), a.dtype());
}

Built q_linear_mul(OnnxNode& n) {
  const auto centered = [&](int64_t i) {
    const Value x = cast_to(n.input(i), DType::F32);
    return n.has(i + 2) ? x - cast_to(number(n, i + 2), DType::F32) : x;
  };
  const Value ratio = number(n, 1) * number(n, 4) / number(n, 6);
  const Value product = centered(0) * centered(3);  // of two bytes: exact
  return rounded(product * ratio, optional_number(n, 7), n.input(0).dtype());
}

// f of the value, one operand: X, its scale and zero point, then those of the result.
template <Value (*f)(OnnxNode&, const Value&)>
Built unary(OnnxNode& n) {
  return quantized(f(n, dequantized_input(n, 0)), number(n, 3), optional_number(n, 4), n.input(0).dtype());
}

Value sigmoid(OnnxNode&, const Value& x) { return ops::sigmoid(x); }

Value leaky_relu(OnnxNode& n, const Value& x) {
  const Value below = x * scalar_like(n, x, n.attr("alpha", 0.01f));
  return ops::where(ops::lt(x, scalar_like(n, x, 0)), below, x);
}

// Before opset 13 the axes from `axis` on are one.
Value softmax(OnnxNode& n, const Value& x) {
  const int64_t rank = x.shape().rank(), axis = normalize_axis(n.attr("axis", -1), rank);
  if (n.required_int("opset") >= 13 || axis == rank - 1) return ops::softmax(x, {.axis = axis});
  return reshape_to(ops::softmax(as_matrix(n.graph(), x, axis), {.axis = -1}), x.shape().dims());
}

Built q_linear_global_average_pool(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  require(rank >= 3, "X has rank ", rank, "; 3 or more is expected.");
  const int64_t first = n.attr("channels_last", false) ? 1 : 2;
  std::vector<int64_t> axes;
  std::vector<Dim> sizes;
  for (int64_t i = first; i < first + rank - 2; ++i) {
    axes.push_back(i);
    sizes.push_back(x.shape()[i]);
  }
  const Value count = reshape_to(sizes_as_tensor(n, {n.symbols().product(sizes)}), {});
  const Value sum = ops::reduce_sum(cast_to(x, DType::I32), {.axes = axes, .keep_dim = true});
  const Value zero = cast_to(number(n, 2), DType::I32) * cast_to(count, DType::I32);
  const Value factor = number(n, 1) / (number(n, 3) * cast_to(count, DType::F32));
  return rounded(cast_to(sum - zero, DType::F32) * factor, number(n, 4), x.dtype());
}

// The mean of the values, as codes.
Built q_linear_average_pool(OnnxNode& n) {
  if (n.attr("channels_last", false)) n.unsupported("Channels in the last axis are not supported.");
  const Value x = dequantized_input(n, 0);
  const Window w = window_of(n, x.shape(), n.required_ints("kernel_shape"));
  const Value y = ops::pool_mean(x, {.kernel_size = w.kernel,
                                     .stride = w.stride,
                                     .padding = w.pads,
                                     .dilation = w.dilation,
                                     .ceil_mode = n.attr("ceil_mode", false),
                                     .count_include_pad = n.attr("count_include_pad", false)});
  return quantized(y, number(n, 3), optional_number(n, 4), n.input(0).dtype());
}

// Every operand brings its own scale and zero point.
Built q_linear_concat(OnnxNode& n) {
  require(n.num_inputs() >= 5 && (n.num_inputs() - 2) % 3 == 0, "There are ", n.num_inputs(),
          " inputs; 2 and 3 for each tensor are expected.");
  Values parts;
  for (int64_t i = 2; i < n.num_inputs(); i += 3)
    parts.push_back(quantized(dequantized_input(n, i), number(n, 0), number(n, 1), n.input(i).dtype()));
  return parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = n.required_int("axis")});
}

Built q_linear_where(OnnxNode& n) {
  const DType dtype = n.input(1).dtype();
  const Value x = quantized(dequantized_input(n, 1), number(n, 7), number(n, 8), dtype);
  const Value y = quantized(dequantized_input(n, 4), number(n, 7), number(n, 8), dtype);
  return ops::where(n.input(0), x, y);
}

// ---- products

// float(product) * scale + bias.
Value scaled_product(OnnxNode& n, const Value& product, const Value& scale, int64_t bias) {
  const Value y = cast_to(product, DType::F32) * scale;
  return n.has(bias) ? y + n.input(bias) : y;
}

Built matmul_integer_to_float(OnnxNode& n) {
  const Value product = matmul_integer_of(n, n.input(0), n.input(1), optional_number(n, 4), optional_number(n, 5));
  return scaled_product(n, product, number(n, 2) * number(n, 3), 6);
}

// The left operand is quantised to U8 by its own range, which contains 0.
Built dynamic_quantize_matmul(OnnxNode& n) {
  const Value x = n.input(0);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.shape().rank(); ++i) axes.push_back(i);
  const Value zero = n.scalar(0, DType::F32), one = n.scalar(1, DType::F32), top = n.scalar(255, DType::F32);
  const Value low = ops::min(ops::reduce_min(x, {.axes = axes}), zero);
  const Value high = ops::max(ops::reduce_max(x, {.axes = axes}), zero);
  const Value scale = ops::where(ops::eq(low, high), one, (high - low) / top);
  const Value point = cast_to(ops::round(ops::min(ops::max(zero - low / scale, zero), top)), DType::U8);
  const Value codes = quantized(x, scale, point, DType::U8);
  const Value product = matmul_integer_of(n, codes, n.input(1), point, optional_number(n, 3));
  return scaled_product(n, product, scale * number(n, 2), 4);
}

// alpha * A * B + C in codes; the result is F32 when it has no scale.
Built q_gemm(OnnxNode& n) {
  Value a = n.input(0), b = n.input(3);
  if (n.attr("transA", false)) a = swap_last_two(a);
  if (n.attr("transB", false)) b = swap_last_two(b);
  Value sum = matmul_integer_of(n, a, b, optional_number(n, 2), optional_number(n, 5));
  if (n.has(6)) sum = sum + n.input(6);
  const Value scale = n.scalar(n.attr("alpha", 1.0f), DType::F32) * number(n, 1) * number(n, 4);
  if (!n.has(7)) return cast_to(sum, DType::F32) * scale;
  const DType dtype = n.has(8) ? n.input(8).dtype() : a.dtype();
  return rounded(cast_to(sum, DType::F32) * (scale / number(n, 7)), optional_number(n, 8), dtype);
}

}  // namespace

Rows contrib_quantized_rows() {
  return {
      {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
      {"MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {"QGemm", 1, q_gemm},
      {"QLinearAdd", 1, q_linear_add},
      {"QLinearAveragePool", 1, q_linear_average_pool},
      {"QLinearConcat", 1, q_linear_concat},
      {"QLinearGlobalAveragePool", 1, q_linear_global_average_pool},
      {"QLinearLeakyRelu", 1, unary<leaky_relu>},
      {"QLinearMul", 1, q_linear_mul},
      {"QLinearSigmoid", 1, unary<sigmoid>},
      {"QLinearSoftmax", 1, unary<softmax>},
      {"QLinearWhere", 1, q_linear_where},
  };
}

}  // namespace rlx::onnx
