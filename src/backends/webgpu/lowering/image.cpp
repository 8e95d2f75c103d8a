// Ops that move and sample the elements of images.
#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/conv_problem.h"
#include "backends/webgpu/lowering/folds.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "rlx/ops/col2im.h"
#include "rlx/ops/conv.h"
#include "rlx/ops/grid_sample.h"
#include "wgsl/col2im.h"
#include "wgsl/deform_columns.h"
#include "wgsl/grid_sample.h"
#include "wgsl/im2col.h"
#include "wgsl/roi_align.h"

namespace rlx::webgpu {

void lower_im2col(LowerCall& call) {
  namespace k = wgsl::im2col;
  const ops::Window w = ops::window_of(call.attrs<ops::Im2ColAttrs>());
  const TensorType& x = call.input_type(0);
  const Operand in = call.read(0), out = call.write(0);
  SymbolTable none;  // static sizes need no symbols
  const int64_t out_h = ops::window_count(w, 0, x.dim(2), none).value();
  const int64_t out_w = ops::window_count(w, 1, x.dim(3), none).value();
  const int64_t n = call.output_type(0).shape.num_elements();
  call.emit({.kernel = {"im2col", {{"T", std::string(call.element(out))}}, {}},
             .operands = {in, out},
             .params = k::Params{.n = to_u32(n),
                                 .windows = to_u32(out_h * out_w),
                                 .out_w = to_u32(out_w),
                                 .channels = to_u32(x.dim(1).value()),
                                 .in_h = to_u32(x.dim(2).value()),
                                 .in_w = to_u32(x.dim(3).value()),
                                 .k_h = to_u32(w.kernel[0]),
                                 .k_w = to_u32(w.kernel[1]),
                                 .stride_h = to_u32(w.stride[0]),
                                 .stride_w = to_u32(w.stride[1]),
                                 .dilation_h = to_u32(w.dilation[0]),
                                 .dilation_w = to_u32(w.dilation[1]),
                                 .pad_h = to_u32(w.padding[0]),
                                 .pad_w = to_u32(w.padding[1])},
             .grid = {.x = {.items = n, .per_group = 256}},
             .extent_safe = true});
}

bool col2im_supports(const LowerSignature& s, const Device&) {
  for (int64_t i = 0; i < s.input(0).rank(); ++i)
    if (s.input(0).dim(i).is(0)) return false;
  return s.attrs.as<ops::Col2ImAttrs>().kernel_size.size() <= 3;
}

void lower_col2im(LowerCall& call) {
  namespace k = wgsl::col2im;
  const auto& a = call.attrs<ops::Col2ImAttrs>();
  const auto rank = static_cast<int64_t>(a.kernel_size.size());
  const auto list = [&](const std::vector<int64_t>& of, int64_t missing) {
    return space_of(ops::filled(of, rank, missing, 0, "an attribute"), rank, missing);
  };
  const Space kernel = list(a.kernel_size, 1), stride = list(a.stride, 1), dilation = list(a.dilation, 1);
  const Space before = list(a.before, 0), after = list(a.after, 0), image = space_of_sizes(call.output_type(0));
  Space count;
  for (size_t i = 0; i < 3; ++i)
    count[i] = (image[i] + before[i] + after[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  const Operand in = call.read(0), out = call.write(0);
  const int64_t n = call.output_type(0).shape.num_elements();
  call.emit({.kernel = fold_key("col2im", call.output_type(0).dtype, call.element(out)),
             .operands = {in, out},
             .params = {k::Params{.n = to_u32(n),
                                  .size_d = to_u32(image[0]),
                                  .size_h = to_u32(image[1]),
                                  .size_w = to_u32(image[2]),
                                  .out_d = to_u32(count[0]),
                                  .out_h = to_u32(count[1]),
                                  .out_w = to_u32(count[2]),
                                  .k_d = to_u32(kernel[0]),
                                  .k_h = to_u32(kernel[1]),
                                  .k_w = to_u32(kernel[2]),
                                  .stride_d = to_u32(stride[0]),
                                  .stride_h = to_u32(stride[1]),
                                  .stride_w = to_u32(stride[2]),
                                  .dilation_d = to_u32(dilation[0]),
                                  .dilation_h = to_u32(dilation[1]),
                                  .dilation_w = to_u32(dilation[2]),
                                  .pad_d = to_u32(before[0]),
                                  .pad_h = to_u32(before[1]),
                                  .pad_w = to_u32(before[2])},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 64, .active = true}},
             .extent_safe = true});
}

// The moved taps as channels of an image of their own, then a 1x1 convolution of it.
void lower_deform_conv(LowerCall& call) {
  namespace k = wgsl::deform_columns;
  const auto& a = call.attrs<ops::DeformConvAttrs>();
  const TensorType &x = call.input_type(0), &w = call.input_type(1), &y = call.output_type(0);
  const int64_t batch = x.dim(0).value(), channels = x.dim(1).value(), taps = w.dim(2).value() * w.dim(3).value();
  const int64_t out_h = y.dim(2).value(), out_w = y.dim(3).value(), n = batch * channels * taps * out_h * out_w;
  const auto entry = [](const std::vector<int64_t>& list, size_t i, int64_t missing) {
    return to_u32(i < list.size() ? list[i] : missing);
  };
  const Operand in = call.read(0), offset = call.read(2);
  const Operand columns = call.temporary(call.storage(in), {n});
  call.emit({.kernel = {"deform_columns", {{"T", std::string(call.element(in))}}, {{"HAS_MASK", a.mask ? 1u : 0u}}},
             .operands = {in, offset, a.mask ? call.read(call.num_inputs() - 1) : offset, columns},
             .params = {k::Params{.n = to_u32(n),
                                  .out_h = to_u32(out_h),
                                  .out_w = to_u32(out_w),
                                  .channels = to_u32(channels),
                                  .in_h = to_u32(x.dim(2).value()),
                                  .in_w = to_u32(x.dim(3).value()),
                                  .k_h = to_u32(w.dim(2).value()),
                                  .k_w = to_u32(w.dim(3).value()),
                                  .stride_h = entry(a.stride, 0, 1),
                                  .stride_w = entry(a.stride, 1, 1),
                                  .dilation_h = entry(a.dilation, 0, 1),
                                  .dilation_w = entry(a.dilation, 1, 1),
                                  .pad_h = entry(a.before, 0, 0),
                                  .pad_w = entry(a.before, 1, 0),
                                  .offset_groups = to_u32(a.offset_groups)},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = true},
            "deform_columns");
  const TensorType image{{batch, channels * taps, out_h, out_w}, x.dtype};
  ConvOperands o{.x = LowerCall::reading(columns), .w = call.read(1), .y = call.write(0)};
  if (a.bias) o.bias = call.read(3);
  emit_conv(call, forward_problem(ops::make_window({1, 1}, {}, {}, {}), a.groups, image, y), o);
}

void lower_grid_sample(LowerCall& call) {
  namespace k = wgsl::grid_sample;
  const auto& a = call.attrs<ops::GridSampleAttrs>();
  const TensorType& x = call.input_type(0);
  const Operand in = call.read(0), grid = call.read(1), out = call.write(0);
  const Space size = space_of_sizes(x);
  const int64_t n = call.output_type(0).shape.num_elements();
  KernelKey key{"grid_sample",
                {{"T", std::string(call.element(in))}, {"G", std::string(call.element(grid))}},
                {{"MODE", static_cast<uint32_t>(a.mode)},
                 {"PADDING", static_cast<uint32_t>(a.padding)},
                 {"ALIGN", a.align_corners ? 1u : 0u},
                 {"AXES", to_u32(x.rank() - 2)}}};
  if (a.mode == ops::GridSampleMode::kNearest) key.includes.emplace_back("grid_sum", "grid_copy");
  call.emit({.kernel = std::move(key),
             .operands = {in, grid, out},
             .params = {k::Params{.n = to_u32(n),
                                  .places = to_u32(volume(space_of_sizes(call.output_type(0)))),
                                  .channels = to_u32(x.dim(1).value()),
                                  .size_d = to_u32(size[0]),
                                  .size_h = to_u32(size[1]),
                                  .size_w = to_u32(size[2])},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 64, .active = true}},
             .extent_safe = true});
}

void lower_roi_align(LowerCall& call) {
  namespace k = wgsl::roi_align;
  const auto& a = call.attrs<ops::RoiAlignAttrs>();
  const TensorType& x = call.input_type(0);
  check_indices(call, 2, IndexRange{0, x.dim(0).value()}, [](int64_t value, int64_t, int64_t end) {
    return str("Batch index (", value, ") is out of range for size (", end, ").");
  });
  const Operand in = call.read(0), rois = call.read(1), which = call.read(2), out = call.write(0);
  const int64_t n = call.output_type(0).shape.num_elements();
  call.emit({.kernel = {"roi_align",
                        {{"T", std::string(call.element(in))}},
                        {{"LARGEST", a.mode == ops::RoiAlignMode::kMax ? 1u : 0u},
                         {"HALF_PIXEL", a.coordinate_mode == ops::RoiCoordinate::kHalfPixel ? 1u : 0u}}},
             .operands = {in, rois, which, out},
             .params = k::Params{.n = to_u32(n),
                                 .images = to_u32(x.dim(0).value()),
                                 .channels = to_u32(x.dim(1).value()),
                                 .in_h = to_u32(x.dim(2).value()),
                                 .in_w = to_u32(x.dim(3).value()),
                                 .bins_h = to_u32(a.output_height),
                                 .bins_w = to_u32(a.output_width),
                                 .ratio = to_u32(a.sampling_ratio),
                                 .scale = a.spatial_scale},
             .grid = {.x = {.items = n, .per_group = 64}}});
}

}  // namespace rlx::webgpu
