#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(where) {
  const std::vector<uint8_t> flags = {1, 0, 7};
  const Tensor cond = Tensor::of<uint8_t>(DType::Bool, {3}, flags);
  // The side that is not taken never shows, NaN or not.
  add({cond, Tensor::f32({3}, {1, NAN, 3}), Tensor::f32({3}, {NAN, 5, INFINITY})})
      .expect({Tensor::f32({3}, {1, 5, 3})}, kExact);
  // Numeric conditions are tested != 0.
  add({Tensor::f32({5}, {0, -0.0f, 0.25f, NAN, -INFINITY}), Tensor::i32({}, {1}), Tensor::i32({}, {0})})
      .expect({Tensor::i32({5}, {0, 0, 1, 1, 1})}, kExact);
  add({Tensor::i64({3}, {int64_t{1} << 32, 0, -1}), Tensor::i32({}, {1}), Tensor::i32({}, {0})})
      .expect({Tensor::i32({3}, {1, 0, 1})}, kExact);
  using C = std::complex<float>;
  const C z[] = {{0, 0}, {0, 1}, {2, 0}};
  add({Tensor::of<C>(DType::C64, {3}, z), Tensor::i32({}, {1}), Tensor::i32({}, {0})})
      .expect({Tensor::i32({3}, {0, 1, 1})}, kExact);
  // All three broadcast, the condition too, and each may be the widest; bytes of every dtype are kept.
  for (const DType d : all_dtypes())
    add({random({2, 1, 1}, DType::Bool), random({3, 1}, d), random({1, 4}, d)})
        .check([d](const Tensors& in, const Tensors& out) {
          ASSERT_EQ(out[0].type(), (TensorType{{2, 3, 4}, d}));
          const auto size = static_cast<int64_t>(size_of(d));
          const auto element = [&](const Tensor& t, int64_t i) {
            const auto b = t.bytes().subspan(static_cast<size_t>(i * size), static_cast<size_t>(size));
            return std::vector<std::byte>(b.begin(), b.end());
          };
          for (int64_t i = 0; i < 2; ++i)
            for (int64_t j = 0; j < 3; ++j)
              for (int64_t k = 0; k < 4; ++k)
                EXPECT_EQ(element(out[0], (i * 3 + j) * 4 + k),
                          in[0].at(i) != 0 ? element(in[1], j) : element(in[2], k));
        });
  add({random({2, 3}, DType::Bool), Tensor::i64({}, {INT64_MIN}), Tensor::i64({1}, {INT64_MAX})})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 6; ++i)
          EXPECT_EQ(out[0].values<int64_t>()[static_cast<size_t>(i)], in[0].at(i) != 0 ? INT64_MIN : INT64_MAX);
      });
  add({random({0, 1}, DType::Bool), random({3}), random({1})}).expect({Tensor(DType::F32, {0, 3})});
  // Blocks, their tails and every kind of broadcast, with conditions and sides of all lanes.
  for (const DType d : {DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::Bool})
    for (const DType c : {DType::Bool, DType::F32, DType::I64}) {
      add({random({3, 701}, c), random({3, 701}, d), random({}, d)});
      add({random({130, 1}, c), random({9}, d), random({130, 9}, d)});
      add({random({1300}, c), random({2, 1300}, d), random({2, 1}, d)});
    }
  add_error({cond, random({3}), random({3}, DType::F16)}, {}, "Operand dtypes (f32, f16) differ");
  add_error({cond, random({2}), random({1})}, {}, "Sizes 3 and 2 do not broadcast");
}

}  // namespace rlx::test
