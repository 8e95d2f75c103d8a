// Ops that pick, place or interpolate elements.
#include <algorithm>
#include <cmath>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

Built gather_elements(OnnxNode& n) {
  const Value x = n.input(0);
  return n.like(ops::gather_elements(x, n.input(1), {.axis = n.attr("axis", 0)}), 0);
}

Built gather_nd(OnnxNode& n) {
  const Value x = n.input(0);
  return n.like(ops::gather_nd(x, n.input(1), {.batch_dims = n.attr("batch_dims", 0)}), 0);
}

// The value of an attribute that names one of an enum's values.
template <class E>
E enum_attr(OnnxNode& n, std::string_view attribute, const char* otherwise) {
  const std::string text = n.attr(attribute, otherwise);
  const auto names = names_of(E{});
  const auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) n.unsupported(str("Attribute '", attribute, "' has a value ('", text, "') that rlx lacks."));
  return static_cast<E>(it - names.begin());
}

Built scatter_elements(OnnxNode& n) {
  const Value x = n.input(0), indices = n.input(1);
  const auto reduction = enum_attr<ops::ScatterReduction>(n, "reduction", "none");
  return n.like(ops::scatter_elements(x, indices, n.input(2), {.axis = n.attr("axis", 0), .reduction = reduction}), 0);
}

Built scatter_nd(OnnxNode& n) {
  const Value x = n.input(0), indices = n.input(1);
  const auto reduction = enum_attr<ops::ScatterReduction>(n, "reduction", "none");
  return n.like(ops::scatter_nd(x, indices, n.input(2), {.reduction = reduction}), 0);
}

// Pads of some axes (all by default) as pads of all: before and after.
Built pad_by(OnnxNode& n, const std::vector<int64_t>& pads, const std::vector<int64_t>& axes,
             const std::optional<Value>& value) {
  const Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  require(pads.size() == 2 * axes.size(), "There are ", pads.size(), " pads for ", axes.size(), " axes.");
  ops::PadAttrs attrs{.mode = enum_attr<ops::PadMode>(n, "mode", "constant")};
  attrs.before.assign(static_cast<size_t>(rank), 0);
  attrs.after.assign(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normalize_axis(axes[i], rank));
    attrs.before[axis] = pads[i];
    attrs.after[axis] = pads[axes.size() + i];
  }
  if (value && attrs.mode == ops::PadMode::kConstant) return n.like(ops::pad(x, *value, attrs), 0);
  return n.like(ops::pad(x, attrs), 0);
}

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

Built pad_attributes(OnnxNode& n) {
  const Value x = n.input(0);
  return pad_by(n, n.required_ints(n.opset() < 2 ? "paddings" : "pads"), all_axes(x.shape().rank()),
                scalar_like(n, x, n.attr("value", 0.0f)));
}

Built pad(OnnxNode& n) {
  const Value x = n.input(0);
  const std::vector<int64_t> pads = n.ints(1);
  const std::vector<int64_t> axes = n.has(3) ? n.ints(3) : all_axes(x.shape().rank());
  std::optional<Value> value;
  if (n.has(2)) value = reshape_to(n.input(2), {});
  return pad_by(n, pads, axes, value);
}

int64_t rounded_down(double size) {
  require(size >= 0 && size < 0x1p62, "A size (", size, ") is out of range.");
  return static_cast<int64_t>(size);
}

// A size times a factor, rounded down.
Dim scaled_dim(OnnxNode& n, const Dim& size, double factor) {
  if (factor == 1) return size;
  if (size.is_static()) return rounded_down(static_cast<double>(size.value()) * factor);
  require(factor == std::floor(factor), "A size that is not known (", size, ") cannot be scaled by ", factor, ".");
  return n.symbols().mul(size, rounded_down(factor));
}

Built resize_by(OnnxNode& n, const Value& x, const std::vector<double>& scales, ops::ResizeAttrs attrs) {
  const int64_t rank = x.shape().rank();
  require(static_cast<int64_t>(scales.size()) == rank, "There are ", scales.size(), " scales for rank ", rank, ".");
  for (int64_t i = 0; i < rank; ++i) {
    const double scale = scales[static_cast<size_t>(i)];
    require(scale > 0, "A scale (", scale, ") is not positive.");
    attrs.sizes.push_back(scaled_dim(n, x.shape()[i], scale));
    attrs.scales.push_back(static_cast<float>(scale));
  }
  return n.like(ops::resize(x, attrs), 0);
}

std::vector<double> doubles_of(const Tensor& t) { return t.to_doubles(); }

// Upsample, and Resize of opset 10: coordinates are i / scale, the nearest element is the one before.
Built resize_plain(OnnxNode& n) {
  const Value x = n.input(0);
  std::vector<double> scales;
  if (n.has_attr("scales")) {
    for (const float s : n.attr("scales", std::vector<float>())) scales.push_back(s);
  } else {
    scales = doubles_of(n.known(1));
  }
  ops::ResizeAttrs attrs{.coordinate = ops::ResizeCoordinate::kAsymmetric, .nearest = ops::ResizeNearest::kFloor};
  attrs.mode = n.attr("mode", "nearest") == "nearest" ? ops::ResizeMode::kNearest : ops::ResizeMode::kLinear;
  return resize_by(n, x, scales, attrs);
}

