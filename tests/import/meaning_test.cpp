// Opsets, local functions, dynamic sizes, declared shapes, initializers and what is not a tensor.
#include "import/session.h"
#include "rlx/log.h"

namespace rlx::test {

namespace {

using AttrType = onnx::AttributeProto::Type;
const Tensor kX = Tensor::f32({2, 2}, {1, 2, 3, 4});

Tensor softmax_at(int64_t opset) {
  ModelText m;
  m.opsets = {{"", opset}};
  m.graph.node({"Softmax", {"x"}, {"y"}, {attr("axis", 0)}})
      .input("x", floats_type({2, 2}))
      .output("y", floats_type({2, 2}));
  return run(m, {{"x", kX}}).at(0);
}

double sum_of(const Tensor& t) {
  double sum = 0;
  for (const double v : t.to_doubles()) sum += v;
  return sum;
}

ModelText calls(const NodeText& node, const std::vector<std::string>& functions) {
  ModelText m;
  m.graph.node(node).input("x", floats_type({2, 2})).output("y", floats_type({2, 2}));
  m.functions = functions;
  return m;
}

}  // namespace

// Before opset 13 the axes from `axis` on are one: the whole matrix sums to 1.
TEST(OnnxOpsets, TheNewestRowNotAboveTheModelsIsTaken) {
  EXPECT_NEAR(sum_of(softmax_at(1)), 1, 1e-6);
  EXPECT_NEAR(sum_of(softmax_at(11)), 1, 1e-6);
  EXPECT_NEAR(sum_of(softmax_at(12)), 1, 1e-6);
  EXPECT_NEAR(sum_of(softmax_at(13)), 2, 1e-6);
  EXPECT_NEAR(sum_of(softmax_at(21)), 2, 1e-6);
}

TEST(OnnxOpsets, AnOpsetFromTheFutureIsAWarning) {
  std::string said;
  set_log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) said += text;
  });
  EXPECT_NEAR(sum_of(softmax_at(99)), 2, 1e-6);
  set_log({});
  EXPECT_NE(said.find("opset 99"), std::string::npos) << said;
}

TEST(OnnxOpsets, AModelWithoutOpsetsHasTheFirst) {
  ModelText m;
  m.opsets = {};
  m.graph.node({"Neg", {"x"}, {"y"}}).input("x", floats_type({2, 2})).output("y", floats_type({2, 2}));
  EXPECT_EQ(run(m, {{"x", kX}}).at(0), Tensor::f32({2, 2}, {-1, -2, -3, -4}));
}

TEST(OnnxOpsets, DomainsThatNobodyUsesDoNotMatter) {
  ModelText m;
  m.opsets = {{"com.example", 7}, {"ai.onnx", 13}, {"ai.onnx.ml", 3}};
  m.graph.node({"Softmax", {"x"}, {"y"}, {attr("axis", 0)}, "", "ai.onnx"})
      .input("x", floats_type({2, 2}))
      .output("y", floats_type({2, 2}));
  EXPECT_NEAR(sum_of(run(m, {{"x", kX}}).at(0)), 2, 1e-6);
}

// ---- functions

TEST(OnnxFunctions, TakeAttributesAndDefaults) {
  const FunctionText f{"Scale",
                       {"a"},
                       {"r"},
                       {NodeText{"Constant", {}, {"k"}, {ref_attr("value_float", "factor", AttrType::kFloat)}},
                        NodeText{"Constant", {}, {"d"}, {ref_attr("value_float", "shift", AttrType::kFloat)}},
                        NodeText{"Mul", {"a", "k"}, {"p"}}, NodeText{"Add", {"p", "d"}, {"r"}}},
                       {"factor"},
                       {attr("shift", 100.0f)}};
  EXPECT_EQ(run(calls({"Scale", {"x"}, {"y"}, {attr("factor", 2.0f)}, "", "local"}, {f}), {{"x", kX}}).at(0),
            Tensor::f32({2, 2}, {102, 104, 106, 108}));
  EXPECT_EQ(
      run(calls({"Scale", {"x"}, {"y"}, {attr("factor", 2.0f), attr("shift", 1.0f)}, "", "local"}, {f}), {{"x", kX}})
          .at(0),
      Tensor::f32({2, 2}, {3, 5, 7, 9}));
  EXPECT_ERROR(run(calls({"Scale", {"x"}, {"y"}, {}, "", "local"}, {f}), {{"x", kX}}), kUnsupported, "Constant");
}

