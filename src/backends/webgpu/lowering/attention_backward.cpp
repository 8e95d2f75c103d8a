// Gradients of attention: what each query needs (attention_prepare), then one kernel for dq, one for dk and dv, one for
// the bias; nobody adds to what another workgroup writes.
#include <algorithm>

#include "backends/webgpu/lowering/attention.h"
#include "backends/webgpu/lowering/lowerings.h"

namespace rlx::webgpu {

namespace {

// Two results of a thread's registers: half the columns of the forward kernel.
AttentionTile choose_tile(int64_t owned, uint32_t width, const Limits& limits) {
  if (owned > 32 && AttentionTile::has_room(limits))
    return {64, 16, 4, AttentionTile::vectors_for(width, 16, 2), AttentionTile::depth_for(limits)};
  return {32, 8, width <= 64 ? 4u : 2u, AttentionTile::vectors_for(width, 8, 4)};
}

// dq, or dk and dv; what is not wanted goes into a temporary.
void emit_gradient(LowerCall& call, const AttentionProblem& problem, Operand dy, Operand stats, bool of_keys) {
  const int64_t owned = of_keys ? problem.params.seq_k : problem.rows();
  const AttentionTile tile = choose_tile(owned, problem.params.head_dim, call.device().limits());
  auto params = problem.params;
  params.slices = to_u32(ceil_div(params.head_dim, tile.columns()));
  params.groups = to_u32(ceil_div(owned, tile.rows) * params.batch * params.kv_heads * params.slices);
  const bool vectors = problem.reads_vectors(call, {dy});
  KernelKey key = problem.kernel("attention_backward", vectors);
  tile.add_to(key);
  key.constants.emplace_back("KEYS", of_keys);
  key.constants.emplace_back("N2", of_keys ? tile.rows_per_thread * tile.vectors : 1);
  const auto result = [&](int64_t i) {
    if (call.wants(i)) return call.write(i);
    return call.temporary(call.storage(problem.q), {call.output_type(i).shape.num_elements()});
  };
  const Operand first = result(of_keys ? 1 : 0);
  const Operand second = of_keys ? result(2) : call.temporary(call.storage(problem.q), {1});
  call.emit({.kernel = std::move(key),
             .operands = {problem.q, problem.k, problem.v, dy, problem.mask, stats, first, second},
             .params = params,
             .grid = {.x = {.items = params.groups}}});
}

void emit_bias_gradient(LowerCall& call, const AttentionProblem& problem, Operand dy, Operand stats) {
  auto params = problem.params;
  const int64_t elements = call.output_type(3).shape.num_elements();
  const int64_t pairs = checked_mul(problem.queries(), params.seq_k);
  to_u32(pairs / std::max<int64_t>(elements, 1));
  params.groups = to_u32(elements);
  // A workgroup per element where each is a long sum and there are few of them.
  const uint32_t lanes = pairs / std::max<int64_t>(elements, 1) >= 64 ? 64 : 1;
  const Operand out = call.write(3);
  KernelKey key = problem.kernel("attention_bias_backward", problem.reads_vectors(call, {dy}));
  key.types.emplace_back("D", call.element(out));
  key.constants.emplace_back("LANES", lanes);
  call.emit({.kernel = std::move(key),
             .operands = {problem.q, problem.k, problem.v, dy, problem.mask, stats, out},
             .params = params,
             .grid = {.x = {.items = elements, .per_group = 64 / lanes}}},
            "attention_bwd_bias");
}

}  // namespace

// The gradients of an empty sequence are zeros or nothing: the host writes those.
bool attention_backward_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  for (const TensorType& t : {s.input(0), s.input(1)})
    for (int64_t i = 0; i < t.rank(); ++i)
      if (t.dim(i).is(0)) return false;
  return true;
}

void lower_attention_backward(LowerCall& call) {
  const int64_t next = 4, optional = call.num_inputs() - next -
                                     (ops::has_mask_operand(call.attrs<ops::AttentionAttrs>().mask_kind) ? 1 : 0);
  const AttentionProblem problem(call, next, optional % 2 == 1);
  const Operand dy = call.read(3);
  const auto& sizes = problem.params;
  Operand y, lse;
  if (optional >= 2) {
    y = call.read(call.num_inputs() - 2);
    lse = call.read(call.num_inputs() - 1);
  } else {
    y = call.temporary(Storage::kF32, {problem.queries() * sizes.head_dim});
    lse = call.temporary(Storage::kF32, {problem.queries()});
    emit_attention(call, problem, y, lse);
    y = LowerCall::reading(y);
    lse = LowerCall::reading(lse);
  }
  const int64_t items = problem.queries() + sizes.batch;
  const Operand stats = call.temporary(Storage::kU32, {items, 2});
  call.emit(
      {.kernel = {"attention_prepare", {{"T", std::string(call.element(dy))}, {"Y", std::string(call.element(y))}}},
       .operands = {dy, y, lse, problem.lengths, stats},
       .params = problem.params,
       .grid = {.x = {.items = items, .per_group = 8}}},
      "attention_bwd_prepare");
  const Operand known = LowerCall::reading(stats);
  if (call.wants(0)) emit_gradient(call, problem, dy, known, false);
  if (call.wants(1) || call.wants(2)) emit_gradient(call, problem, dy, known, true);
  if (call.wants(3)) emit_bias_gradient(call, problem, dy, known);
}

}  // namespace rlx::webgpu
