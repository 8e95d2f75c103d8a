#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/recurrent.h"

namespace rlx::onnx {

namespace {

// A constant in the graph of x, which may be the body of a scan.
Value scalar_beside(const Value& x, double value) {
  const double values[] = {value};
  return x.graph().constant(Tensor::from_doubles(x.dtype(), {}, values));
}

Value part(const Value& x, int64_t axis, int64_t start, int64_t len) {
  return ops::narrow(x, {.axis = axis, .start = start, .len = len});
}

Value apply(const Function& f, const Value& x) {
  const auto scalar = [&](double value) { return scalar_beside(x, value); };
  if (f.name == "sigmoid") return ops::sigmoid(x);
  if (f.name == "tanh") return ops::tanh(x);
  if (f.name == "relu") return ops::relu(x);
  if (f.name == "affine") return x * scalar(f.alpha) + scalar(f.beta);
  if (f.name == "scaledtanh") return ops::tanh(x * scalar(f.beta)) * scalar(f.alpha);
  if (f.name == "leakyrelu") return ops::where(ops::lt(x, scalar(0)), x * scalar(f.alpha), x);
  if (f.name == "thresholdedrelu") return ops::where(ops::ge(x, scalar(f.alpha)), x, scalar(0));
  if (f.name == "softsign") return x / (ops::abs(x) + scalar(1));
  if (f.name == "hardsigmoid") {
    const Value line = x * scalar(f.alpha) + scalar(f.beta);
    return ops::min(ops::max(line, scalar(0)), scalar(1));
  }
  if (f.name == "elu") {
    const Value below = ops::exp(ops::min(x, scalar(0))) - scalar(1);
    return ops::where(ops::lt(x, scalar(0)), below * scalar(f.alpha), x);
  }
  RLX_ASSERT(f.name == "softplus");
  return ops::max(x, scalar(0)) + ops::log(ops::exp(-ops::abs(x)) + scalar(1));
}

// One direction's weights as the steps read them.
struct Weights {
  Value products;   // of the inputs and all biases that may be added before, [steps, batch, gates * hidden]
  Value recurrent;  // [hidden, gates * hidden]
  std::optional<Value> reset_bias;  // of a GRU whose reset comes after the product, [hidden]
  std::optional<Value> peephole;    // [3 * hidden]: i, o, f
};

Weights weights_of(OnnxNode& n, const Layer& l, int64_t direction, const Value& x, DType dtype) {
  const auto of = [&](int64_t i) { return squeeze(part(cast_to(n.input(i), dtype), 0, direction, 1), {0}); };
  const int64_t rows = l.gates * l.hidden;
  Value products = ops::matmul(x, swap_last_two(of(1)));
  Weights w{products, swap_last_two(of(2)), std::nullopt, std::nullopt};
  if (n.has(3)) {
    const Value bias = of(3);
    const Value of_input = part(bias, 0, 0, rows), of_hidden = part(bias, 0, rows, rows);
    if (l.linear_before_reset) {
      const Value gates = part(of_hidden, 0, 0, 2 * l.hidden);
      w.products = products + of_input + ops::concat(Values{gates, zeros(n, Shape({l.hidden}), dtype)}, {.axis = 0});
      w.reset_bias = part(of_hidden, 0, 2 * l.hidden, l.hidden);
    } else {
      w.products = products + (of_input + of_hidden);
    }
  }
  if (l.cell == Cell::kLstm && n.has(7)) w.peephole = of(7);
  return w;
}

// The body of the scan: states and weights in, states after one step out.
class Steps {
 public:
  Steps(const Layer& l, int64_t direction) : l_(l), first_(static_cast<size_t>(direction * l.functions_each)) {}

  Value rnn(const Value& product, const Value& h, const Value& recurrent) const {
    return activated(0, product + ops::matmul(h, recurrent));
  }

  Value gru(const Value& product, const Value& h, const Value& recurrent, const Value* reset_bias) const {
    const int64_t size = l_.hidden;
    const Value both = part(product, 1, 0, 2 * size) + ops::matmul(h, part(recurrent, 1, 0, 2 * size));
    const Value z = activated(0, part(both, 1, 0, size)), r = activated(0, part(both, 1, size, size));
    const Value weights = part(recurrent, 1, 2 * size, size);
    Value seen = ops::matmul(l_.linear_before_reset ? h : r * h, weights);
    if (reset_bias) seen = seen + *reset_bias;
    if (l_.linear_before_reset) seen = r * seen;
    const Value next = activated(1, part(product, 1, 2 * size, size) + seen);
    return (scalar_beside(z, 1) - z) * next + z * h;
  }

  // h and c after the step.
  Values lstm(const Value& product, const Value& h, const Value& c, const Value& recurrent,
              const Value* peephole) const {
    const int64_t size = l_.hidden;
    const Value sums = product + ops::matmul(h, recurrent);
    const auto gate = [&](int64_t i) { return part(sums, 1, i * size, size); };
    const auto with_cell = [&](const Value& sum, int64_t i, const Value& cell) {
      return peephole ? sum + part(*peephole, 0, i * size, size) * cell : sum;
    };
    const Value i = activated(0, with_cell(gate(0), 0, c));
    const Value f = l_.input_forget ? scalar_beside(i, 1) - i : activated(0, with_cell(gate(2), 2, c));
    const Value cell = f * c + i * activated(1, gate(3));
    const Value o = activated(0, with_cell(gate(1), 1, cell));
    return {o * function(2, cell), cell};  // the cell is not clipped: as ONNX Runtime has it
  }

