// Small files that claim a lot: an Error soon, and without the memory that they claim.
#include "import/session.h"

namespace rlx::test {

namespace {

constexpr int64_t kTwoGiB = int64_t{1} << 31;  // elements or bytes
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

void expect_refused(const std::string& model, std::string_view text, const NamedTensors& inputs = {}) {
  ASSERT_LT(model.size(), 200'000u);
  expect_cheap_error([&] { run(model, inputs); }, text);
}

// A chain of `depth` wrappers: the innermost is `inner`.
std::string nested(int depth, std::string inner, const std::function<std::string(const std::string&)>& wrap) {
  for (int i = 0; i < depth; ++i) inner = wrap(inner);
  return inner;
}

}  // namespace

TEST(OnnxClaims, TensorsWithoutTheirBytes) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{kTwoGiB},
                                           {1 << 16, 1 << 16},
                                           {kTwoGiB, 0x7fffffff},
                                           {kHigh},
                                           std::vector<int64_t>(1000, 1 << 20)}) {
    for (const ElemType elem : {ElemType::kFloat, ElemType::kInt64, ElemType::kBool, ElemType::kInt4, ElemType::kString,
                                ElemType::kComplex64}) {
      expect_refused(model_of({"Neg", {"w"}, {"y"}}, {raw_tensor("w", elem, dims, "1234")}), "");
      const std::string typed = Message().numbers(1, dims).number(2, static_cast<int32_t>(elem)).text(8, "w");
      expect_refused(model_of({"Neg", {"w"}, {"y"}}, {typed}), "");
      expect_refused(model_of({"Constant", {}, {"y"}, {tensor_attr("value", typed)}}, {}), "");
    }
  }
}

TEST(OnnxClaims, ConstantOfShape) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{kTwoGiB},
                                            {kTwoGiB, kTwoGiB},
                                            {kHigh},
                                            {kHigh, kHigh},
                                            std::vector<int64_t>(60, 2),
                                            {1 << 20, 1 << 20},
                                            {1 << 29}})
    expect_refused(
        model_of({"ConstantOfShape", {"s"}, {"y"}}, {ints("s", {static_cast<int64_t>(shape.size())}, shape)}), "");
  expect_refused(model_of({"ConstantOfShape", {"s"}, {"y"}}, {ints("s", {1}, {-1})}), "negative");
  // The same, as a size that only a run knows.
  ModelText m;
  m.graph.node({"ConstantOfShape", {"s"}, {"y"}}).input("s", ints_type({2})).output("y", floats_type({"a", "b"}));
  expect_refused(m, "", {{"s", Tensor::i64({2}, {1 << 20, 1 << 20})}});
  EXPECT_EQ(run(m, {{"s", Tensor::i64({2}, {1, 2})}}).at(0), Tensor(DType::F32, {1, 2}));
}

TEST(OnnxClaims, ExpandTileRange) {
  const std::string one = floats("x", {1}, {1});
  for (const int64_t n : {kTwoGiB, int64_t{1} << 29, int64_t{1} << 40, kHigh}) {
    expect_refused(model_of({"Expand", {"x", "s"}, {"y"}}, {one, ints("s", {1}, {n})}), "");
    expect_refused(model_of({"Expand", {"x", "s"}, {"y"}}, {one, ints("s", {3}, {n, n, n})}), "");
    expect_refused(model_of({"Tile", {"x", "s"}, {"y"}}, {one, ints("s", {1}, {n})}), "");
    expect_refused(
        model_of({"Range", {"a", "b", "c"}, {"y"}}, {ints("a", {}, {0}), ints("b", {}, {n}), ints("c", {}, {1})}), "");
    expect_refused(model_of({"Range", {"a", "b", "c"}, {"y"}},
                            {floats("a", {}, {0}), floats("b", {}, {static_cast<float>(n)}), floats("c", {}, {1})}),
                   "");
  }
  expect_refused(model_of({"Range", {"a", "b", "c"}, {"y"}},
                          {floats("a", {}, {0}), floats("b", {}, {1}), floats("c", {}, {1e-30f})}),
                 "too long");
  expect_refused(
      model_of({"Range", {"a", "b", "c"}, {"y"}}, {ints("a", {}, {0}), ints("b", {}, {1}), ints("c", {}, {0})}),
      "is 0");
  expect_refused(
      model_of({"Range", {"a", "b", "c"}, {"y"}}, {ints("a", {}, {0}), ints("b", {}, {9}), ints("c", {0}, {})}), "");
  expect_refused(model_of({"Tile", {"x", "s"}, {"y"}}, {one, ints("s", {1}, {-1})}), "");
}

