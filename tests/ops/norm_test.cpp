#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

// One element of a norm from its definition; `part` lists the elements that are normalised together.
double normalised(const Tensor& x, const std::vector<int64_t>& part, int64_t at, double eps, bool centred) {
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(part.size());
  for (const int64_t i : part) sum += x.at(i);
  const double mean = centred ? sum / n : 0;
  for (const int64_t i : part) squares += (x.at(i) - mean) * (x.at(i) - mean);
  return (x.at(at) - mean) / std::sqrt(squares / n + eps);
}

constexpr double kEps = 0.01f;  // as the attribute rounds it

// Rows below, at and beyond a vector and a group of rows; an offset that a single f32 mean would not survive.
template <class Builder>
void of_many_rows(Builder& b, int params) {
  const auto add = [&](Tensor x) {
    const int64_t cols = x.sizes()[1];
    const DType d = x.dtype();
    Tensors in{std::move(x)};
    for (int i = 0; i < params; ++i) in.push_back(b.random({cols}, d));
    b.add(in);
  };
  for (const int64_t cols : {1, 7, 16, 33, 100, 1024, 2049, 5000})
    for (const DType d : {DType::F32, DType::F16, DType::BF16}) add(b.random({cols < 200 ? 301 : 5, cols}, d));
  add(b.random({9, 700}, 10000, 10004));
  add(b.random({9, 700}, -1e30, 1e30));
  std::vector<float> values(600, 2.0f);
  values[40] = NAN, values[100] = INFINITY, values[333] = -INFINITY, values[334] = 1.0f;
  add(Tensor::f32({12, 50}, values));
  for (const DType d : {DType::F16, DType::BF16}) add(Tensor::f32({6, 100}, values).cast(d));
}

}  // namespace

OP_CASES(layer_norm) {
  // Rows -1 1 and 3 5: mean 0 and 4, variance 1.
  add({Tensor::f32({2, 2}, {-1, 1, 3, 5}), Tensor::f32({2}, {2, 3}), Tensor::f32({2}, {0, 1})}, {.eps = 0})
      .expect({Tensor::f32({2, 2}, {-2, 4, -2, 4})}, kRounding);
  add({Tensor::f32({1, 2}, {-1, 1}), Tensor::f32({2}, {1, 1}), Tensor::f32({2}, {0, 0})}, {.eps = 3})
      .expect({Tensor::f32({1, 2}, {-0.5, 0.5})}, kRounding);  // eps inside the root
  for (const int64_t axis : {-1, 2, 1, 0, -3}) {
    std::vector<int64_t> params{3, 4, 5};
    params.erase(params.begin(), params.begin() + normalize_axis(axis, 3));
    add({random({3, 4, 5}), random(params), random(params)}, {.axis = axis, .eps = 0.01f})
        .check([](const Tensors& in, const Tensors& out) {
          const int64_t count = in[1].num_elements();
          for (int64_t i = 0; i < 60; ++i) {
            std::vector<int64_t> part;
            for (int64_t j = 0; j < count; ++j) part.push_back(i / count * count + j);
            EXPECT_NEAR(out[0].at(i),
                        normalised(in[0], part, i, kEps, true) * in[1].at(i % count) + in[2].at(i % count), 1e-5);
          }
        });
  }
  // A large common offset does not cost precision.
  add({Tensor::f32({1, 4}, {10000, 10001, 10002, 10003}), Tensor::f32({4}, {1, 1, 1, 1}),
       Tensor::f32({4}, {0, 0, 0, 0})},
      {.eps = 0})
      .expect(
          {Tensor::f32({1, 4}, {-1.3416407864998738f, -0.4472135954999579f, 0.4472135954999579f, 1.3416407864998738f})},
          kRounding);
  add({Tensor::f32({2, 2}, {1, NAN, 1, 1}), Tensor::f32({2}, {1, 1}), Tensor::f32({2}, {0, 7})})
      .expect({Tensor::f32({2, 2}, {NAN, NAN, 0, 7})}, kRounding);
  for (const DType d : {DType::F16, DType::BF16, DType::F64}) add({random({3, 9}, d), random({9}, d), random({9}, d)});
  add({random({0, 4}), random({4}), random({4})}).expect({Tensor(DType::F32, {0, 4})});
  add({random({4, 0}), random({0}), random({0})}).expect({Tensor(DType::F32, {4, 0})});
  of_many_rows(*this, 2);
  add_error({random({2, 3}), random({2}), random({3})}, {}, "Gamma shape ([2]) is not [3]");
  add_error({random({2, 3}), random({3}), random({2, 3})}, {}, "Beta shape ([2, 3]) is not [3]");
  add_error({random({2, 3}), random({3}), random({3})}, {.axis = 2}, "Axis (2) is out of range");
  add_error({random({2, 3}), random({3}, DType::F16), random({3})}, {}, "Operand dtypes (f32, f16) differ");
  add_error({random({2}, DType::I32), random({2}, DType::I32), random({2}, DType::I32)}, {}, "is not a float type");
  add_error({random({2, 3}), random({3}), random({3})}, {.eps = -1}, "Eps (-1) is negative");
}

