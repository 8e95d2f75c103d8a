// If, Loop and Scan, known and not known before a run; and models that run in stages.
#include "import/session.h"

namespace rlx::test {

namespace {

constexpr ElemType kBool = ElemType::kBool;
const Tensor kX = Tensor::f32({2}, {1, -2});

Tensor flag(bool b) { return Tensor::from_doubles(DType::Bool, {}, {{b ? 1.0 : 0.0}}); }

// if c: -x, else: x x
ModelText if_model() {
  GraphText yes, no;
  yes.node({"Neg", {"x"}, {"t"}}).output("t", floats_type({2}));
  no.node({"Mul", {"x", "x"}, {"e"}}).output("e", floats_type({2}));
  ModelText m;
  m.graph.node({"If", {"c"}, {"y"}, {graph_attr("then_branch", yes), graph_attr("else_branch", no)}})
      .input("x", floats_type({2}))
      .output("y", floats_type({2}));
  return m;
}

// The body of a loop: iteration i, condition c, carried v; what it computes is added by the test.
GraphText loop_body(const std::string& next_condition = "c") {
  GraphText body;
  body.input("i", ints_type({}))
      .input("c", tensor_type(kBool, {}))
      .input("v", floats_type({"k"}))
      .output(next_condition, tensor_type(kBool, {}))
      .output("v2", floats_type({"k"}));
  return body;
}

ModelText loop_model(const GraphText& body, const Names& inputs, const Names& outputs) {
  ModelText m;
  m.graph.node({"Loop", inputs, outputs, {graph_attr("body", body)}}).input("x", floats_type({2}));
  for (const std::string& name : outputs) m.graph.output(name, any_rank(ElemType::kFloat));
  return m;
}

}  // namespace

TEST(OnnxIf, TakesTheBranchThatIsKnown) {
  for (const bool c : {true, false}) {
    ModelText m = if_model();
    m.graph.initializer(boolean("c", c));
    const auto session = open(m);
    ASSERT_NE(session->graph(), nullptr) << session->why_not();
    EXPECT_EQ(session->graph()->nodes().size(), 3u);  // x, the constant, and one op
    EXPECT_EQ(run(*session, {{"x", kX}}).at(0), c ? Tensor::f32({2}, {-1, 2}) : Tensor::f32({2}, {1, 4}));
  }
}

TEST(OnnxIf, DecidesAtRunTime) {
  ModelText m = if_model();
  m.graph.input("c", tensor_type(kBool, {}));
  const auto session = open(m);
  for (const bool c : {true, false, true})
    EXPECT_EQ(run(*session, {{"x", kX}, {"c", flag(c)}}).at(0),
              c ? Tensor::f32({2}, {-1, 2}) : Tensor::f32({2}, {1, 4}));
}

// Branches of other shapes are two graphs: the condition is looked at first.
TEST(OnnxIf, MayHaveBranchesOfOtherShapes) {
  GraphText yes, no;
  yes.node({"Concat", {"x", "x"}, {"t"}, {attr("axis", 0)}}).output("t", floats_type({4}));
  no.node({"Neg", {"x"}, {"e"}}).output("e", floats_type({2}));
  ModelText m;
  m.graph.node({"If", {"c"}, {"y"}, {graph_attr("then_branch", yes), graph_attr("else_branch", no)}})
      .input("x", floats_type({2}))
      .input("c", tensor_type(kBool, {1}))
      .output("y", floats_type({"n"}));
  const auto session = open(m);
  EXPECT_EQ(session->graph(), nullptr);
  const auto at = [&](double c) {
    return run(*session, {{"x", kX}, {"c", Tensor::from_doubles(DType::Bool, {1}, {{c}})}}).at(0);
  };
  EXPECT_EQ(at(1), Tensor::f32({4}, {1, -2, 1, -2}));
  EXPECT_EQ(at(0), Tensor::f32({2}, {-1, 2}));
  const int64_t compiles = session->compiles();
  EXPECT_EQ(at(1), Tensor::f32({4}, {1, -2, 1, -2}));
  EXPECT_EQ(at(0), Tensor::f32({2}, {-1, 2}));
  EXPECT_EQ(session->compiles(), compiles);
}

TEST(OnnxLoop, RunsAKnownNumberOfTimes) {
  for (const int64_t n : {0, 1, 5, 100}) {
    GraphText body = loop_body();
    body.node({"Add", {"v", "x"}, {"v2"}});  // x is the outer one
    ModelText m = loop_model(body, {"m", "", "x"}, {"y"});
    m.graph.initializer(ints("m", {}, {n}));
    EXPECT_EQ(run(m, {{"x", kX}}).at(0),
              Tensor::f32({2}, {1.0f + static_cast<float>(n), -2 - 2.0f * static_cast<float>(n)}))
        << n;
  }
}

TEST(OnnxLoop, RunsANumberOfTimesThatIsGiven) {
  GraphText body = loop_body();
  body.node({"Add", {"v", "x"}, {"v2"}});
  ModelText m = loop_model(body, {"m", "", "x"}, {"y"});
  m.graph.input("m", ints_type({}));
  const auto session = open(m);
  for (const int64_t n : {3, 0, 7})
    EXPECT_EQ(run(*session, {{"x", kX}, {"m", Tensor::i64({}, {n})}}).at(0),
              Tensor::f32({2}, {1.0f + static_cast<float>(n), -2 - 2.0f * static_cast<float>(n)}))
        << n;
}

// Exporters write the largest number of iterations where only the condition counts.
TEST(OnnxLoop, EndsByItsCondition) {
  for (const int64_t trips : {std::numeric_limits<int64_t>::max(), int64_t{1'000'000}, int64_t{0}}) {
    GraphText body = loop_body("c2");
    body.node({"Add", {"v", "x"}, {"v2"}})
        .node({"ReduceMax", {"v2"}, {"top"}, {attr("keepdims", 0)}})
        .node({"Less", {"top", "limit"}, {"c2"}});
    ModelText m = loop_model(body, {trips == 0 ? "" : "m", "go", "x"}, {"y"});
    m.graph.initializer(ints("m", {}, {trips})).initializer(boolean("go", true)).initializer(floats("limit", {}, {4}));
    EXPECT_EQ(run(m, {{"x", kX}}).at(0), Tensor::f32({2}, {4, -8})) << trips;
  }
}

// No loop gets to such a number, which would not fit the 32 bits of a GPU's integers.
TEST(OnnxLoop, RunsOnAGpuWithTheLargestNumberOfIterations) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t trips : {most, int64_t{1} << 31, (int64_t{1} << 31) - 1}) {
    GraphText body = loop_body("c2");
    body.node({"Add", {"v", "x"}, {"v2"}})
        .node({"ReduceMax", {"v2"}, {"top"}, {attr("keepdims", 0)}})
        .node({"Less", {"top", "limit"}, {"c2"}});
    ModelText m = loop_model(body, {"m", "go", "x"}, {"y"});
    m.graph.initializer(ints("m", {}, {trips})).initializer(boolean("go", true)).initializer(floats("limit", {}, {4}));
    for (const DeviceInfo& device : devices()) {
      if (!device.available) continue;
      CompileOptions options{.device = device.name};
      options.webgpu.min_loop_work = 0;
      const auto bytes = std::make_shared<const std::string>(m);
      Session session(onnx::parse_source(*bytes, bytes, "", "test"), options, {});
      EXPECT_EQ(run(session, {{"x", kX}}).at(0), Tensor::f32({2}, {4, -8})) << device.name << ", " << trips;
    }
  }
}

