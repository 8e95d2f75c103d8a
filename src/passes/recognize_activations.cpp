// gelu, its tanh form and silu where a model spells them with primitives.
#include <algorithm>
#include <cmath>
#include <span>

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

// A product as numbers times values. `stops` are values even where they are products themselves.
struct Product {
  double factor = 1;
  std::vector<ValueId> values;
};

void collect(Rewriter& rw, ValueId id, std::span<const ValueId> stops, Product& out, int depth = 0) {
  const Node& node = rw.producer(id);
  if (const auto c = scalar_of(rw, id)) {
    out.factor *= *c;
    return;
  }
  const bool inner = depth < 4 && std::find(stops.begin(), stops.end(), id) == stops.end();
  if (inner && node.op == &ops::mul) {
    collect(rw, node.inputs[0], stops, out, depth + 1);
    collect(rw, node.inputs[1], stops, out, depth + 1);
  } else if (const auto d = inner && node.op == &ops::div ? scalar_of(rw, node.inputs[1]) : std::nullopt;
             d && *d != 0) {
    out.factor /= *d;
    collect(rw, node.inputs[0], stops, out, depth + 1);
  } else {
    out.values.push_back(id);
  }
}

// The value that is `factor` times smaller (x of x * 0.7071), through at most three products with numbers.
std::optional<ValueId> unscaled(Rewriter& rw, ValueId id, double factor, DType dtype) {
  double so_far = 1;
  for (int i = 0; i < 3; ++i) {
    const Node& node = rw.producer(id);
    std::optional<double> c;
    size_t from = 0;
    if (node.op == &ops::mul) {
      c = scalar_of(rw, node.inputs[1]);
      if (!c && (c = scalar_of(rw, node.inputs[0]))) from = 1;
    } else if (node.op == &ops::div) {
      c = scalar_of(rw, node.inputs[1]);
      if (c) c = 1 / *c;
    }
    if (!c) return std::nullopt;
    so_far *= *c;
    id = node.inputs[from];
    if (near(so_far, factor, dtype)) return id;
  }
  return std::nullopt;
}

// Is it factor * x^power, spelled with products and pow?
bool is_power(Rewriter& rw, ValueId id, ValueId x, double power, double factor, DType dtype) {
  Product p;
  collect(rw, id, {&x, 1}, p);
  double found = 0;
  for (const ValueId v : p.values) {
    const Node& node = rw.producer(v);
    const std::optional<double> exponent =
        node.op == &ops::pow && node.inputs[0] == x ? scalar_of(rw, node.inputs[1]) : std::nullopt;
    if (v != x && !exponent) return false;
    found += v == x ? 1 : *exponent;
  }
  return found == power && near(p.factor, factor, dtype);
}

// What a product with `gate` may be: the op, the x it is a function of, and the number that stands beside x and gate.
struct Form {
  const Op<NoAttrs>* op = nullptr;
  ValueId x = 0;
  double factor = 1;
};
std::optional<Form> form_of(Rewriter& rw, ValueId gate, DType dtype) {
  const Node& node = rw.producer(gate);
  if (node.op == &ops::sigmoid) return Form{&ops::silu, node.inputs[0], 1};
  if (node.op != &ops::add) return std::nullopt;
  const std::optional<ValueId> inner = other_operand(rw, node, 1.0);
  if (!inner) return std::nullopt;
  const Node& function = rw.producer(*inner);
  if (function.op == &ops::erf) {
    const auto x = unscaled(rw, function.inputs[0], M_SQRT1_2, dtype);
    return x ? std::optional(Form{&ops::gelu, *x, 0.5}) : std::nullopt;
  }
  if (function.op != &ops::tanh) return std::nullopt;
  // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
  const auto sum = unscaled(rw, function.inputs[0], std::sqrt(2 / M_PI), dtype);
  if (!sum || rw.producer(*sum).op != &ops::add) return std::nullopt;
  const Node& terms = rw.producer(*sum);
  for (size_t i = 0; i < 2; ++i)
    if (is_power(rw, terms.inputs[1 - i], terms.inputs[i], 3, 0.044715, dtype))
      return Form{&ops::gelu_approx, terms.inputs[i], 0.5};
  return std::nullopt;
}

// Factors of a product that may be gates.
void find_gates(Rewriter& rw, ValueId id, std::vector<ValueId>& out, int depth = 0) {
  const Node& node = rw.producer(id);
  if (node.op == &ops::add || node.op == &ops::sigmoid) out.push_back(id);
  if (depth < 4 && (node.op == &ops::mul || node.op == &ops::div))
    for (const ValueId in : node.inputs) find_gates(rw, in, out, depth + 1);
}

}  // namespace

void recognize_activations(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if ((node.op != &ops::mul && node.op != &ops::div) || is_unused(rw, node)) return std::nullopt;
    const TensorType& type = node.results[0].type;
    if (!is_float(type.dtype)) return std::nullopt;
    std::vector<ValueId> gates;
    find_gates(rw, node.results[0].id, gates);
    for (const ValueId gate : gates) {
      const std::optional<Form> form = form_of(rw, gate, type.dtype);
      if (!form || rw.graph().type(form->x) != type || rw.graph().type(gate) != type) continue;
      Product p;
      const ValueId stops[] = {form->x, gate};
      collect(rw, node.results[0].id, stops, p);
      const bool both = p.values.size() == 2 &&
                        std::find(p.values.begin(), p.values.end(), form->x) != p.values.end() &&
                        std::find(p.values.begin(), p.values.end(), gate) != p.values.end();
      if (both && near(p.factor, form->factor, type.dtype) &&
          rw.claims(*form->op, NoAttrs{}, types_of(rw, {&form->x, 1})))
        return Values{(*form->op)(rw.in(form->x))};
    }
    return std::nullopt;
  });
}

}  // namespace rlx::passes