TEST(OnnxClaims, PadResizeAndOthers) {
  const std::string x = floats("x", {1, 1, 2, 2}, {1, 2, 3, 4});
  for (const int64_t n : {int64_t{1} << 30, kTwoGiB, int64_t{1} << 40, kHigh}) {
    const auto f = static_cast<float>(n);
    expect_refused(model_of({"Pad", {"x", "p"}, {"y"}}, {x, ints("p", {8}, {0, 0, 0, n, 0, 0, 0, 0})}), "");
    expect_refused(
        model_of({"Pad", {"x", "p"}, {"y"}, {attr("mode", "edge")}}, {x, ints("p", {8}, {n, n, n, n, n, n, n, n})}),
        "");
    expect_refused(model_of({"Resize", {"x", "", "", "s"}, {"y"}}, {x, ints("s", {4}, {1, 1, n, 2})}), "");
    expect_refused(model_of({"Resize", {"x", "", "s"}, {"y"}}, {x, floats("s", {4}, {1, 1, 1, f})}), "");
    expect_refused(model_of({"Resize", {"x", "", "s"}, {"y"}}, {x, floats("s", {4}, {1, 1, f, 1e38f})}), "");
    expect_refused(model_of({"OneHot", {"i", "d", "v"}, {"y"}},
                            {ints("i", {1}, {0}), ints("d", {}, {n}), floats("v", {2}, {0, 1})}),
                   "");
    expect_refused(model_of({"CenterCropPad", {"x", "s"}, {"y"}, {attr("axes", std::vector<int64_t>{3})}},
                            {x, ints("s", {1}, {n})}),
                   "");
    expect_refused(model_of({"RandomNormal", {}, {"y"}, {attr("shape", std::vector<int64_t>{n})}}, {}), "");
    expect_refused(model_of({"RandomUniform", {}, {"y"}, {attr("shape", std::vector<int64_t>{n, n})}}, {}), "");
    expect_refused(model_of({"HannWindow", {"n"}, {"y"}}, {ints("n", {}, {n})}), "");
    expect_refused(
        model_of({"MelWeightMatrix", {"n", "n", "r", "a", "b"}, {"y"}},
                 {ints("n", {}, {n}), ints("r", {}, {16000}), floats("a", {}, {0}), floats("b", {}, {8000})}),
        "");
    expect_refused(model_of({"AffineGrid", {"t", "s"}, {"y"}},
                            {floats("t", {1, 2, 3}, {1, 0, 0, 0, 1, 0}), ints("s", {4}, {1, 1, n, 1})}),
                   "");
    expect_refused(
        model_of({"DFT", {"r", "n"}, {"y"}, {attr("axis", 1)}}, {floats("r", {1, 2, 1}, {1, 2}), ints("n", {}, {n})}),
        "");
    expect_refused(model_of({"LRN", {"x"}, {"y"}, {attr("size", n)}}, {x}), "");
    expect_refused(model_of({"DepthToSpace", {"x"}, {"y"}, {attr("blocksize", n)}}, {x}), "");
    expect_refused(model_of({"AveragePool", {"x"}, {"y"}, {attr("kernel_shape", std::vector<int64_t>{n, n})}}, {x}),
                   "");
    expect_refused(
        model_of({"MaxPool",
                  {"x"},
                  {"y"},
                  {attr("kernel_shape", std::vector<int64_t>{1, 1}), attr("pads", std::vector<int64_t>{n, n, n, n})}},
                 {x}),
        "");
    expect_refused(model_of({"Conv", {"x", "x"}, {"y"}, {attr("pads", std::vector<int64_t>{0, 0, 0, n})}}, {x}), "");
    expect_refused(model_of({"ConvTranspose", {"x", "x"}, {"y"}, {attr("strides", std::vector<int64_t>{n, n})}}, {x}),
                   "");
    expect_refused(
        model_of({"ConvTranspose", {"x", "x"}, {"y"}, {attr("output_shape", std::vector<int64_t>{n, n})}}, {x}), "");
  }
}

TEST(OnnxClaims, StringsThatDouble) {
  ModelText m;
  m.graph.initializer(Message().numbers(1, {1}).number(2, 8).text(8, "v0").text(6, "abcd"));
  for (int i = 0; i < 60; ++i) m.graph.node({"StringConcat", {str("v", i), str("v", i)}, {str("v", i + 1)}});
  m.graph.output("v60", tensor_type(ElemType::kString, {1}));
  expect_cheap_error([&] { run_values(*open(m), {}); }, "bytes");
}

