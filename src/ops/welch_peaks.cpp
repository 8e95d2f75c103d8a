#include "rlx/ops/welch_peaks.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& attrs = call.attrs<WelchPeaksAttrs>();
  const TensorType& x = call.input(0);
  require(x.dtype == DType::F32 || x.dtype == DType::F64, "Spectrum dtype (", x.dtype, ") is not f32 or f64.");
  require_rank(x, 2, "Spectrum");
  require(attrs.k >= 1, "Attribute k (", attrs.k, ") is not positive.");
  require(attrs.n_segments >= 1, "Attribute n_segments (", attrs.n_segments, ") is not positive.");
  const Dim &rows = x.dim(0), &last = x.dim(1);
  require(!rows.is_static() || rows.value() % attrs.n_segments == 0, "Rows (", rows,
          ") are not a multiple of n_segments (", attrs.n_segments, ").");
  if (last.is_static()) {
    require(last.value() > 0 && last.value() % 2 == 0, "Last axis (", last, ") is not a positive even number.");
    const int64_t bins = last.value() / 4 + 1;
    require(attrs.k <= bins, "Attribute k (", attrs.k, ") is more than the bins (", bins, ").");
  }
  return TensorType{{call.symbols.div(rows, attrs.n_segments), checked_mul(2, attrs.k)}, x.dtype};
}

constinit const Op<WelchPeaksAttrs> welch_peaks{
    {.name = "welch_peaks",
     .category = "Audio",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = [](const Attrs&, int64_t,
                      int64_t axis) { return axis == 1; },  // and rows of one batch, which stay together
     .traits = {.extent = ExtentRule::kFull},
     .doc = "The k strongest bins of the mean one-sided power of n_segments rows, as pairs of bin and power."}};

}  // namespace rlx::ops
