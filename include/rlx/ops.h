// Every op of the catalogue: its attributes and its builder (docs/ops.md lists them).
#pragma once

#include "rlx/ops/binary.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/softmax.h"