// The same of a number that is an input, or computed of one: with 64 bits, for what a GPU would make of it.
TEST(OnnxLoop, RunsOnAGpuWithALargeNumberThatIsGiven) {
  const int64_t most = std::numeric_limits<int64_t>::max(), word = int64_t{1} << 31;
  GraphText body = loop_body("c2");
  body.node({"Add", {"v", "x"}, {"v2"}})
      .node({"ReduceMax", {"v2"}, {"top"}, {attr("keepdims", 0)}})
      .node({"Less", {"top", "limit"}, {"c2"}});
  const NodeText loop{"Loop", {"trips", "go", "x"}, {"y"}, {graph_attr("body", body)}};
  const auto expect = [&](const std::vector<NodeText>& nodes, const std::vector<int64_t>& given, int64_t host_loop) {
    ModelText m;
    for (const NodeText& n : nodes) m.graph.node(n);
    m.graph.node(loop).input("x", floats_type({2})).input(nodes.empty() ? "trips" : "m", ints_type({1}));
    m.graph.initializer(boolean("go", true)).initializer(floats("limit", {}, {4}));
    m.graph.initializer(ints("one", {1}, {1})).initializer(ints("most", {1}, {most}));
    m.graph.output("y", any_rank(ElemType::kFloat));
    for (const DeviceInfo& device : devices()) {
      if (!device.available) continue;
      CompileOptions options{.device = device.name};
      options.webgpu.min_loop_work = host_loop;
      const auto bytes = std::make_shared<const std::string>(m);
      Session session(onnx::parse_source(*bytes, bytes, "", "test"), options, {});
      for (const int64_t n : given)
        EXPECT_EQ(run(session, {{"x", kX}, {nodes.empty() ? "trips" : "m", Tensor::i64({1}, {n})}}).at(0),
                  n > 2 ? Tensor::f32({2}, {4, -8}) : Tensor::f32({2}, {2, -4}))
            << device.name << ", " << n << ", " << nodes.size();
    }
  };
  for (const int64_t host_loop : {0, 1 << 20}) {
    expect({}, {1, 3, word - 1, word, most}, host_loop);
    expect({{"Add", {"m", "m"}, {"twice"}}, {"Sub", {"twice", "one"}, {"trips"}}},
           {1, 3, word / 2, word - 1, word, most / 2}, host_loop);
    expect({{"Mul", {"m", "m"}, {"trips"}}}, {1, 3, word / 2, word - 1, word}, host_loop);
    expect({{"Less", {"one", "m"}, {"many"}}, {"Where", {"many", "most", "m"}, {"trips"}}}, {1, 3, word, most},
           host_loop);
  }
}

