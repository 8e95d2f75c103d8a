// The custom ops umap.knn and umap.knn_backward (spec 10, 4.20).
#include <algorithm>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "backends/webgpu/lowering/rows.h"
#include "rlx/custom_op.h"
#include "rlx/ops/custom.h"
#include "wgsl/knn_candidates.h"
#include "wgsl/knn_gradient.h"
#include "wgsl/knn_result.h"

namespace rlx::webgpu {

namespace {

constexpr std::string_view kForward = "umap.knn", kBackward = "umap.knn_backward";

// The k nearest of every row in order; NaN where there are fewer.
struct Neighbours {
  Operand values, ids;

  Neighbours(LowerCall& call, int64_t n, int64_t k, std::string_view step) {
    namespace w = wgsl::knn_candidates;
    const Operand candidates = call.temporary(Storage::kF32, {n, n});
    const Operand to_values = call.temporary(Storage::kF32, {n, k}), to_ids = call.temporary(Storage::kI32, {n, k});
    call.emit({.kernel = {"knn_candidates"},
               .operands = {call.read(0), candidates},
               .params = w::Params{.elements = to_u32(n * n), .n = to_u32(n), .nan_bits = 0x7fc00000u},
               .grid = {.x = {.items = n * n, .per_group = 256}}},
              step);
    emit_topk(call,
              {.in = LowerCall::reading(candidates),
               .values = to_values,
               .ids = to_ids,
               .split = {n, n, 1},
               .k = k,
               .largest = false},
              step);
    values = LowerCall::reading(to_values);
    ids = LowerCall::reading(to_ids);
  }
};

void lower_forward(LowerCall& call) {
  namespace w = wgsl::knn_result;
  const int64_t n = call.input_type(0).dim(0).value(), k = call.output_type(0).dim(1).value() / 2;
  const Neighbours near(call, n, k, "umap_knn");
  call.emit({.kernel = {"knn_result"},
             .operands = {near.values, near.ids, call.write(0)},
             .params = w::Params{.pairs = to_u32(n * k), .n = to_u32(n), .k = to_u32(k)},
             .grid = {.x = {.items = n * k, .per_group = 256}}},
            "umap_knn");
}

void lower_backward(LowerCall& call) {
  namespace w = wgsl::knn_gradient;
  const int64_t n = call.input_type(0).dim(0).value(), columns = call.input_type(1).dim(1).value();
  const int64_t k = std::min(columns, n);
  const Operand d_pairwise = call.write(0);
  emit_zeros(call, d_pairwise, n * n);
  if (k == 0) return;
  const Neighbours near(call, n, k, "umap_knn_backward");
  call.emit({.kernel = {"knn_gradient"},
             .operands = {near.values, near.ids, call.read(1), d_pairwise},
             .params = w::Params{.pairs = to_u32(n * k), .n = to_u32(n), .k = to_u32(k), .columns = to_u32(columns)},
             .grid = {.x = {.items = n * k, .per_group = 256}}},
            "umap_knn_backward");
}

}  // namespace

bool knn_supports(const LowerSignature& s, const Device&) {
  const auto& name = s.attrs.as<ops::CustomAttrs>().name;
  if (name != kForward && name != kBackward) return false;
  // A kernel that somebody has registered replaces the built-in one on every backend.
  return !find_custom_kernel(name, "cpu") && !find_custom_kernel(name, "reference");
}

void lower_knn(LowerCall& call) {
  if (call.attrs<ops::CustomAttrs>().name == kForward)
    lower_forward(call);
  else
    lower_backward(call);
}

}  // namespace rlx::webgpu
