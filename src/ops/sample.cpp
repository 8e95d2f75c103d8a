#include "rlx/ops/sample.h"

#include <cmath>

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& attrs = call.attrs<SampleAttrs>();
  const TensorType& logits = call.input(0);
  require_float(logits, "Logits");
  require(logits.rank() >= 1, "Logits rank (0) is less than 1.");
  require(attrs.top_k >= 0, "Top_k (", attrs.top_k, ") is negative.");
  require(!std::isnan(attrs.top_p), "Top_p (", attrs.top_p, ") is not a number.");
  require(std::isfinite(attrs.temperature), "Temperature (", attrs.temperature, ") is not finite.");
  require_index_dtype(attrs.index_dtype);
  if (call.num_inputs() == 2) {
    require_dtype(call.input(1), DType::U32, "Rng");
    require_shape(call.input(1), {4}, "Rng");
  }
  TensorType y{{}, attrs.index_dtype};
  for (int64_t d = 0; d + 1 < logits.rank(); ++d) y.shape.push_back(logits.dim(d));
  return y;
}

static bool mixes_axis(const Attrs&, int64_t rank, int64_t axis) { return axis == rank - 1; }

constinit const Op<SampleAttrs> sample{
    {.name = "sample",
     .category = "Sampling",
     .min_inputs = 1,
     .max_inputs = 2,
     .infer = infer,
     .mixes_axis = mixes_axis,
     .doc = "Draws an index per row of logits: temperature, top-k, top-p, then Gumbel-max with Threefry-2x32-20. Rows "
            "with NaN or +inf, or of -inf only, give their largest logit."}};

}  // namespace rlx::ops