TEST(OnnxLoop, StacksAndGrows) {
  GraphText body = loop_body();
  body.node({"Concat", {"v", "v"}, {"v2"}, {attr("axis", 0)}})
      .node({"ReduceSum", {"v"}, {"row"}, {attr("keepdims", 0)}})
      .output("row", floats_type({}));
  ModelText m = loop_model(body, {"m", "", "x"}, {"y", "rows"});
  m.graph.initializer(ints("m", {}, {3}));
  const std::vector<Tensor> y = run(m, {{"x", kX}});
  EXPECT_EQ(y.at(0).sizes(), (std::vector<int64_t>{16}));
  EXPECT_EQ(y.at(1), Tensor::f32({3}, {-1, -2, -4}));
  m.graph.initializers = {ints("m", {}, {0})};
  EXPECT_EQ(run(m, {{"x", kX}}).at(1), Tensor(DType::F32, {0}));
}

// A body that says nothing of their shape: it follows from the loop's inputs.
TEST(OnnxLoop, StacksOfNoIterationHaveTheShapeOfRows) {
  GraphText body;
  body.input("i", ints_type({}))
      .input("c", tensor_type(kBool, {}))
      .input("v", any_rank(ElemType::kFloat))
      .node({"Neg", {"v"}, {"v2"}})
      .output("c", tensor_type(kBool, {}))
      .output("v2", any_rank(ElemType::kFloat))
      .output("v2", any_rank(ElemType::kFloat));
  ModelText m = loop_model(body, {"m", "", "x"}, {"y", "rows"});
  m.graph.initializer(ints("m", {}, {0}));
  EXPECT_EQ(run(m, {{"x", kX}}).at(1), Tensor(DType::F32, {0, 2}));
}

TEST(OnnxLoop, MayCarryASequence) {
  GraphText body;
  body.input("i", ints_type({}))
      .input("c", tensor_type(kBool, {}))
      .input("s", sequence_type(floats_type({"k"})))
      .node({"SequenceInsert", {"s", "x"}, {"s2"}})
      .output("c", tensor_type(kBool, {}))
      .output("s2", sequence_type(floats_type({"k"})));
  ModelText m;
  m.graph.node({"SequenceEmpty", {}, {"e"}})
      .node({"Loop", {"m", "", "e"}, {"s"}, {graph_attr("body", body)}})
      .node({"ConcatFromSequence", {"s"}, {"y"}, {attr("axis", 0)}})
      .input("x", floats_type({2}))
      .input("m", ints_type({}))
      .output("y", floats_type({"n"}));
  const auto session = open(m);
  EXPECT_EQ(run(*session, {{"x", kX}, {"m", Tensor::i64({}, {2})}}).at(0), Tensor::f32({4}, {1, -2, 1, -2}));
  EXPECT_EQ(run(*session, {{"x", kX}, {"m", Tensor::i64({}, {1})}}).at(0), kX);
}