// An attribute of the outer function goes on to the inner one under another name; names of the bodies do not mix.
TEST(OnnxFunctions, CallEachOther) {
  const FunctionText inner{"Inner",
                           {"a", "b"},
                           {"r"},
                           {NodeText{"Constant", {}, {"t"}, {ref_attr("value_float", "k", AttrType::kFloat)}},
                            NodeText{"Mul", {"a", "t"}, {"u"}}, NodeText{"Sub", {"u", "b"}, {"r"}}},
                           {"k"}};
  const FunctionText outer{
      "Outer",
      {"a"},
      {"r", "s"},
      {NodeText{"Neg", {"a"}, {"t"}},
       NodeText{"Inner", {"a", "t"}, {"r"}, {ref_attr("k", "alpha", AttrType::kFloat)}, "", "local"},
       NodeText{"Inner", {"t", "a"}, {"s"}, {attr("k", 0.0f)}, "", "local"}},
      {"alpha"}};
  ModelText m = calls({"Outer", {"x"}, {"y", "z"}, {attr("alpha", 3.0f)}, "", "local"}, {outer, inner});
  m.graph.output("z", floats_type({2, 2}));
  const std::vector<Tensor> y = run(m, {{"x", kX}});
  EXPECT_EQ(y.at(0), Tensor::f32({2, 2}, {4, 8, 12, 16}));    // 3 x - (-x)
  EXPECT_EQ(y.at(1), Tensor::f32({2, 2}, {-1, -2, -3, -4}));  // 0 - x
}

TEST(OnnxFunctions, HaveTheirOwnOpsetsAndOptionalInputs) {
  FunctionText old{"Old",
                   {"a", "lo", "hi"},
                   {"r"},
                   {NodeText{"Softmax", {"c"}, {"r"}, {attr("axis", 0)}}, NodeText{"Clip", {"a", "lo", "hi"}, {"c"}}}};
  old.opsets = {{"", 12}};
  const Tensor y = run(calls({"Old", {"x"}, {"y"}, {}, "", "local"}, {old}), {{"x", kX}}).at(0);
  EXPECT_NEAR(sum_of(y), 1, 1e-6);
}

TEST(OnnxFunctions, MayHaveBodiesThatReadArguments) {
  GraphText yes, no;
  yes.node({"Mul", {"a", "a"}, {"t"}}).output("t", floats_type({2, 2}));
  no.node({"Neg", {"a"}, {"e"}}).output("e", floats_type({2, 2}));
  const FunctionText f{"F",
                       {"a", "c"},
                       {"r"},
                       {NodeText{"If", {"c"}, {"r"}, {graph_attr("then_branch", yes), graph_attr("else_branch", no)}}}};
  ModelText m = calls({"F", {"x", "b"}, {"y"}, {}, "", "local"}, {f});
  m.graph.input("b", tensor_type(ElemType::kBool, {}));
  const auto session = open(m);
  const auto at = [&](double b) {
    return run(*session, {{"x", kX}, {"b", Tensor::from_doubles(DType::Bool, {}, {{b}})}}).at(0);
  };
  EXPECT_EQ(at(1), Tensor::f32({2, 2}, {1, 4, 9, 16}));
  EXPECT_EQ(at(0), Tensor::f32({2, 2}, {-1, -2, -3, -4}));
}

// ---- sizes

