#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> softmax_cross_entropy_with_logits;  // logits [N, C], labels [N] -> [N]
extern const Op<NoAttrs> softmax_cross_entropy_backward;     // logits, labels, d_loss [N] -> [N, C]

}  // namespace rlx::ops