TEST(OnnxLoop, ManyObservedIterationsAreForgottenWithoutAStack) {
  GraphText body = loop_body("c2");  // the condition is data, and the shape changes: every iteration is looked at
  body.node({"Slice", {"v", "one", "end", "zero"}, {"v2"}})
      .node({"ReduceSum", {"v2"}, {"left"}, {attr("keepdims", 0)}})
      .node({"Less", {"none", "left"}, {"c2"}});
  ModelText m = loop_model(body, {"", "go", "x"}, {"y"});
  m.graph.inputs = {value_info("x", floats_type({"n"}))};
  m.graph.initializer(boolean("go", true))
      .initializer(floats("none", {}, {0}))
      .initializer(ints("one", {1}, {1}))
      .initializer(ints("zero", {1}, {0}))
      .initializer(ints("end", {1}, {1 << 30}));
  const auto session = open(m);
  EXPECT_EQ(run(*session, {{"x", Tensor::f32({300}, std::vector<float>(300, 1))}}).at(0), Tensor(DType::F32, {0}));
}

TEST(OnnxScan, SumsRowsForwardsAndBackwards) {
  GraphText body;
  body.node({"Add", {"s", "r"}, {"s2"}})
      .node({"Add", {"s2", "b"}, {"o"}})  // b is the outer one
      .input("s", floats_type({2}))
      .input("r", floats_type({2}))
      .output("s2", floats_type({2}))
      .output("o", floats_type({2}));
  for (const bool back : {false, true}) {
    ModelText m;
    m.graph
        .node({"Scan",
               {"x", "rows"},
               {"y", "all"},
               {graph_attr("body", body), attr("num_scan_inputs", 1),
                attr("scan_input_directions", std::vector<int64_t>{back ? 1 : 0})}})
        .initializer(floats("b", {2}, {100, 200}))
        .input("x", floats_type({2}))
        .input("rows", floats_type({"n", 2}))
        .output("y", floats_type({2}))
        .output("all", floats_type({"n", 2}));
    const std::vector<Tensor> y =
        run(m, {{"x", Tensor::f32({2}, {0, 0})}, {"rows", Tensor::f32({2, 2}, {1, 2, 3, 4})}});
    EXPECT_EQ(y.at(0), Tensor::f32({2}, {4, 6}));
    EXPECT_EQ(y.at(1), back ? Tensor::f32({2, 2}, {103, 204, 104, 206}) : Tensor::f32({2, 2}, {101, 202, 104, 206}));
  }
}

TEST(OnnxBodies, ThatDoNotFitAreErrors) {
  const auto refused = [](const ModelText& m, std::string_view text) {
    const auto session = open(m);
    EXPECT_ERROR(run(*session, {{"x", kX}}), kInvalid, text);
  };
  refused(loop_model(GraphText(), {"", "", "x"}, {"y"}), "outputs");
  GraphText few = loop_body();
  few.inputs.pop_back();
  ModelText m = loop_model(few, {"m", "", "x"}, {"y"});
  m.graph.initializer(ints("m", {}, {2}));
  refused(m, "inputs");
  m = if_model();
  m.graph.nodes = {NodeText{"If", {"c"}, {"y"}}};
  m.graph.initializer(boolean("c", true));
  refused(m, "'then_branch' is missing");
  m = if_model();
  m.graph.nodes = {NodeText{"Scan", {"x"}, {"y"}, {graph_attr("body", GraphText()), attr("num_scan_inputs", -1)}}};
  refused(m, "num_scan_inputs");
  m.graph.nodes = {NodeText{"Scan", {"x"}, {"y"}, {graph_attr("body", GraphText()), attr("num_scan_inputs", 0)}}};
  refused(m, "num_scan_inputs is 0");  // found by fuzzing
}

// ---- stages

namespace {

// y = x reshaped to the absolute values of `shape`, which only a run knows.
ModelText staged_model() {
  ModelText m;
  m.graph.node({"Abs", {"shape"}, {"s"}})
      .node({"Mul", {"x", "x"}, {"sq"}})
      .node({"Reshape", {"sq", "s"}, {"r"}})
      .node({"Neg", {"r"}, {"y"}})
      .input("x", floats_type({"n"}))
      .input("shape", ints_type({2}))
      .output("y", any_rank(ElemType::kFloat));
  return m;
}

Tensor reshaped(Session& session, int64_t a, int64_t b, bool negative = false) {
  const Tensor x = Tensor::f32({6}, {1, 2, 3, 4, 5, 6});
  return run(session, {{"x", x}, {"shape", Tensor::i64({2}, {negative ? -a : a, b})}}).at(0);
}

}  // namespace