Built resize(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  ops::ResizeAttrs attrs{
      .mode = enum_attr<ops::ResizeMode>(n, "mode", "nearest"),
      .coordinate = enum_attr<ops::ResizeCoordinate>(n, "coordinate_transformation_mode", "half_pixel"),
      .nearest = enum_attr<ops::ResizeNearest>(n, "nearest_mode", "round_prefer_floor"),
      .cubic_coeff_a = n.attr("cubic_coeff_a", -0.75f),
      .exclude_outside = n.attr("exclude_outside", false),
      .extrapolation_value = n.attr("extrapolation_value", 0.0f),
      .antialias = n.attr("antialias", false)};
  const std::vector<int64_t> axes = n.attr("axes", all_axes(rank));
  const auto axis_at = [&](size_t i) { return static_cast<size_t>(normalize_axis(axes[i], rank)); };
  if (attrs.coordinate == ops::ResizeCoordinate::kTfCropAndResize) {
    const std::vector<double> roi = doubles_of(n.known(1));
    require(roi.size() == 2 * axes.size(), "The region has ", roi.size(), " numbers for ", axes.size(), " axes.");
    attrs.roi.assign(static_cast<size_t>(2 * rank), 0);
    for (int64_t i = 0; i < rank; ++i) attrs.roi[static_cast<size_t>(rank + i)] = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      attrs.roi[axis_at(i)] = static_cast<float>(roi[i]);
      attrs.roi[static_cast<size_t>(rank) + axis_at(i)] = static_cast<float>(roi[axes.size() + i]);
    }
  }
  const auto elements = [&](int64_t i) {
    return n.has(i) ? n.input(i).shape().try_elements().value_or(1) : 0;  // an empty tensor is as good as none
  };
  if (elements(2) > 0) {
    const std::vector<double> given = doubles_of(n.known(2));
    require(given.size() == axes.size(), "There are ", given.size(), " scales for ", axes.size(), " axes.");
    std::vector<double> scales(static_cast<size_t>(rank), 1);
    for (size_t i = 0; i < axes.size(); ++i) scales[axis_at(i)] = given[i];
    return resize_by(n, x, scales, attrs);
  }
  require(elements(3) > 0, "Neither scales nor sizes are given.");
  const std::vector<Dim> given = n.dims(3);
  require(given.size() == axes.size(), "There are ", given.size(), " sizes for ", axes.size(), " axes.");
  attrs.sizes = x.shape().dims();
  const std::string policy = n.attr("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) attrs.sizes[axis_at(i)] = given[i];
    return n.like(ops::resize(x, attrs), 0);
  }
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double s = static_cast<double>(given[i].value()) /
                     static_cast<double>(x.shape()[static_cast<int64_t>(axis_at(i))].value());
    scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  attrs.scales.assign(static_cast<size_t>(rank), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_at(i);
    attrs.scales[axis] = static_cast<float>(scale);
    attrs.sizes[axis] = rounded_down(scale * static_cast<double>(x.shape()[static_cast<int64_t>(axis)].value()) + 0.5);
  }
  return n.like(ops::resize(x, attrs), 0);
}

Built grid_sample(OnnxNode& n) {
  const Value x = n.input(0);
  std::string mode = n.attr("mode", n.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const auto names = names_of(ops::GridSampleMode{});
  const auto it = std::find(names.begin(), names.end(), mode);
  if (it == names.end()) n.unsupported(str("Mode '", mode, "' is not one that rlx has."));
  return ops::grid_sample(x, n.input(1),
                          {.mode = static_cast<ops::GridSampleMode>(it - names.begin()),
                           .padding = enum_attr<ops::GridPadding>(n, "padding_mode", "zeros"),
                           .align_corners = n.attr("align_corners", false)});
}

Built roi_align(OnnxNode& n) {
  const Value x = n.input(0), rois = n.input(1);
  return ops::roi_align(
      x, rois, n.input(2),
      {.mode = enum_attr<ops::RoiAlignMode>(n, "mode", "avg"),
       .output_height = n.attr("output_height", 1),
       .output_width = n.attr("output_width", 1),
       .sampling_ratio = n.attr("sampling_ratio", 0),
       .spatial_scale = n.attr("spatial_scale", 1.0f),
       .coordinate_mode = enum_attr<ops::RoiCoordinate>(n, "coordinate_transformation_mode",
                                                        n.opset() < 16 ? "output_half_pixel" : "half_pixel")});
}

Built det(OnnxNode& n) { return ops::det(n.input(0)); }

}  // namespace

Rows index_rows() {
  return {
      {"Det", 11, det},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_nd},
      {"GridSample", 16, grid_sample},
      {"Pad", 1, pad_attributes},
      {"Pad", 11, pad},
      {"Resize", 10, resize_plain},
      {"Resize", 11, resize},
      {"RoiAlign", 10, roi_align},
      {"Scatter", 9, scatter_elements},
      {"ScatterElements", 11, scatter_elements},
      {"ScatterND", 11, scatter_nd},
      {"Upsample", 7, resize_plain},
  };
}

}  // namespace rlx::onnx
