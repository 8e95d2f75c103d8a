#include <algorithm>

#include "rlx/ops.h"

namespace rlx {

// Sorted by name; a test checks that.
// clang-format off: a line per op
static constexpr const OpDef* kOps[] = {
    &ops::add,     &ops::concat, &ops::constant, &ops::dim_value, &ops::div,
    &ops::expand,  &ops::input,  &ops::max,      &ops::min,       &ops::mul,
    &ops::narrow,  &ops::param,  &ops::pow,      &ops::reshape,   &ops::resize_nearest_2x,
    &ops::softmax, &ops::state,  &ops::sub,      &ops::transpose,
};
// clang-format on

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  const auto it = std::lower_bound(std::begin(kOps), std::end(kOps), name,
                                   [](const OpDef* op, std::string_view n) { return op->name < n; });
  return it != std::end(kOps) && (*it)->name == name ? *it : nullptr;
}

}  // namespace rlx