TEST(OnnxClaims, PatternsThatExplode) {
  const std::string text =
      Message().numbers(1, {1}).number(2, 8).text(8, "s").text(6, std::string(5000, 'a').append("b"));
  for (const char* pattern : {"(a*)*c", "(a|a)*c", "((a+)+)+c"})
    EXPECT_EQ(run(model_of({"RegexFullMatch", {"s"}, {"y"}, {attr("pattern", pattern)}}, {text})).at(0).at(0), 0);
  const std::string deep = std::string(100'000, '(') + std::string(100'000, ')');
  expect_cheap_error(
      [&] {
        run(model_of({"RegexFullMatch", {"s"}, {"y"}, {attr("pattern", deep.c_str())}}, {text}));
      },
      "pattern");
}

TEST(OnnxClaims, PicturesThatAreLargerThanTheirFiles) {
  for (const std::string& file :
       {std::string("P6 30000 30000 255\n"), std::string("P5 1 999999999999 255\n"),
        std::string("BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\0\x40\0\0\0\x40\0\0\1\0\x18\0", 30) +
            std::string(64, '\0')}) {
    const std::string bytes = raw_tensor("f", ElemType::kUint8, {static_cast<int64_t>(file.size())}, file);
    expect_refused(model_of({"ImageDecoder", {"f"}, {"y"}}, {bytes}), "picture");
  }
}

// Each step is harmless.
TEST(OnnxClaims, SizesThatDouble) {
  ModelText m;
  m.graph.initializer(floats("v0", {1024}, std::vector<float>(1024, 1)));
  for (int i = 0; i < 40; ++i)
    m.graph.node({"Concat", {str("v", i), str("v", i)}, {str("v", i + 1)}, {attr("axis", 0)}});
  ModelText sum = m, shape = m;
  sum.graph.node({"ReduceSum", {"v40"}, {"y"}}).output("y", floats_type({1}));
  expect_refused(sum, "bytes of memory");
  // Its value is wanted while the model is imported.
  shape.graph.node({"ReduceSum", {"v40"}, {"s"}})
      .node({"Cast", {"s"}, {"i"}, {attr("to", 7)}})
      .node({"ConstantOfShape", {"i"}, {"y"}})
      .output("y", floats_type({1}));
  expect_refused(shape, "bytes of memory");
}

TEST(OnnxClaims, SizeArithmeticIsWalkedOnce) {
  ModelText m;
  m.graph.node({"Shape", {"x"}, {"v0"}}).input("x", floats_type({"n"})).output("y", floats_type({"m"}));
  for (int i = 0; i < 60; ++i) m.graph.node({"Add", {str("v", i), str("v", i)}, {str("v", i + 1)}});
  m.graph.node({"Reshape", {"x", "v60"}, {"y"}});
  expect_refused(m, "Reshape", {{"x", Tensor::f32({3}, {1, 2, 3})}});
}

// Declared sizes cost nothing until somebody gives such an input.
TEST(OnnxClaims, InputsOfAnySize) {
  const auto with_input = [](const NodeText& node, const std::vector<Size>& shape) {
    ModelText m;
    m.graph.node(node).input("x", floats_type(shape)).output("y", floats_type({"?"}));
    return m;
  };
  const Tensor small = Tensor::f32({2}, {1, 2});
  for (const int64_t n : {kTwoGiB, int64_t{1} << 40, kHigh}) {
    for (const NodeText& node : {NodeText{"Neg", {"x"}, {"y"}}, NodeText{"ArgMax", {"x"}, {"y"}},
                                 NodeText{"ArgMax", {"x"}, {"y"}, {attr("select_last_index", 1)}},
                                 NodeText{"Hardmax", {"x"}, {"y"}, {attr("axis", 0)}},
                                 NodeText{"Split", {"x"}, {"y", "z"}}, NodeText{"SplitToSequence", {"x"}, {"y"}}}) {
      expect_refused(with_input(node, {n}), "", {{"x", small}});
      expect_refused(with_input(node, {n, n, n}), "", {{"x", small}});
    }
    ModelText slice = with_input({"Slice", {"x", "b", "e", "a", "s"}, {"y"}}, {n});
    slice.graph.initializer(ints("b", {1}, {kHigh}))
        .initializer(ints("e", {1}, {-kHigh - 1}))
        .initializer(ints("a", {1}, {0}))
        .initializer(ints("s", {1}, {-1}));
    expect_refused(slice, "", {{"x", small}});
    GraphText body;
    body.node({"Neg", {"r"}, {"s"}}).input("r", floats_type({})).output("s", floats_type({}));
    expect_refused(with_input({"Scan",
                               {"x"},
                               {"y"},
                               {graph_attr("body", body), attr("num_scan_inputs", 1),
                                attr("scan_input_directions", std::vector<int64_t>{1})}},
                              {n}),
                   "", {{"x", small}});
  }
}

TEST(OnnxClaims, Nesting) {
  // Graphs in attributes.
  const auto wrap_graph = [](const std::string& inner) {
    GraphText g;
    g.node({"If", {"c"}, {"y"}, {graph_attr("then_branch", inner)}});
    return std::string(g);
  };
  const std::string graphs = Message().text(7, nested(10'000, std::string(GraphText()), wrap_graph)).bytes();
  expect_cheap_error([&] { open(graphs); }, "nest more than 100 deep");
  // Types.
  ModelText m;
  m.graph.node({"Identity", {"x"}, {"y"}})
      .input("x", nested(10'000, floats_type({2}), sequence_type))
      .output("y", floats_type({2}));
  expect_cheap_error([&] { open(m); }, "nest more than 100 deep");
  m.graph.inputs = {value_info("x", nested(10'000, floats_type({2}), optional_type))};
  expect_cheap_error([&] { open(m); }, "nest more than 100 deep");
  // As deep as it may be.
  const auto wrap_if = [](const std::string& inner) {
    GraphText g;
    g.node({"If", {"c"}, {"y"}, {graph_attr("then_branch", inner), graph_attr("else_branch", inner.substr(0, 0))}})
        .output("y", floats_type({2}));
    return std::string(g);
  };
  GraphText innermost;
  innermost.node({"Neg", {"x"}, {"y"}}).output("y", floats_type({2}));
  ModelText deep;
  deep.graph.node({"If", {"c"}, {"y"}, {graph_attr("then_branch", nested(90, innermost, wrap_if))}})
      .initializer(boolean("c", true))
      .input("x", floats_type({2}))
      .output("y", floats_type({2}));
  EXPECT_EQ(run(deep, {{"x", Tensor::f32({2}, {1, 2})}}).at(0), Tensor::f32({2}, {-1, -2}));
}

TEST(OnnxClaims, FunctionsThatCallThemselves) {
  const auto calls = [](const std::string& name, const Names& callees) {
    FunctionText f{name, {"a"}, {"b"}, {}};
    for (size_t i = 0; i < callees.size(); ++i)
      f.nodes.push_back(NodeText{callees[i], {"a"}, {i + 1 == callees.size() ? "b" : str("t", i)}, {}, "", "local"});
    return f;
  };
  ModelText m;
  m.graph.node({"F0", {"x"}, {"y"}, {}, "", "local"}).input("x", floats_type({2})).output("y", floats_type({2}));
  m.functions = {calls("F0", {"F0"})};
  expect_cheap_error([&] { open(m); }, "Function 'F0' calls itself");
  m.functions = {calls("F0", {"F1"}), calls("F1", {"F2"}), calls("F2", {"F0"})};
  expect_cheap_error([&] { open(m); }, "calls itself");
  // A chain of 10,000, and a few that double: 2^60 nodes.
  m.functions.clear();
  for (int i = 0; i < 10'000; ++i) m.functions.push_back(calls(str("F", i), {str("F", i + 1)}));
  m.functions.push_back(FunctionText{"F10000", {"a"}, {"b"}, {NodeText{"Neg", {"a"}, {"b"}}}});
  expect_cheap_error([&] { open(m); }, "call each other more than 100 deep");
  m.functions.clear();
  for (int i = 0; i < 60; ++i) m.functions.push_back(calls(str("F", i), {str("F", i + 1), str("F", i + 1)}));
  m.functions.push_back(FunctionText{"F60", {"a"}, {"b"}, {NodeText{"Neg", {"a"}, {"b"}}}});
  expect_cheap_error([&] { open(m); }, "more than 1000000 nodes");
  // Nobody calls it: no harm.
  m.graph.nodes = {NodeText{"Neg", {"x"}, {"y"}}};
  EXPECT_EQ(run(m, {{"x", Tensor::f32({2}, {1, 2})}}).at(0), Tensor::f32({2}, {-1, -2}));
}

TEST(OnnxClaims, Loops) {
  const auto loop_model = [](const GraphText& body, const Names& outputs) {
    ModelText m;
    m.graph.node({"Loop", {"m", "c", "v0"}, outputs, {graph_attr("body", body)}})
        .initializer(ints("m", {}, {1'000'000'000}))
        .initializer(boolean("c", true))
        .initializer(floats("v0", {1}, {1}))
        .output(outputs.back(), floats_type({"n"}));
    return m;
  };
  GraphText body;
  body.node({"Identity", {"c"}, {"c2"}})
      .input("i", ints_type({}))
      .input("c", tensor_type(ElemType::kBool, {}))
      .input("v", floats_type({"k"}))
      .output("c2", tensor_type(ElemType::kBool, {}))
      .output("v2", floats_type({"k"}));
  GraphText grows = body, stacks = body;
  grows.node({"Concat", {"v", "v"}, {"v2"}, {attr("axis", 0)}});
  expect_refused(loop_model(grows, {"v1"}), "");
  stacks.node({"Neg", {"v"}, {"v2"}}).node({"Abs", {"v"}, {"row"}}).output("row", floats_type({1}));
  expect_refused(loop_model(stacks, {"v1", "rows"}), "did not end after");
  // One that keeps its shapes is a loop at run time, whose end nobody can know: it is loaded, and costs nothing.
  GraphText keeps = body;
  keeps.node({"Neg", {"v"}, {"v2"}});
  const auto session = open(loop_model(keeps, {"v1"}));
  ASSERT_NE(session->graph(), nullptr) << session->why_not();
  EXPECT_LT(session->graph()->nodes().size(), 20u);
}

// Ten loops of sixteen iterations, one in the other, are 16^10 bodies when they are written out.
TEST(OnnxClaims, LoopsWithinLoops) {
  const auto wrap = [](const std::string& inner) {
    GraphText g;
    g.node({"Loop", {"m", "c", "v"}, {"w"}, {graph_attr("body", inner)}})
        .node({"Identity", {"c"}, {"c2"}})
        .input("i", ints_type({}))
        .input("c", tensor_type(ElemType::kBool, {}))
        .input("v", floats_type({"k"}))
        .output("c2", tensor_type(ElemType::kBool, {}))
        .output("w", floats_type({"k"}));
    return std::string(g);
  };
  GraphText inner;
  inner.node({"Neg", {"v"}, {"w"}})
      .node({"Identity", {"c"}, {"c2"}})
      .input("i", ints_type({}))
      .input("c", tensor_type(ElemType::kBool, {}))
      .input("v", floats_type({"k"}))
      .output("c2", tensor_type(ElemType::kBool, {}))
      .output("w", floats_type({"k"}));
  ModelText m;
  m.graph.node({"Loop", {"m", "c", "x"}, {"y"}, {graph_attr("body", nested(9, inner, wrap))}})
      .initializer(ints("m", {}, {16}))
      .initializer(boolean("c", true))
      .input("x", floats_type({1}))
      .output("y", floats_type({1}));
  const auto session = open(m);
  // Either the loops stay loops, or the import gives up.
  if (session->graph()) {
    EXPECT_LT(session->graph()->nodes().size(), 100'000u);
  } else {
    EXPECT_NE(session->why_not().find("nodes"), std::string::npos) << session->why_not();
  }
}

// Sequences that hold sequences would double with every node.
TEST(OnnxClaims, SequencesOfSequences) {
  ModelText m;
  m.graph.initializer(floats("v0", {1}, {1}));
  for (int i = 0; i < 50; ++i) m.graph.node({"SequenceConstruct", {str("v", i), str("v", i)}, {str("v", i + 1)}});
  m.graph.output("v50", sequence_type(floats_type({1})));
  expect_cheap_error([&] { run_values(*open(m), {}); }, "an element of one is expected");
}

TEST(OnnxClaims, RanksOfAThousand) {
  const std::vector<int64_t> dims(1000, 1);
  const std::string x = floats("x", dims, {3});
  for (const NodeText& node :
       {NodeText{"Neg", {"x"}, {"y"}}, NodeText{"Transpose", {"x"}, {"y"}}, NodeText{"ReduceSum", {"x"}, {"y"}},
        NodeText{"Add", {"x", "x"}, {"y"}}, NodeText{"Softmax", {"x"}, {"y"}},
        NodeText{"Concat", {"x", "x"}, {"y"}, {attr("axis", 7)}}, NodeText{"Where", {"b", "x", "x"}, {"y"}},
        NodeText{"MatMul", {"x", "x"}, {"y"}}, NodeText{"Tile", {"x", "t"}, {"y"}},
        NodeText{"CumSum", {"x", "a"}, {"y"}}}) {
    try {
      const std::vector<Tensor> y = run(model_of(
          node, {x, boolean("b", true), ints("t", {1000}, std::vector<int64_t>(1000, 1)), ints("a", {}, {3})}));
      EXPECT_GE(y.at(0).num_elements(), 1) << node.op;
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
    }
  }
}

}  // namespace rlx::test
