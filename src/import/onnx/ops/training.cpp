// Steps of optimizers (domain ai.onnx.preview.training): rate, number of steps so far, then all tensors, all gradients
// and the optimizer's own state, which comes out updated.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// Calls `update(tensor i of every group)` for all tensors; its values become the groups of results.
template <class F>
Built for_each_tensor(OnnxNode& n, int64_t groups, F update) {
  const int64_t count = (n.num_inputs() - 2) / groups;
  require(n.num_inputs() == 2 + count * groups, "The node has ", n.num_inputs(), " inputs; 2 and ", groups,
          " for every tensor are expected.");
  std::vector<Values> rows;
  for (int64_t i = 0; i < count; ++i) {
    Values operands;
    for (int64_t g = 0; g < groups; ++g) operands.push_back(n.input(2 + g * count + i));
    rows.push_back(update(operands));
  }
  Values results;
  for (size_t r = 0; !rows.empty() && r < rows[0].size(); ++r)
    for (const Values& row : rows) results.push_back(row[r]);
  return results;
}

// The gradient with that of the squared weights added.
Value regularized(OnnxNode& n, const Value& x, const Value& g) {
  return x * scalar_like(n, x, n.attr("norm_coefficient", 0.0f)) + g;
}

Value step_count(OnnxNode& n, const Value& like) { return cast_to(n.input(1), like.dtype()); }

Built adagrad(OnnxNode& n) {
  return for_each_tensor(n, 3, [&](const Values& in) {
    const Value x = in[0], g = regularized(n, x, in[1]);
    const Value rate = cast_to(n.input(0), x.dtype());
    const Value decay = step_count(n, x) * scalar_like(n, x, n.attr("decay_factor", 0.0f)) + scalar_like(n, x, 1);
    const Value squares = in[2] + g * g;
    const Value below = ops::sqrt(squares) + scalar_like(n, x, n.attr("epsilon", 1e-6f));
    return Values{x - rate / decay * g / below, squares};
  });
}

Built adam(OnnxNode& n) {
  const double alpha = n.attr("alpha", 0.9f), beta = n.attr("beta", 0.999f);
  const double post = n.attr("norm_coefficient_post", 0.0f);
  return for_each_tensor(n, 4, [&](const Values& in) {
    const Value x = in[0], g = regularized(n, x, in[1]);
    const auto blend = [&](double kept, const Value& old, const Value& now) {
      const Value a = old * scalar_like(n, x, kept);
      return a + now * scalar_like(n, x, 1 - kept);
    };
    const Value momentum = blend(alpha, in[2], g), squares = blend(beta, in[3], g * g);
    const Value below = ops::sqrt(squares) + scalar_like(n, x, n.attr("epsilon", 1e-6f));
    // Momentums begin at 0: after t steps they are too small by 1 - alpha^t.
    const Value t = step_count(n, x), one = scalar_like(n, x, 1), rate = cast_to(n.input(0), x.dtype());
    const Value slow = ops::sqrt(one - ops::pow(scalar_like(n, x, beta), t));
    const Value fast = one - ops::pow(scalar_like(n, x, alpha), t);
    const Value adjusted = ops::where(ops::gt(t, scalar_like(n, x, 0)), rate * slow / fast, rate);
    const Value moved = x - adjusted * (momentum / below);
    return Values{moved * scalar_like(n, x, 1 - post), momentum, squares};
  });
}

Built momentum(OnnxNode& n) {
  const std::string mode = n.attr("mode", "standard");
  require(mode == "standard" || mode == "nesterov", "The mode '", mode, "' is not known.");
  return for_each_tensor(n, 3, [&](const Values& in) {
    const Value x = in[0], g = regularized(n, x, in[1]);
    const Value rate = cast_to(n.input(0), x.dtype()), alpha = scalar_like(n, x, n.attr("alpha", 0.0f));
    // The first step takes the whole gradient.
    const Value first = ops::le(step_count(n, x), scalar_like(n, x, 0));
    const Value beta = ops::where(first, scalar_like(n, x, 1), scalar_like(n, x, n.attr("beta", 0.0f)));
    const Value velocity = in[2] * alpha + g * beta;
    const Value direction = mode == "standard" ? velocity : g + velocity * alpha;
    return Values{x - rate * direction, velocity};
  });
}

}  // namespace

Rows training_rows() {
  return {
      {"Adagrad", 1, adagrad},
      {"Adam", 1, adam},
      {"Momentum", 1, momentum},
  };
}

}  // namespace rlx::onnx
