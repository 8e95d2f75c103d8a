#include "rlx/ops/narrow.h"

#include "ops/infer.h"

namespace rlx::ops {

// Can it be told now? Dims of different symbols are compared when they are bound.
static bool comparable(const Dim& a, const Dim& b) {
  return a.scale() == b.scale() && (a.is_static() || a.symbol_id() == b.symbol_id());
}
static bool addable(const Dim& a, const Dim& b) {
  return a.is_static() || b.is_static() || a.symbol_id() == b.symbol_id();
}

static Types infer(const InferCall& call) {
  const auto& [axis_attr, start, len] = call.attrs<NarrowAttrs>();
  TensorType y = call.input(0);
  const int64_t axis = normalize_axis(axis_attr, y.rank());
  require(!start.is_static() || start.value() >= 0, "Start (", start, ") is negative.");
  require(!len.is_static() || len.value() >= 0, "Length (", len, ") is negative.");
  const Dim& size = y.dim(axis);
  if (addable(start, len)) {
    const Dim end = call.symbols.add(start, len);
    require(!comparable(end, size) || end.offset() <= size.offset(), "Start (", start, ") + length (", len,
            ") is beyond the size (", size, ") of axis ", axis, ".");
  }
  y.shape[axis] = len;
  return y;
}

static std::optional<ViewOf> view(const InferCall& call) {
  const auto& [axis_attr, start, len] = call.attrs<NarrowAttrs>();
  const std::vector<int64_t> sizes = call.input(0).shape.sizes();
  const auto axis = static_cast<size_t>(normalize_axis(axis_attr, call.input(0).rank()));
  const std::span<const int64_t> all(sizes);
  if (product(all.first(axis)) != 1) return std::nullopt;
  return ViewOf{checked_mul(start.value(), product(all.subspan(axis + 1)))};
}

constinit const Op<NarrowAttrs> narrow{{.name = "narrow",
                                        .category = "Shape",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .infer = infer,
                                        .view = view,
                                        .mixes_axis = mixes_attr_axis<NarrowAttrs>,
                                        .doc = "Elements start … start + len - 1 along an axis."}};

}  // namespace rlx::ops
