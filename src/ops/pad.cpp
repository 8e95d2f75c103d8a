#include "rlx/ops/pad.h"

#include <algorithm>

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& [mode, before, after] = call.attrs<PadAttrs>();
  TensorType y = call.input(0);
  const auto rank = static_cast<size_t>(y.rank());
  require(before.size() == rank && after.size() == rank, "before (", before, ") and after (", after,
          ") do not have one entry for each of the ", rank, " axes.");
  if (call.num_inputs() == 2) {
    const TensorType& value = call.input(1);
    require(mode == PadMode::kConstant, "A value is given, but mode (", name_of(mode), ") uses none.");
    require_same_dtype(y, value);
    require(value.shape.try_elements() == 1, "Value shape (", value.shape, ") does not have one element.");
  }
  for (size_t a = 0; a < rank; ++a) {
    Dim& size = y.shape[static_cast<int64_t>(a)];
    const int64_t added = checked_add(std::max<int64_t>(before[a], 0), std::max<int64_t>(after[a], 0));
    const int64_t removed = checked_add(std::min<int64_t>(before[a], 0), std::min<int64_t>(after[a], 0));
    if (size.is_static()) {
      const int64_t kept = checked_add(size.value(), removed);
      require(kept >= 0, "Axis ", a, " of size (", size, ") has fewer elements than are removed (", -removed, ").");
      require(kept > 0 || added == 0 || mode == PadMode::kConstant, "Axis ", a,
              " has no elements to pad with in mode (", name_of(mode), ").");
    }
    size = call.symbols.add(size, checked_add(added, removed));
  }
  return y;
}

static bool mixes_axis(const Attrs& attrs, int64_t, int64_t axis) {
  const auto& a = attrs.as<PadAttrs>();
  return a.before[static_cast<size_t>(axis)] != 0 || a.after[static_cast<size_t>(axis)] != 0;
}

constinit const Op<PadAttrs> pad{
    {.name = "pad",
     .category = "Shape",
     .min_inputs = 1,
     .max_inputs = 2,
     .infer = infer,
     .mixes_axis = mixes_axis,
     .doc =
         "x with elements added before and after each axis: a value (operand 1, else zero), x mirrored, its edges or "
         "x again. Negative numbers remove elements."}};

}  // namespace rlx::ops
