// Ops that only complex values have.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> complex_norm_sq;
extern const Op<NoAttrs> conjugate;
extern const Op<NoAttrs> complex_norm_sq_backward;  // (z, g)

}  // namespace rlx::ops
