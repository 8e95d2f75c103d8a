// Convolutions and pooling, the integer forms included.
#include "import/onnx/ops/conv.h"

#include <algorithm>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

std::vector<int64_t> filled(std::vector<int64_t> list, size_t count, std::string_view what) {
  if (list.empty()) list.assign(count, 1);
  require(list.size() == count, "Attribute '", what, "' has ", list.size(), " entries for ", count, " spatial axes.");
  return list;
}

// Padding that makes the result as large as the input divided by the stride, rounded up.
void pad_same(Window& w, const Shape& x, bool extra_in_front) {
  const size_t axes = w.kernel.size();
  w.pads.assign(2 * axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t extent = checked_add(checked_mul(w.kernel[i] - 1, w.dilation[i]), 1);
    const Dim& size = x[static_cast<int64_t>(i) + 2];
    int64_t total = std::max<int64_t>(extent - w.stride[i], 0);
    if (w.stride[i] != 1 || !size.is_static()) {
      require(w.stride[i] == 1 || size.is_static(), "auto_pad with a stride needs a known size; axis ", i + 2, " is ",
              size, ".");
      if (size.is_static() && size.value() % w.stride[i] != 0)
        total = std::max<int64_t>(extent - size.value() % w.stride[i], 0);
    }
    w.pads[i] = extra_in_front ? total - total / 2 : total / 2;
    w.pads[axes + i] = total - w.pads[i];
  }
}

}  // namespace

Window window_of(OnnxNode& n, const Shape& x, std::vector<int64_t> kernel) {
  require(x.rank() >= 3, "The operand (rank ", x.rank(), ") has no spatial axes.");
  const size_t axes = static_cast<size_t>(x.rank() - 2);
  Window w;
  w.kernel = std::move(kernel);
  require(w.kernel.size() == axes, "The kernel has ", w.kernel.size(), " sizes for ", axes, " spatial axes.");
  for (const int64_t k : w.kernel) require(k > 0, "The kernel ", w.kernel, " has a size that is not positive.");
  w.stride = filled(n.attr("strides", std::vector<int64_t>()), axes, "strides");
  w.dilation = filled(n.attr("dilations", std::vector<int64_t>()), axes, "dilations");
  for (size_t i = 0; i < axes; ++i)
    require(w.stride[i] > 0 && w.dilation[i] > 0, "Strides ", w.stride, " and dilations ", w.dilation,
            " must be positive.");
  w.pads = n.attr("pads", std::vector<int64_t>(2 * axes, 0));
  require(w.pads.size() == 2 * axes, "Attribute 'pads' has ", w.pads.size(), " entries for ", axes, " spatial axes.");
  const std::string mode = n.attr("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") pad_same(w, x, mode == "SAME_LOWER");
  if (mode == "VALID") w.pads.assign(2 * axes, 0);
  return w;
}

Window conv_window(OnnxNode& n, const Shape& x, const Shape& w) {
  require(w.rank() == x.rank(), "The weight's rank (", w.rank(), ") is not the operand's (", x.rank(), ").");
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < w.rank(); ++i) kernel.push_back(w[i].value());
  return window_of(n, x, n.attr("kernel_shape", kernel));
}

Value conv_of(OnnxNode& n, const Value& x, const Value& weight, const std::optional<Value>& bias) {
  const Window w = conv_window(n, x.shape(), weight.shape());
  Values operands{x, weight};
  if (bias) operands.push_back(*bias);
  return ops::conv(operands, {.kernel_size = w.kernel,
                              .stride = w.stride,
                              .padding = w.pads,
                              .dilation = w.dilation,
                              .groups = n.attr("group", 1)});
}

Value conv_integer_of(OnnxNode& n, const Value& x, const Value& weight, const std::optional<Value>& x_zero,
                      const std::optional<Value>& w_zero) {
  const Window w = conv_window(n, x.shape(), weight.shape());
  Values operands{x, weight};
  if (x_zero || w_zero) operands.push_back(x_zero ? *x_zero : n.scalar(0, x.dtype()));
  if (w_zero) operands.push_back(*w_zero);
  return ops::conv_integer(operands, {.kernel_size = w.kernel,
                                      .stride = w.stride,
                                      .padding = w.pads,
                                      .dilation = w.dilation,
                                      .groups = n.attr("group", 1)});
}

