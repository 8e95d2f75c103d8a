#include "rlx/ops/slice.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& [start, step, len] = call.attrs<SliceAttrs>();
  TensorType y = call.input(0);
  const auto rank = static_cast<size_t>(y.rank());
  require(start.size() == rank && step.size() == rank && len.size() == rank, "start (", start, "), step (", step,
          ") and len (", len, ") do not have one entry for each of the ", rank, " axes.");
  for (size_t a = 0; a < rank; ++a) {
    const Dim size = y.shape[static_cast<int64_t>(a)];
    require(step[a] != 0, "Step of axis ", a, " is 0.");
    require(!len[a].is_static() || len[a].value() >= 0, "Length (", len[a], ") of axis ", a, " is negative.");
    if (start[a].is_static() && len[a].is_static() && size.is_static() && len[a].value() > 0) {
      const int64_t first = start[a].value();
      const int64_t last = checked_add(first, checked_mul(len[a].value() - 1, step[a]));
      require(first >= 0 && first < size.value() && last >= 0 && last < size.value(), "Elements ", first, " to ", last,
              " of axis ", a, " are not all there: its size is ", size, ".");
    }
    y.shape[static_cast<int64_t>(a)] = len[a];
  }
  return y;
}

// The elements lie together where, behind the axes of which one index is taken, one axis is cut and the rest is whole.
static std::optional<ViewOf> view(const InferCall& call) {
  const auto& [start, step, len] = call.attrs<SliceAttrs>();
  const std::vector<int64_t> sizes = call.input(0).shape.sizes();
  bool inside = false;
  int64_t offset = 0, stride = product(sizes);
  for (size_t a = 0; a < sizes.size(); ++a) {
    const int64_t n = len[a].value();
    if (n == 0 || (n != 1 && step[a] != 1) || (inside && n != sizes[a])) return std::nullopt;
    inside = inside || n != 1;
    stride /= sizes[a];
    offset += start[a].value() * stride;
  }
  return ViewOf{offset};
}

// The first elements of an axis stay where they are.
static bool mixes_axis(const Attrs& attrs, int64_t, int64_t axis) {
  const auto& a = attrs.as<SliceAttrs>();
  return !a.start[static_cast<size_t>(axis)].is(0) || a.step[static_cast<size_t>(axis)] != 1;
}

constinit const Op<SliceAttrs> slice{{.name = "slice",
                                      .category = "Shape",
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .infer = infer,
                                      .view = view,
                                      .mixes_axis = mixes_axis,
                                      .doc = "Elements start, start + step, … (len of them) along every axis."}};

}  // namespace rlx::ops
