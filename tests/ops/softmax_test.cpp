#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(softmax) {
  add({Tensor::f32({2, 2}, {0, 0, std::log(1.0f), std::log(3.0f)})})
      .expect({Tensor::f32({2, 2}, {0.5, 0.5, 0.25, 0.75})});
  add({Tensor::f32({2, 2}, {0, std::log(1.0f), 0, std::log(3.0f)})}, {.axis = 0})
      .expect({Tensor::f32({2, 2}, {0.5, 0.25, 0.5, 0.75})});
  add({Tensor::f32({2}, {1000, 1000})}).expect({Tensor::f32({2}, {0.5, 0.5})});  // no overflow
  add({Tensor::f32({2}, {-INFINITY, -INFINITY})}).expect({Tensor::f32({2}, {NAN, NAN})});
  add({Tensor::f32({2}, {-INFINITY, 3})}).expect({Tensor::f32({2}, {0, 1})});
  add({Tensor::f32({3}, {NAN, 3, 1})}).expect({Tensor::f32({3}, {NAN, NAN, NAN})});
  add({Tensor::f32({3}, {INFINITY, 3, 1})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::isnan(out[0].at(0)));
  });
  // Softmax does not change when a number is added to a row, and rows sum to 1.
  for (const int64_t axis : {0, 1, 2, -1, -3})
    add({random({4, 5, 6}, DType::F64)}, {.axis = axis}).check([axis](const Tensors& in, const Tensors& out) {
      const Tensor shifted = run(ops::add, {in[0], Tensor::from_doubles(DType::F64, {}, std::vector<double>{3.5})})[0];
      EXPECT_TRUE(near(out[0], run(ops::softmax, {shifted}, {.axis = axis})[0], {.rel = 1e-12}));
      const int64_t a = normalize_axis(axis, 3), inner = a == 0 ? 30 : a == 1 ? 6 : 1, cols = in[0].sizes()[a];
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) sum += out[0].at(c * inner);
      EXPECT_NEAR(sum, 1, 1e-12);
    });
  for (const DType dtype : {DType::F16, DType::BF16}) add({random({3, 9}, dtype)});
  add({random({0, 4})}).expect({Tensor(DType::F32, {0, 4})});
  add({random({130, 0, 4})}, {.axis = 1}).expect({Tensor(DType::F32, {130, 0, 4})});
  add({random({7, 257})});
  // Rows and columns below, at and beyond a vector, a group of rows and a strip of columns.
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    for (const int64_t cols : {1, 7, 16, 33, 100, 2049, 5000}) add({random({cols < 200 ? 301 : 5, cols}, -9, 9, d)});
    add({random({3, 5, 300}, -9, 9, d)}, {.axis = 1});
    add({random({2, 300, 3}, -9, 9, d)}, {.axis = 1});
    add({random({70, 17}, -9, 9, d)}, {.axis = 0});
    // Columns that no workgroup of a GPU holds, read in ones and in fours.
    add({random({1101, 7}, -9, 9, d)}, {.axis = 0});
    add({random({2, 701, 36}, -9, 9, d)}, {.axis = 1});
  }
  std::vector<float> values(600, 2.0f);
  values[40] = NAN, values[100] = INFINITY, values[333] = -INFINITY;
  for (const int64_t axis : {0, 1}) add({Tensor::f32({12, 50}, values)}, {.axis = axis});
  for (const DType d : {DType::F16, DType::BF16}) add({Tensor::f32({6, 100}, values).cast(d)});
  std::vector<float> columns(5200, -3.0f);  // 1300 x 4: a NaN, an infinity, none, -inf alone
  columns[4 * 900] = NAN, columns[4 * 1299 + 1] = INFINITY, columns[4 * 17 + 2] = -INFINITY;
  for (size_t i = 3; i < columns.size(); i += 4) columns[i] = -INFINITY;
  add({Tensor::f32({1300, 4}, columns)}, {.axis = 0});
  add_error({random({2, 3})}, {.axis = 2}, "Axis (2) is out of range for rank (2)");
  add_error({random({2, 3}, DType::I32)}, {}, "not a float type");
}

}  // namespace rlx::test
