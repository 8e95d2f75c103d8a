// Ops that carry a state along a sequence: the old state is an operand, the new one a result (spec 10, 3.8 and 4.13).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct SelectiveScanAttrs {
  int64_t state_size = 0;
  static constexpr auto fields = std::tuple{field("state_size", &SelectiveScanAttrs::state_size)};
};
// (x [b, s, h], delta [b, s, h], A [h, n], B [b, s, n], C [b, s, n], [state [b, h, n]]): y as x, state' [b, h, n].
extern const Op<SelectiveScanAttrs> selective_scan;

struct GatedDeltaNetAttrs {
  int64_t state_size = 0;
  bool carry_state = false;
  static constexpr auto fields = std::tuple{field("state_size", &GatedDeltaNetAttrs::state_size),
                                            field("carry_state", &GatedDeltaNetAttrs::carry_state)};
};
// (q, k, v [b, s, h, n], g, beta [b, s, h]) and, with carry_state, state [b, h, n, n]: y as q and, with it, state'.
extern const Op<GatedDeltaNetAttrs> gated_delta_net;

// (x [b, s, c], w [c, k], state [b, k - 1, c], [used I32 [b]]): each channel's rows, the state's before x's, convolved
// with its k weights, the last of which belongs to the row itself: y as x; and the last k - 1 rows, state'. With
// `used` the state ends with the first used[b] rows of sequence b.
extern const Op<NoAttrs> causal_conv;

struct KvAppendAttrs {
  int64_t axis = 1;  // of the sequence: 1 for BSHD and BSF, 2 for BHSD
  static constexpr auto fields = std::tuple{field("axis", &KvAppendAttrs::axis)};
};
// (cache [B, cap, …], rows [B, Sn, …], len I32 [B]): the cache with row i of batch b at index len[b] + i.
extern const Op<KvAppendAttrs> kv_append;

}  // namespace rlx::ops
