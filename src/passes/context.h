// What a pass may know besides the graph: what the target can run, its limits, options, and a way to compute constants.
// A pass reads no environment and includes no backend; everything arrives here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/precision.h"
#include "rlx/graph.h"

namespace rlx::passes {

// A node as a claim sees it. Sizes may still be symbols: a predicate that needs a number answers for all of them.
struct Signature {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const TensorType> inputs, outputs;
};

struct Limits {
  int64_t max_region_steps = 32;   // of an element-wise region
  int64_t max_region_inputs = 16;  // likewise
  int64_t matmul_tile = 64;        // columns that a matmul kernel computes at once
  int64_t block_rows = 64;         // batch times sequence up to which an attention block is one node
  int64_t fold_bytes = 1 << 20;    // a larger constant is folded only if it is no larger than its operands together ...
  int64_t join_bytes = 16 << 20;   // ... and beyond this than one of them: constants that double would have no end
  int64_t unroll_steps = 64;       // iterations of a loop that is unrolled ...
  int64_t unroll_nodes = 4096;     // ... and iterations times nodes of its body
  int64_t most_nodes = 1'000'000;  // beyond it Unroll::kAlways is an error
};

enum class Unroll {
  kSmall,   // control flow within the limits becomes plain nodes, the rest stays a loop that the host drives
  kAlways,  // whatever has a bound
  kNever,
};

struct PassOptions {
  std::vector<std::string> skip;  // passes by name
  Unroll unroll = Unroll::kSmall;
  bool native_scan = false;       // the target runs scan by itself: it is not unrolled
  bool reduces_any_axes = false;  // the target's reductions take axes that are not side by side
  PrecisionPolicy precision = PrecisionPolicy::kAlwaysF32;
  PrecisionMap custom_precision;   // of PrecisionPolicy::kCustom
  bool quant_propagate = false;    // the second of two equal fake_quantize goes
  bool fuse_layers = false;        // whole encoder layers as one node, where the target claims it
  bool ignore_minus_zero = false;  // x + 0 may become x, although -0.0 + 0 is +0.0
};

struct PassContext {
  // Does the target run this node with a kernel of its own? Null: it runs everything.
  std::function<bool(const Signature&)> claims;
  // All results of one op on constants, computed by the oracle. Null: nothing is folded.
  std::function<std::vector<Tensor>(const OpDef&, std::span<const Tensor>, const Attrs&)> evaluate;
  // Shown the graph after each pass that changed it.
  std::function<void(std::string_view pass, const Graph&)> dump;
  Limits limits;
  PassOptions options;
};

}  // namespace rlx::passes