TEST(OnnxSizes, NamesOfSizesAreKept) {
  ModelText m;
  m.graph.node({"MatMul", {"a", "b"}, {"y"}})
      .input("a", floats_type({"batch", "seq"}))
      .input("b", floats_type({"seq", 3}))
      .output("y", floats_type({"whatever", -1}));
  const auto session = open(m);
  ASSERT_NE(session->graph(), nullptr) << session->why_not();
  std::vector<std::string> names;
  for (const auto& [id, name] : session->symbols().names()) names.push_back(name);
  EXPECT_NE(std::find(names.begin(), names.end(), "batch"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "seq"), names.end());
  EXPECT_EQ(session->inputs()[0].text, "float [batch, seq]");
  const Shape& a = session->inputs()[0].tensor->shape;
  const Shape& b = session->inputs()[1].tensor->shape;
  EXPECT_EQ(a[1], b[0]);
  EXPECT_EQ(session->outputs()[0].tensor->shape, (Shape{a[0], 3}));
  for (const int64_t n : {1, 4})
    EXPECT_EQ(run(*session, {{"a", Tensor(DType::F32, {n, 2})}, {"b", Tensor(DType::F32, {2, 3})}}).at(0).sizes(),
              (std::vector<int64_t>{n, 3}));
  EXPECT_EQ(session->compiles(), 2);
  EXPECT_ERROR(run(*session, {{"a", Tensor(DType::F32, {1, 5})}, {"b", Tensor(DType::F32, {2, 3})}}), kInvalid, "");
}

// 0, -1 and "?" are what exporters write for sizes that they do not know: one symbol each.
TEST(OnnxSizes, SizesThatAreNotKnownAreApart) {
  ModelText m;
  m.graph.node({"Transpose", {"x"}, {"y"}})
      .input("x", floats_type({0, -1, "?"}))
      .output("y", any_rank(ElemType::kFloat));
  const auto session = open(m);
  const Shape& shape = session->inputs()[0].tensor->shape;
  EXPECT_EQ(shape.dynamic_symbols().size(), 3u);
  EXPECT_EQ(session->inputs()[0].text, "float [?, ?, ?]");
  EXPECT_EQ(run(*session, {{"x", Tensor(DType::F32, {2, 3, 4})}}).at(0).sizes(), (std::vector<int64_t>{4, 3, 2}));
}

// Backwards, what lies before the first element is cut off on both sides: a start there is the first element.
TEST(OnnxSlice, CutsOffWhatLiesOutside) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  const auto sliced = [](int64_t size, int64_t start, int64_t end, int64_t step) {
    ModelText m;
    m.graph.node({"Slice", {"x", "b", "e", "a", "s"}, {"y"}})
        .initializer(ints("b", {1}, {start}))
        .initializer(ints("e", {1}, {end}))
        .initializer(ints("a", {1}, {0}))
        .initializer(ints("s", {1}, {step}))
        .input("x", floats_type({size}))
        .output("y", any_rank(ElemType::kFloat));
    return run(m, {{"x", size == 0 ? Tensor(DType::F32, {0}) : Tensor::f32({3}, {1, 2, 3})}}).at(0).to_doubles();
  };
  using Numbers = std::vector<double>;
  EXPECT_EQ(sliced(3, -9, kLow, -1), (Numbers{1}));
  EXPECT_EQ(sliced(3, -9, -9, -2), (Numbers{1}));
  EXPECT_EQ(sliced(3, -9, 0, -1), Numbers{});
  EXPECT_EQ(sliced(3, 9, kLow, -2), (Numbers{3, 1}));
  EXPECT_EQ(sliced(3, -9, 9, 2), (Numbers{1, 3}));
  EXPECT_EQ(sliced(3, 9, 9, 1), Numbers{});
  EXPECT_EQ(sliced(0, -9, kLow, -1), Numbers{});
  EXPECT_EQ(sliced(0, 0, 9, 2), Numbers{});
}

