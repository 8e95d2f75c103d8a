// The cases of every op with NaN or an infinity somewhere in an operand: each device gives numbers where the oracle
// does, and none where it does not (spec 10, Q10).
#include <algorithm>
#include <cmath>

#include "device_cases.h"
#include "rlx/runtime.h"

namespace rlx::test {

namespace {

// Ops whose devices differ here, and may: zeros meet infinities in one order of computing and not in another.
const OpDef* const kDiffer[] = {
    &ops::attention_backward,              // a weight of zero leaves out what it would be multiplied by
    &ops::fft,                             // multiplies by 1 and i without their zero parts
    &ops::gaussian_splat_prepare,          // what is culled depends on comparisons with NaN
    &ops::gaussian_splat_render,           //
    &ops::gaussian_splat_render_backward,  //
    &ops::gru,                             // a gate that is almost closed in double is closed in f32
    &ops::lstm,                            //
    &ops::paged_kv_append,                 // codes of a block that has a NaN
    &ops::rnn,                             //
    &ops::while_,                          // a loop until a number is reached does not end (RLX_SEED=1001)
};
// Weights of these meet padding, which is zero, in kernels that are products of matrices.
const OpDef* const kPadded[] = {&ops::conv, &ops::conv2d_backward_input, &ops::conv2d_backward_weight,
                                &ops::conv_transpose, &ops::fused_conv_bias_act};

bool is_among(const OpDef& op, std::span<const OpDef* const> list) {
  return std::find(list.begin(), list.end(), &op) != list.end();
}

// `actual` with the oracle's value where neither is a number: sums of infinities depend on the order.
Tensor with_expected_non_numbers(const Tensor& actual, const Tensor& expected) {
  if (!is_float(actual.dtype()) || actual.type() != expected.type()) return actual;
  std::vector<double> a = actual.to_doubles();
  const std::vector<double> e = expected.to_doubles();
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::isfinite(a[i]) && !std::isfinite(e[i])) a[i] = e[i];
  return Tensor::from_doubles(actual.dtype(), actual.sizes(), a);
}

class NonFiniteTest : public testing::Test {
 public:
  explicit NonFiniteTest(const OpDef& op) : op_(op) {}

  void TestBody() override {
    const auto cases = small_cases(op_);
    const double share = share_on_gpu(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(str(op_.name, " case ", i));
      std::vector<size_t> floats;
      for (size_t k = 0; k < cases[i]->inputs.size(); ++k)
        if (const Tensor& t = cases[i]->inputs[k];
            is_float(t.dtype()) && t.num_elements() > 0 && !(k == 1 && is_among(op_, kPadded)))
          floats.push_back(k);
      if (floats.empty()) continue;
      const bool on_gpu = rng_.chance(share);
      with_one(*cases[i], floats[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(floats.size()) - 1))],
               on_gpu);
    }
  }

 private:
  void with_one(const OpCase& c, size_t operand, bool on_gpu) {
    constexpr double kValues[] = {NAN, INFINITY, -INFINITY};
    const double value = kValues[rng_.integer(0, 2)];
    Tensors inputs = c.inputs;
    Tensor& t = inputs[operand];
    const int64_t at = rng_.integer(0, t.num_elements() - 1);
    std::vector<double> elements = t.to_doubles();
    elements[static_cast<size_t>(at)] = value;
    t = Tensor::from_doubles(t.dtype(), t.sizes(), elements);
    std::string types;
    for (const Tensor& x : inputs) types += str(types.empty() ? "" : ", ", x.type());
    SCOPED_TRACE(str("(", types, "), element ", at, " of operand ", operand, " is ", value));
    Tensors expected;
    try {
      expected = run_op(*c.op, inputs, c.attrs);
    } catch (const Error&) {
      return;
    }
    for (const char* device : {"cpu", "webgpu"}) {
      const CompileOptions options{.device = device, .threads = 2};
      if (options.device == "webgpu" && !on_gpu) continue;
      SCOPED_TRACE(device);
      try {
        const Tensors actual = run_op_on(options, *c.op, inputs, c.attrs, 0);
        constexpr double kLooser = 2;  // the largest element may be no number now
        for (size_t r = 0; r < actual.size(); ++r)
          EXPECT_TRUE(
              near_on(device, c, inputs, with_expected_non_numbers(actual[r], expected[r]), expected[r], kLooser))
              << "result " << r;
      } catch (const Error& e) {
        EXPECT_TRUE(is_refused_by_gpu(options, e)) << e.what();
      }
    }
  }

  const OpDef& op_;
  Rng rng_{first_seed()};  // RLX_SEED=N: other choices
};

}  // namespace

bool has_same_numbers(const OpDef& op) { return !is_among(op, kDiffer); }

testing::Test* make_non_finite_test(const OpDef& op) { return new NonFiniteTest(op); }

}  // namespace rlx::test
