// rlx info --graph: a page that shows graphs, in one file that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "rlx/graph.h"

namespace rlx::cli {

struct GraphView {
  std::string title;  // "before passes"
  const Graph* graph;
};
// The regions of nodes can be entered. The page draws on its own: 5,000 nodes are no trouble.
std::string graph_page(const std::string& model, const std::vector<GraphView>& views);

}  // namespace rlx::cli
