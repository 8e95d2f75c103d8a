// Every pass, each in a file of its name; pipeline.cpp puts them in order.
#pragma once

namespace rlx::passes {

class Rewriter;

void decompose_unclaimed(Rewriter& rw);
void eliminate_common_subexpressions(Rewriter& rw);
void eliminate_dead_code(Rewriter& rw);
void fold_constants(Rewriter& rw);
void inline_custom_fn(Rewriter& rw);
void lower_control_flow(Rewriter& rw);
void lower_dot_general(Rewriter& rw);
void lower_reduce(Rewriter& rw);
void simplify(Rewriter& rw);

}  // namespace rlx::passes
