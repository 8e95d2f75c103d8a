#include <cstring>

#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

using ops::PadMode;

OP_CASES(pad) {
  const Tensor row = Tensor::i32({4}, {1, 2, 3, 4}), nine = Tensor::i32({}, {9});
  add({row, nine}, {.before = {1}, .after = {2}}).expect({Tensor::i32({7}, {9, 1, 2, 3, 4, 9, 9})}, kExact);
  add({row}, {.before = {0}, .after = {1}}).expect({Tensor::i32({5}, {1, 2, 3, 4, 0})}, kExact);
  add({row, nine.reshaped({1, 1})}, {.before = {-1}, .after = {1}}).expect({Tensor::i32({4}, {2, 3, 4, 9})}, kExact);
  add({row}, {.before = {-1}, .after = {-3}}).expect({Tensor(DType::I32, {0})}, kExact);
  add({row}, {.mode = PadMode::kReflect, .before = {2}, .after = {3}})
      .expect({Tensor::i32({9}, {3, 2, 1, 2, 3, 4, 3, 2, 1})}, kExact);
  add({row}, {.mode = PadMode::kEdge, .before = {2}, .after = {1}})
      .expect({Tensor::i32({7}, {1, 1, 1, 2, 3, 4, 4})}, kExact);
  add({row}, {.mode = PadMode::kWrap, .before = {1}, .after = {5}})
      .expect({Tensor::i32({10}, {4, 1, 2, 3, 4, 1, 2, 3, 4, 1})}, kExact);
  // What is removed is gone before the rest is padded.
  add({row}, {.mode = PadMode::kReflect, .before = {-2}, .after = {3}})
      .expect({Tensor::i32({5}, {3, 4, 3, 4, 3})}, kExact);
  add({row}, {.mode = PadMode::kEdge, .before = {2}, .after = {-1}})
      .expect({Tensor::i32({5}, {1, 1, 1, 2, 3})}, kExact);
  add({row}, {.mode = PadMode::kWrap, .before = {3}, .after = {-2}})
      .expect({Tensor::i32({5}, {2, 1, 2, 1, 2})}, kExact);
  add({Tensor(DType::I32, {0, 2}), nine}, {.before = {1, 0}, .after = {0, 1}})
      .expect({Tensor::i32({1, 3}, {9, 9, 9})}, kExact);
  add({Tensor::f32({}, {5})}).expect({Tensor::f32({}, {5})}, kExact);

  const FixtureFile file("onnx_move.npz");
  for (int i = 0; file.has(str("pad", i, "_x")); ++i) {
    const Tensor& x = file[str("pad", i, "_x")];
    const std::vector<int64_t> width = file.ints(str("pad", i, "_width"));
    const auto middle = width.begin() + x.rank();
    for (int32_t m = 0; m < 4; ++m) {
      const auto mode = static_cast<PadMode>(m);
      const Tensor seven = Tensor::from_doubles(x.dtype(), {}, std::vector<double>{7});
      add(mode == PadMode::kConstant ? Tensors{x, seven} : Tensors{x},
          {.mode = mode, .before = {width.begin(), middle}, .after = {middle, width.end()}})
          .expect({file[str("pad", i, "_", name_of(mode))]}, kExact);
    }
  }

  // Every dtype: x is in the middle, the value's bytes are all around it.
  for (const DType d : all_dtypes())
    add({random({3, 2, 5}, d), random({1}, d)}, {.before = {1, 0, 2}, .after = {0, 3, 1}})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor middle = run(ops::slice, {out[0]}, {.start = {1, 0, 2}, .step = {1, 1, 1}, .len = {3, 2, 5}})[0];
          EXPECT_EQ(middle, in[0]);
          const size_t size = size_of(in[0].dtype());
          int64_t values = 0;
          for (int64_t i = 0; i < out[0].num_elements(); ++i) {
            const int64_t c = i % 8, b = i / 8 % 5, a = i / 40;
            if (a >= 1 && b < 2 && c >= 2 && c < 7) continue;
            ++values;
            EXPECT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(i) * size, in[1].bytes().data(), size),
                      0);
          }
          EXPECT_EQ(values, 4 * 5 * 8 - 3 * 2 * 5);
        });
  for (const DType d : all_dtypes())
    for (const PadMode mode : {PadMode::kReflect, PadMode::kEdge, PadMode::kWrap})
      add({random({4, 3, 2}, d)}, {.mode = mode, .before = {1, 2, 0}, .after = {0, 1, 0}});
  for (const DType d :
       {DType::F16, DType::F32, DType::C64, DType::I64})  // all made of fours: several are moved at once
    for (const bool has_value : {false, true}) {
      Tensors in = {random({3, 5, 8}, d)};
      if (has_value) in.push_back(random({}, d));
      add(in, {.before = {1, 0, 4}, .after = {0, 2, 8}});
      add(std::move(in), {.before = {0, -1, -4}, .after = {2, 1, 4}});
    }
  // Long runs behind the padded axis, long rows that are cut, results past the caches.
  add({random({3, 40, 70})}, {.before = {0, 2, 0}, .after = {0, 1, 0}});
  add({random({50'000}, DType::F64)}, {.before = {30'001}, .after = {9}});
  add({random({2, 70'000})}, {.mode = PadMode::kReflect, .before = {1, 20'000}, .after = {0, 40'001}});
  add({random({2, 3, 1100, 700})}, {.before = {0, 0, 1, 3}, .after = {0, 0, 1, 2}});
  add({random({1, 3, 40, 30})}, {.mode = PadMode::kEdge, .before = {0, 0, -1, 3}, .after = {0, 0, 1, -2}});

  add_error({row}, {.before = {1}}, "do not have one entry for each of the 1 axes");
  add_error({row, Tensor::f32({}, {1})}, {.before = {1}, .after = {0}}, "dtypes (i32, f32) differ");
  add_error({row, Tensor::i32({2}, {1, 1})}, {.before = {1}, .after = {0}}, "Value shape ([2]) does not have one");
  add_error({row, nine}, {.mode = PadMode::kEdge, .before = {1}, .after = {0}}, "mode (edge) uses none");
  add_error({row}, {.before = {-3}, .after = {-2}}, "Axis 0 of size (4) has fewer elements than are removed (5)");
  add_error({row}, {.mode = PadMode::kWrap, .before = {-4}, .after = {1}}, "Axis 0 has no elements to pad with");
}

TEST(PadInfer, SymbolsGrow) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), Dim::symbol(1), 4}, DType::F32});
  EXPECT_EQ(ops::pad(x, {.before = {0, 2, -1}, .after = {0, 3, 0}}).shape(),
            (Shape{Dim::symbol(0), Dim::symbol(1, 1, 5), 3}));
}

}  // namespace rlx::test
