// Products of bytes, exact in i32: matmul_integer and conv_integer, and q_matmul and q_conv2d, which round the sums to
// codes again (spec 10, 4.12).
#include "rlx/ops/integer.h"

#include <array>
#include <cstring>

#include "backends/webgpu/lowering/lowerings.h"
#include "ops/window.h"
#include "rlx/ops/quantize.h"
#include "wgsl/conv_integer.h"
#include "wgsl/matmul_integer.h"

namespace rlx::webgpu {

namespace {

std::string element(const LowerCall& call, Operand operand) { return std::string(call.element(operand)); }

uint32_t bits_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  return bits;
}

// How many products of bytes less zero points i32 holds for certain: 255 · 255 each.
constexpr int64_t kMostProducts = 33025;

// The matrices of a and b that each matrix of the result multiplies.
std::vector<uint32_t> matrix_pairs(const std::vector<int64_t>& y, const std::vector<int64_t>& a,
                                   const std::vector<int64_t>& b) {
  const size_t rank = y.size() - 2;
  int64_t batch = 1;
  for (size_t i = 0; i < rank; ++i) batch *= y[i];
  std::vector<uint32_t> pairs;
  pairs.reserve(static_cast<size_t>(2 * batch));
  const auto matrix = [&](const std::vector<int64_t>& sizes, int64_t index) {
    const size_t own = sizes.size() - 2;
    int64_t at = 0, stride = 1;
    for (size_t i = rank; i-- > 0; index /= y[i]) {
      if (i + own < rank) break;
      const int64_t size = sizes[i + own - rank];
      if (size != 1) at += index % y[i] * stride;
      stride *= size;
    }
    return to_u32(at);
  };
  for (int64_t i = 0; i < batch; ++i) {
    pairs.push_back(matrix(a, i));
    pairs.push_back(matrix(b, i));
  }
  return pairs;
}

// How zero points lie, as the kernels count it: 0 there are none, 1 one number, 2 one per row, 3 those of each matrix.
uint32_t zero_kind(const LowerCall& call, int64_t i) {
  if (i >= call.num_inputs()) return 0;
  const TensorType& zero = call.input_type(i);
  return zero.shape.num_elements() == 1 ? 1 : zero.rank() == 1 ? 2 : 3;
}

// A window over one to three spatial axes, those that are missing first.
wgsl::conv_integer::Params geometry(const LowerCall& call, const ops::Window& window, int64_t groups) {
  const TensorType &x = call.input_type(0), &y = call.output_type(0);
  std::array<uint32_t, 3> in = {1, 1, 1}, out = {1, 1, 1}, kernel = {1, 1, 1}, stride = {1, 1, 1}, pad = {0, 0, 0},
                          dilation = {1, 1, 1};
  const auto rank = static_cast<size_t>(window.rank());
  for (size_t i = 0; i < rank; ++i) {
    const size_t a = 3 - rank + i;
    in[a] = to_u32(x.dim(static_cast<int64_t>(i) + 2).value());
    out[a] = to_u32(y.dim(static_cast<int64_t>(i) + 2).value());
    kernel[a] = to_u32(window.kernel[i]);
    stride[a] = to_u32(window.stride[i]);
    pad[a] = to_u32(window.padding[i]);
    dilation[a] = to_u32(window.dilation[i]);
  }
  const int64_t cin = x.dim(1).value(), cout = y.dim(1).value();
  return {.total = to_u32(y.shape.num_elements()),
          .cin = to_u32(cin),
          .cout = to_u32(cout),
          .cin_group = to_u32(cin / groups),
          .cout_group = to_u32(cout / groups),
          .in_d = in[0],
          .in_h = in[1],
          .in_w = in[2],
          .out_d = out[0],
          .out_h = out[1],
          .out_w = out[2],
          .kernel_d = kernel[0],
          .kernel_h = kernel[1],
          .kernel_w = kernel[2],
          .stride_d = stride[0],
          .stride_h = stride[1],
          .stride_w = stride[2],
          .pad_d = pad[0],
          .pad_h = pad[1],
          .pad_w = pad[2],
          .dilation_d = dilation[0],
          .dilation_h = dilation[1],
          .dilation_w = dilation[2]};
}

}  // namespace

