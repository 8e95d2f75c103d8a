// Every op of the catalogue: its attributes and its builder (docs/ops.md lists them).
#pragma once

#include "rlx/ops/activation.h"
#include "rlx/ops/activation_backward.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/compare.h"
#include "rlx/ops/complex.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/resize_nearest_2x.h"
#include "rlx/ops/softmax.h"
#include "rlx/ops/transpose.h"
#include "rlx/ops/where.h"
