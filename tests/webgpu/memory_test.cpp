// The planned memory of the device (spec 40, 2; 20, 2).
#include <numeric>

#include "as_oracle.h"
#include "support/expect_error.h"

namespace rlx::test {

using MemoryOnWebGpu = WebGpu;

TEST_F(MemoryOnWebGpu, DeadValuesLeaveTheirBytes) {
  Maker m;
  Value x = m.in({64, 64});
  for (int i = 0; i < 6; ++i) x = ops::softmax(ops::transpose(x, {.perm = {1, 0}}));
  m.out(x);
  const PlanInfo plan = compile(m.g, webgpu_options()).plan();
  EXPECT_GE(plan.unshared_bytes, 6 * 64 * 64 * 4);
  EXPECT_LE(plan.arena_bytes, 2 * 64 * 64 * 4);
  expect_as_oracle(m.g, {.tolerance = kTranscendental});
}

// Not the padded ones: what is read back has as many elements as the tensor.
TEST_F(MemoryOnWebGpu, LengthsAreTheTensorsOwn) {
  for (const DType d :
       {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::I8, DType::U16, DType::Bool}) {
    SCOPED_TRACE(str(d));
    for (const int64_t n : {1, 3, 5, 7}) {
      Maker m;
      const Value x = m.in({n}, d);
      m.out(ops::concat(x, x, {.axis = 0}));
      m.out(x);
      AsOracle how{.tolerance = kExact};
      how.options.poison = false;  // its readback counts
      RunStats stats;
      const NamedTensors y = expect_as_oracle(m.g, how, &stats);
      EXPECT_EQ(y.at("y0").num_elements(), 2 * n);
    }
  }
}

TEST_F(MemoryOnWebGpu, APlanMayBeEmpty) {
  Maker m;
  const Value x = m.in({3}), none = m.in({0, 4});
  m.out(x);
  m.out(none);
  m.out(ops::reshape(ops::tanh(none), {.new_shape = {4, 0}}));
  m.out(m.weight({2}));
  m.out(m.g.constant(Tensor::f32({2}, {5, 6})));
  EXPECT_EQ(compile(m.g, webgpu_options()).plan().arena_bytes, 0);
  expect_as_oracle(m.g, {.tolerance = kExact});
}

// Spec 20, 2.2: no step, no bytes; 10, 1.4: nor for a cast that keeps every value and its storage.
TEST_F(MemoryOnWebGpu, ViewsAreNoSteps) {
  Maker m;
  const Value x = ops::tanh(m.in({6, 4}));
  const Value rows = ops::narrow(x, {.axis = 0, .start = 2, .len = 3});
  m.out(ops::softmax(ops::reshape(rows, {.new_shape = {4, 3}})));
  const Value same = ops::cast(x, {.to = DType::F32});
  m.out(ops::softmax(ops::reshape(same, {.new_shape = {2, 12}})));
  const PlanInfo plan = compile(m.g, webgpu_options()).plan();
  std::vector<std::string> names;
  for (const StepInfo& s : plan.steps) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"unary", "softmax", "softmax"}));
  EXPECT_GE(plan.views, 3);
  expect_as_oracle(m.g, {.tolerance = kTranscendental});
}

// Two sorts one after the other need the bytes of one; and a tiny graph reserves nothing (20, appendix A: D30).
TEST_F(MemoryOnWebGpu, ScratchLivesForOneNode) {
  const auto arena = [](int sorts) {
    Maker m;
    const Value index = m.in({2000}, DType::I32);
    Value x = m.in({2000, 2});
    for (int i = 0; i < sorts; ++i) x = ops::scatter_add(ops::tanh(x), index, {.rows = 2000});
    m.out(x);
    return compile(m.g, webgpu_options()).plan().arena_bytes;
  };
  EXPECT_GT(arena(1), 2000 * 8);
  EXPECT_LE(arena(3), arena(1) + 2 * 2000 * 8);  // values between them, no second scratch
  Maker tiny;
  tiny.out(ops::softmax(ops::tanh(tiny.in({4, 8}))));
  EXPECT_LT(compile(tiny.g, webgpu_options()).plan().arena_bytes, 1024);
}

TEST_F(MemoryOnWebGpu, PackedWeightsAreSetAndReadAsBytes) {
  const int64_t k = 32, n = 2, bytes = weight_bytes(Scheme::kGgufQ8_0, k, n);
  Maker m;
  const Value w = m.weight({bytes}, DType::U8);
  m.out(ops::dequant_matmul(m.in({1, k}), w, {.scheme = Scheme::kGgufQ8_0}));
  m.out(w);
  Tensor packed(DType::U8, {bytes});
  auto values = packed.mutable_values<uint8_t>();
  std::iota(values.begin(), values.end(), uint8_t{0});
  for (size_t i = 0; i < values.size(); i += 34) values[i] = 0, values[i + 1] = 0x3c;  // the scale of a block: 1
  Executable exe = compile(m.g, webgpu_options()), same = compile(m.g, webgpu_options());
  exe.set_param_bytes("w0", packed.bytes());
  same.set_param("w0", packed);
  Rng rng(1);
  const NamedTensors inputs = {{"x1", rng.tensor({1, k})}};
  const NamedTensors y = exe.run(inputs);
  EXPECT_EQ(y.at("y1"), packed);
  EXPECT_EQ(y.at("y0"), same.run(inputs).at("y0"));
  EXPECT_EQ(exe.stats().device.host_steps, 0);
  EXPECT_THROW(exe.set_param_bytes("w0", packed.bytes().first(3)), Error);
}

}  // namespace rlx::test
