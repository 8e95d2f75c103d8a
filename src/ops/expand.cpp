#include "rlx/ops/expand.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  const std::vector<Dim>& target = call.attrs<ExpandAttrs>().target_shape;
  TensorType y{Shape(target), x.dtype};
  const int64_t added = y.rank() - x.rank();
  require(added >= 0, "Target shape ", y.shape, " has fewer dims than the operand ", x.shape, ".");
  for (int64_t i = 0; i < y.rank(); ++i) {
    const Dim& to = y.dim(i);
    if (to.is_static() && to.value() < 0) {
      require(to.is(-1), "Target size (", to, ") is negative; only -1 has a meaning.");
      require(i >= added, "Target size -1 of new axis ", i, " has no operand size to keep.");
      y.shape[i] = x.dim(i - added);
      continue;
    }
    if (i < added || x.dim(i - added).is(1)) continue;
    const Dim& from = x.dim(i - added);
    if (from == to) continue;
    require(from.is_static() != to.is_static(), "Size ", from, " of axis ", i - added, " does not expand to ", to, ".");
    // Either side may turn out to fit: a symbol that is 1 or the target's number, a number that is the target's symbol.
    if (to.is_static()) call.symbols.require_one_or(from, to.value());
  }
  return y;
}

// Only dims of size 1 are added: the bytes are the operand's.
static std::optional<ViewOf> view(const InferCall& call) {
  if (infer(call)[0].shape.num_elements() != call.input(0).shape.num_elements()) return std::nullopt;
  return ViewOf{};
}

constinit const Op<ExpandAttrs> expand{
    {.name = "expand",
     .category = "Shape",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .view = view,
     .doc = "Broadcasts to a shape: 1s are added on the left, then dims of size 1 repeat; -1 keeps a size."}};

}  // namespace rlx::ops
