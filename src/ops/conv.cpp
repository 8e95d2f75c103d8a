#include "rlx/ops/conv.h"

#include "ops/conv_types.h"
#include "ops/infer.h"

namespace rlx::ops {

void require_groups(const Dim& channels, int64_t groups, std::string_view what) {
  require(groups >= 1, "groups (", groups, ") is less than 1.");
  require(!channels.is_static() || channels.value() % groups == 0, "groups (", groups, ") does not divide the ", what,
          " channels (", channels, ").");
}

Dim grouped(const Dim& channels, int64_t groups, std::string_view what, SymbolTable& symbols) {
  require_groups(channels, groups, what);
  return symbols.div(channels, groups);
}

void require_bias(const TensorType& bias, const TensorType& y) {
  require_same_dtype(y, bias);
  require_shape(bias, {y.dim(1)}, "Bias");
}

void require_kernel(const TensorType& w, const Window& window) {
  require_rank(w, window.rank() + 2, "Weight");
  for (int64_t i = 0; i < window.rank(); ++i)
    require(!w.dim(i + 2).is_static() || w.dim(i + 2).is(window.kernel[static_cast<size_t>(i)]), "Weight shape (",
            w.shape, ") does not end in kernel_size (", window.kernel, ").");
}

Shape conv_shape(const TensorType& x, const TensorType& w, const Window& window, int64_t groups, SymbolTable& symbols) {
  require_spatial(window, x, "Input");
  require_kernel(w, window);
  require_same_dim(grouped(x.dim(1), groups, "input", symbols), w.dim(1), "Input channels per group of x and w");
  require_groups(w.dim(0), groups, "output");
  Shape y{x.dim(0), w.dim(0)};
  for (int64_t i = 0; i < window.rank(); ++i) y.push_back(window_count(window, i, x.dim(i + 2), symbols));
  return y;
}

TensorType conv_type(const TensorType& x, const TensorType& w, const Window& window, int64_t groups,
                     SymbolTable& symbols) {
  require_float(x);
  require_same_dtype(x, w);
  return {conv_shape(x, w, window, groups, symbols), x.dtype};
}

static Types infer_conv(const InferCall& call) {
  const auto& a = call.attrs<ConvAttrs>();
  const TensorType y = conv_type(call.input(0), call.input(1), window_of(a), a.groups, call.symbols);
  if (call.num_inputs() > 2) require_bias(call.input(2), y);
  return y;
}

static Types infer_transpose(const InferCall& call) {
  const auto& a = call.attrs<ConvTransposeAttrs>();
  const TensorType &x = call.input(0), &w = call.input(1);
  const Window window = window_of(a);
  const std::vector<int64_t> extra = filled(a.output_padding, window.rank(), 0, 0, "output_padding");
  require_float(x);
  require_same_dtype(x, w);
  require_spatial(window, x, "Input");
  require_kernel(w, window);
  require_groups(x.dim(1), a.groups, "input");
  require_same_dim(x.dim(1), w.dim(0), "Input channels of x and w");
  TensorType y{{x.dim(0), call.symbols.mul(w.dim(1), a.groups)}, x.dtype};
  for (int64_t i = 0; i < window.rank(); ++i) {
    const auto s = static_cast<size_t>(i);
    const int64_t padding = checked_add(window.padding[s], window.padding_end[s]);
    const int64_t rest = checked_add(checked_add(extra[s], window.extent(i)), -padding);
    const Dim steps = call.symbols.mul(call.symbols.sub(x.dim(i + 2), 1), window.stride[s]);
    const Dim out = call.symbols.add(steps, rest);
    require(!out.is_static() || out.value() >= 0, "Output size (", out, ") along spatial axis ", i, " is negative.");
    y.shape.push_back(out);
  }
  if (call.num_inputs() > 2) require_bias(call.input(2), y);
  return y;
}

static Types infer_im2col(const InferCall& call) {
  const TensorType& x = call.input(0);
  const Window window = window_of(call.attrs<Im2ColAttrs>());
  require(window.rank() == 2, "kernel_size (", window.kernel, ") does not have 2 entries.");
  require_spatial(window, x, "Input");
  const Dim ho = window_count(window, 0, x.dim(2), call.symbols), wo = window_count(window, 1, x.dim(3), call.symbols);
  SymbolTable& symbols = call.symbols;
  return TensorType{{symbols.mul(x.dim(0), symbols.mul(ho, wo)), symbols.mul(x.dim(1), window.taps())}, x.dtype};
}

constinit const Op<ConvAttrs> conv{
    {.name = "conv",
     .category = "Convolution",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_conv,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc =
         "Cross-correlation in 1, 2 or 3 dimensions of x [N, Cin, …] with w [Cout, Cin / groups, …], plus an optional "
         "bias [Cout]."}};

constinit const Op<ConvTransposeAttrs> conv_transpose{
    {.name = "conv_transpose",
     .category = "Convolution",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_transpose,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "Transposed convolution in 1, 2 or 3 dimensions of x [N, Cin, …] with w [Cin, Cout / groups, …]: each "
            "input element adds a scaled kernel to the output. Plus an optional bias [Cout]."}};

constinit const Op<Im2ColAttrs> im2col{
    {.name = "im2col",
     .category = "Convolution",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_im2col,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true, .extent = ExtentRule::kFull},
     .doc = "The windows of x [N, C, H, W] as rows [N * Ho * Wo, C * kH * kW], zeros where a window leaves x."}};

}  // namespace rlx::ops
