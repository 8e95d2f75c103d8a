#include "rlx/ops/cast.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) { return TensorType{call.input(0).shape, call.attrs<CastAttrs>().to}; }

// No value can change and the bytes are the same (spec 10, 1.4): on the host every dtype is stored as itself.
static std::optional<ViewOf> view(const InferCall& call) {
  if (call.input(0).dtype != call.attrs<CastAttrs>().to) return std::nullopt;
  return ViewOf{};
}

constinit const Op<CastAttrs> cast{{.name = "cast",
                                    .category = "Elementwise",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .infer = infer,
                                    .view = view,
                                    .traits = {.elementwise = true, .in_place = 0b1},
                                    .doc = "x in another dtype: floats round to nearest even, float to int truncates "
                                           "and saturates, int to int keeps the low bits, Bool is x != 0."}};

}  // namespace rlx::ops
