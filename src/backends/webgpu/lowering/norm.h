// What the lowerings of norms and of their gradients share.
#pragma once

#include "backends/webgpu/lowering/rows.h"

namespace rlx::webgpu {

// The rows of a norm, and which gamma an element has: gamma row % groups * channels + element / per_gamma.
struct NormRows {
  AxisSplit split{};
  int64_t groups = 1;     // rows that follow each other with gammas of their own
  int64_t channels = 0;   // gammas of a row
  int64_t per_gamma = 1;  // elements that share one; 1: as many gammas as elements
  bool centred = true;
  float eps = 0;
  bool keeps_axis0 = true;  // else a row has active and inactive elements
  bool grouped() const { return groups > 1 || per_gamma > 1; }
};
NormRows norm_rows(const LowerCall& call);

// Can rows be read by four: these operands, and gammas?
bool norm_by_four(const LowerCall& call, const NormRows& rows, std::initializer_list<Operand> like_x,
                  std::initializer_list<Operand> like_gamma);

// Mean, what it leaves, and squared deviations of each chunk of the plan.
Operand emit_norm_stats(LowerCall& call, Operand in, const NormRows& rows, const RowPlan& plan, bool vector,
                        bool extent_safe);

Includes norm_includes(const LowerCall& call, const NormRows& rows, bool vector);

template <class P>
P norm_params(const NormRows& rows, const RowPlan& plan) {
  auto p = plan.params<P>();
  p.groups = to_u32(rows.groups);
  p.group_channels = to_u32(rows.channels);
  p.per_gamma = to_u32(rows.per_gamma);
  return p;
}

}  // namespace rlx::webgpu
