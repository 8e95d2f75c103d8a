// Models that are protobuf, but wrong: the Error says what is wrong where.
#include "import/session.h"

namespace rlx::test {

namespace {

// x [2] float, with the given nodes; y is the output.
ModelText with_nodes(const std::vector<NodeText>& nodes) {
  ModelText m;
  for (const NodeText& n : nodes) m.graph.node(n);
  m.graph.input("x", floats_type({2})).output("y", floats_type({2}));
  return m;
}
const Tensor kX = Tensor::f32({2}, {1, -2});

}  // namespace

TEST(OnnxFaults, NodesInAnyOrderWork) {
  const ModelText m = with_nodes({{"Add", {"a", "b"}, {"y"}}, {"Neg", {"a"}, {"b"}}, {"Abs", {"x"}, {"a"}}});
  EXPECT_EQ(run(m, {{"x", kX}}).at(0), Tensor::f32({2}, {0, 0}));
}

TEST(OnnxFaults, CyclesAreNamed) {
  const auto cycle = [](const std::vector<NodeText>& nodes) {
    const auto session = open(with_nodes(nodes));
    EXPECT_EQ(session->graph(), nullptr);
    EXPECT_ERROR(run(*session, {{"x", kX}}), kInvalid, "form a cycle through");
  };
  cycle({{"Add", {"y", "x"}, {"y"}}});
  cycle({{"Add", {"x", "b"}, {"y"}}, {"Neg", {"y"}, {"a"}}, {"Neg", {"a"}, {"b"}}});
  GraphText branch;  // through the body of a node
  branch.node({"Neg", {"y"}, {"t"}}).output("t", floats_type({2}));
  GraphText body = branch;
  std::vector<NodeText> nodes{{"Greater", {"x", "x"}, {"c"}},
                              {"If", {"c"}, {"y"}, {graph_attr("then_branch", body), graph_attr("else_branch", body)}}};
  cycle(nodes);
}

TEST(OnnxFaults, LongChainsInReverseOrderNeedNoStack) {
  constexpr int kNodes = 20'000;
  ModelText m;
  for (int i = kNodes; i > 0; --i)
    m.graph.node({"Neg", {i == 1 ? "x" : str("v", i - 1)}, {i == kNodes ? "y" : str("v", i)}});
  m.graph.input("x", floats_type({2})).output("y", floats_type({2}));
  const auto session = open(m);
  ASSERT_NE(session->graph(), nullptr) << session->why_not();
  EXPECT_EQ(session->graph()->nodes().size(), kNodes + 1u);
}

TEST(OnnxFaults, NamesThatNothingProducesAreNamed) {
  EXPECT_ERROR(run(with_nodes({{"Add", {"x", "nobody"}, {"y"}}}), {{"x", kX}}), kInvalid,
               "'nobody' is read, but nothing produces it");
  EXPECT_ERROR(run(with_nodes({{"Neg", {"x"}, {"z"}}}), {{"x", kX}}), kInvalid, "'y' is read");
  GraphText branch;
  branch.node({"Neg", {"nobody"}, {"t"}}).output("t", floats_type({2}));
  EXPECT_ERROR(run(with_nodes({{"Constant", {}, {"c"}, {tensor_attr("value", boolean("", true))}},
                               {"If", {"c"}, {"y"}, {graph_attr("then_branch", branch)}}}),
                   {{"x", kX}}),
               kInvalid, "'nobody' is read");
  // An absent operand where one is needed.
  EXPECT_ERROR(run(with_nodes({{"Add", {"x", ""}, {"y"}}}), {{"x", kX}}), kInvalid, "Input 1 is not given");
  EXPECT_ERROR(run(with_nodes({{"Add", {"x"}, {"y"}}}), {{"x", kX}}), kInvalid, "Input 1 is not given");
  EXPECT_ERROR(run(with_nodes({{"Add", {}, {"y"}}}), {{"x", kX}}), kInvalid, "Input 0 is not given");
  EXPECT_ERROR(run(with_nodes({{"Concat", {}, {"y"}}}), {{"x", kX}}), kInvalid, "Concat");
}

TEST(OnnxFaults, NamesThatAreGivenTwiceAreNamed) {
  EXPECT_ERROR(run(with_nodes({{"Neg", {"x"}, {"y"}}, {"Abs", {"x"}, {"y"}}}), {{"x", kX}}), kInvalid,
               "'y' is produced more than once");
  EXPECT_ERROR(run(with_nodes({{"Neg", {"x"}, {"x"}}, {"Abs", {"x"}, {"y"}}}), {{"x", kX}}), kInvalid,
               "'x' is produced more than once");
  ModelText m = with_nodes({{"Neg", {"x"}, {"y"}}});
  ModelText twice = m;
  twice.graph.input("x", floats_type({2}));
  EXPECT_ERROR(open(twice), kInvalid, "Input 'x' is declared twice");
  twice = m;
  twice.graph.output("y", floats_type({2}));
  EXPECT_ERROR(open(twice), kInvalid, "Output 'y' is declared twice");
  twice = m;
  twice.graph.initializer(floats("w", {1}, {1})).initializer(floats("w", {1}, {2}));
  EXPECT_ERROR(open(twice), kInvalid, "Initializer 'w' is given twice");
  twice = m;
  const FunctionText f{"F", {"a"}, {"b"}, {NodeText{"Neg", {"a"}, {"b"}}}};
  twice.functions = {f, f};
  EXPECT_ERROR(open(twice), kInvalid, "Function 'F' is defined twice");
  m.graph.input("", floats_type({2}));
  EXPECT_ERROR(open(m), kInvalid, "An input has no name");
}

// A node may give one of its outputs no name.
TEST(OnnxFaults, OutputsWithoutANameAreIgnored) {
  const ModelText m = with_nodes({{"Split", {"x"}, {"", "h"}}, {"Concat", {"h", "h"}, {"y"}, {attr("axis", 0)}}});
  EXPECT_EQ(run(m, {{"x", kX}}).at(0), Tensor::f32({2}, {-2, -2}));
  EXPECT_ERROR(run(with_nodes({{"Neg", {"x"}, {"y", "z"}}, {"Abs", {"z"}, {"w"}}}), {{"x", kX}}), kUnsupported,
               "Output 1 ('z') is not supported");
}

TEST(OnnxFaults, UnsupportedOpsAreNamedWithNodeAndOpset) {
  ModelText m = with_nodes({{"Frobnicate", {"x"}, {"y"}, {}, "layer/3"}});
  EXPECT_ERROR(open(m), kUnsupported, "Op 'Frobnicate' of opset 21 (node 'layer/3') is not supported");
  m = with_nodes({{"Gelu", {"x"}, {"y"}, {}, "act"}});
  m.opsets = {{"", 19}};
  EXPECT_ERROR(open(m), kUnsupported, "Op 'Gelu' of opset 19 (node 'act') is not supported");
  m = with_nodes({{"Magic", {"x"}, {"y"}, {}, "n", "com.example"}});
  m.opsets.emplace_back("com.example", 3);
  EXPECT_ERROR(open(m), kUnsupported, "Op 'com.example.Magic' of opset 3 (node 'n') is not supported");
  GraphText body;  // in a body too
  body.node({"Frobnicate", {"x"}, {"t"}}).output("t", floats_type({2}));
  m = with_nodes({{"If", {"x"}, {"y"}, {graph_attr("then_branch", body)}}});
  EXPECT_ERROR(open(m), kUnsupported, "Frobnicate");
}

TEST(OnnxFaults, ErrorsOfBuildersNameTheNode) {
  const ModelText m = with_nodes({{"Transpose", {"x"}, {"y"}, {attr("perm", std::vector<int64_t>{0, 1})}, "turn"}});
  EXPECT_ERROR(run(m, {{"x", kX}}), kInvalid, "importing node 'turn' (Transpose)");
  EXPECT_ERROR(run(with_nodes({{"Softmax", {"x"}, {"y"}, {attr("axis", 1.0f)}}}), {{"x", kX}}), kInvalid,
               "Attribute 'axis' has another type than expected");
}

TEST(OnnxFaults, InputsAreChecked) {
  ModelText m;
  m.graph.node({"Add", {"a", "b"}, {"y"}})
      .input("a", floats_type({"n", 2}))
      .input("b", floats_type({2}))
      .output("y", floats_type({"n", 2}));
  const auto session = open(m);
  const Tensor a = Tensor::f32({1, 2}, {1, 2}), b = Tensor::f32({2}, {3, 4});
  EXPECT_ERROR(run(*session), kInvalid, "These inputs are not given: 'a' (float [n, 2]), 'b' (float [2])");
  EXPECT_ERROR(run(*session, {{"a", a}}), kInvalid, "These inputs are not given: 'b' (float [2])");
  EXPECT_ERROR(run(*session, {{"a", a}, {"b", b}, {"c", b}}), kInvalid, "The model has no input 'c'");
  EXPECT_ERROR(run(*session, {{"a", a}, {"b", Tensor::i64({2}, {3, 4})}}), kInvalid, "Input 'b' is int64, not float");
  EXPECT_ERROR(run(*session, {{"a", a}, {"b", Tensor::f32({1, 2}, {3, 4})}}), kInvalid,
               "Input 'b' has shape [1, 2], but the model wants float [2]");
  EXPECT_ERROR(run(*session, {{"a", a}, {"b", Tensor::f32({3}, {3, 4, 5})}}), kInvalid,
               "Input 'b' has shape [3], but the model wants float [2]");
  EXPECT_EQ(run(*session, {{"a", a}, {"b", b}}).at(0), Tensor::f32({1, 2}, {4, 6}));
}

TEST(OnnxFaults, SizesThatTheModelLacksAreNamed) {
  ModelText m;
  m.graph.node({"Neg", {"x"}, {"y"}}).input("x", floats_type({"batch"})).output("y", floats_type({"batch"}));
  EXPECT_ERROR(open(m, "", {{"seq", 3}}), kInvalid, "The model has no size 'seq'");
  EXPECT_EQ(open(m, "", {{"batch", 3}})->inputs().at(0).tensor->shape, Shape{3});
}

TEST(OnnxFaults, AttributesOutOfRangeAreErrors) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  const auto refused = [](const NodeText& node, const std::vector<std::string>& initializers = {}, int64_t opset = 21) {
    ModelText m = with_nodes({node});
    m.opsets = {{"", opset}};
    m.graph.initializers = initializers;
    EXPECT_THROW(run(m, {{"x", kX}}), Error) << node.op;
  };
  for (const int64_t n : {kLow, int64_t{-3}, int64_t{2}, kHigh}) {
    refused({"Softmax", {"x"}, {"y"}, {attr("axis", n)}});
    refused({"Concat", {"x", "x"}, {"y"}, {attr("axis", n)}});
    refused({"Gather", {"x", "i"}, {"y"}, {attr("axis", n)}}, {ints("i", {1}, {0})});
    refused({"ArgMax", {"x"}, {"y"}, {attr("axis", n)}});
    refused({"Split", {"x"}, {"y"}, {attr("axis", n)}});
    refused({"SplitToSequence", {"x"}, {"s"}, {attr("axis", n)}});
    refused({"Unsqueeze", {"x", "i"}, {"y"}}, {ints("i", {1}, {n == 2 ? 5 : n})});
    refused({"Squeeze", {"x", "i"}, {"y"}}, {ints("i", {1}, {n})});
    refused({"ReduceSum", {"x", "i"}, {"y"}}, {ints("i", {1}, {n})});
    refused({"CumSum", {"x", "i"}, {"y"}}, {ints("i", {1}, {n})});
    refused({"Reshape", {"x", "i"}, {"y"}}, {ints("i", {1}, {n == 2 ? 3 : n})});
    refused({"Slice", {"x", "i", "i", "a"}, {"y"}}, {ints("i", {1}, {0}), ints("a", {1}, {n})});
    refused({"Split", {"x"}, {"y"}, {attr("num_outputs", n == 2 ? 0 : n)}});
    refused({"Add", {"x", "b"}, {"y"}, {attr("broadcast", 1), attr("axis", n)}}, {floats("b", {2}, {1, 2})}, 6);
    if (n != 2) refused({"TopK", {"x", "i"}, {"y", "z"}}, {ints("i", {1}, {n})});
  }
  for (const int64_t step : {kLow, kHigh})  // a slice may have any step
    EXPECT_EQ(run(
                  [&] {
                    ModelText m = with_nodes({{"Slice", {"x", "b", "e", "a", "s"}, {"y"}}});
                    m.graph.initializer(ints("b", {1}, {1}))
                        .initializer(ints("e", {1}, {step < 0 ? kLow : kHigh}))
                        .initializer(ints("a", {1}, {0}))
                        .initializer(ints("s", {1}, {step}));
                    return m;
                  }(),
                  {{"x", kX}})
                  .at(0),
              Tensor::f32({1}, {-2}));
}

}  // namespace rlx::test
