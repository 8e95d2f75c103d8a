#include "rlx/ops/col2im.h"

#include "ops/conv_types.h"
#include "ops/infer.h"

namespace rlx::ops {

// Windows along an axis of size `in` between pads.
static Dim windows(const Dim& in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads,
                   SymbolTable& symbols) {
  const int64_t extent = checked_add(checked_mul(dilation, kernel - 1), 1);
  const Dim room = symbols.add(in, checked_sub(pads, extent));
  require(!room.is_static() || room.value() >= 0, "A window of (", extent, ") elements is larger than the image (", in,
          ") with its pads (", pads, ").");
  return symbols.add(symbols.div(room, stride), 1);
}

static Types infer_col2im(const InferCall& call) {
  const TensorType& x = call.input(0);
  const auto& a = call.attrs<Col2ImAttrs>();
  const auto rank = static_cast<int64_t>(a.kernel_size.size());
  require(is_float(x.dtype) || is_int(x.dtype), "Operand dtype (", x.dtype, ") is not a float or integer type.");
  require_rank(x, 3, "Operand");
  require(rank >= 1, "kernel_size ([]) has no entries.");
  require(static_cast<int64_t>(a.image_size.size()) == rank, "image_size (", a.image_size, ") and kernel_size (",
          a.kernel_size, ") do not have as many entries.");
  const std::vector<int64_t> kernel = filled(a.kernel_size, rank, 1, 1, "kernel_size");
  const std::vector<int64_t> stride = filled(a.stride, rank, 1, 1, "stride");
  const std::vector<int64_t> dilation = filled(a.dilation, rank, 1, 1, "dilation");
  const std::vector<int64_t> before = filled(a.before, rank, 0, 0, "before");
  const std::vector<int64_t> after = filled(a.after, rank, 0, 0, "after");
  int64_t taps = 1;
  Dim count = 1;
  TensorType y{{x.dim(0), 0}, x.dtype};
  for (size_t i = 0; i < kernel.size(); ++i) {
    require(!a.image_size[i].is_static() || a.image_size[i].value() >= 0, "Image size (", a.image_size[i],
            ") is negative.");
    taps = checked_mul(taps, kernel[i]);
    const Dim along =
        windows(a.image_size[i], kernel[i], stride[i], dilation[i], checked_add(before[i], after[i]), call.symbols);
    count = call.symbols.mul(count, along);
    y.shape.push_back(a.image_size[i]);
  }
  require(!x.dim(1).is_static() || x.dim(1).value() % taps == 0, "Rows (", x.dim(1),
          ") of the operand are not a multiple of the window's elements (", taps, ").");
  require(x.dim(2) == count || !x.dim(2).is_static() || !count.is_static(), "Columns (", x.dim(2),
          ") of the operand are not as many as the windows (", count, ").");
  y.shape[1] = call.symbols.div(x.dim(1), taps);
  return y;
}

static Types infer_deform(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1), &offset = call.input(2);
  const auto& a = call.attrs<DeformConvAttrs>();
  require(call.num_inputs() == 3 + int{a.bias} + int{a.mask}, "Operands (", call.num_inputs(), ") are not the ",
          3 + int{a.bias} + int{a.mask}, " that bias and mask ask for.");
  require_float(x);
  for (int64_t i = 1; i < call.num_inputs(); ++i) require_same_dtype(x, call.input(i));
  require_rank(x, 4, "Operand");
  require_rank(w, 4, "Weight");
  SymbolTable& symbols = call.symbols;
  require_same_dim(grouped(x.dim(1), a.groups, "input", symbols), w.dim(1), "Input channels per group of x and w");
  require_groups(w.dim(0), a.groups, "output");
  require(a.offset_groups >= 1, "offset_groups (", a.offset_groups, ") is less than 1.");
  require(!x.dim(1).is_static() || x.dim(1).value() % a.offset_groups == 0, "offset_groups (", a.offset_groups,
          ") does not divide the input channels (", x.dim(1), ").");
  const std::vector<int64_t> stride = filled(a.stride, 2, 1, 1, "stride");
  const std::vector<int64_t> dilation = filled(a.dilation, 2, 1, 1, "dilation");
  const std::vector<int64_t> before = filled(a.before, 2, 0, 0, "before");
  const std::vector<int64_t> after = filled(a.after, 2, 0, 0, "after");
  Shape y{x.dim(0), w.dim(0)};
  int64_t taps = a.offset_groups;
  for (int64_t i = 0; i < 2; ++i) {
    const auto s = static_cast<size_t>(i);
    require(w.dim(i + 2).is_static() && w.dim(i + 2).value() >= 1, "Weight shape (", w.shape,
            ") does not end in two sizes of at least 1.");
    taps = checked_mul(taps, w.dim(i + 2).value());
    y.push_back(
        windows(x.dim(i + 2), w.dim(i + 2).value(), stride[s], dilation[s], checked_add(before[s], after[s]), symbols));
  }
  require_shape(offset, {x.dim(0), checked_mul(2, taps), y[2], y[3]}, "Offset");
  if (a.bias) require_shape(call.input(3), {w.dim(0)}, "Bias");
  if (a.mask) require_shape(call.input(call.num_inputs() - 1), {x.dim(0), taps, y[2], y[3]}, "Mask");
  return TensorType{y, x.dtype};
}

constinit const Op<Col2ImAttrs> col2im{
    {.name = "col2im",
     .category = "Convolution",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_col2im,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.fusion_boundary = true},
     .doc = "Images [N, C, …] whose windows are the columns of x [N, C * window, windows]; where windows overlap they "
            "are added."}};

constinit const Op<DeformConvAttrs> deform_conv{
    {.name = "deform_conv",
     .category = "Convolution",
     .min_inputs = 3,
     .max_inputs = 5,
     .infer = infer_deform,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc =
         "Convolution of x [N, C, H, W] with w, each tap moved by its offset and scaled by its mask; between elements "
         "x is interpolated, beyond its edges it is zero."}};

}  // namespace rlx::ops
