// Op cases: for every op a list of operands and attributes, each judged by something else than the kernel itself.
//
//   OP_CASES(softmax) {
//     add({Tensor::f32({1, 2}, {0, 0})}).expect({Tensor::f32({1, 2}, {0.5, 0.5})});          // known values
//     add({random({4, 5})}, {.axis = 0}).check([](const Tensors& in, const Tensors& out) {   // a property or another
//     formula
//       ...EXPECT_NEAR(...)
//     });
//     add({random({70, 3})});                                 // no judge: runs, and is there to compare backends with
//     add_error({random({2, 3})}, {.axis = 3}, "Axis (3) is out of range");
//   }
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "rlx/graph.h"
#include "rlx/ops.h"
#include "support/random.h"

namespace rlx {
struct CompileOptions;  // rlx/runtime.h: not included, so that its changes do not rebuild every op test
}

namespace rlx::test {

using Tensors = std::vector<Tensor>;

// How close is close (spec 30, 23): |y - ref| <= rel * |ref| + abs + of_max * max|ref|.
struct Tolerance {
  double rel = 0, abs = 0, of_max = 0;
};
inline constexpr Tolerance kExact = {};
inline constexpr Tolerance kRounding = {.rel = 1e-6};  // f32 results of one correctly rounded operation
inline constexpr Tolerance kTranscendental = {.rel = 1e-5, .abs = 1e-6};
inline constexpr Tolerance kAccumulation = {.of_max = 1e-5};
inline constexpr Tolerance kHalf = {.of_max = 2e-3};      // f16 storage
inline constexpr Tolerance kBFloat = {.of_max = 1.6e-2};  // bf16 storage

// Same type, and every element within the tolerance; NaN matches NaN, an infinity itself.
testing::AssertionResult near(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

struct OpCase {
  const OpDef* op = nullptr;
  Tensors inputs;
  Attrs attrs;
  std::string error;                             // not empty: building or running throws an Error that contains it
  std::vector<std::pair<int, Tensor>> expected;  // result index, value
  Tolerance tolerance = kAccumulation;
  std::function<void(const Tensors& inputs, const Tensors& outputs)> judge;

  // Result i equals expected[i].
  OpCase& expect(Tensors outputs, Tolerance t = kAccumulation);
  OpCase& check(std::function<void(const Tensors& inputs, const Tensors& outputs)> f);
  bool judged() const { return !error.empty() || !expected.empty() || judge; }
};

class CaseBuilderBase {
 public:
  Tensor random(std::vector<int64_t> sizes, DType dtype = DType::F32) { return rng.tensor(std::move(sizes), dtype); }
  Tensor random(std::vector<int64_t> sizes, double low, double high, DType dtype = DType::F32) {
    return rng.uniform_tensor(std::move(sizes), low, high, dtype);
  }
  Tensor integers(std::vector<int64_t> sizes, int64_t low, int64_t high, DType dtype = DType::I32) {
    return rng.integers(std::move(sizes), low, high, dtype);
  }
  Rng rng{20261115};
  std::vector<std::unique_ptr<OpCase>> cases;
};

template <class A>
class CaseBuilder : public CaseBuilderBase {
 public:
  explicit CaseBuilder(const OpDef& op) : op_(op) {}
  OpCase& add(Tensors inputs, A attrs = {}) {
    cases.push_back(std::make_unique<OpCase>());
    OpCase& c = *cases.back();
    c.op = &op_;
    c.inputs = std::move(inputs);
    c.attrs = Attrs(std::move(attrs));
    return c;
  }
  void add_error(Tensors inputs, A attrs, std::string message) {
    add(std::move(inputs), std::move(attrs)).error = std::move(message);
  }

 private:
  const OpDef& op_;
};

using CaseList = std::vector<std::unique_ptr<OpCase>>;
struct RegisteredCases {
  const OpDef* op;
  CaseList (*make)();
};
std::vector<RegisteredCases>& registered_cases();
struct Registration {
  Registration(const OpDef& op, CaseList (*make)()) { registered_cases().push_back({&op, make}); }
};

// Runs one case on the oracle and judges it.
void run_case(const OpCase& c);

// Evaluates an op on the oracle: all results.
Tensors run_op(const OpDef& op, const Tensors& inputs, const Attrs& attrs);
template <class A>
Tensors run(const Op<A>& op, const Tensors& inputs, A attrs = {}) {
  return run_op(op, inputs, Attrs(std::move(attrs)));
}

// The same compiled for a device; `params` chooses the operands that are weights (bit i) and so may be packed.
Tensors run_op_on(const CompileOptions& options, const OpDef& op, const Tensors& inputs, const Attrs& attrs,
                  uint64_t params);

// The gradient dx an op computes, compared with central differences of sum(f(x) * dy) in f64 on the oracle.
// `f` evaluates the forward op with operand `index` replaced.
testing::AssertionResult matches_finite_differences(const std::function<Tensor(const Tensor& x)>& f, const Tensor& x,
                                                    const Tensor& dy, const Tensor& dx, double tolerance = 1e-5,
                                                    double step = 1e-5);

}  // namespace rlx::test

#define OP_CASES(op_name)                                                                                              \
  struct op_name##_Cases : ::rlx::test::CaseBuilder<std::remove_const_t<decltype(::rlx::ops::op_name)>::AttrsStruct> { \
    using CaseBuilder::CaseBuilder;                                                                                    \
    void build();                                                                                                      \
  };                                                                                                                   \
  static const ::rlx::test::Registration op_name##_registration(::rlx::ops::op_name, [] {                              \
    op_name##_Cases builder(::rlx::ops::op_name);                                                                      \
    builder.build();                                                                                                   \
    return std::move(builder.cases);                                                                                   \
  });                                                                                                                  \
  void op_name##_Cases::build()