namespace {

std::optional<Value> optional_input(OnnxNode& n, int64_t i) {
  return n.has(i) ? std::optional<Value>(n.input(i)) : std::nullopt;
}

Built conv(OnnxNode& n) { return conv_of(n, n.input(0), n.input(1), optional_input(n, 2)); }

Built conv_integer(OnnxNode& n) {
  return conv_integer_of(n, n.input(0), n.input(1), optional_input(n, 2), optional_input(n, 3));
}

Built conv_transpose(OnnxNode& n) {
  const Value x = n.input(0), weight = n.input(1);
  Window w = conv_window(n, x.shape(), weight.shape());
  const size_t axes = w.kernel.size();
  std::vector<int64_t> extra = n.attr("output_padding", std::vector<int64_t>(axes, 0));
  require(extra.size() == axes, "Attribute 'output_padding' has ", extra.size(), " entries.");
  std::vector<int64_t> wanted = n.attr("output_shape", std::vector<int64_t>());
  const std::string mode = n.attr("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (same && wanted.empty())
    for (size_t i = 0; i < axes; ++i)
      wanted.push_back(checked_mul(x.shape()[static_cast<int64_t>(i) + 2].value(), w.stride[i]));
  if (!wanted.empty()) {
    require(wanted.size() == axes, "Attribute 'output_shape' has ", wanted.size(), " entries.");
    for (size_t i = 0; i < axes; ++i) {
      const int64_t size = x.shape()[static_cast<int64_t>(i) + 2].value();
      const int64_t reach = checked_add(checked_mul(w.kernel[i] - 1, w.dilation[i]), 1);
      const int64_t full = checked_add(checked_add(checked_mul(w.stride[i], size - 1), extra[i]), reach);
      const int64_t cut = checked_sub(full, wanted[i]);
      if (cut < 0) extra[i] = checked_sub(extra[i], cut);
      const int64_t total = std::max<int64_t>(cut, 0);
      w.pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pads[axes + i] = total - w.pads[i];
    }
  }
  Values operands{x, weight};
  if (n.has(2)) operands.push_back(n.input(2));
  return ops::conv_transpose(operands, {.kernel_size = w.kernel,
                                        .stride = w.stride,
                                        .padding = w.pads,
                                        .dilation = w.dilation,
                                        .output_padding = extra,
                                        .groups = n.attr("group", 1)});
}

Built max_pool(OnnxNode& n) {
  const Value x = n.input(0);
  const Window w = window_of(n, x.shape(), n.required_ints("kernel_shape"));
  const bool ceil = n.attr("ceil_mode", false);
  Values results{ops::pool_max(
      x, {.kernel_size = w.kernel, .stride = w.stride, .padding = w.pads, .dilation = w.dilation, .ceil_mode = ceil})};
  if (n.wants(1))
    results.push_back(ops::pool_max_indices(x, {.kernel_size = w.kernel,
                                                .stride = w.stride,
                                                .padding = w.pads,
                                                .dilation = w.dilation,
                                                .ceil_mode = ceil,
                                                .column_major = n.attr("storage_order", 0) == 1}));
  return results;
}

Built average_pool(OnnxNode& n) {
  const Value x = n.input(0);
  const Window w = window_of(n, x.shape(), n.required_ints("kernel_shape"));
  return ops::pool_mean(x, {.kernel_size = w.kernel,
                            .stride = w.stride,
                            .padding = w.pads,
                            .dilation = w.dilation,
                            .ceil_mode = n.attr("ceil_mode", false),
                            .count_include_pad = n.attr("count_include_pad", false)});
}

// (sum |x|^p)^(1/p) of each window.
Built lp_pool(OnnxNode& n) {
  const Value x = n.input(0);
  const Window w = window_of(n, x.shape(), n.required_ints("kernel_shape"));
  const double p = n.opset() < 2 ? n.attr("p", 2.0f) : static_cast<double>(n.attr("p", 2));
  const Value powers = p == 2 ? x * x : ops::pow(ops::abs(x), scalar_like(n, x, p));
  const Value sum = ops::pool_sum(powers, {.kernel_size = w.kernel,
                                           .stride = w.stride,
                                           .padding = w.pads,
                                           .dilation = w.dilation,
                                           .ceil_mode = n.attr("ceil_mode", false)});
  return p == 2 ? ops::sqrt(sum) : ops::pow(sum, scalar_like(n, x, 1 / p));
}

// Each element at the place that its index names in the result as one long row.
Built max_unpool(OnnxNode& n) {
  const Value x = n.input(0), indices = n.input(1);
  const Window w = window_of(n, x.shape(), n.required_ints("kernel_shape"));
  const size_t axes = w.kernel.size();
  std::vector<Dim> shape{x.shape()[0], x.shape()[1]};
  for (size_t i = 0; i < axes; ++i)
    shape.emplace_back(checked_sub(
        checked_sub(
            checked_add(checked_mul(x.shape()[static_cast<int64_t>(i) + 2].value() - 1, w.stride[i]), w.kernel[i]),
            w.pads[i]),
        w.pads[axes + i]));
  const Dim count = n.symbols().product(shape);
  const Value zeros = expand_to(n.scalar(0, x.dtype()), Shape{count});
  const Dim given = n.symbols().product(x.shape().dims());
  const Value y = ops::scatter_elements(zeros, reshape_to(indices, {given}), reshape_to(x, {given}), {.axis = 0});
  const Value unpooled = reshape_to(y, shape);
  if (!n.has(2)) return unpooled;
  // A larger result has zeros behind what the indices count.
  const std::vector<int64_t> wanted = n.ints(2);
  ops::PadAttrs attrs{.before = std::vector<int64_t>(wanted.size(), 0), .after = {}};
  require(wanted.size() == shape.size(), "The result's shape ", wanted, " has another rank than the operand.");
  for (size_t i = 0; i < wanted.size(); ++i) attrs.after.push_back(checked_sub(wanted[i], shape[i].value()));
  return ops::pad(unpooled, attrs);
}

Built col2im(OnnxNode& n) {
  const std::vector<int64_t> image = n.ints(1), block = n.ints(2);
  const size_t axes = image.size();
  const std::vector<int64_t> pads = n.attr("pads", std::vector<int64_t>(2 * axes, 0));
  require(pads.size() == 2 * axes, "Attribute 'pads' has ", pads.size(), " entries.");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
  return ops::col2im(n.input(0), {.image_size = {image.begin(), image.end()},
                                  .kernel_size = block,
                                  .stride = n.attr("strides", std::vector<int64_t>(axes, 1)),
                                  .dilation = n.attr("dilations", std::vector<int64_t>(axes, 1)),
                                  .before = {pads.begin(), middle},
                                  .after = {middle, pads.end()}});
}

Built deform_conv(OnnxNode& n) {
  const Value x = n.input(0), weight = n.input(1);
  const Window w = conv_window(n, x.shape(), weight.shape());
  const auto middle = w.pads.begin() + static_cast<std::ptrdiff_t>(w.kernel.size());
  Values operands{x, weight, n.input(2)};
  if (n.has(3)) operands.push_back(n.input(3));
  if (n.has(4)) operands.push_back(n.input(4));
  return ops::deform_conv(operands, {.stride = w.stride,
                                     .dilation = w.dilation,
                                     .before = {w.pads.begin(), middle},
                                     .after = {middle, w.pads.end()},
                                     .groups = n.attr("group", 1),
                                     .offset_groups = n.attr("offset_group", 1),
                                     .bias = n.has(3),
                                     .mask = n.has(4)});
}

}  // namespace

Rows conv_rows() {
  return {
      {"AveragePool", 1, average_pool},
      {"Col2Im", 18, col2im},
      {"Conv", 1, conv},
      {"ConvInteger", 10, conv_integer},
      {"ConvTranspose", 1, conv_transpose},
      {"DeformConv", 19, deform_conv},
      {"LpPool", 1, lp_pool},
      {"MaxPool", 1, max_pool},
      {"MaxUnpool", 9, max_unpool},
  };
}

}  // namespace rlx::onnx
