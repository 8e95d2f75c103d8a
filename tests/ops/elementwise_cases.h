// Shapes that reach every way a block engine reads its operands: blocks, their tails, and broadcasts of every kind.
#pragma once

#include <vector>

#include "support/op_cases.h"

namespace rlx::test {

using Sizes = std::vector<int64_t>;

// Operand shapes of a binary op: equal, scalars, rows and columns short and long, axes in the middle, all mixed.
inline std::vector<std::pair<Sizes, Sizes>> broadcast_pairs() {
  return {{{3, 701}, {3, 701}},
          {{1537}, {}},
          {{}, {1537}},
          {{9, 67}, {67}},
          {{5, 1300}, {1300}},
          {{1300}, {5, 1300}},
          {{400, 3}, {3}},
          {{400, 3}, {400, 1}},
          {{3, 1}, {3, 1300}},
          {{2, 3, 700}, {3, 1}},
          {{5, 1, 70}, {6, 1}},
          {{2, 1, 5, 7}, {3, 5, 1}},
          {{7, 1, 300}, {1, 4, 300}},
          {{2, 600, 2}, {600, 1}},
          {{1, 1}, {1, 1}},
          {{40'001}, {40'001}}};
}

// No judge: these compare backends.
template <class Builder>
void add_broadcast_pairs(Builder& b, std::initializer_list<DType> dtypes, double low = -3, double high = 3) {
  for (const auto& [a, c] : broadcast_pairs()) b.add({b.random(a, low, high), b.random(c, low, high)});
  for (const DType d : dtypes)
    for (const auto& [a, c] : {std::pair<Sizes, Sizes>{{3, 701}, {701}}, {{130, 9}, {130, 1}}, {{2, 1, 600}, {3, 1}}})
      b.add(is_float(d) ? Tensors{b.random(a, low, high, d), b.random(c, low, high, d)}
                        : Tensors{b.random(a, d), b.random(c, d)});
}

}  // namespace rlx::test
