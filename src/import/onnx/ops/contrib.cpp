// Ops of ONNX Runtime's domain, com.microsoft, that exporters and its optimiser write: activations, products, weights
// in blocks of few bits.
#include <algorithm>
#include <limits>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/conv.h"

namespace rlx::onnx {

namespace {

// ---- activations

Value with_bias(OnnxNode& n) { return n.has(1) ? n.input(0) + n.input(1) : n.input(0); }

Built gelu(OnnxNode& n) { return ops::gelu(with_bias(n)); }
Built fast_gelu(OnnxNode& n) { return ops::gelu_approx(with_bias(n)); }

Built quick_gelu(OnnxNode& n) {
  const Value x = n.input(0);
  const float alpha = n.attr("alpha", 1.702f);
  return alpha == 1.0f ? ops::silu(x) : x * ops::sigmoid(x * scalar_like(n, x, alpha));
}

// The activation that the optimiser fused into a product. `parameters` are those of the op of that name.
Value activated(OnnxNode& n, const Value& x, const std::string& function, const std::vector<float>& parameters) {
  const auto parameter = [&](size_t i, float otherwise) {
    return scalar_like(n, x, i < parameters.size() ? parameters[i] : otherwise);
  };
  const auto clipped = [](const Value& v, const Value& low, const Value& high) {
    return ops::min(ops::max(v, low), high);
  };
  if (function.empty()) return x;
  if (function == "Relu") return ops::relu(x);
  if (function == "Sigmoid") return ops::sigmoid(x);
  if (function == "Tanh") return ops::tanh(x);
  if (function == "LeakyRelu") {
    const Value below = x * parameter(0, 0.01f);
    return ops::where(ops::lt(x, scalar_like(n, x, 0)), below, x);
  }
  if (function == "HardSigmoid") {
    const Value line = x * parameter(0, 0.2f) + parameter(1, 0.5f);
    return clipped(line, scalar_like(n, x, 0), scalar_like(n, x, 1));
  }
  constexpr float kMost = std::numeric_limits<float>::max();
  if (function == "Clip") return clipped(x, parameter(0, -kMost), parameter(1, kMost));
  n.unsupported(str("Activation '", function, "' is not known."));
}

// ---- products

// Conv, then a summand, then an activation.
Built fused_conv(OnnxNode& n) {
  const std::optional<Value> bias = n.has(2) ? std::optional(n.input(2)) : std::nullopt;
  Value y = conv_of(n, n.input(0), n.input(1), bias);
  if (n.has(3)) y = y + n.input(3);
  return activated(n, y, n.attr("activation", ""), n.attr("activation_params", std::vector<float>()));
}

Built fused_gemm(OnnxNode& n) {
  Value a = n.input(0), b = n.input(1);
  if (n.attr("transA", false)) a = swap_last_two(a);
  if (n.attr("transB", false)) b = swap_last_two(b);
  Value y = ops::matmul(a, b);
  const auto scaled = [&](const Value& x, float factor) { return factor == 1.0f ? x : x * scalar_like(n, x, factor); };
  y = scaled(y, n.attr("alpha", 1.0f));
  if (n.has(2)) y = y + scaled(n.input(2), n.attr("beta", 1.0f));
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (n.has_attr(name)) parameters.push_back(n.attr(name, 0.0f));
  return activated(n, y, n.attr("activation", ""), parameters);
}

// The first axis after the other batch axes: [a, b, c, M, K] -> [b, c, M, a, K].
Value first_behind_batches(const Value& x) {
  std::vector<int64_t> perm;
  for (int64_t i = 1; i < x.shape().rank() - 1; ++i) perm.push_back(i);
  perm.insert(perm.end(), {0, x.shape().rank() - 1});
  return ops::transpose(x, {.perm = perm});
}

Built fused_matmul(OnnxNode& n) {
  Value a = n.input(0), b = n.input(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (n.attr("transBatchA", false)) a = first_behind_batches(a);
  if (n.attr("transBatchB", false)) b = first_behind_batches(b);
  if (row) a = unsqueeze(a, {0});
  if (column) b = unsqueeze(b, {1});
  if (!row && n.attr("transA", false)) a = swap_last_two(a);
  if (!column && n.attr("transB", false)) b = swap_last_two(b);
  Value y = ops::matmul(a, b);
  if (column) y = squeeze(y, {-1});
  if (row) y = squeeze(y, {column ? -1 : -2});
  const float alpha = n.attr("alpha", 1.0f);
  return alpha == 1.0f ? y : y * scalar_like(n, y, alpha);
}

// ---- weights in blocks

// Code number i of a row of packed codes, the first one in the lowest bits.
uint8_t code_at(const uint8_t* row, int64_t i, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  return static_cast<uint8_t>((row[i / per_byte] >> (i % per_byte * bits)) & ((1 << bits) - 1));
}

// The weight B [N, blocks, bytes of a block] as dequant_matmul reads it: codes [K, N], scales and zero points
// [blocks, N]. Codes of four bits without zero points of their own stay packed; others take a byte each.
Built matmul_n_bits(OnnxNode& n) {
  const int64_t bits = n.attr("bits", 4), block = n.required_int("block_size");
  const int64_t k = n.required_int("K"), columns = n.required_int("N");
  if (n.attr("weight_prepacked", 0) != 0) n.unsupported("Weights packed for a GPU are not supported.");
  if (bits != 2 && bits != 4 && bits != 8) n.unsupported(str("Weights of ", bits, " bits are not supported."));
  require(block >= 1 && k >= 1 && columns >= 1, "K (", k, "), N (", columns, ") and block_size (", block,
          ") must be positive.");
  require(checked_mul(block, bits) % 8 == 0, "A block of ", block, " weights of ", bits,
          " bits is not a number of bytes.");
  const int64_t blocks = (k - 1) / block + 1, row_bytes = checked_mul(checked_mul(blocks, block), bits) / 8;
  const Tensor packed = n.known(1), scales = n.known(2).cast(DType::F32);
  require(packed.dtype() == DType::U8 && packed.num_elements() == checked_mul(columns, row_bytes), "B has ",
          packed.num_elements(), " bytes; ", columns, " times ", row_bytes, " are expected.");
  require(scales.num_elements() == checked_mul(columns, blocks), "There are ", scales.num_elements(), " scales; ",
          checked_mul(columns, blocks), " are expected.");
  const auto at = [&](int64_t b, int64_t column) { return static_cast<size_t>(b * columns + column); };
  const uint8_t* bytes = packed.values<uint8_t>().data();
  const int middle = 1 << (bits - 1);
  const auto signed_code = [&](int64_t i, int64_t column) {
    return static_cast<int8_t>(code_at(bytes + column * row_bytes, i, bits) - middle);
  };
  std::vector<float> factors(static_cast<size_t>(blocks * columns)), zeros(factors.size());
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t b = 0; b < blocks; ++b)
      factors[at(b, c)] = scales.values<float>()[static_cast<size_t>(c * blocks + b)];

  if (n.has(3)) {
    const Tensor points = n.known(3);
    const bool is_packed = points.dtype() == DType::U8;
    const int64_t each = is_packed ? (blocks * bits + 7) / 8 : blocks;
    require(points.num_elements() == checked_mul(columns, each), "There are ", points.num_elements(), " zero points; ",
            checked_mul(columns, each), " are expected.");
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t b = 0; b < blocks; ++b) {
        const double point =
            is_packed ? code_at(points.values<uint8_t>().data() + c * each, b, bits) : points.at(c * each + b);
        zeros[at(b, c)] = static_cast<float>(point - middle);
      }
  }
  const bool symmetric = std::all_of(zeros.begin(), zeros.end(), [](float z) { return z == 0; });
  const Value factor = n.constant(Tensor::f32({blocks, columns}, factors));
  const Value zero = n.constant(Tensor::f32({blocks, columns}, zeros));
  const Value x = cast_to(n.input(0), DType::F32);
  const Value y = [&] {
    if (bits == 4 && symmetric) {
      std::vector<uint8_t> codes(static_cast<size_t>((k * columns + 1) / 2));
      for (int64_t i = 0; i < k; ++i)
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t index = i * columns + c;
          const auto code = static_cast<uint8_t>(signed_code(i, c) & 15);
          codes[static_cast<size_t>(index / 2)] |= static_cast<uint8_t>(index % 2 == 0 ? code : code << 4);
        }
      const Value w = n.constant(Tensor::of<uint8_t>(DType::U8, {static_cast<int64_t>(codes.size())}, codes));
      return ops::dequant_matmul(x, w, factor, zero, {.scheme = Scheme::kInt4, .block = block});
    }
    std::vector<int8_t> codes(static_cast<size_t>(k * columns));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t c = 0; c < columns; ++c) codes[at(i, c)] = signed_code(i, c);
    const Value w = n.constant(Tensor::of<int8_t>(DType::I8, {k, columns}, codes));
    return ops::dequant_matmul(x, w, factor, zero,
                               {.scheme = symmetric ? Scheme::kInt8 : Scheme::kInt8Asym, .block = block});
  }();
  Value result = n.has(5) ? y + cast_to(n.input(5), DType::F32) : y;
  return cast_to(result, n.input(0).dtype());
}

