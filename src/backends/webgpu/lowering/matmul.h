// Products as steps, for the lowerings that are one.
#pragma once

#include <optional>
#include <vector>

#include "backends/webgpu/lower.h"
#include "backends/webgpu/lowering/matmul_table.h"
#include "rlx/ops/activation.h"

namespace rlx::webgpu {

// A product to be lowered. `results` are parts of the columns, in order; one that nobody reads has no operand.
struct MatmulPart {
  std::optional<Operand> result;
  int64_t width = 0;
};
struct Matmul {
  MatmulShape shape;
  Operand lhs, rhs;
  bool rhs_is_bf16 = false;  // packed, as it lies in a file
  std::optional<Operand> bias;
  ops::ActivationKind activation = ops::ActivationKind::kNone;
  std::vector<MatmulPart> results;
  // Of a grouped product: which of the experts' matrices a row is multiplied with; a row is a matrix of `shape` then.
  std::optional<Operand> index;
  int64_t experts = 0;
};
void emit_matmul(LowerCall& call, const Matmul& matmul);
// The same of integers, without bias and parts.
void emit_matmul_int(LowerCall& call, const MatmulShape& shape, Operand lhs, Operand rhs, Operand result,
                     std::optional<Operand> index = {}, int64_t experts = 0);

}  // namespace rlx::webgpu
