#include "rlx/ops/leaves.h"

namespace rlx::ops {

static Types infer_declared(const InferCall& call) {
  require(call.declared().size() == 1, "A leaf declares exactly one type, not ", call.declared().size(), ".");
  require(!call.attrs<LeafAttrs>().name.empty(), "A leaf needs a name.");
  return call.declared()[0];
}
static Types infer_constant(const InferCall& call) { return call.attrs<ConstantAttrs>().value.type(); }
static Types infer_dim_value(const InferCall&) { return TensorType{{}, DType::I32}; }

constexpr Traits kLeaf = {.leaf = true};

constinit const Op<LeafAttrs> input{{.name = "input",
                                     .category = "Leaves",
                                     .infer = infer_declared,
                                     .traits = kLeaf,
                                     .doc = "A tensor supplied for every run, by name."}};
constinit const Op<LeafAttrs> param{{.name = "param",
                                     .category = "Leaves",
                                     .infer = infer_declared,
                                     .traits = kLeaf,
                                     .doc = "A weight: set once by name, kept across runs."}};
constinit const Op<LeafAttrs> state{
    {.name = "state",
     .category = "Leaves",
     .infer = infer_declared,
     .traits = kLeaf,
     .doc = "A tensor that outlives a run: zeros at first, then what the last update gave it."}};
constinit const Op<ConstantAttrs> constant{{.name = "constant",
                                            .category = "Leaves",
                                            .infer = infer_constant,
                                            .traits = kLeaf,
                                            .doc = "A value that is part of the graph."}};
constinit const Op<DimValueAttrs> dim_value{
    {.name = "dim_value",
     .category = "Leaves",
     .infer = infer_dim_value,
     .traits = {.leaf = true, .extent = ExtentRule::kOwnBound},
     .doc = "The size of a dim as an I32 scalar; under an active extent the actual one."}};

}  // namespace rlx::ops
