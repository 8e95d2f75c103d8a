#include "support/tolerance.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rlx::test {

namespace {

enum class Class { kExact, kArithmetic, kTranscendental, kAccumulation, kFft };

struct Row {
  std::string_view op;
  Class tolerance;
};

// Ops by name where their category does not decide.
constexpr Row kOps[] = {
    {"add", Class::kArithmetic},
    {"sub", Class::kArithmetic},
    {"mul", Class::kArithmetic},
    {"div", Class::kArithmetic},
    {"max", Class::kArithmetic},
    {"min", Class::kArithmetic},
    {"neg", Class::kArithmetic},  // a GPU may take a subnormal for 0
    {"abs", Class::kArithmetic},
    {"relu", Class::kArithmetic},
    {"sqrt", Class::kArithmetic},
    {"rsqrt", Class::kArithmetic},
    {"recip", Class::kArithmetic},
    {"round", Class::kExact},
    {"floor", Class::kExact},
    {"ceil", Class::kExact},
    {"sign", Class::kExact},
    {"mod", Class::kArithmetic},
    {"fmod", Class::kExact},
    {"cast", Class::kExact},
    {"where", Class::kExact},
    {"resize", Class::kAccumulation},
    {"scatter_add", Class::kAccumulation},
    {"scatter_elements", Class::kAccumulation},
    {"scatter_nd", Class::kAccumulation},
    {"fft", Class::kFft},
    {"ifft", Class::kFft},
    {"relu_backward", Class::kExact},
    {"quantize", Class::kExact},
    {"dequantize_linear", Class::kArithmetic},
    {"gather_backward", Class::kAccumulation},
};

Class class_of(const OpDef& op) {
  for (const Row& row : kOps)
    if (row.op == op.name) return row.tolerance;
  if (op.category == "Shape" || op.category == "Gather and scatter" || op.category == "Leaves") return Class::kExact;
  if (op.category == "Elementwise" || op.category == "Regions") return Class::kTranscendental;
  if (op.category == "FFT") return Class::kFft;
  return Class::kAccumulation;
}

double largest(const Tensor& t) {
  double top = 0;
  for (const double v : t.to_doubles())
    if (std::isfinite(v)) top = std::max(top, std::fabs(v));
  return top;
}

}  // namespace

bool is_exact(const OpDef& op) { return class_of(op) == Class::kExact; }

Tolerance tolerance_of(const OpDef& op, const Attrs&, std::span<const Tensor> inputs, const Tensor& expected) {
  const Class c = class_of(op);
  if (c == Class::kExact || !(is_float(expected.dtype()) || is_complex(expected.dtype()))) return kExact;
  Tolerance t;
  switch (c) {
    case Class::kExact: break;
    case Class::kArithmetic: t.rel = 1e-6; break;
    case Class::kTranscendental: {
      double x = 1;
      for (const Tensor& in : inputs)
        if (is_float(in.dtype())) x = std::max(x, largest(in));
      t = {.rel = 1e-5, .abs = 1e-6 * x};
      break;
    }
    case Class::kAccumulation: t.of_max = 1e-5; break;
    case Class::kFft: {
      double n = 1;
      for (const int64_t size : expected.sizes()) n = std::max(n, static_cast<double>(size));
      t.of_max = 1e-6 * std::log2(2 * n);
      break;
    }
  }
  // A score's gradient is w * (dy . v - the mean of it over the keys): where a query sees one key, or all keys share a
  // bias, that is 0, and what the two sums' orders of addition leave of it is not.
  if (op.name == "attention_backward")
    t.abs += 1e-6 * largest(inputs[3]) * largest(inputs[2]) * std::max({1.0, largest(inputs[0]), largest(inputs[1])});
  // Terms of a product may cancel; where it has one column or a few, no larger element stands beside what is left.
  if (op.name == "matmul" && inputs[0].sizes().size() > 0)
    t.abs +=
        2.4e-7 * std::sqrt(static_cast<double>(inputs[0].sizes().back())) * largest(inputs[0]) * largest(inputs[1]);
  // Denormals may be flushed.
  t.abs += 1.2e-38;
  // One rounding more per stored value.
  if (expected.dtype() == DType::F16) t.of_max += kHalf.of_max;
  if (expected.dtype() == DType::BF16) t.of_max += kBFloat.of_max;
  return t;
}

}  // namespace rlx::test
