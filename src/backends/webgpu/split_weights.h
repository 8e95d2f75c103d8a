#pragma once

#include "backends/webgpu/device.h"
#include "rlx/graph.h"

namespace rlx::webgpu {

// What one binding shows of a value, wherever it starts.
int64_t visible_bytes(const Limits& limits);
// Is it more than that? Sizes that are not known are small.
bool is_too_large(const TensorType& type, const Device& device, int64_t visible);

// Weights that no binding holds are used in parts (spec 40, 3): a product sums over parts of the weight's rows, a
// gather takes each index from the part that has it. The parts are views: nothing is copied.
Graph split_large_weights(const Graph& graph, const Device& device, const CompileOptions& options, int64_t visible);

}  // namespace rlx::webgpu
