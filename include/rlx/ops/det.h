#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> det;  // x [..., n, n]

}  // namespace rlx::ops