TEST(OnnxStages, AreKeptForTheSameValues) {
  const auto session = open(staged_model());
  EXPECT_EQ(session->graph(), nullptr);
  EXPECT_NE(session->why_not().find("only known when the model runs"), std::string::npos) << session->why_not();
  EXPECT_EQ(session->compiles(), 0);
  const std::vector<float> squares{-1, -4, -9, -16, -25, -36};
  EXPECT_EQ(reshaped(*session, 2, 3), Tensor::f32({2, 3}, squares));
  const int64_t first = session->compiles();
  EXPECT_GT(first, 0);
  EXPECT_EQ(reshaped(*session, 2, 3), Tensor::f32({2, 3}, squares));
  EXPECT_EQ(reshaped(*session, 2, 3, true), Tensor::f32({2, 3}, squares));  // another input, the same value
  EXPECT_EQ(session->compiles(), first);
  EXPECT_EQ(reshaped(*session, 3, 2), Tensor::f32({3, 2}, squares));
  const int64_t second = session->compiles();
  EXPECT_GT(second, first);
  EXPECT_EQ(reshaped(*session, 2, 3), Tensor::f32({2, 3}, squares));
  EXPECT_EQ(reshaped(*session, 3, 2), Tensor::f32({3, 2}, squares));
  EXPECT_EQ(session->compiles(), second);
  EXPECT_ERROR(reshaped(*session, 4, 2), kInvalid, "Reshape");  // and goes on after an error
  EXPECT_EQ(reshaped(*session, 6, 1), Tensor::f32({6, 1}, squares));
}

TEST(OnnxStages, AreForgottenAtSomePoint) {
  const auto session = open(staged_model());
  for (int64_t n = 1; n < 200; ++n) {
    const Tensor x(DType::F32, {n});
    EXPECT_EQ(run(*session, {{"x", x}, {"shape", Tensor::i64({2}, {n, 1})}}).at(0).sizes(),
              (std::vector<int64_t>{n, 1}));
  }
  const int64_t compiles = session->compiles();
  run(*session, {{"x", Tensor(DType::F32, {199})}, {"shape", Tensor::i64({2}, {199, 1})}});
  EXPECT_EQ(session->compiles(), compiles);
}

// The value needs much work: the first stage is a program of its own, and its results go on to the second.
TEST(OnnxStages, HandOnWhatIsNeeded) {
  ModelText m;
  m.graph.node({"MatMul", {"x", "x"}, {"p"}})
      .node({"ReduceMax", {"p"}, {"top"}, {attr("keepdims", 0)}})
      .node({"Cast", {"top"}, {"k"}, {attr("to", 7)}})
      .node({"Unsqueeze", {"k", "zero"}, {"s"}})
      .node({"Expand", {"one", "s"}, {"e"}})
      .node({"ReduceSum", {"e"}, {"sum"}, {attr("keepdims", 0)}})
      .node({"Add", {"p", "sum"}, {"q"}})
      .node({"Add", {"q", "s0_v1"}, {"y"}})  // an input with a name that stages use
      .initializer(ints("zero", {1}, {0}))
      .initializer(floats("one", {1}, {1}))
      .input("x", floats_type({2, 2}))
      .input("s0_v1", floats_type({2, 2}))
      .output("y", floats_type({2, 2}));
  const auto session = open(m);
  const auto at = [&](float scale) {
    return run(*session, {{"x", Tensor::f32({2, 2}, {scale, 0, 0, 1})}, {"s0_v1", Tensor::f32({2, 2}, {1, 2, 3, 4})}})
        .at(0);
  };
  EXPECT_EQ(at(3), Tensor::f32({2, 2}, {9 + 9 + 1, 9 + 2, 9 + 3, 1 + 9 + 4}));
  const int64_t first = session->compiles();
  EXPECT_EQ(at(3), Tensor::f32({2, 2}, {9 + 9 + 1, 9 + 2, 9 + 3, 1 + 9 + 4}));
  EXPECT_EQ(session->compiles(), first);
  EXPECT_EQ(at(2), Tensor::f32({2, 2}, {4 + 4 + 1, 4 + 2, 4 + 3, 1 + 4 + 4}));
  EXPECT_GT(session->compiles(), first);
}

}  // namespace rlx::test
