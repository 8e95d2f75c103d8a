#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "ops/custom_attrs.h"
#include "ops/infer.h"
#include "rlx/custom_op.h"
#include "rlx/log.h"

namespace rlx {

namespace {

using ops::require_dtype;
using ops::require_rank;
using ops::require_same_dim;
using ops::require_shape;

Types infer_gate(const InferCall& call, std::span<const uint8_t> bytes) {
  const GateAttrs attrs(bytes);
  const TensorType &sig = call.input(0), &route = call.input(1);
  require_dtype(sig, DType::F32, "Operand sig");
  require_dtype(route, DType::F32, "Operand route");
  require_rank(sig, 2, "Operand sig");
  require_shape(route, sig.shape, "Operand route");
  require_same_dim(sig.dim(1), attrs.num_experts, "Experts of operand sig and of the attributes");
  require(attrs.n_group >= 1 && attrs.num_experts % attrs.n_group == 0, "Number of experts (", attrs.num_experts,
          ") is not a multiple of n_group (", attrs.n_group, ").");
  require(attrs.topk_group >= 1 && attrs.topk_group <= attrs.n_group, "topk_group (", attrs.topk_group,
          ") is not in [1, n_group (", attrs.n_group, ")].");
  require(attrs.top_k >= 1 && attrs.top_k <= attrs.num_experts, "top_k (", attrs.top_k,
          ") is not in [1, number of experts (", attrs.num_experts, ")].");
  return TensorType{{sig.dim(0), 2 * attrs.top_k}, DType::F32};
}

// A square matrix of distances with more than k columns.
void check_pairwise(const TensorType& pairwise, const Dim& k) {
  require_dtype(pairwise, DType::F32, "Operand pairwise");
  require_rank(pairwise, 2, "Operand pairwise");
  require_same_dim(pairwise.dim(0), pairwise.dim(1), "Sizes of operand pairwise");
  for (const Dim& n : pairwise.shape)
    require(!n.is_static() || !k.is_static() || n.is(0) || k.value() < n.value(), "k (", k,
            ") is not less than the points (", n, ").");
}

Types infer_knn(const InferCall& call, std::span<const uint8_t> bytes) {
  const int64_t k = knn_k(bytes);
  check_pairwise(call.input(0), k);
  return TensorType{{call.input(0).dim(0), 2 * k}, DType::F32};
}

Types infer_knn_backward(const InferCall& call, std::span<const uint8_t> bytes) {
  const TensorType &pairwise = call.input(0), &gradient = call.input(1);
  require_dtype(gradient, DType::F32, "Gradient");
  require_rank(gradient, 2, "Gradient");
  check_pairwise(pairwise, gradient.dim(1));
  require_same_dim(pairwise.dim(0), gradient.dim(0), "Rows of pairwise and gradient");
  if (!bytes.empty()) require_same_dim(gradient.dim(1), knn_k(bytes), "Columns of the gradient and k");
  return pairwise;
}

// What the registry starts from; the oracle has their kernels.
struct BuiltIn {
  std::string_view name;
  int64_t num_inputs;
  Types (*infer)(const InferCall&, std::span<const uint8_t>);
};
constexpr BuiltIn kBuiltIns[] = {
    {"llada2.group_limited_gate", 2, infer_gate},
    {"umap.knn", 1, infer_knn},
    {"umap.knn_backward", 2, infer_knn_backward},
};

struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomOp>, std::less<>> ops;
  using Kernels = std::map<std::string, std::shared_ptr<const CustomKernel>, std::less<>>;  // by backend
  std::map<std::string, Kernels, std::less<>> kernels;                                      // by op

  Registry() {
    for (const BuiltIn& b : kBuiltIns)
      ops[std::string(b.name)] = std::make_shared<CustomOp>(CustomOp{std::string(b.name), b.num_inputs, b.infer});
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_custom_op(CustomOp op) {
  require(!op.name.empty(), "A custom op has no name.");
  require(op.num_inputs >= 1, "Custom op '", op.name, "' takes ", op.num_inputs, " operands; it needs at least 1.");
  require(op.infer != nullptr, "Custom op '", op.name, "' has no type rule.");
  std::string name = op.name;
  auto shared = std::make_shared<const CustomOp>(std::move(op));
  bool replaced = false;
  {
    const std::unique_lock lock(registry().mutex);
    replaced = !registry().ops.insert_or_assign(name, std::move(shared)).second;
  }
  if (replaced)
    log(LogLevel::kWarning, str("Custom op '", name, "' is registered again; the new one replaces the old."));
}

std::shared_ptr<const CustomOp> find_custom_op(std::string_view name) {
  const std::shared_lock lock(registry().mutex);
  const auto it = registry().ops.find(name);
  return it == registry().ops.end() ? nullptr : it->second;
}

bool is_built_in(const CustomOp& op) {
  const auto* rule = op.infer.target<Types (*)(const InferCall&, std::span<const uint8_t>)>();
  return rule && std::any_of(std::begin(kBuiltIns), std::end(kBuiltIns),
                             [&](const BuiltIn& b) { return b.name == op.name && b.infer == *rule; });
}

void register_custom_kernel(std::string_view op, std::string_view backend, CustomKernel kernel) {
  require(kernel != nullptr, "The kernel of custom op '", op, "' for backend '", backend, "' is empty.");
  auto shared = std::make_shared<const CustomKernel>(std::move(kernel));
  const std::unique_lock lock(registry().mutex);
  registry().kernels[std::string(op)].insert_or_assign(std::string(backend), std::move(shared));
}

CustomKernel find_custom_kernel(std::string_view op, std::string_view backend) {
  const auto kernel = shared_custom_kernel(op, backend);
  return kernel ? *kernel : nullptr;
}

std::shared_ptr<const CustomKernel> shared_custom_kernel(std::string_view op, std::string_view backend) {
  const std::shared_lock lock(registry().mutex);
  const auto kernels = registry().kernels.find(op);
  if (kernels == registry().kernels.end()) return nullptr;
  const auto it = kernels->second.find(backend);
  return it == kernels->second.end() ? nullptr : it->second;
}

}  // namespace rlx
