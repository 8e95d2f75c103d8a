#include "support/op_cases.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/evaluate.h"
#include "rlx/runtime.h"

namespace rlx::test {

// Without any tolerance a zero has a sign: such results are moved or chosen, not computed.
testing::AssertionResult near(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.type() != expected.type())
    return testing::AssertionFailure() << "type " << str(actual.type()) << " is not " << str(expected.type());
  // C64 as pairs of f32; integers beyond a double's 53 bits exactly.
  const auto numbers = [](const Tensor& t) {
    if (!is_complex(t.dtype())) return t.to_doubles();
    std::vector<double> out;
    for (const auto& c : t.values<std::complex<float>>()) out.insert(out.end(), {c.real(), c.imag()});
    return out;
  };
  if (actual.dtype() == DType::I64 || actual.dtype() == DType::U64)
    return actual == expected ? testing::AssertionSuccess()
                              : testing::AssertionFailure() << name(actual.dtype()) << " values differ";
  const std::vector<double> a = numbers(actual), e = numbers(expected);
  double top = 0;
  for (const double v : e)
    if (std::isfinite(v)) top = std::max(top, std::fabs(v));
  const bool exact = tolerance.rel == 0 && tolerance.abs == 0 && tolerance.of_max == 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (exact && a[i] == 0 && e[i] == 0 && std::signbit(a[i]) != std::signbit(e[i]))
      return testing::AssertionFailure() << "element " << i << " of " << a.size() << " is " << a[i] << ", expected "
                                         << e[i];
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) continue;
    const double bound = tolerance.rel * std::fabs(e[i]) + tolerance.abs + tolerance.of_max * top;
    if (std::isfinite(e[i]) && std::fabs(a[i] - e[i]) <= bound) continue;
    return testing::AssertionFailure() << "element " << i << " of " << a.size() << " is " << a[i] << ", expected "
                                       << e[i] << " within " << bound;
  }
  return testing::AssertionSuccess();
}

OpCase& OpCase::expect(Tensors outputs, Tolerance t) {
  for (size_t i = 0; i < outputs.size(); ++i) expected.emplace_back(static_cast<int>(i), std::move(outputs[i]));
  tolerance = t;
  return *this;
}

OpCase& OpCase::check(std::function<void(const Tensors&, const Tensors&)> f) {
  judge = std::move(f);
  return *this;
}

std::vector<RegisteredCases>& registered_cases() {
  static std::vector<RegisteredCases> cases;
  return cases;
}

Tensors run_op(const OpDef& op, const Tensors& inputs, const Attrs& attrs) {
  return reference::evaluate_op(op, inputs, attrs);
}

Tensors run_op_on(const CompileOptions& options, const OpDef& op, const Tensors& inputs, const Attrs& attrs,
                  uint64_t params) {
  Graph graph(std::string(op.name));
  Values operands;
  NamedTensors weights, given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool weight = (params >> i & 1) != 0;
    operands.push_back(weight ? graph.param(str("x", i), inputs[i].type())
                              : graph.input(str("x", i), inputs[i].type()));
    (weight ? weights : given)[str("x", i)] = inputs[i];
  }
  const Value first = graph.add(op, operands, attrs);
  const size_t results = graph.node_of(first.id()).results.size();
  for (size_t r = 0; r < results; ++r) graph.output(first.result(static_cast<int64_t>(r)), str("y", r));
  Executable exe = compile(std::move(graph), options);
  for (auto& [name, value] : weights) exe.set_param(name, value);
  NamedTensors out = exe.run(given);
  Tensors list;
  for (size_t r = 0; r < results; ++r) list.push_back(std::move(out.at(str("y", r))));
  return list;
}

void run_case(const OpCase& c) {
  if (!c.error.empty()) {
    try {
      run_op(*c.op, c.inputs, c.attrs);
      ADD_FAILURE() << "no Error; expected one that says: " << c.error;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(c.error), std::string::npos) << "the Error says: " << e.what();
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
    }
    return;
  }
  Tensors outputs;
  try {
    outputs = run_op(*c.op, c.inputs, c.attrs);
  } catch (const Error& e) {
    ADD_FAILURE() << e.what();
    return;
  }
  for (const auto& [index, value] : c.expected) {
    ASSERT_LT(static_cast<size_t>(index), outputs.size());
    EXPECT_TRUE(near(outputs[static_cast<size_t>(index)], value, c.tolerance)) << "result " << index;
  }
  if (c.judge) c.judge(c.inputs, outputs);
}

testing::AssertionResult matches_finite_differences(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                                                    const Tensor& dy, const Tensor& dx, double tolerance, double step) {
  const auto loss = [&](const Tensor& at) {
    const Tensor y = f(at);
    double sum = 0;
    for (int64_t i = 0; i < y.num_elements(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  };
  if (x.dtype() != DType::F64)
    return testing::AssertionFailure() << "finite differences need f64, not " << name(x.dtype());
  double top = 0;
  for (const double v : dx.to_doubles()) top = std::max(top, std::fabs(v));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    Tensor plus = x.clone(), minus = x.clone();
    plus.mutable_values<double>()[static_cast<size_t>(i)] += step;
    minus.mutable_values<double>()[static_cast<size_t>(i)] -= step;
    const double slope = (loss(plus) - loss(minus)) / (2 * step);
    if (!(std::fabs(slope - dx.at(i)) <= tolerance * std::max(1.0, top)))
      return testing::AssertionFailure() << "element " << i << ": gradient " << dx.at(i) << ", finite difference "
                                         << slope;
  }
  return testing::AssertionSuccess();
}

}  // namespace rlx::test
