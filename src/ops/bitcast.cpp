#include "rlx/ops/bitcast.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  const DType to = call.attrs<BitcastAttrs>().to;
  require(size_of(to) == size_of(x.dtype), "Elements of ", x.dtype, " (", size_of(x.dtype), " bytes) and ", to, " (",
          size_of(to), " bytes) differ in size.");
  return TensorType{x.shape, to};
}

constinit const Op<BitcastAttrs> bitcast{{.name = "bitcast",
                                          .category = "Elementwise",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = infer,
                                          .view = [](const InferCall&) { return std::optional(ViewOf{}); },
                                          .traits = {.elementwise = true, .in_place = 0b1},
                                          .doc = "The same bytes read as another dtype of the same size."}};

}  // namespace rlx::ops
