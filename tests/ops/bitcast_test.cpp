#include <cmath>
#include <cstring>

#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(bitcast) {
  add({Tensor::f32({4}, {1, -0.0f, INFINITY, 0})}, {.to = DType::I32})
      .expect({Tensor::i32({4}, {0x3F80'0000, INT32_MIN, 0x7F80'0000, 0})}, kExact);
  const std::vector<uint32_t> words = {0x4049'0FDB, 0x7FC0'0001};
  add({Tensor::of<uint32_t>(DType::U32, {2}, words)}).check([](const Tensors&, const Tensors& out) {
    EXPECT_EQ(out[0].at(0), static_cast<double>(3.14159274f));
    EXPECT_TRUE(std::isnan(out[0].at(1)));
  });
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) {
      if (size_of(from) != size_of(to)) {
        add_error({random({2}, from)}, {.to = to}, "differ in size");
        continue;
      }
      add({random({3, 1, 5}, from)}, {.to = to}).check([to](const Tensors& in, const Tensors& out) {
        ASSERT_EQ(out[0].type(), (TensorType{{3, 1, 5}, to}));
        EXPECT_EQ(std::memcmp(out[0].bytes().data(), in[0].bytes().data(), in[0].bytes().size()), 0);
        EXPECT_EQ(run(ops::bitcast, {out[0]}, {.to = in[0].dtype()})[0], in[0]);
      });
    }
  add({random({0, 3})}, {.to = DType::I32}).expect({Tensor(DType::I32, {0, 3})});
}

// It is a view: the result has its operand's bytes, and what writes in place must not destroy what others read.
TEST(Bitcast, SharesItsOperandsBytes) {
  Graph g("bits");
  const Value x = g.input("x", {{5}, DType::F32});
  const Value y = ops::relu(x);
  const Value bits = ops::bitcast(y, {.to = DType::I32});
  g.output(ops::add(bits, g.constant(Tensor::i32({}, {1}))), "next");
  g.output(ops::neg(y), "minus");
  Executable exe = compile(std::move(g));
  const NamedTensors out = exe.run({{"x", Tensor::f32({5}, {-1, 0, 1, 2, 3})}});
  EXPECT_EQ(out.at("next"), Tensor::i32({5}, {1, 1, 0x3F80'0001, 0x4000'0001, 0x4040'0001}));
  EXPECT_EQ(out.at("minus").to_doubles(), (std::vector<double>{0, 0, -1, -2, -3}));
}

}  // namespace rlx::test
