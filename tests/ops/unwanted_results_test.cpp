// A kernel computes the results that somebody uses and touches no others; faults of the data are runtime errors.
#include <gtest/gtest.h>

#include "backends/reference/table.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

host::View view_of(const Tensor& t) { return {t.dtype(), t.sizes(), const_cast<std::byte*>(t.bytes().data())}; }

struct NoParams : host::ParamSource {
  const Tensor* find_param(std::string_view) const override { return nullptr; }
};

// Each result alone is what it is when all are computed.
template <class A>
void expect_each_alone(const Op<A>& op, const Tensors& inputs, A attrs) {
  const Tensors all = run(op, inputs, attrs);
  std::vector<host::View> in;
  for (const Tensor& t : inputs) in.push_back(view_of(t));
  const Attrs boxed(attrs);
  for (size_t wanted = 0; wanted < all.size(); ++wanted) {
    const Tensor result(all[wanted].dtype(), all[wanted].sizes());
    std::vector<host::View> out;
    for (size_t r = 0; r < all.size(); ++r) out.push_back(view_of(r == wanted ? result : all[r]));
    for (size_t r = 0; r < all.size(); ++r)
      if (r != wanted) out[r].data = nullptr;
    reference::find_kernel(op)(host::Call(boxed, in, out, NoParams()));
    EXPECT_EQ(result, all[wanted]) << op.name << " result " << wanted;
  }
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no Error";
  return ErrorKind::kInternal;
}

}  // namespace

TEST(UnwantedResults, AreNotComputed) {
  Rng rng(1);
  const Tensor x = rng.tensor({3, 4}), gamma = rng.tensor({4}), dy = rng.tensor({3, 4});
  expect_each_alone(ops::layer_norm_backward, {x, gamma, dy}, {});
  expect_each_alone(ops::rms_norm_backward, {x, gamma, dy}, {});
  expect_each_alone(ops::rms_norm_backward, {x, gamma, gamma, dy}, {});
  expect_each_alone(ops::group_norm_backward, {x, gamma, dy}, {.num_groups = 2});
  expect_each_alone(ops::topk, {x}, {.k = 2});
  expect_each_alone(ops::topk, {rng.integers({3, 4}, 0, 9)}, {.k = 2});
}

TEST(DataFaults, AreRuntimeErrors) {
  const Tensor table = Tensor::f32({3}, {1, 2, 3}), bad = Tensor::i32({1}, {3}), one = Tensor::f32({1}, {1});
  EXPECT_EQ(kind_of([&] { run(ops::gather, {table, bad}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::scatter_add, {one, bad}, {.rows = 3}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] {
              run(ops::gather_backward, {one, bad}, {.axis = 0, .table_shape = {3}});
            }),
            ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::gather_elements, {table, bad}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::gather_nd, {table, bad}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::scatter_elements, {table, bad, one}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::scatter_nd, {table, bad, one.reshaped({})}); }), ErrorKind::kRuntime);
  const Tensor logits = table.reshaped({1, 3});
  EXPECT_EQ(kind_of([&] { run(ops::softmax_cross_entropy_with_logits, {logits, bad}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::softmax_cross_entropy_backward, {logits, bad, one}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::argmax, {Tensor(DType::F32, {1, 0})}); }), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of([&] { run(ops::reduce_mean, {Tensor(DType::I32, {1, 0})}, {.axes = {1}}); }), ErrorKind::kRuntime);
  // What the types alone show is found when the node is built.
  EXPECT_EQ(kind_of([&] { run(ops::gather, {table, one}); }), ErrorKind::kInvalid);
}

}  // namespace rlx::test