OP_CASES(rms_norm) {
  add({Tensor::f32({1, 2}, {3, 4}), Tensor::f32({2}, {1, 2})}, {.eps = 0})
      .expect({Tensor::f32({1, 2}, {0.848528137f, 2.262741700f})}, kRounding);  // sqrt(12.5) = 3.5355
  add({Tensor::f32({1, 2}, {3, 4}), Tensor::f32({2}, {1, 2}), Tensor::f32({2}, {1, -1})}, {.eps = 0})
      .expect({Tensor::f32({1, 2}, {1.848528137f, 1.262741700f})}, kRounding);
  for (const int64_t axis : {-1, 1, 0}) {
    std::vector<int64_t> params{3, 4, 5};
    params.erase(params.begin(), params.begin() + normalize_axis(axis, 3));
    add({random({3, 4, 5}), random(params), random(params)}, {.axis = axis, .eps = 0.01f})
        .check([](const Tensors& in, const Tensors& out) {
          const int64_t count = in[1].num_elements();
          for (int64_t i = 0; i < 60; ++i) {
            std::vector<int64_t> part;
            for (int64_t j = 0; j < count; ++j) part.push_back(i / count * count + j);
            EXPECT_NEAR(out[0].at(i),
                        normalised(in[0], part, i, kEps, false) * in[1].at(i % count) + in[2].at(i % count), 1e-5);
          }
        });
  }
  add({Tensor::f32({2, 2}, {1, NAN, 1, 1}), Tensor::f32({2}, {1, 1})}, {.eps = 0})
      .expect({Tensor::f32({2, 2}, {NAN, NAN, 1, 1})}, kRounding);
  for (const DType d : {DType::F16, DType::BF16, DType::F64}) add({random({3, 9}, d), random({9}, d)});
  add({random({0, 4}), random({4})}).expect({Tensor(DType::F32, {0, 4})});
  of_many_rows(*this, 1);
  of_many_rows(*this, 2);
  add_error({random({2, 3}), random({4})}, {}, "Gamma shape ([4]) is not [3]");
  add_error({random({2, 3}), random({3}), random({4})}, {}, "Beta shape ([4]) is not [3]");
  add_error({random({2, 3}), random({3})}, {.eps = NAN}, "Eps (");
}

OP_CASES(layer_norm2d) {
  // It is layer_norm of the channels moved to the end.
  for (const DType d : {DType::F32, DType::F64})
    add({random({2, 5, 3, 4}, d), random({5}, d), random({5}, d)}, {.eps = 0.01f})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor last = run(ops::transpose, {in[0]}, {.perm = {0, 2, 3, 1}})[0];
          const Tensor y = run(ops::layer_norm, {last, in[1], in[2]}, {.eps = 0.01f})[0];
          EXPECT_EQ(out[0], run(ops::transpose, {y}, {.perm = {0, 3, 1, 2}})[0]);
        });
  add({Tensor::f32({1, 2, 1, 2}, {-1, 3, 1, 5}), Tensor::f32({2}, {1, 2}), Tensor::f32({2}, {0, 1})}, {.eps = 0})
      .expect({Tensor::f32({1, 2, 1, 2}, {-1, -1, 3, 3})}, kRounding);
  add({random({2, 5, 0, 4}), random({5}), random({5})}).expect({Tensor(DType::F32, {2, 5, 0, 4})});
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 17, 19}, {1, 70, 5, 3}, {3, 9, 1, 1}})
      add({random(sizes, d), random({sizes[1]}, d), random({sizes[1]}, d)});
  add({random({1, 6, 20, 20}, 10000, 10004), random({6}), random({6})});
  add_error({random({2, 5}), random({5}), random({5})}, {}, "Operand rank (2) is not 4");
  add_error({random({1, 2, 3, 4}), random({4}), random({2})}, {}, "Gamma shape ([4]) is not [2]");
  add_error({random({1, 2, 3, 4}), random({2}), random({4})}, {}, "Beta shape ([4]) is not [2]");
}

OP_CASES(group_norm) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 6}, {2, 6, 5}, {2, 6, 3, 2}, {2, 6, 2, 1, 3}})
    for (const int64_t groups : {1, 2, 3, 6})
      add({random(sizes), random({6}), random({6})}, {.num_groups = groups, .eps = 0.01f})
          .check([groups](const Tensors& in, const Tensors& out) {
            const int64_t spatial = in[0].num_elements() / 12, each = 6 / groups;
            for (int64_t i = 0; i < in[0].num_elements(); ++i) {
              const int64_t batch = i / (6 * spatial), c = i / spatial % 6;
              std::vector<int64_t> part;
              for (int64_t other = c / each * each; other < c / each * each + each; ++other)
                for (int64_t s = 0; s < spatial; ++s) part.push_back((batch * 6 + other) * spatial + s);
              EXPECT_NEAR(out[0].at(i), normalised(in[0], part, i, kEps, true) * in[1].at(c) + in[2].at(c), 1e-5);
            }
          });
  for (const DType d : {DType::F16, DType::BF16, DType::F64})
    add({random({2, 4, 3}, d), random({4}, d), random({4}, d)}, {.num_groups = 2});
  add({random({2, 4, 0}), random({4}), random({4})}, {.num_groups = 2}).expect({Tensor(DType::F32, {2, 4, 0})});
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 6, 50, 50}, {70, 6}, {2, 600}, {2, 6, 7, 5}})
      add({random(sizes, d), random({sizes[1]}, d), random({sizes[1]}, d)}, {.num_groups = 3});
  add({random({2, 6, 300}, 1000, 1004), random({6}), random({6})}, {.num_groups = 2});
  add_error({random({2, 6}), random({6}), random({6})}, {.num_groups = 4},
            "Number of groups (4) does not divide the channels (6)");
  add_error({random({2, 6}), random({6}), random({6})}, {.num_groups = 0}, "Number of groups (0) does not divide");
  add_error({random({6}), random({6}), random({6})}, {}, "Operand rank (1) is less than 2");
  add_error({random({2, 6}), random({3}), random({6})}, {}, "Gamma shape ([3]) is not [6]");
}

}  // namespace rlx::test
