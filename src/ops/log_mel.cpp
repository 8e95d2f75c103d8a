#include "rlx/ops/log_mel.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

Shape infer_shape(const InferCall& call) {
  const TensorType &spectrum = call.input(0), &filters = call.input(1);
  require(spectrum.dtype == DType::F32 || spectrum.dtype == DType::F64, "Spectrum dtype (", spectrum.dtype,
          ") is not f32 or f64.");
  require_same_dtype(spectrum, filters);
  require(spectrum.rank() >= 1, "Spectrum has rank 0.");
  require(call.attrs<LogMelAttrs>().max_over == MaxOver::kFrame || spectrum.rank() >= 2,
          "Spectrum rank (1) has no axis of frames for max_over clip.");
  require_rank(filters, 2, "Filters");
  const Dim& last = spectrum.dim(spectrum.rank() - 1);
  require(!last.is_static() || (last.value() > 0 && last.value() % 2 == 0), "Last axis (", last,
          ") is not a positive even number.");
  // N / 2 + 1 with 2N in the last axis.
  require_same_dim(filters.dim(1), call.symbols.add(call.symbols.div(last, 4), 1), "Filter columns and spectrum bins");
  Shape shape = spectrum.shape;
  shape[spectrum.rank() - 1] = filters.dim(0);
  return shape;
}

Types infer(const InferCall& call) { return TensorType{infer_shape(call), call.input(0).dtype}; }

Types infer_backward(const InferCall& call) {
  const Shape shape = infer_shape(call);
  require_same_dtype(call.input(0), call.input(2));
  require_shape(call.input(2), shape, "Gradient");
  return call.input(0);
}

bool mixes(const Attrs& attrs, int64_t rank, int64_t axis) {
  return axis == rank - 1 || (attrs.as<LogMelAttrs>().max_over == MaxOver::kClip && axis == rank - 2);
}

}  // namespace

constinit const Op<LogMelAttrs> log_mel{
    {.name = "log_mel",
     .category = "Audio",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer,
     .mixes_axis = mixes,
     .traits = {.extent = ExtentRule::kFull},
     .doc = "(max(log10(max(mel power, 1e-10)), maximum - 8) + 4) / 4, mel power = filters · |spectrum|^2."}};

constinit const Op<LogMelAttrs> log_mel_backward{
    {.name = "log_mel_backward",
     .category = "Audio",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_backward,
     .mixes_axis = mixes,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of log_mel with respect to the spectrum; the maximum counts as a constant."}};

}  // namespace rlx::ops
