// Ops that own sub-graphs. A region's Inputs are bound positionally in declaration order, its Params by name to the
// parent's.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct IfAttrs {
  GraphPtr then_branch, else_branch;
  static constexpr auto fields =
      std::tuple{field("then_branch", &IfAttrs::then_branch), field("else_branch", &IfAttrs::else_branch)};
};
// (predicate, captures…) -> the branch's outputs.
extern const Op<IfAttrs> if_;

struct WhileAttrs {
  GraphPtr cond, body;
  std::optional<int64_t> max_iterations;
  static constexpr auto fields = std::tuple{field("cond", &WhileAttrs::cond), field("body", &WhileAttrs::body),
                                            field("max_iterations", &WhileAttrs::max_iterations)};
};
// (carried…) -> every carried value after the loop.
extern const Op<WhileAttrs> while_;

struct ScanAttrs {
  GraphPtr body;
  Dim length;
  int64_t num_carries = 1;
  int64_t num_bcast = 0;
  int64_t num_xs = 0;
  bool save_trajectory = false;
  int64_t num_checkpoints = 0;
  static constexpr auto fields = std::tuple{field("body", &ScanAttrs::body),
                                            field("length", &ScanAttrs::length),
                                            field("num_carries", &ScanAttrs::num_carries),
                                            field("num_bcast", &ScanAttrs::num_bcast),
                                            field("num_xs", &ScanAttrs::num_xs),
                                            field("save_trajectory", &ScanAttrs::save_trajectory),
                                            field("num_checkpoints", &ScanAttrs::num_checkpoints)};
};
// (init × num_carries, bcast × num_bcast, xs × num_xs) -> final carries, a stack [length, …] per further body output,
// and with save_trajectory the stack of carry 0 (its checkpointed rows only, when num_checkpoints says so).
extern const Op<ScanAttrs> scan;

struct ScanBackwardAttrs {
  GraphPtr body_vjp;      // (carry before the step, x_t…, d_output) -> d_carry, d_x…
  GraphPtr forward_body;  // (carry, x_t…) -> next carry; required with checkpoints
  Dim length;
  bool save_trajectory = false;
  int64_t num_xs = 0;
  int64_t num_checkpoints = 0;
  static constexpr auto fields = std::tuple{
      field("body_vjp", &ScanBackwardAttrs::body_vjp), field("forward_body", &ScanBackwardAttrs::forward_body),
      field("length", &ScanBackwardAttrs::length),     field("save_trajectory", &ScanBackwardAttrs::save_trajectory),
      field("num_xs", &ScanBackwardAttrs::num_xs),     field("num_checkpoints", &ScanBackwardAttrs::num_checkpoints)};
};
// (init, trajectory, upstream, xs…) -> d init, then a stack [length, …] of d x_t per xs.
extern const Op<ScanBackwardAttrs> scan_backward;

struct CustomFnAttrs {
  GraphPtr fwd_body, vjp_body, jvp_body;
  static constexpr auto fields =
      std::tuple{field("fwd_body", &CustomFnAttrs::fwd_body), field("vjp_body", &CustomFnAttrs::vjp_body),
                 field("jvp_body", &CustomFnAttrs::jvp_body)};
};
// (inputs…) -> fwd_body's outputs; the other two bodies are used when the graph is differentiated.
extern const Op<CustomFnAttrs> custom_fn;

// The steps after which a scan of `length` steps keeps its carry when `checkpoints` rows are asked for (spec 10, Q40).
std::vector<int64_t> checkpoint_steps(int64_t length, int64_t checkpoints);
// The k-th of them; of a k beyond the last one a number that is no step. `length` is not 0.
int64_t checkpoint_step(int64_t length, int64_t checkpoints, int64_t k);

}  // namespace rlx::ops
