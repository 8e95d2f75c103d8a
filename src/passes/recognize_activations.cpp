// gelu, its tanh form and silu where a model spells them with primitives.
#include <algorithm>
#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/unary.h"

namespace rlx::passes {

namespace {

// Constants of a half-precision model are rounded to its dtype.
double tolerance(DType dtype) { return dtype == DType::F16 ? 2e-3 : dtype == DType::BF16 ? 1e-2 : 1e-5; }

bool near(double a, double b, DType dtype) { return std::abs(a - b) <= tolerance(dtype) * std::abs(b); }

// A product as numbers times values; products that others read too are values.
struct Product {
  double factor = 1;
  std::vector<ValueId> values;
};

void collect(Rewriter& rw, ValueId id, const Node* reader, Product& out, int depth = 0) {
  const Node& node = rw.producer(id);
  if (const auto c = scalar_of(rw, id)) {
    out.factor *= *c;
    return;
  }
  const bool inner = depth < 4 && (reader == nullptr || rw.uses().sole_use(id, *reader));
  if (inner && node.op == &ops::mul) {
    collect(rw, node.inputs[0], &node, out, depth + 1);
    collect(rw, node.inputs[1], &node, out, depth + 1);
  } else if (const auto d = inner && node.op == &ops::div ? scalar_of(rw, node.inputs[1]) : std::nullopt; d && *d != 0) {
    out.factor /= *d;
    collect(rw, node.inputs[0], &node, out, depth + 1);
  } else {
    out.values.push_back(id);
  }
}

// x * x * x, or pow(x, 3).
bool is_cube(Rewriter& rw, ValueId id, ValueId x) {
  const Node& node = rw.producer(id);
  if (node.op == &ops::pow) return node.inputs[0] == x && scalar_of(rw, node.inputs[1]) == 3.0;
  Product p;
  collect(rw, id, nullptr, p);
  if (p.factor != 1) return false;
  int64_t power = 0;
  for (const ValueId v : p.values) {
    const Node& factor = rw.producer(v);
    const bool square = (factor.op == &ops::mul && factor.inputs[0] == x && factor.inputs[1] == x) ||
                        (factor.op == &ops::pow && factor.inputs[0] == x && scalar_of(rw, factor.inputs[1]) == 2.0);
    if (v == x)
      ++power;
    else if (square)
      power += 2;
    else
      return false;
  }
  return power == 3;
}

// sqrt(2 / pi) * (x + 0.044715 x^3): the argument of tanh.
bool is_tanh_argument(Rewriter& rw, ValueId id, ValueId x, DType dtype) {
  const Scaled outer = as_scaled(rw, id);
  if (!near(outer.factor, std::sqrt(2 / M_PI), dtype)) return false;
  const Node& sum = rw.producer(outer.x);
  if (sum.op != &ops::add) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (sum.inputs[i] != x) continue;
    Product cubic;
    collect(rw, sum.inputs[1 - i], nullptr, cubic);
    if (!near(cubic.factor, 0.044715, dtype)) continue;
    if (cubic.values.size() == 1 && is_cube(rw, cubic.values[0], x)) return true;
    if (cubic.values == std::vector<ValueId>{x, x, x}) return true;
    if (cubic.values.size() == 2 && std::count(cubic.values.begin(), cubic.values.end(), x) == 1) {
      const Node& square = rw.producer(cubic.values[0] == x ? cubic.values[1] : cubic.values[0]);
      if (square.op == &ops::mul && square.inputs[0] == x && square.inputs[1] == x) return true;
    }
  }
  return false;
}

// The op that x * gate / 2 is.
const Op<NoAttrs>* gelu_form(Rewriter& rw, ValueId x, ValueId gate, DType dtype) {
  const Node& sum = rw.producer(gate);
  if (sum.op != &ops::add) return nullptr;
  const std::optional<ValueId> inner = other_operand(rw, sum, 1.0);
  if (!inner) return nullptr;
  const Node& function = rw.producer(*inner);
  if (function.op == &ops::erf) {
    const Scaled argument = as_scaled(rw, function.inputs[0]);
    return argument.x == x && near(argument.factor, M_SQRT1_2, dtype) ? &ops::gelu : nullptr;
  }
  if (function.op == &ops::tanh) return is_tanh_argument(rw, function.inputs[0], x, dtype) ? &ops::gelu_approx : nullptr;
  return nullptr;
}

}  // namespace

void recognize_activations(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if ((node.op != &ops::mul && node.op != &ops::div) || is_unused(rw, node)) return std::nullopt;
    const TensorType& type = node.results[0].type;
    if (!is_float(type.dtype)) return std::nullopt;
    Product p;
    collect(rw, node.results[0].id, nullptr, p);
    if (p.values.size() != 2) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId x = p.values[i], gate = p.values[1 - i];
      if (rw.graph().type(x) != type || rw.graph().type(gate) != type) continue;
      const Node& function = rw.producer(gate);
      if (p.factor == 1 && function.op == &ops::sigmoid && function.inputs[0] == x &&
          rw.claims(ops::silu, NoAttrs{}, types_of(rw, {&x, 1})))
        return Values{ops::silu(rw.in(x))};
      if (!near(p.factor, 0.5, type.dtype)) continue;
      const Op<NoAttrs>* op = gelu_form(rw, x, gate, type.dtype);
      if (op && rw.claims(*op, NoAttrs{}, types_of(rw, {&x, 1}))) return Values{(*op)(rw.in(x))};
    }
    return std::nullopt;
  });
}

}  // namespace rlx::passes
