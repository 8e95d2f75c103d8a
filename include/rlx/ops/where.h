#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> where;

}  // namespace rlx::ops
