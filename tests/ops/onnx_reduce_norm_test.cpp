// Norms, softmax, reductions and selections against ONNX's own evaluator (fixtures/make_onnx_reduce_norm.py).
#include <gtest/gtest.h>

#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

const Tensor& fixture(const std::string& name) {
  static const std::map<std::string, Tensor> all = read_npz(RLX_FIXTURES "/onnx_reduce_norm.npz");
  const auto it = all.find(name);
  require(it != all.end(), "Fixture '", name, "' is not there.");
  return it->second;
}

}  // namespace

TEST(OnnxFixture, NormsAgree) {
  const Tensor& x = fixture("x");
  for (const int64_t axis : {-1, 1, 0}) {
    const Tensor &gamma = fixture(str("gamma_", axis)), &beta = fixture(str("beta_", axis));
    EXPECT_TRUE(near(run(ops::layer_norm, {x, gamma, beta}, {.axis = axis, .eps = 1e-3f})[0],
                     fixture(str("layer_norm_", axis)), kAccumulation));
    EXPECT_TRUE(near(run(ops::rms_norm, {x, gamma}, {.axis = axis, .eps = 1e-3f})[0], fixture(str("rms_norm_", axis)),
                     kAccumulation));
  }
  const Tensors image{fixture("image"), fixture("gamma_c"), fixture("beta_c")};
  EXPECT_TRUE(
      near(run(ops::group_norm, image, {.num_groups = 3, .eps = 1e-3f})[0], fixture("group_norm"), kAccumulation));
  EXPECT_TRUE(near(run(ops::layer_norm2d, image, {.eps = 1e-3f})[0], fixture("layer_norm2d"), kAccumulation));
}

TEST(OnnxFixture, ReductionsAgree) {
  const Tensor& x = fixture("x");
  for (int32_t k = 0; k < 5; ++k) {
    const auto kind = static_cast<ops::ReduceKind>(k);
    const auto reduced = [&](std::vector<int64_t> axes, bool keep) {
      return run(ops::reduce_op(kind), {x}, {.axes = std::move(axes), .keep_dim = keep})[0];
    };
    EXPECT_TRUE(near(reduced({1}, false), fixture(str("reduce_", name_of(kind), "_1")), kAccumulation));
    EXPECT_TRUE(near(reduced({0, 2}, true), fixture(str("reduce_", name_of(kind), "_02")), kAccumulation));
    EXPECT_TRUE(near(reduced({0, 1, 2}, true), fixture(str("reduce_", name_of(kind), "_012")), kAccumulation));
  }
}

TEST(OnnxFixture, SoftmaxScansAndSelectionsAgree) {
  const Tensor& x = fixture("x");
  for (const int64_t axis : {0, 1, 2}) {
    EXPECT_TRUE(near(run(ops::softmax, {x}, {.axis = axis})[0], fixture(str("softmax_", axis)), kTranscendental));
    EXPECT_TRUE(near(run(ops::argmax, {x}, {.axis = axis, .index_dtype = DType::I64})[0], fixture(str("argmax_", axis)),
                     kExact));
    EXPECT_TRUE(near(run(ops::argmin, {x}, {.axis = axis, .keep_dim = true, .index_dtype = DType::I64})[0],
                     fixture(str("argmin_", axis)), kExact));
    const Tensors top = run(ops::topk, {x}, {.k = 2, .axis = axis, .index_dtype = DType::I64});
    EXPECT_TRUE(near(top[0], fixture(str("topk_", axis)), kExact));
    EXPECT_TRUE(near(top[1], fixture(str("topk_indices_", axis)), kExact));
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true})
        EXPECT_TRUE(near(run(ops::cumsum, {x}, {.axis = axis, .exclusive = exclusive, .reverse = reverse})[0],
                         fixture(str("cumsum_", axis, "_", int{exclusive}, "_", int{reverse})), kAccumulation));
    EXPECT_TRUE(
        near(run(ops::gather, {x, fixture("indices")}, {.axis = axis})[0], fixture(str("gather_", axis)), kExact));
  }
}

TEST(OnnxFixture, CrossEntropyAgrees) {
  EXPECT_TRUE(near(run(ops::softmax_cross_entropy_with_logits, {fixture("logits"), fixture("labels")})[0],
                   fixture("cross_entropy"), kAccumulation));
}

}  // namespace rlx::test