 private:
  Value function(size_t i, const Value& x) const { return apply(l_.functions[first_ + i], x); }
  Value activated(size_t i, const Value& x) const {
    if (l_.clip == 0) return function(i, x);
    const double bound = l_.clip;
    return function(i, ops::min(ops::max(x, scalar_beside(x, -bound)), scalar_beside(x, bound)));
  }

  const Layer& l_;
  size_t first_;
};

Value backwards(OnnxNode& n, const Value& x) {
  const Dim size = x.shape()[0];
  const Value last = size_as_scalar(n, size) - n.scalar(1, DType::I64);  // of no steps -1, which is no size
  return ops::gather(x, last - count_up(n, size), {.axis = 0});
}

// One direction: y [steps, batch, hidden], then the last states [batch, hidden].
Values run_direction(OnnxNode& n, const Layer& l, int64_t direction, Value x, std::optional<Value> present,
                     const Values& states) {
  const bool reverse = l.direction == ops::RecurrentDirection::kReverse || direction == 1;
  if (reverse) x = backwards(n, x);
  if (reverse && present) present = backwards(n, *present);
  const Weights w = weights_of(n, l, direction, x, x.dtype());
  Values operands = states;
  operands.push_back(w.recurrent);
  if (w.reset_bias) operands.push_back(*w.reset_bias);
  if (w.peephole) operands.push_back(*w.peephole);
  const auto carries = static_cast<int64_t>(states.size());
  const int64_t same = static_cast<int64_t>(operands.size()) - carries;
  operands.push_back(w.products);
  if (present) operands.push_back(*present);

  auto body = std::make_shared<Graph>(n.graph().empty_revision());
  Values in;
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorType type = operands[i].type();
    if (static_cast<int64_t>(i) >= carries + same)
      type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    in.push_back(body->input(str("in", i), type));
  }
  const Value &h = in[0], &recurrent = in[static_cast<size_t>(carries)];
  const Value& product = in[static_cast<size_t>(carries + same)];
  const Value* extra = same > 1 ? &in[static_cast<size_t>(carries) + 1] : nullptr;
  const Steps steps(l, direction);
  Values next;
  switch (l.cell) {
    case Cell::kRnn: next = {steps.rnn(product, h, recurrent)}; break;
    case Cell::kGru: next = {steps.gru(product, h, recurrent, extra)}; break;
    case Cell::kLstm: next = steps.lstm(product, h, in[1], recurrent, extra); break;
  }
  Value y = next[0];
  if (present) {  // beyond a sequence's end states stay and results are 0
    const Value& inside = in.back();
    y = ops::where(inside, y, scalar_beside(y, 0));
    for (size_t i = 0; i < next.size(); ++i) next[i] = ops::where(inside, next[i], in[i]);
  }
  for (size_t i = 0; i < next.size(); ++i) body->output(next[i], str("state", i));
  body->output(y, "y");
  const Value last = ops::scan(
      operands,
      {.body = body, .length = x.shape()[0], .num_carries = carries, .num_bcast = same, .num_xs = present ? 2 : 1});
  const Value all = last.result(carries);
  Values results = {reverse ? backwards(n, all) : all};
  for (int64_t i = 0; i < carries; ++i) results.push_back(last.result(i));
  return results;
}

}  // namespace

Value swap_first_two(const Value& x) {
  std::vector<int64_t> perm{1, 0};
  for (int64_t i = 2; i < x.shape().rank(); ++i) perm.push_back(i);
  return ops::transpose(x, {.perm = perm});
}

Value state_of(OnnxNode& n, const Layer& l, int64_t i, const Dim& batch, DType dtype) {
  if (!n.has(i)) return zeros(n, Shape({l.directions, batch, l.hidden}), dtype);
  const Value state = cast_to(n.input(i), dtype);
  return l.batch_first ? swap_first_two(state) : state;
}

Values by_steps(OnnxNode& n, const Layer& l) {
  const DType own = n.input(0).dtype();
  const DType dtype = own == DType::F64 ? own : DType::F32;
  Value x = cast_to(n.input(0), dtype);
  if (l.batch_first) x = swap_first_two(x);
  const Dim steps = x.shape()[0], batch = x.shape()[1];
  std::optional<Value> present;  // [steps, batch, 1]
  if (n.has(4)) {
    const Value lengths = reshape_to(cast_to(n.input(4), DType::I64), {1, batch});
    present = unsqueeze(ops::lt(reshape_to(count_up(n, steps), {steps, 1}), lengths), {2});
  }
  Values first = {state_of(n, l, 5, batch, dtype)};
  if (l.cell == Cell::kLstm) first.push_back(state_of(n, l, 6, batch, dtype));
  std::vector<Values> parts(first.size() + 1);  // y, then the states: one per direction
  for (int64_t d = 0; d < l.directions; ++d) {
    Values states;
    for (const Value& s : first) states.push_back(squeeze(part(s, 0, d, 1), {0}));
    const Values results = run_direction(n, l, d, x, present, states);
    for (size_t i = 0; i < results.size(); ++i) parts[i].push_back(unsqueeze(results[i], {i == 0 ? 1 : 0}));
  }
  Values results;
  for (size_t i = 0; i < parts.size(); ++i) {
    Value all = l.directions == 1 ? parts[i][0] : ops::concat(parts[i], {.axis = i == 0 ? 1 : 0});
    if (l.batch_first) all = i == 0 ? ops::transpose(all, {.perm = {2, 0, 1, 3}}) : swap_first_two(all);
    results.push_back(cast_to(all, own));
  }
  return results;
}

}  // namespace rlx::onnx
