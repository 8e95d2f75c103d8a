// Every gradient against central differences of the forward op.
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// The gradients of `forward` (x, gamma, beta) that `out` holds, one operand at a time.
template <class A>
void expect_gradients(const Op<A>& forward, const A& attrs, const Tensors& operands, const Tensor& dy,
                      const Tensors& out) {
  ASSERT_EQ(out.size(), operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    EXPECT_TRUE(matches_finite_differences(
        [&](const Tensor& at) {
          Tensors in = operands;
          in[i] = at;
          return run(forward, in, attrs)[0];
        },
        operands[i], dy, out[i], 1e-7))
        << "gradient of operand " << i;
}

}  // namespace

// Rows below, at and beyond a vector and a block of rows.
template <class Builder>
static void of_many_rows(Builder& b, int params) {
  for (const int64_t cols : {1, 16, 63, 64, 65, 2049})
    for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
      const int64_t rows = cols < 200 ? 301 : 5;
      Tensors in{b.random({rows, cols}, d)};
      for (int i = 0; i < params; ++i) in.push_back(b.random({cols}, d));
      in.push_back(b.random({rows, cols}, d));
      b.add(in);
    }
}

OP_CASES(layer_norm_backward) {
  for (const int64_t axis : {-1, 1, 0}) {
    std::vector<int64_t> params{2, 3, 4};
    params.erase(params.begin(), params.begin() + normalize_axis(axis, 3));
    const ops::LayerNormAttrs attrs{.axis = axis, .eps = 0.1f};
    add({random({2, 3, 4}, DType::F64), random(params, DType::F64), random({2, 3, 4}, DType::F64)}, attrs)
        .check([attrs](const Tensors& in, const Tensors& out) {
          expect_gradients(ops::layer_norm, attrs, {in[0], in[1], Tensor(DType::F64, in[1].sizes())}, in[2], out);
        });
  }
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    add({random({3, 5}, d), random({5}, d), random({3, 5}, d)});
  // No rows: the sums over rows are 0, though dx is empty.
  add({random({0, 3}), random({3}), random({0, 3})})
      .expect({Tensor(DType::F32, {0, 3}), Tensor(DType::F32, {3}), Tensor(DType::F32, {3})}, kExact);
  of_many_rows(*this, 1);
  add_error({random({2, 3}), random({3}), random({3})}, {}, "Gradient shape ([3]) is not [2, 3]");
  add_error({random({2, 3}), random({2}), random({2, 3})}, {}, "Gamma shape ([2]) is not [3]");
}

OP_CASES(rms_norm_backward) {
  for (const int64_t axis : {-1, 1, 0}) {
    std::vector<int64_t> params{2, 3, 4};
    params.erase(params.begin(), params.begin() + normalize_axis(axis, 3));
    const ops::RmsNormAttrs attrs{.axis = axis, .eps = 0.1f};
    add({random({2, 3, 4}, DType::F64), random(params, DType::F64), random({2, 3, 4}, DType::F64)}, attrs)
        .check([attrs](const Tensors& in, const Tensors& out) {
          expect_gradients(ops::rms_norm, attrs, {in[0], in[1]}, in[2], out);
        });
    add({random({2, 3, 4}, DType::F64), random(params, DType::F64), random(params, DType::F64),
         random({2, 3, 4}, DType::F64)},
        attrs)
        .check([attrs](const Tensors& in, const Tensors& out) {
          expect_gradients(ops::rms_norm, attrs, {in[0], in[1], in[2]}, in[3], out);
        });
  }
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    add({random({3, 5}, d), random({5}, d), random({3, 5}, d)});
  add({random({0, 3}), random({3}), random({3}), random({0, 3})})
      .expect({Tensor(DType::F32, {0, 3}), Tensor(DType::F32, {3}), Tensor(DType::F32, {3})}, kExact);
  of_many_rows(*this, 1);
  of_many_rows(*this, 2);
  add_error({random({2, 3}), random({3}), random({3})}, {}, "Gradient shape ([3]) is not [2, 3]");
  add_error({random({2, 3}), random({3}), random({2}), random({2, 3})}, {}, "Beta shape ([2]) is not [3]");
}

OP_CASES(group_norm_backward) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 4}, {2, 4, 3}, {2, 4, 2, 2}})
    for (const int64_t groups : {1, 2}) {
      const ops::GroupNormAttrs attrs{.num_groups = groups, .eps = 0.1f};
      add({random(sizes, DType::F64), random({4}, DType::F64), random(sizes, DType::F64)}, attrs)
          .check([attrs](const Tensors& in, const Tensors& out) {
            expect_gradients(ops::group_norm, attrs, {in[0], in[1], Tensor(DType::F64, {4})}, in[2], out);
          });
    }
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    add({random({2, 4, 3}, d), random({4}, d), random({2, 4, 3}, d)}, {.num_groups = 2});
  add({random({2, 4, 0}), random({4}), random({2, 4, 0})}, {.num_groups = 2})
      .expect({Tensor(DType::F32, {2, 4, 0}), Tensor(DType::F32, {4}), Tensor(DType::F32, {4})}, kExact);
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 6, 50, 50}, {70, 6}, {2, 600}, {2, 6, 7, 5}})
      add({random(sizes, d), random({sizes[1]}, d), random(sizes, d)}, {.num_groups = 3});
  add_error({random({2, 4}), random({4}), random({4, 2})}, {}, "Gradient shape ([4, 2]) is not [2, 4]");
  add_error({random({2, 4}), random({4}), random({2, 4})}, {.num_groups = 3}, "does not divide the channels (4)");
}

}  // namespace rlx::test