// Bytes with several codes each, as one code per element of the last axis.
Value unpacked(OnnxNode& n, const Value& x, int64_t bits) {
  if (bits == 8) return x;
  const int64_t last = x.shape().rank() - 1, per_byte = 8 / bits;
  Values codes;
  Value rest = x;
  const Value base = n.scalar(static_cast<double>(1 << bits), DType::U8);
  for (int64_t i = 0; i < per_byte; ++i) {
    const Value higher = rest / base;
    codes.push_back(unsqueeze(rest - higher * base, {last + 1}));
    rest = higher;
  }
  std::vector<Dim> shape = x.shape().dims();
  shape.back() = n.symbols().mul(shape.back(), per_byte);
  return reshape_to(ops::concat(codes, {.axis = last + 1}), shape);
}

// Rows are gathered as codes and decoded then, so that the table stays small.
Built gather_block_quantized(OnnxNode& n) {
  const ElemType elem = n.elem(0);
  if (is_code(elem)) n.unsupported(str("Data of type ", name(elem), " is not supported."));
  const Value table = n.input(0), indices = n.input(1);
  const int64_t rank = table.shape().rank();
  const int64_t axis = normalize_axis(n.attr("quantize_axis", 1), rank);
  const int64_t from = normalize_axis(n.attr("gather_axis", 0), rank);
  const int64_t block = n.attr("block_size", 128);
  const bool bytes = elem == ElemType::kUint8;  // may hold several codes each
  const int64_t bits = bytes ? n.attr("bits", 4) : 8;
  require(bits == 2 || bits == 4 || bits == 8, "bits (", bits, ") is not 2, 4 or 8.");
  require(block >= 1, "block_size (", block, ") is less than 1.");
  require_rank(n.input(2), rank, "scales");
  if (n.has(3)) require_rank(n.input(3), rank, "zero_points");
  if (from == axis) n.unsupported("Gathering along the axis of the blocks is not supported.");
  const auto gathered = [&](const Value& x) { return ops::gather(x, indices, {.axis = from}); };
  const Value codes = unpacked(n, gathered(table), bits);
  // Axes behind the gathered one move by the rank of the indices less one.
  const int64_t blocks_axis = axis > from ? axis + indices.shape().rank() - 1 : axis;
  const Dim size = codes.shape()[blocks_axis];
  // One value per block, as one per element.
  const auto spread = [&](const Value& x) {
    const Shape& s = x.shape();
    std::vector<Dim> wide = s.dims(), joined = s.dims();
    wide.insert(wide.begin() + blocks_axis + 1, Dim(block));
    joined[static_cast<size_t>(blocks_axis)] = n.symbols().mul(s[blocks_axis], block);
    const Value all = reshape_to(expand_to(unsqueeze(x, {blocks_axis + 1}), Shape(wide)), joined);
    if (all.shape()[blocks_axis] == size) return all;
    return ops::narrow(all, {.axis = blocks_axis, .start = 0, .len = size});
  };
  const Value scale = spread(gathered(n.input(2)));
  Value centered = cast_to(codes, scale.dtype());
  if (n.has(3)) {
    Value zeros = unpacked(n, gathered(n.input(3)), bits);
    const Dim blocks = gathered(n.input(2)).shape()[blocks_axis];
    if (!(zeros.shape()[blocks_axis] == blocks))
      zeros = ops::narrow(zeros, {.axis = blocks_axis, .start = 0, .len = blocks});
    centered = centered - cast_to(spread(zeros), scale.dtype());
  } else if (bytes) {
    centered = centered - scalar_like(n, centered, static_cast<double>(1 << (bits - 1)));
  }
  return centered * scale;
}

}  // namespace

Rows contrib_rows() {
  return {
      {"BiasGelu", 1, gelu},
      {"FastGelu", 1, fast_gelu},
      {"FusedConv", 1, fused_conv},
      {"FusedGemm", 1, fused_gemm},
      {"FusedMatMul", 1, fused_matmul},
      {"GatherBlockQuantized", 1, gather_block_quantized},
      {"Gelu", 1, gelu},
      {"MatMulNBits", 1, matmul_n_bits},
      {"QuickGelu", 1, quick_gelu},
      {"TransposeMatMul", 1, fused_matmul},
  };
}

}  // namespace rlx::onnx
