#include <cstring>

#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(gather_elements) {
  const Tensor x = Tensor::f32({2, 2}, {1, 2, 3, 4});
  add({x, Tensor::i64({2, 2}, {0, 0, 1, 0})}, {.axis = 1}).expect({Tensor::f32({2, 2}, {1, 1, 4, 3})}, kExact);
  add({x, Tensor::i32({1, 2}, {-1, -2})}).expect({Tensor::f32({1, 2}, {3, 2})}, kExact);
  // Other axes may be shorter than those of x.
  add({Tensor::i32({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), Tensor::i32({1, 2, 1}, {2, -3})}, {.axis = 1})
      .expect({Tensor::i32({1, 2, 1}, {5, 1})}, kExact);
  const FixtureFile file("onnx_move.npz");
  for (int i = 0; file.has(str("elements", i, "_x")); ++i) {
    const std::string name = str("elements", i, "_");
    add({file[name + "x"], file[name + "indices"]}, {.axis = file.integer(name + "axis")})
        .expect({file[name + "y"]}, kExact);
  }
  for (const DType d : all_dtypes())
    for (const int64_t axis : {0, 1, -1})
      add({random({4, 5, 6}, d), integers({3, 5, 4}, -4, 3)}, {.axis = axis})
          .check([axis](const Tensors& in, const Tensors& out) {
            const size_t size = size_of(in[0].dtype());
            for (int64_t i = 0; i < out[0].num_elements(); ++i) {
              std::vector<int64_t> at = {i / 20, i / 4 % 5, i % 4}, sizes = in[0].sizes();
              const auto a = static_cast<size_t>(normalize_axis(axis, 3));
              const auto index = static_cast<int64_t>(in[1].at(i));
              at[a] = index < 0 ? index + sizes[a] : index;
              const int64_t from = (at[0] * 5 + at[1]) * 6 + at[2];
              EXPECT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(i) * size,
                                    in[0].bytes().data() + static_cast<size_t>(from) * size, size),
                        0);
            }
          });
  for (const DType d : {DType::F32, DType::U8, DType::I64}) {
    add({random({200, 300}, d), integers({200, 150}, -300, 299, DType::I64)}, {.axis = 1});
    add({random({300, 200}, d), integers({150, 200}, -300, 299)}, {.axis = 0});
    add({random({20, 30, 40}, d), integers({17, 60, 39}, -30, 29)}, {.axis = 1});
    add({random({20, 30, 4, 5}, d), integers({20, 60, 3, 5}, -30, 29)}, {.axis = 1});
  }
  add({x, Tensor(DType::I32, {0, 2})}).expect({Tensor(DType::F32, {0, 2})}, kExact);
  add_error({x, Tensor::i32({1, 2}, {0, 2})}, {}, "Index (2) is out of range for size (2)");
  add_error({x, Tensor::i32({1, 2}, {-3, 5})}, {.axis = 1}, "Index (-3) is out of range for size (2)");
  {
    Tensor bad = integers({100'000, 2}, 0, 1);  // the first one is reported, whoever meets it
    for (const size_t at : {30'000u, 30'001u, 199'999u}) bad.mutable_values<int32_t>()[at] = static_cast<int32_t>(at);
    add_error({x, bad}, {}, "Index (30000) is out of range for size (2)");
  }
  add_error({x, Tensor::i32({2}, {0, 0})}, {}, "Indices rank (1) is not 2");
  add_error({x, Tensor::i32({1, 3}, {0, 0, 0})}, {}, "Indices shape ([1, 3]) is larger than [2, 2] along axis 1");
  add_error({x, x}, {}, "Indices dtype (f32) is not i32 or i64");
  add_error({x, Tensor::i32({1, 2}, {0, 0})}, {.axis = 2}, "Axis (2) is out of range");
}

OP_CASES(gather_nd) {
  const Tensor x = Tensor::i32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  add({x, Tensor::i64({2, 1}, {1, 0})}, {.batch_dims = 1}).expect({Tensor::i32({2, 2}, {2, 3, 4, 5})}, kExact);
  add({x, Tensor::i32({2, 2}, {0, -1, 1, 0})}).expect({Tensor::i32({2, 2}, {2, 3, 4, 5})}, kExact);
  add({x, Tensor::i32({3}, {1, 1, -2})}).expect({Tensor::i32({}, {6})}, kExact);
  add({x, Tensor(DType::I32, {1, 0})}).expect({x.reshaped({1, 2, 2, 2})}, kExact);
  const FixtureFile file("onnx_move.npz");
  for (int i = 0; file.has(str("nd", i, "_x")); ++i) {
    const std::string name = str("nd", i, "_");
    add({file[name + "x"], file[name + "indices"]}, {.batch_dims = file.integer(name + "batch_dims")})
        .expect({file[name + "y"]}, kExact);
  }
  for (const DType d : all_dtypes())
    add({random({6, 5, 7}, d), integers({30, 2}, -5, 4)}).check([](const Tensors& in, const Tensors& out) {
      const size_t bytes = 7 * size_of(in[0].dtype());
      ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{30, 7}));
      for (int64_t i = 0; i < 30; ++i) {
        const auto a = static_cast<int64_t>(in[1].at(2 * i)), b = static_cast<int64_t>(in[1].at(2 * i + 1));
        const int64_t from = (a < 0 ? a + 6 : a) * 5 + (b < 0 ? b + 5 : b);
        EXPECT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(i) * bytes,
                              in[0].bytes().data() + static_cast<size_t>(from) * bytes, bytes),
                  0);
      }
    });
  for (const DType d : {DType::F32, DType::F16, DType::C64}) {
    add({random({30, 40, 2}, d), integers({20'000, 3}, 0, 1)});
    add({random({3, 40, 50, 70}, d), integers({3, 90, 2}, -40, 39, DType::I64)}, {.batch_dims = 1});
  }
  add({random({50, 1024}), integers({4200, 1}, -50, 49)});  // streamed past the caches
  add({x, Tensor(DType::I32, {0, 2})}).expect({Tensor(DType::I32, {0, 2})}, kExact);
  add_error({x, Tensor::i32({1, 2}, {0, 2})}, {}, "Index (2) is out of range for size (2)");
  add_error({x, Tensor::i32({2, 2}, {0, 0, -3, 7})}, {}, "Index (-3) is out of range for size (2)");
  add_error({Tensor(DType::F32, {2, 0, 3}), Tensor::i32({1, 2}, {0, 0})}, {}, "Index (0) is out of range for size (0)");
  add_error({x, Tensor::i32({}, {0})}, {}, "Indices rank (0) is less than 1");
  add_error({x, Tensor::i32({1, 4}, {0, 0, 0, 0})}, {}, "Indices of (4) numbers are more than the 3 axes");
  add_error({x, Tensor::i32({3, 1}, {0, 0, 0})}, {.batch_dims = 1}, "Batch sizes of x and indices (2 and 3) differ");
  add_error({x, Tensor::i32({2, 1}, {0, 0})}, {.batch_dims = 2}, "batch_dims (2) is out of range for ranks (3, 2)");
}

TEST(GatherNdInfer, SymbolsMeet) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), 64, Dim::symbol(1)}, DType::F32});
  const Value ids = g.input("ids", {{Dim::symbol(0), Dim::symbol(16), 1}, DType::I64});
  EXPECT_EQ(ops::gather_nd(x, ids, {.batch_dims = 1}).shape(),
            (Shape{Dim::symbol(0), Dim::symbol(16), Dim::symbol(1)}));
  EXPECT_EQ(ops::gather_elements(x, ids, {.axis = 1}).shape(), ids.shape());
}

}  // namespace rlx::test
