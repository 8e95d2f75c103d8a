// Gradient (domain ai.onnx.preview.training): derivatives of one value with respect to others, by walking back over the
// nodes that were built for it.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// The gradient of a broadcast operand: summed over the axes that were repeated.
Value sum_to(const Value& g, const Shape& shape) {
  const int64_t extra = g.shape().rank() - shape.rank();
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < g.shape().rank(); ++i)
    if (i < extra || (shape[i - extra].is(1) && !g.shape()[i].is(1))) axes.push_back(i);
  const Value sum = axes.empty() ? g : ops::reduce_sum(g, {.axes = axes, .keep_dim = true});
  return reshape_to(sum, shape.dims());
}

Value one_minus(OnnxNode& n, const Value& x) { return scalar_like(n, x, 1) - x; }

// Gradients of a node's operands from that of its result; broadcasts are undone by the caller.
Values backward(OnnxNode& n, const Node& node, const Value& y, const Value& dy, const Values& in) {
  const OpDef* op = node.op;
  if (op == &ops::add) return {dy, dy};
  if (op == &ops::sub) return {dy, -dy};
  if (op == &ops::mul) return {dy * in[1], dy * in[0]};
  if (op == &ops::div) return {dy / in[1], -(dy * y / in[1])};
  if (op == &ops::neg) return {-dy};
  if (op == &ops::exp) return {dy * y};
  if (op == &ops::log) return {dy / in[0]};
  if (op == &ops::sqrt) return {dy / (y + y)};
  if (op == &ops::tanh) return {dy * one_minus(n, y * y)};
  if (op == &ops::sigmoid) return {dy * y * one_minus(n, y)};
  if (op == &ops::relu) return {ops::relu_backward(in[0], dy)};
  if (op == &ops::reshape || op == &ops::expand)
    return {op == &ops::reshape ? reshape_to(dy, in[0].shape().dims()) : dy};
  if (op == &ops::transpose) {
    const std::vector<int64_t>& perm = node.attrs.as<ops::TransposeAttrs>().perm;
    std::vector<int64_t> inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i)
      inverse[static_cast<size_t>(normalize_axis(perm[i], static_cast<int64_t>(perm.size())))] =
          static_cast<int64_t>(i);
    return {ops::transpose(dy, {.perm = inverse})};
  }
  if (op == &ops::matmul) {
    const Value a = ops::matmul(dy, swap_last_two(in[1]));
    return {a, ops::matmul(swap_last_two(in[0]), dy)};
  }
  if (op == &ops::reduce_sum) {
    std::vector<Dim> kept = in[0].shape().dims();
    for (const int64_t a : node.attrs.as<ops::ReduceAttrs>().axes)
      kept[static_cast<size_t>(normalize_axis(a, in[0].shape().rank()))] = 1;
    return {expand_to(reshape_to(dy, kept), in[0].shape())};
  }
  n.unsupported(str("A gradient through op '", op->name, "' is not supported."));
}

Built gradient(OnnxNode& n) {
  const std::vector<std::string> xs = n.attr("xs", std::vector<std::string>());
  const std::string y_name = n.attr("y", "");
  Graph& graph = n.graph();
  const Value y = n.importer().value(n.named(y_name));
  std::unordered_map<ValueId, Value> gradients;
  gradients.emplace(y.id(), expand_to(scalar_like(n, y, 1), y.shape()));
  std::vector<ValueId> wanted;
  for (size_t i = 0; i < xs.size(); ++i) wanted.push_back(n.input(static_cast<int64_t>(i)).id());
  const std::vector<Node> nodes = graph.nodes();  // what is built below does not count
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto found = gradients.find(node->results[0].id);
    if (found == gradients.end() || node->op->traits.leaf) continue;
    if (std::find(wanted.begin(), wanted.end(), found->first) != wanted.end()) continue;
    Values in;
    for (const ValueId id : node->inputs) in.push_back(graph.value(id));
    const Values parts = backward(n, *node, graph.value(found->first), found->second, in);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Value part = sum_to(parts[i], in[i].shape());
      const auto [it, is_new] = gradients.emplace(in[i].id(), part);
      if (!is_new) it->second = it->second + part;
    }
  }
  Values results;
  for (const ValueId id : wanted) {
    const auto found = gradients.find(id);
    const Value x = graph.value(id);
    results.push_back(found != gradients.end() ? found->second : expand_to(scalar_like(n, x, 0), x.shape()));
  }
  return results;
}

}  // namespace

Rows gradient_rows() { return {{"Gradient", 1, gradient}}; }

}  // namespace rlx::onnx
