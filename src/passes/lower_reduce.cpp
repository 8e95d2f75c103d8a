// Kernels reduce a run of neighbouring axes: [outer, reduced, inner]. Any other set of axes is moved to the end by one
// transpose (spec 20, 1.4.5).
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/reduce.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

bool is_reduce(const OpDef& op) { return op.attrs == &attrs_type<ops::ReduceAttrs>; }

// Do the reduced axes stand side by side, axes of size 1 aside?
bool is_run(const Shape& shape, const std::vector<bool>& reduced) {
  int changes = 0;
  bool last = false;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (shape[i].is(1)) continue;
    const bool now = reduced[static_cast<size_t>(i)];
    changes += now && !last;
    last = now;
  }
  return changes <= 1;
}

}  // namespace

void lower_reduce(Rewriter& rw) {
  if (rw.context().options.reduces_any_axes) return;
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (!is_reduce(*node.op)) return std::nullopt;
    const Shape shape = rw.graph().type(node.inputs[0]).shape;
    std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
    const std::vector<int64_t>& axes = node.attrs.as<ops::ReduceAttrs>().axes;
    for (const int64_t a : axes) reduced[static_cast<size_t>(normalize_axis(a, shape.rank()))] = true;
    if (is_run(shape, reduced)) return std::nullopt;
    std::vector<int64_t> perm, last;
    for (int64_t i = 0; i < shape.rank(); ++i)
      if (!reduced[static_cast<size_t>(i)]) perm.push_back(i);
    for (int64_t i = 0; i < shape.rank(); ++i)
      if (reduced[static_cast<size_t>(i)]) {
        last.push_back(static_cast<int64_t>(perm.size()));
        perm.push_back(i);
      }
    const Value moved = ops::transpose(rw.in(node.inputs[0]), {.perm = perm});
    const Value sum = rw.out().add(*node.op, std::span(&moved, 1), ops::ReduceAttrs{.axes = last});
    const Shape& wanted = node.results[0].type.shape;
    return Values{sum.shape() == wanted ? sum : ops::reshape(sum, {.new_shape = wanted.dims()})};
  });
}

}  // namespace rlx::passes