void lower_matmul_integer(LowerCall& call) {
  namespace g = wgsl::matmul_integer;
  const TensorType &at = call.input_type(0), &bt = call.input_type(1), &yt = call.output_type(0);
  const int64_t m = at.dim(at.rank() - 2).value(), k = at.dim(at.rank() - 1).value(), n = bt.dim(bt.rank() - 1).value();
  const std::vector<uint32_t> pairs = matrix_pairs(yt.shape.sizes(), at.shape.sizes(), bt.shape.sizes());
  const auto batch = static_cast<int64_t>(pairs.size() / 2);
  const Operand a = call.read(0), b = call.read(1), y = call.write(0), matrices = call.table(pairs);
  const uint32_t a_kind = zero_kind(call, 2), b_kind = zero_kind(call, 3);
  // Bound where an operand is not there: a constant of the same type.
  const Operand none = call.table(std::array<uint32_t, 1>{0});
  call.emit({.kernel = {"matmul_integer",
                        {{"TA", element(call, a)}, {"TB", element(call, b)}},
                        {{"A_ZERO", a_kind}, {"B_ZERO", b_kind}}},
             .operands = {a, b, a_kind ? call.read(2) : a, b_kind ? call.read(3) : b, matrices, none, y},
             .params = {g::Params{.m = to_u32(m), .n = to_u32(n), .k = to_u32(k), .batch = to_u32(batch)}},
             .grid = {.x = {.items = batch * ((m + 15) / 16) * ((n + 15) / 16)}}});
}

bool q_matmul_supports(const LowerSignature& s, const Device&) {
  const Dim k = s.input(0).dim(1);
  return k.is_static() && k.value() <= kMostProducts;  // the oracle widens longer sums
}

void lower_q_matmul(LowerCall& call) {
  namespace g = wgsl::matmul_integer;
  const auto& attrs = call.attrs<ops::QMatmulAttrs>();
  const int64_t m = call.input_type(0).dim(0).value(), k = call.input_type(0).dim(1).value(),
                n = call.input_type(1).dim(1).value();
  const Operand a = call.read(0), b = call.read(1), bias = call.read(2), y = call.write(0);
  const Operand matrices = call.table(std::array<uint32_t, 2>{0, 0});
  call.emit({.kernel = {"matmul_integer", {}, {{"REQUANTIZE", 1}}},
             .operands = {a, b, a, b, matrices, bias, y},
             .params = {g::Params{.m = to_u32(m),
                                  .n = to_u32(n),
                                  .k = to_u32(k),
                                  .batch = 1,
                                  .a_point = static_cast<int32_t>(attrs.x_zp),
                                  .b_point = static_cast<int32_t>(attrs.w_zp),
                                  .out_point = static_cast<int32_t>(attrs.out_zp),
                                  .mult = bits_of(attrs.mult)}},
             .grid = {.x = {.items = ((m + 15) / 16) * ((n + 15) / 16)}}});
}

void lower_conv_integer(LowerCall& call) {
  const auto& attrs = call.attrs<ops::ConvAttrs>();
  const Operand x = call.read(0), w = call.read(1), y = call.write(0);
  const uint32_t x_kind = zero_kind(call, 2), w_kind = zero_kind(call, 3);
  const Operand none = call.table(std::array<uint32_t, 1>{0});
  const auto params = geometry(call, ops::window_of(attrs), attrs.groups);
  call.emit({.kernel = {"conv_integer",
                        {{"TX", element(call, x)}, {"TW", element(call, w)}},
                        {{"X_ZERO", x_kind}, {"W_ZERO", w_kind}}},
             .operands = {x, w, x_kind ? call.read(2) : x, w_kind ? call.read(3) : w, none, y},
             .params = {params, {&wgsl::conv_integer::Params::total}},
             .grid = {.x = {.items = params.total, .per_group = 64, .active = true}},
             .extent_safe = true});
}

bool q_conv2d_supports(const LowerSignature& s, const Device&) {
  int64_t products = 1;
  for (int64_t i = 1; i < 4; ++i) {
    const Dim d = s.input(1).dim(i);
    if (!d.is_static()) return false;
    products *= d.value();
  }
  return products <= kMostProducts;
}

void lower_q_conv2d(LowerCall& call) {
  const auto& attrs = call.attrs<ops::QConv2dAttrs>();
  const Operand x = call.read(0), w = call.read(1), bias = call.read(2), y = call.write(0);
  auto params = geometry(call, ops::window_of(attrs), attrs.groups);
  params.x_point = static_cast<int32_t>(attrs.x_zp);
  params.w_point = static_cast<int32_t>(attrs.w_zp);
  params.out_point = static_cast<int32_t>(attrs.out_zp);
  params.mult = bits_of(attrs.mult);
  call.emit({.kernel = {"conv_integer", {}, {{"REQUANTIZE", 1}}},
             .operands = {x, w, x, w, bias, y},
             .params = {params, {&wgsl::conv_integer::Params::total}},
             .grid = {.x = {.items = params.total, .per_group = 64, .active = true}},
             .extent_safe = true});
}

}  // namespace rlx::webgpu
