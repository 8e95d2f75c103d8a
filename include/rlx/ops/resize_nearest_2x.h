#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> resize_nearest_2x;

}  // namespace rlx::ops
