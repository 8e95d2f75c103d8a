// Quantisation of a graph by records made elsewhere (spec 20, 1.4.14), and params that vary per run (1.4.13). These
// change what a graph computes or asks for, so callers apply them to their own graph, before the pipeline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/graph.h"
#include "rlx/ops/quantize.h"

namespace rlx::passes {

// A value to be rounded to int8: result 0 of the node of that name, with scales for the whole tensor or per channel.
struct QuantTap {
  std::string node;
  ops::QuantizeAttrs attrs;
};

// Puts quantize and dequantize behind every tapped value; readers, outputs and state updates take the rounded one.
// Value ids of the graph stay. Throws when a name is unknown or given twice, a value is not f32, or the scales do not
// fit it.
Graph insert_q_dq(const Graph& graph, std::span<const QuantTap> taps);

// The params of these names become inputs of the same type, in their places. Unknown names are an error unless
// `lenient`.
Graph promote_params_to_inputs(const Graph& graph, std::span<const std::string> names, bool lenient = false);

}  // namespace rlx::passes
