// Updates that are sorted by the rows they belong to, combined row by row.
#pragma once

#include <optional>

#include "backends/webgpu/lower.h"
#include "rlx/ops/scatter.h"

namespace rlx::webgpu {

// Updates and the rows that they change: y[o, key of u, t] takes updates[o, u, t].
struct ScatterRows {
  int64_t outer = 1, cols = 1, inner = 1, count = 0;
};

// y = x (or 0), combined with the updates of each row in the order of `entries`: `total` sorted pairs (row, update).
void emit_scatter_reduce(LowerCall& call, Operand entries, int64_t total, std::optional<Operand> x, Operand updates,
                         const ScatterRows& rows, ops::ScatterReduction reduction);

// Rows of pairs of words, each sorted by both: `cols` is a power of two, at least 1024, and 2048 of several rows
// (scatter.cpp).
struct SortedRows {
  int64_t count = 1, cols = 0;
  bool extent_safe = false;
};
void emit_sort(LowerCall& call, Operand entries, const SortedRows& rows);

}  // namespace rlx::webgpu
