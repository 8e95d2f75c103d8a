// Which steps an active extent may cut short (spec 40, 5): what the executors of all backends ask.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "rlx/graph.h"

namespace rlx::host {

// Values that an output or an update depends on.
std::unordered_set<ValueId> used_values(const Graph& graph);

// A node that became no step: its value lies in operand 0's bytes.
struct ProgramView {
  int64_t graph_node = 0;
  int64_t offset_elems = 0;
};

// A view whose place depends on the active size cannot be used: its offset is planned. `active` is the graph at the
// rows in use. Empty when there is none, else what is wrong.
std::string moved_view(const Graph& active, std::span<const ProgramView> views);

// A type in full and at the rows in use.
struct ExtentType {
  std::vector<int64_t> full;
  TensorType active;
  int64_t axis() const;  // whose size the extent changes; -1: none
};

// A gather along the rows by indices that do not count them: it runs as it is, and whoever gives the indices sees to
// it that they are of rows in use.
bool picks_rows(const OpDef& op, const Attrs& attrs, std::span<const ExtentType> inputs,
                std::span<const ExtentType> outputs);

// Why a node cannot be cut to the rows in use; empty when it can. `outputs`: the results that somebody uses.
std::string why_unsafe(const OpDef& op, const Attrs& attrs, std::span<const ExtentType> inputs,
                       std::span<const ExtentType> outputs);

// Does the node take a part that begins elsewhere when fewer rows are in use? `active`: its attributes then.
bool begins_elsewhere(const OpDef& op, const Attrs& full, const Attrs& active);

// Why what is computed of weights alone, in full, is not that of the rows in use and more behind it; empty when it is.
std::string why_not_prefix(const OpDef& op, const Attrs& full, const Attrs& active, std::span<const ExtentType> inputs,
                           std::span<const ExtentType> outputs);

}  // namespace rlx::host
