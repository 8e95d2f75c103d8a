// LSTM, GRU and RNN. With the usual activations they are ops of the catalogue, which has its gates in another order;
// other activations, clipping, coupled gates and lengths per sequence are composed step by step with `scan`.
#include <algorithm>
#include <array>
#include <cctype>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/recurrent.h"

namespace rlx::onnx {

namespace {

// The functions that have parameters, and what those are when a model does not say.
struct FunctionDefaults {
  std::string_view name;
  bool has_alpha, has_beta;
  float alpha, beta;
};
constexpr std::array<FunctionDefaults, 11> kFunctions = {{
    {"affine", true, true, 1.0f, 0.0f},
    {"elu", true, false, 1.0f, 0.0f},
    {"hardsigmoid", true, true, 0.2f, 0.5f},
    {"leakyrelu", true, false, 0.01f, 0.0f},
    {"relu", false, false, 0.0f, 0.0f},
    {"scaledtanh", true, true, 1.0f, 1.0f},
    {"sigmoid", false, false, 0.0f, 0.0f},
    {"softplus", false, false, 0.0f, 0.0f},
    {"softsign", false, false, 0.0f, 0.0f},
    {"tanh", false, false, 0.0f, 0.0f},
    {"thresholdedrelu", true, false, 1.0f, 0.0f},
}};

// Blocks of `size` along an axis, in another order.
Value reordered(const Value& x, int64_t axis, int64_t size, std::span<const int64_t> order) {
  Values blocks;
  for (const int64_t i : order) blocks.push_back(ops::narrow(x, {.axis = axis, .start = i * size, .len = size}));
  return ops::concat(blocks, {.axis = axis});
}

std::vector<Function> functions_of(OnnxNode& n, const std::vector<std::string>& usual, int64_t directions) {
  std::vector<std::string> names = n.attr("activations", usual);
  const size_t count = usual.size() * static_cast<size_t>(directions);
  if (names.empty()) names = usual;
  if (names.size() == usual.size() && directions == 2) {  // the same for both directions
    const std::vector<std::string> first = names;
    names.insert(names.end(), first.begin(), first.end());
  }
  require(names.size() == count, "There are ", names.size(), " activations; ", count, " are expected.");
  const std::vector<float> alphas = n.attr("activation_alpha", std::vector<float>());
  const std::vector<float> betas = n.attr("activation_beta", std::vector<float>());
  size_t next_alpha = 0, next_beta = 0;  // only functions that have a parameter take one from the list
  std::vector<Function> functions;
  for (std::string& name : names) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto it = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const auto& f) { return f.name == name; });
    if (it == kFunctions.end()) n.unsupported(str("Activation '", name, "' is not known."));
    Function f{name, it->alpha, it->beta};
    if (it->has_alpha && next_alpha < alphas.size()) f.alpha = alphas[next_alpha++];
    if (it->has_beta && next_beta < betas.size()) f.beta = betas[next_beta++];
    functions.push_back(std::move(f));
  }
  return functions;
}

Layer layer_of(OnnxNode& n, Cell cell) {
  Layer l;
  l.cell = cell;
  l.gates = cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
  const std::string direction = n.attr("direction", "forward");
  require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "Direction '", direction,
          "' is not known.");
  l.direction = direction == "forward"   ? ops::RecurrentDirection::kForward
                : direction == "reverse" ? ops::RecurrentDirection::kReverse
                                         : ops::RecurrentDirection::kBidirectional;
  l.directions = direction == "bidirectional" ? 2 : 1;
  require_rank(n.input(2), 3, "R");
  const Shape& recurrent = n.input(2).shape();
  l.hidden = recurrent[2].value();
  require(n.attr("hidden_size", l.hidden) == l.hidden, "hidden_size (", n.attr("hidden_size", l.hidden),
          ") is not that of the weights (", l.hidden, ").");
  const Shape expected({l.directions, checked_mul(l.gates, l.hidden), l.hidden});
  require(recurrent == expected, "R has shape ", recurrent, "; ", expected, " is expected.");
  checked_mul(8, l.hidden);  // more than any part of the weights
  std::vector<std::string> usual = {"Tanh"};
  if (cell == Cell::kGru) usual = {"Sigmoid", "Tanh"};
  if (cell == Cell::kLstm) usual = {"Sigmoid", "Tanh", "Tanh"};
  l.functions = functions_of(n, usual, l.directions);
  l.functions_each = static_cast<int64_t>(usual.size());
  l.clip = n.attr("clip", 0.0f);
  l.batch_first = n.attr("layout", false);
  l.linear_before_reset = cell == Cell::kGru && n.attr("linear_before_reset", false);
  l.input_forget = cell == Cell::kLstm && n.attr("input_forget", false);
  return l;
}

