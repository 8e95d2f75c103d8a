#include "rlx/ops/custom.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "ops/custom_attrs.h"
#include "rlx/custom_op.h"

namespace rlx::reference {

namespace {

// NaN counts as the largest, as in topk.
bool larger(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// The first `count` indices of 0 … n-1 by descending score, ties by the smaller index.
template <class Score>
std::vector<int64_t> best(int64_t n, int64_t count, const Score& score) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return larger(score(i), score(j)); });
  order.resize(static_cast<size_t>(std::min(n, count)));
  return order;
}

void group_limited_gate(const CustomCall& call) {
  const GateAttrs attrs(call.attrs);
  const int64_t tokens = call.inputs[0].sizes[0], experts = call.inputs[0].sizes[1];
  const int64_t per_group = experts / attrs.n_group;
  const auto sig = call.inputs[0].values<const float>(), route = call.inputs[1].values<const float>();
  const auto out = call.outputs[0].values<float>();
  for (int64_t t = 0; t < tokens; ++t) {
    const auto score = [&](int64_t e) { return route[static_cast<size_t>(t * experts + e)]; };
    std::vector<float> group_scores;
    for (int64_t g = 0; g < attrs.n_group; ++g) {
      const auto own = [&](int64_t i) { return score(g * per_group + i); };
      float sum = 0;
      for (const int64_t i : best(per_group, 2, own)) sum += own(i);
      group_scores.push_back(sum);
    }
    std::vector<bool> kept(static_cast<size_t>(attrs.n_group), false);
    for (const int64_t g :
         best(attrs.n_group, attrs.topk_group, [&](int64_t i) { return group_scores[static_cast<size_t>(i)]; }))
      kept[static_cast<size_t>(g)] = true;

    std::vector<int64_t> open, masked;
    for (int64_t e = 0; e < experts; ++e) (kept[static_cast<size_t>(e / per_group)] ? open : masked).push_back(e);
    std::stable_sort(open.begin(), open.end(), [&](int64_t i, int64_t j) { return larger(score(i), score(j)); });
    open.insert(open.end(), masked.begin(), masked.end());

    const auto chosen = std::span(open).first(static_cast<size_t>(attrs.top_k));
    double sum = 1e-20;
    for (const int64_t e : chosen) sum += static_cast<double>(sig[static_cast<size_t>(t * experts + e)]);
    float* row = &out[static_cast<size_t>(t * 2 * attrs.top_k)];
    for (size_t i = 0; i < chosen.size(); ++i) {
      const double weight = static_cast<double>(sig[static_cast<size_t>(t * experts + chosen[i])]) *
                            static_cast<double>(attrs.routed_scaling);
      row[i] = static_cast<float>(chosen[i]);
      row[chosen.size() + i] = static_cast<float>(attrs.top_k > 1 ? weight / sum : weight);
    }
  }
}

// The k nearest columns of a row of distances, ascending, ties by the smaller column; NaN and the row itself are never
// neighbours, so there may be fewer.
std::vector<int64_t> neighbours(std::span<const float> row, int64_t self, int64_t k) {
  std::vector<int64_t> order;
  for (int64_t j = 0; j < static_cast<int64_t>(row.size()); ++j)
    if (j != self && !std::isnan(row[static_cast<size_t>(j)])) order.push_back(j);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return row[static_cast<size_t>(a)] < row[static_cast<size_t>(b)]; });
  if (static_cast<int64_t>(order.size()) > k) order.resize(static_cast<size_t>(k));
  return order;
}

void knn(const CustomCall& call) {
  const int64_t n = call.inputs[0].sizes[0], k = call.outputs[0].sizes[1] / 2;
  const auto pairwise = call.inputs[0].values<const float>();
  const auto out = call.outputs[0].values<float>();
  for (int64_t i = 0; i < n; ++i) {
    const auto row = pairwise.subspan(static_cast<size_t>(i * n), static_cast<size_t>(n));
    const std::vector<int64_t> near = neighbours(row, i, k);
    for (int64_t j = 0; j < k; ++j) {
      const bool found = j < static_cast<int64_t>(near.size());
      const int64_t column = found ? near[static_cast<size_t>(j)] : n;
      out[static_cast<size_t>(i * 2 * k + j)] = static_cast<float>(column);
      out[static_cast<size_t>(i * 2 * k + k + j)] = found ? row[static_cast<size_t>(column)] : FLT_MAX;
    }
  }
}

// The division by the distance is the reference implementation's; a pure selection would pass the gradient on as it is.
void knn_backward(const CustomCall& call) {
  const int64_t n = call.inputs[0].sizes[0], k = call.inputs[1].sizes[1];
  const auto pairwise = call.inputs[0].values<const float>(), gradient = call.inputs[1].values<const float>();
  const auto out = call.outputs[0].values<float>();
  std::fill(out.begin(), out.end(), 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    const auto row = pairwise.subspan(static_cast<size_t>(i * n), static_cast<size_t>(n));
    const std::vector<int64_t> near = neighbours(row, i, k);
    for (size_t j = 0; j < near.size(); ++j) {
      const double distance = std::max(static_cast<double>(row[static_cast<size_t>(near[j])]), 1e-8);
      out[static_cast<size_t>(i * n + near[j])] =
          static_cast<float>(static_cast<double>(gradient[static_cast<size_t>(i * k) + j]) / distance);
    }
  }
}

struct BuiltIn {
  std::string_view name;
  void (*kernel)(const CustomCall&);
};
constexpr BuiltIn kBuiltIns[] = {
    {"llada2.group_limited_gate", group_limited_gate},
    {"umap.knn", knn},
    {"umap.knn_backward", knn_backward},
};

// A registered kernel replaces a built-in one.
void run(std::string_view name, std::string_view backend, const CustomCall& call) {
  for (const std::string_view of : {backend, std::string_view("reference")})
    if (const auto registered = shared_custom_kernel(name, of)) return (*registered)(call);
  for (const BuiltIn& b : kBuiltIns)
    if (b.name == name) return b.kernel(call);
  fail(ErrorKind::kUnsupported, str("Custom op '", name, "' has no kernel for backend 'reference'."));
}

CustomView view_of(const View& view) { return {view.dtype, view.sizes, view.data}; }

}  // namespace

// The views of operands and results.
int64_t custom_scratch(const host::Signature& s, int) {
  return static_cast<int64_t>((s.inputs.size() + s.outputs.size()) * sizeof(CustomView));
}

void custom(const Call& call) { custom_by(call, "reference"); }

void custom_by(const Call& call, std::string_view backend) {
  const auto& attrs = call.attrs<ops::CustomAttrs>();
  const auto inputs = static_cast<size_t>(call.num_inputs()), outputs = static_cast<size_t>(call.num_outputs());
  const std::span views(call.scratch_as<CustomView>(), inputs + outputs);
  for (size_t i = 0; i < inputs; ++i) std::construct_at(&views[i], view_of(call.input(static_cast<int64_t>(i))));
  for (size_t i = 0; i < outputs; ++i)
    std::construct_at(&views[inputs + i], view_of(call.output(static_cast<int64_t>(i))));
  run(attrs.name, backend, {views.first(inputs), views.subspan(inputs), attrs.attrs.data});
}

}  // namespace rlx::reference
