#include <cstring>

#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(slice) {
  const Tensor x = Tensor::i32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  add({x}, {.start = {0, 1}, .step = {1, 2}, .len = {2, 2}}).expect({Tensor::i32({2, 2}, {2, 4, 6, 8})}, kExact);
  add({x}, {.start = {1, 3}, .step = {-1, -3}, .len = {2, 2}}).expect({Tensor::i32({2, 2}, {8, 5, 4, 1})}, kExact);
  add({x}, {.start = {0, 0}, .step = {1, 1}, .len = {2, 4}}).expect({x}, kExact);
  add({x}, {.start = {1, 2}, .step = {5, 1}, .len = {1, 2}}).expect({Tensor::i32({1, 2}, {7, 8})}, kExact);
  add({x}, {.start = {0, 9}, .step = {1, -1}, .len = {2, 0}}).expect({Tensor(DType::I32, {2, 0})}, kExact);
  add({Tensor::f32({}, {5})}).expect({Tensor::f32({}, {5})}, kExact);
  // Element by element.
  for (const DType d : all_dtypes())
    add({random({5, 6, 7}, d)}, {.start = {4, 1, 6}, .step = {-2, 1, -3}, .len = {3, 4, 3}})
        .check([](const Tensors& in, const Tensors& out) {
          const size_t size = size_of(in[0].dtype());
          for (int64_t a = 0; a < 3; ++a)
            for (int64_t b = 0; b < 4; ++b)
              for (int64_t c = 0; c < 3; ++c) {
                const int64_t from = ((4 - 2 * a) * 6 + 1 + b) * 7 + 6 - 3 * c, to = (a * 4 + b) * 3 + c;
                EXPECT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(to) * size,
                                      in[0].bytes().data() + static_cast<size_t>(from) * size, size),
                          0);
              }
        });
  // Backwards twice is x.
  for (const DType d : {DType::F32, DType::F16, DType::I8})
    add({random({70, 90}, d)}, {.start = {69, 89}, .step = {-1, -1}, .len = {70, 90}})
        .check([](const Tensors& in, const Tensors& out) {
          EXPECT_EQ(run(ops::slice, {out[0]}, {.start = {69, 89}, .step = {-1, -1}, .len = {70, 90}})[0], in[0]);
        });
  for (const DType d : {DType::F32, DType::F64, DType::U8}) {
    add({random({300, 400}, d)}, {.start = {1, 0}, .step = {2, 2}, .len = {149, 200}});
    add({random({3, 200, 200}, d)}, {.start = {0, 199, 3}, .step = {1, -2, 1}, .len = {3, 100, 190}});
  }
  add({random({2, 3, 1000, 1100})}, {.start = {0, 2, 0, 50}, .step = {1, -1, 1, 1}, .len = {2, 3, 1000, 1000}});
  add({random({16'800'000}, DType::F16)}, {.start = {16'799'999}, .step = {-1}, .len = {16'800'000}});
  // What lies together in x is a view of it.
  add({random({1, 3, 4, 5})}, {.start = {0, 2, 1, 0}, .step = {1, 7, 1, 1}, .len = {1, 1, 2, 5}})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(out[0].at(i), in[0].at(45 + i));
      });

  add_error({x}, {.start = {0}, .step = {1}, .len = {2}}, "do not have one entry for each of the 2 axes");
  add_error({x}, {.start = {0, 0}, .step = {1, 0}, .len = {2, 1}}, "Step of axis 1 is 0");
  add_error({x}, {.start = {0, 0}, .step = {1, 1}, .len = {2, -1}}, "Length (-1) of axis 1 is negative");
  add_error({x}, {.start = {0, 1}, .step = {1, 2}, .len = {2, 3}}, "Elements 1 to 5 of axis 1 are not all there");
  add_error({x}, {.start = {0, 1}, .step = {1, -1}, .len = {2, 3}}, "Elements 1 to -1 of axis 1 are not all there");
  add_error({x}, {.start = {-1, 0}, .step = {1, 1}, .len = {1, 4}}, "Elements -1 to -1 of axis 0");
}

TEST(Slice, StartsAndLengthsMayBeSymbols) {
  Graph g;
  const Dim n = Dim::symbol(0);
  const Value x = g.input("x", {{n, 3}, DType::F32});
  const Value back = ops::slice(x, {.start = {Dim::symbol(0, 1, -1), 0}, .step = {-1, 1}, .len = {n, 3}});
  EXPECT_EQ(back.shape(), x.shape());
  g.output(back, "y");
  for (const char* device : {"reference", "cpu"}) {
    Executable exe = compile(g, {.device = device});
    for (const int64_t rows : {2, 1, 5}) {
      const Tensor in = Rng(1).tensor({rows, 3});
      const Tensor out = exe.run({{"x", in}}).at("y");
      ASSERT_EQ(out.sizes(), in.sizes());
      for (int64_t i = 0; i < rows * 3; ++i) EXPECT_EQ(out.at(i), in.at((rows - 1 - i / 3) * 3 + i % 3));
    }
  }
}

TEST(Slice, OfPartsThatLieTogetherIsAView) {
  Graph g;
  const Value x = g.input("x", {{4, 6}, DType::F32});
  const Value y = ops::relu(x);
  g.output(ops::neg(ops::slice(y, {.start = {1, 0}, .step = {1, 1}, .len = {2, 6}})), "rows");
  g.output(ops::neg(ops::slice(y, {.start = {1, 2}, .step = {1, 1}, .len = {2, 3}})), "box");
  Executable exe = compile(g, {.device = "reference"});
  exe.run({{"x", Rng(1).tensor({4, 6})}});
  EXPECT_EQ(exe.plan().views, 1);
}

}  // namespace rlx::test
