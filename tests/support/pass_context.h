// A context for passes under test: the oracle folds constants, and everything is claimed but what a test names.
#pragma once

#include <set>
#include <string>

#include "passes/pipeline.h"

namespace rlx::test {

passes::PassContext pass_context(std::set<std::string, std::less<>> unclaimed = {});

// One pass by name, with all checks of the driver; the graph itself when it changes nothing.
Graph after_pass(const Graph& graph, std::string_view pass, const passes::PassContext& context = pass_context());

}  // namespace rlx::test