TEST(OnnxSizes, AnInputOfAnyRankIsBuiltAtItsFirstRun) {
  ModelText m;
  m.graph.node({"Flatten", {"x"}, {"y"}})
      .input("x", any_rank(ElemType::kFloat))
      .output("y", any_rank(ElemType::kFloat));
  const auto session = open(m);
  EXPECT_EQ(session->graph(), nullptr);
  EXPECT_NE(session->why_not().find("'x' (float of any shape) has no known rank"), std::string::npos);
  EXPECT_EQ(run(*session, {{"x", Tensor(DType::F32, {2, 3, 4})}}).at(0).sizes(), (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(run(*session, {{"x", Tensor(DType::F32, {5})}}).at(0).sizes(), (std::vector<int64_t>{5, 1}));
}

TEST(OnnxSizes, DeclaredShapesOfResultsAreHints) {
  ModelText m;
  m.graph.node({"Neg", {"x"}, {"t"}})
      .node({"Reshape", {"t", "s"}, {"y"}})
      .initializer(ints("s", {1}, {-1}))
      .input("x", floats_type({2, 2}))
      .output("y", tensor_type(ElemType::kInt64, {9, 9, 9}));
  m.graph.value_infos = {value_info("t", floats_type({7})), value_info("y", floats_type({1, 1})),
                         value_info("nobody", floats_type({1})), value_info("s", sequence_type(floats_type({1})))};
  const auto session = open(m);
  EXPECT_EQ(run(*session, {{"x", kX}}).at(0), Tensor::f32({4}, {-1, -2, -3, -4}));
  EXPECT_EQ(session->outputs()[0].tensor->shape, Shape{4});
  EXPECT_EQ(session->outputs()[0].tensor->dtype, DType::F32);
}

// ---- initializers

TEST(OnnxInitializers, MayBeInputsWithADefault) {
  ModelText m;
  m.graph.node({"Add", {"x", "w"}, {"t"}})
      .node({"Reshape", {"t", "s"}, {"y"}})
      .initializer(floats("w", {2}, {10, 20}))
      .initializer(ints("s", {1}, {4}))
      .input("x", floats_type({2, 2}))
      .input("w", floats_type({2}))
      .input("s", ints_type({"k"}))
      .output("y", floats_type({4}));
  const auto session = open(m);
  ASSERT_EQ(session->inputs().size(), 1u);  // that must be given
  EXPECT_EQ(run(*session, {{"x", kX}}).at(0), Tensor::f32({4}, {11, 22, 13, 24}));
  EXPECT_EQ(run(*session, {{"x", kX}, {"w", Tensor::f32({2}, {0, 1})}}).at(0), Tensor::f32({4}, {1, 3, 3, 5}));
  EXPECT_EQ(run(*session, {{"x", kX}, {"s", Tensor::i64({2}, {4, 1})}}).at(0), Tensor::f32({4, 1}, {11, 22, 13, 24}));
  EXPECT_EQ(run(*session, {{"x", kX}}).at(0), Tensor::f32({4}, {11, 22, 13, 24}));
  EXPECT_ERROR(run(*session, {{"x", kX}, {"w", Tensor::i64({2}, {0, 1})}}), kInvalid, "Input 'w' is int64");
}

TEST(OnnxInitializers, AnOutputMayBeAnInputOrAnInitializer) {
  ModelText m;
  m.graph.initializer(floats("w", {2}, {10, 20}))
      .input("x", floats_type({"n"}))
      .output("w", floats_type({2}))
      .output("x", floats_type({"n"}));
  const std::vector<Tensor> y = run(m, {{"x", Tensor::f32({1}, {5})}});
  EXPECT_EQ(y.at(0), Tensor::f32({2}, {10, 20}));
  EXPECT_EQ(y.at(1), Tensor::f32({1}, {5}));
}

// ---- sequences, optionals, strings

TEST(OnnxValues, IntegersWithoutASignAreTheirOwnMagnitude) {
  const std::vector<uint64_t> values = {0, 200, 0xffff'ffff, uint64_t{1} << 63};
  for (const auto& [elem, dtype] : {std::pair{ElemType::kUint8, DType::U8},
                                    {ElemType::kUint16, DType::U16},
                                    {ElemType::kUint32, DType::U32},
                                    {ElemType::kUint64, DType::U64}}) {
    const Tensor x = Tensor::of<uint64_t>(DType::U64, {2, 2}, values).cast(dtype);
    ModelText m;
    m.graph.node({"Abs", {"x"}, {"y"}})
        .node({"ReduceL1", {"x"}, {"norm"}, {attr("keepdims", 0)}})
        .node({"ReduceSum", {"x"}, {"sum"}, {attr("keepdims", 0)}})
        .input("x", tensor_type(elem, {2, 2}))
        .output("y", tensor_type(elem, {2, 2}))
        .output("norm", tensor_type(elem, {}))
        .output("sum", tensor_type(elem, {}));
    const std::vector<Tensor> y = run(m, {{"x", x}});
    EXPECT_EQ(y.at(0), x);
    EXPECT_EQ(y.at(1), y.at(2)) << str(dtype);
  }
}

TEST(OnnxValues, SequencesGoInAndOut) {
  ModelText m;
  m.graph.node({"SequenceAt", {"s", "i"}, {"a"}})
      .node({"Neg", {"a"}, {"b"}})
      .node({"SequenceInsert", {"s", "b"}, {"t"}})
      .node({"SequenceLength", {"t"}, {"n"}})
      .initializer(ints("i", {}, {-1}))
      .input("s", sequence_type(floats_type({"k"})))
      .output("t", sequence_type(floats_type({"k"})))
      .output("n", ints_type({}));
  const auto session = open(m);
  const HostValue s(std::vector<HostValue>{host(Tensor::f32({1}, {1})), host(Tensor::f32({2}, {2, 3}))});
  for (int times = 0; times < 2; ++times) {
    const std::vector<HostValue> out = run_values(*session, {{"s", s}});
    ASSERT_EQ(out.at(0).kind, HostValue::Kind::kSequence);
    ASSERT_EQ(out.at(0).items.size(), 3u);
    EXPECT_EQ(out[0].items[0].tensor, Tensor::f32({1}, {1}));
    EXPECT_EQ(out[0].items[2].tensor, Tensor::f32({2}, {-2, -3}));
    EXPECT_EQ(out.at(1).tensor, Tensor::i64({}, {3}));
  }
  EXPECT_ERROR(run_values(*session, {{"s", HostValue(std::vector<HostValue>())}}), kInvalid, "outside the sequence");
  EXPECT_ERROR(run_values(*session, {}), kInvalid, "'s'");
}

TEST(OnnxValues, OptionalsGoInAndOut) {
  ModelText m;
  m.graph.node({"OptionalHasElement", {"o"}, {"has"}})
      .node({"Identity", {"o"}, {"same"}})
      .input("o", optional_type(floats_type({2})))
      .output("has", tensor_type(ElemType::kBool, {}))
      .output("same", optional_type(floats_type({2})));
  const auto session = open(m);
  const std::vector<HostValue> none = run_values(*session, {});
  EXPECT_EQ(none.at(0).tensor.at(0), 0);
  EXPECT_EQ(none.at(1).kind, HostValue::Kind::kAbsent);
  const std::vector<HostValue> some = run_values(*session, {{"o", host(Tensor::f32({2}, {1, 2}))}});
  EXPECT_EQ(some.at(0).tensor.at(0), 1);
  EXPECT_EQ(some.at(1).tensor, Tensor::f32({2}, {1, 2}));
}

TEST(OnnxValues, StringsGoThrough) {
  ModelText m;
  m.graph.node({"Identity", {"s"}, {"t"}})
      .input("s", tensor_type(ElemType::kString, {2}))
      .output("t", tensor_type(ElemType::kString, {2}));
  const onnx::Strings words{{2}, {"a", std::string("b\0c", 3)}};
  EXPECT_EQ(run_values(*open(m), {{"s", HostValue(words)}}).at(0).strings, words);
}

}  // namespace rlx::test