bool has_functions(const Layer& l, std::initializer_list<std::string_view> names) {
  for (size_t i = 0; i < l.functions.size(); ++i)
    if (l.functions[i].name != *(names.begin() + i % names.size())) return false;
  return true;
}

// Does a length per sequence say more than the shape does?
bool has_lengths(OnnxNode& n, const Layer& l) {
  if (!n.has(4)) return false;
  const std::optional<Tensor> lengths = n.importer().try_known(n.input(4).id());
  const Dim steps = n.input(0).shape()[l.batch_first ? 1 : 0];
  if (!lengths || !steps.is_static()) return true;
  for (int64_t i = 0; i < lengths->num_elements(); ++i)
    if (lengths->at(i) != static_cast<double>(steps.value())) return true;
  return false;
}

bool in_catalogue(OnnxNode& n, const Layer& l) {
  if (l.clip != 0 || l.input_forget || has_lengths(n, l)) return false;
  switch (l.cell) {
    case Cell::kRnn: return has_functions(l, {"tanh"}) || has_functions(l, {"relu"});
    case Cell::kGru: return has_functions(l, {"sigmoid", "tanh"});
    case Cell::kLstm: return has_functions(l, {"sigmoid", "tanh", "tanh"});
  }
  return false;
}

// ---- by ops of the catalogue

Values by_catalogue(OnnxNode& n, const Layer& l) {
  Value x = n.input(0);
  if (!l.batch_first) x = swap_first_two(x);
  const Dim batch = x.shape()[0], steps = x.shape()[1];
  Value input_weights = n.input(1), hidden_weights = n.input(2);
  std::vector<int64_t> order;  // of the catalogue's gates among ONNX's
  if (l.cell == Cell::kLstm) order = {0, 2, 3, 1};
  if (l.cell == Cell::kGru) order = {1, 0, 2};
  const auto arranged = [&](const Value& v, int64_t axis) {
    return order.empty() ? v : reordered(v, axis, l.hidden, order);
  };
  const Dim count = n.symbols().product(input_weights.shape().dims());
  input_weights = reshape_to(arranged(input_weights, 1), {count});
  hidden_weights = arranged(hidden_weights, 1);
  Values operands = {x, input_weights, hidden_weights};
  if (n.has(3)) {
    const Value bias = reshape_to(n.input(3), {l.directions, 2, l.gates * l.hidden});
    operands.push_back(arranged(bias, 2));
  }
  const bool carry = n.has(5) || (l.cell == Cell::kLstm && n.has(6));
  if (carry) operands.push_back(state_of(n, l, 5, batch, x.dtype()));
  if (carry && l.cell == Cell::kLstm) operands.push_back(state_of(n, l, 6, batch, x.dtype()));
  const bool peephole = l.cell == Cell::kLstm && n.has(7);
  if (peephole) {
    const Value weights = reshape_to(n.input(7), {l.directions, 3, l.hidden});
    operands.push_back(reordered(weights, 1, 1, std::array<int64_t, 3>{0, 2, 1}));
  }
  const Value y = [&] {
    switch (l.cell) {
      case Cell::kRnn:
        return ops::rnn(operands, {.hidden_size = l.hidden,
                                   .direction = l.direction,
                                   .bias = n.has(3),
                                   .carry = carry,
                                   .relu = has_functions(l, {"relu"})});
      case Cell::kGru:
        return ops::gru(operands, {.hidden_size = l.hidden,
                                   .direction = l.direction,
                                   .bias = n.has(3),
                                   .carry = carry,
                                   .reset_after = l.linear_before_reset});
      default:
        return ops::lstm(operands, {.hidden_size = l.hidden,
                                    .direction = l.direction,
                                    .bias = n.has(3),
                                    .carry = carry,
                                    .peephole = peephole});
    }
  }();
  const Value apart = reshape_to(y, {batch, steps, l.directions, l.hidden});
  Values results = {l.batch_first ? apart : ops::transpose(apart, {.perm = {1, 2, 0, 3}}), y.result(1)};
  if (l.cell == Cell::kLstm) results.push_back(y.result(2));
  if (l.batch_first)
    for (size_t i = 1; i < results.size(); ++i) results[i] = swap_first_two(results[i]);
  return results;
}

template <Cell cell>
Built recurrent(OnnxNode& n) {
  require_rank(n.input(0), 3, "X");
  const Layer l = layer_of(n, cell);
  return in_catalogue(n, l) ? by_catalogue(n, l) : by_steps(n, l);
}

}  // namespace

Rows recurrent_rows() {
  return {
      {"GRU", 1, recurrent<Cell::kGru>},
      {"LSTM", 1, recurrent<Cell::kLstm>},
      {"RNN", 1, recurrent<Cell::kRnn>},
  };
}

}  // namespace rlx::onnx
