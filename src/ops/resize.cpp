#include "rlx/ops/resize.h"

#include "ops/infer.h"

namespace rlx::ops {

// Beyond, an antialiased element would be made of millions of others.
static constexpr float kSmallestScale = 1.0f / (1 << 20);

static Types infer(const InferCall& call) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorType& x = call.input(0);
  const auto rank = static_cast<size_t>(x.rank());
  require(a.sizes.size() == rank, "sizes (", a.sizes, ") do not have one entry for each of the ", rank, " axes.");
  require(a.scales.empty() || a.scales.size() == rank, "scales (", a.scales, ") do not have one entry for each of the ",
          rank, " axes.");
  for (const float scale : a.scales)
    require(scale >= kSmallestScale && scale <= 1 / kSmallestScale, "Scale (", scale,
            ") is not between 2^-20 and 2^20.");
  if (a.coordinate == ResizeCoordinate::kTfCropAndResize)
    require(a.roi.size() == 2 * rank, "roi (", a.roi, ") does not have a begin and an end for each of the ", rank,
            " axes.");
  require(a.mode == ResizeMode::kNearest || is_float(x.dtype) || is_int(x.dtype), "Operand dtype (", x.dtype,
          ") cannot be interpolated (", name_of(a.mode), "); cast it.");
  require(!a.antialias || a.mode != ResizeMode::kNearest, "Mode (nearest) has no antialias.");
  for (size_t i = 0; i < rank; ++i) {
    const Dim &in = x.shape[static_cast<int64_t>(i)], &out = a.sizes[i];
    if (!out.is_static()) continue;
    require(out.value() >= 0, "Size (", out, ") of axis ", i, " is negative.");
    if (!in.is_static()) continue;
    require(in.value() > 0 || out.value() == 0, "Axis ", i, " has no elements to make ", out, " of.");
    if (a.scales.empty() && in.value() > 0 && out.value() > 0) {
      const double scale = static_cast<double>(out.value()) / static_cast<double>(in.value());
      require(scale >= kSmallestScale && scale <= 1 / kSmallestScale, "Axis ", i, " of size (", in, ") cannot become (",
              out, "): the scale is not between 2^-20 and 2^20.");
    }
  }
  return TensorType{Shape(a.sizes), x.dtype};
}

// With sizes alone it is not known here which axes stay as they are.
static bool mixes_axis(const Attrs& attrs, int64_t, int64_t axis) {
  const auto& a = attrs.as<ResizeAttrs>();
  return a.scales.empty() || a.scales[static_cast<size_t>(axis)] != 1.0f ||
         a.coordinate == ResizeCoordinate::kTfCropAndResize;
}

constinit const Op<ResizeAttrs> resize{
    {.name = "resize",
     .category = "Shape",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = mixes_axis,
     .doc = "x interpolated at other sizes: nearest, linear or cubic along each axis, as ONNX's Resize."}};

}  // namespace rlx::ops
