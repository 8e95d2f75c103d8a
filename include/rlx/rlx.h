// The whole public API: rlx::load or a graph of rlx::ops, rlx::compile, Executable::run.
#pragma once

#include "rlx/buckets.h"
#include "rlx/graph.h"
#include "rlx/kv_pages.h"
#include "rlx/log.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "rlx/tensor.h"
