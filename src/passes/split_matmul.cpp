// A product whose readers take its columns apart (Q, K and V): one node that writes every part (spec 20, 3.1).
#include <algorithm>
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/fused_matmul.h"

namespace rlx::passes {

namespace {

struct Part {
  const Node* narrow = nullptr;
  LastSlice slice;
};

// Do the slices cover the columns exactly, without overlap? They are sorted by start.
bool is_partition(std::span<const Part> parts, const Dim& columns) {
  int64_t end = 0;
  for (const Part& p : parts) {
    if (p.slice.start != end || p.slice.len == 0) return false;
    end += p.slice.len;
  }
  return columns.is(end);
}

}  // namespace

void split_matmul(Rewriter& rw) {
  std::unordered_map<const Node*, ValueId> parts_now;  // looked up only
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (const auto it = parts_now.find(&node); it != parts_now.end()) return Values{rw.out().value(it->second)};
    const auto linear = as_linear(rw, node);
    if (!linear || linear->activation != ops::ActivationKind::kNone || is_unused(rw, node)) return std::nullopt;
    const ValueId id = node.results[0].id;
    std::vector<Part> parts;
    for (const int64_t reader : rw.uses().consumers(id)) {
      const Node& narrow = rw.graph().nodes()[static_cast<size_t>(reader)];
      if (const auto slice = as_last_slice(narrow)) parts.push_back({&narrow, *slice});
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.slice.start < b.slice.start; });
    if (parts.size() < 2 || !is_partition(parts, last_dim(node.results[0].type))) return std::nullopt;
    if (rw.uses().edges(id) != static_cast<int64_t>(parts.size())) {
      rw.miss(node, "MultiConsumer", "The whole product is read too, or is an output, besides its parts.");
      return std::nullopt;
    }
    ops::FusedMatmulSplitAttrs attrs;
    for (const Part& p : parts) attrs.widths.push_back(p.slice.len);
    const TensorType &x = rw.graph().type(linear->x), &w = rw.graph().type(linear->w);
    const TensorType types[] = {x, w, {{w.dim(1)}, w.dtype}};
    if (!rw.claims(ops::fused_matmul_split, attrs, types)) return std::nullopt;
    // The op has a bias always; a product without one adds zeros.
    const Value bias = linear->bias ? rw.in(*linear->bias)
                                    : rw.out().constant(Tensor(w.dtype, {last_dim(node.results[0].type).value()}));
    const Value split = ops::fused_matmul_split(rw.in(linear->x), rw.in(linear->w), bias, attrs);
    for (size_t i = 0; i < parts.size(); ++i) parts_now[parts[i].narrow] = split.result(static_cast<int64_t>(i)).id();
    return std::nullopt;  // nobody reads it any more
  });
}

}  // namespace rlx::passes
