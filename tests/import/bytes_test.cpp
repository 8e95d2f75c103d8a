// Files that are cut off, have a bit flipped, or hold fields of another type: they work, or throw rlx::Error.
#include "import/session.h"

namespace rlx::test {

namespace {

// y = relu(x w + b) + c, with a symbol, a constant, an initializer of either kind and a value info.
std::string small_model() {
  ModelText m;
  m.opsets = {{"", 21}};
  m.graph.node({"MatMul", {"x", "w"}, {"p"}})
      .node({"Constant", {}, {"c"}, {tensor_attr("value", floats("", {}, {2}))}})
      .node({"Add", {"p", "b"}, {"q"}, {}, "bias"})
      .node({"Relu", {"q"}, {"r"}})
      .node({"Softmax", {"r"}, {"s"}, {attr("axis", 1)}})
      .node({"Add", {"s", "c"}, {"y"}})
      .initializer(floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}))
      .initializer(Message().numbers(1, {2}).number(2, 1).text(8, "b").reals(4, {0.5f, -20}))
      .input("x", floats_type({"n", 3}))
      .output("y", floats_type({"n", 2}));
  m.graph.value_infos.push_back(value_info("p", floats_type({7})));
  return m;
}

// Control flow, a function and shape arithmetic. The number of iterations is an input: a flipped bit in a constant
// would make a loop that is right, and takes a year.
std::string control_model() {
  GraphText yes, no, body;
  yes.node({"Neg", {"x"}, {"t"}}).output("t", floats_type({"n"}));
  no.node({"F", {"x"}, {"e"}, {attr("k", 3.0f)}, "", "local"}).output("e", floats_type({"n"}));
  body.node({"Add", {"v", "x"}, {"v2"}})
      .node({"Identity", {"c"}, {"c2"}})
      .input("i", ints_type({}))
      .input("c", tensor_type(ElemType::kBool, {}))
      .input("v", floats_type({"n"}))
      .output("c2", tensor_type(ElemType::kBool, {}))
      .output("v2", floats_type({"n"}));
  ModelText m;
  m.graph.node({"If", {"b"}, {"u"}, {graph_attr("then_branch", yes), graph_attr("else_branch", no)}})
      .node({"Loop", {"m", "go", "u"}, {"w"}, {graph_attr("body", body)}})
      .node({"Shape", {"x"}, {"s"}})
      .node({"ConstantOfShape", {"s"}, {"z"}})
      .node({"Concat", {"w", "z"}, {"y"}, {attr("axis", 0)}})
      .initializer(boolean("go", true))
      .input("x", floats_type({"n"}))
      .input("b", tensor_type(ElemType::kBool, {}))
      .input("m", ints_type({}))
      .output("y", floats_type({"?"}));
  m.functions.push_back(
      FunctionText{"F",
                   {"a"},
                   {"r"},
                   {NodeText{"Constant", {}, {"k"}, {ref_attr("value_float", "k", onnx::AttributeProto::Type::kFloat)}},
                    NodeText{"Mul", {"a", "k"}, {"r"}}},
                   {"k"}});
  return m;
}

// Loads and runs what can be: anything but an Error that is not our own fault fails the test.
void try_model(const std::string& bytes, Rng& rng, int& loaded, int& ran) {
  try {
    const auto session = open(bytes);
    ++loaded;
    auto inputs = random_inputs(*session, rng);
    if (!inputs) return;
    if (const auto it = inputs->find("m"); it != inputs->end() && it->second.tensor.dtype() == DType::I64)
      it->second.tensor = Tensor::from_doubles(DType::I64, it->second.tensor.sizes(),
                                               std::vector<double>(it->second.tensor.num_elements(), 2));
    session->run(*inputs);
    ++ran;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInternal) ADD_FAILURE() << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not an rlx::Error: " << e.what();
  }
}

void cut_everywhere(const std::string& model) {
  Rng rng(1);
  int loaded = 0, ran = 0;
  try_model(model, rng, loaded, ran);
  ASSERT_EQ(ran, 1);
  for (size_t size = 0; size < model.size() && !testing::Test::HasFailure(); ++size)
    try_model(model.substr(0, size), rng, loaded, ran);
}

void flip_everything(const std::string& model) {
  Rng rng(2);
  int loaded = 0, ran = 0;
  for (size_t bit = 0; bit < model.size() * 8 && !testing::Test::HasFailure(); ++bit) {
    SCOPED_TRACE(str("bit ", bit));
    std::string other = model;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    try_model(other, rng, loaded, ran);
  }
  EXPECT_GT(ran, 100);  // flips in numbers and names that nobody reads: the test sees both sides
  EXPECT_GT(static_cast<int>(model.size() * 8) - loaded, 100);
}

}  // namespace

TEST(OnnxBytes, EveryTruncationOfAModelIsAnErrorOrWorks) {
  cut_everywhere(small_model());
  cut_everywhere(control_model());
}

TEST(OnnxBytes, EveryFlippedBitIsAnErrorOrWorks) { flip_everything(small_model()); }

TEST(OnnxBytes, EveryFlippedBitOfControlFlowIsAnErrorOrWorks) { flip_everything(control_model()); }

TEST(OnnxBytes, RandomBytesAreAnError) {
  for_random(200, [](Rng& rng) {
    std::string bytes(static_cast<size_t>(rng.integer(0, 300)), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.bits());
    EXPECT_THROW(open(bytes), Error);
  });
}

TEST(OnnxBytes, WhatIsNoModelSaysSo) {
  EXPECT_ERROR(open(""), kInvalid, "has no graph");
  EXPECT_ERROR(open("hello"), kInvalid, "not a valid protobuf message");
  EXPECT_ERROR(open(ModelText{}), kInvalid, "no outputs");
}

TEST(OnnxBytes, FieldsOfAnotherWireTypeAreErrors) {
  const std::string type = floats_type({2});
  const auto model_with_graph = [](const Message& graph) { return Message().text(7, graph.bytes()).bytes(); };
  // Where a message, a text, a number, a float is expected.
  for (const std::string& bytes : {
           Message().number(7, 3).bytes(),                                           // graph
           Message().text(1, "x").text(7, "").bytes(),                               // ir_version
           model_with_graph(Message().number(1, 5)),                                 // node
           model_with_graph(Message().number(5, 5)),                                 // initializer
           model_with_graph(Message().text(11, Message().number(1, 1).bytes())),     // name of an input
           model_with_graph(Message().text(1, Message().number(4, 1).bytes())),      // op_type
           model_with_graph(Message().text(5, Message().real(1, 1).bytes())),        // dims
           model_with_graph(Message().text(5, Message().text(2, "float").bytes())),  // data_type
           model_with_graph(
               Message().text(1, Message().text(5, Message().number(2, 1).bytes()).bytes())),  // f of an attribute
       }) {
    EXPECT_ERROR(open(bytes), kInvalid, "not a valid protobuf message");
  }
  // Elements of a tensor are read when they are needed.
  const std::string tensor = Message().numbers(1, {1}).number(2, 1).text(8, "x").number(9, 7);
  EXPECT_ERROR(run(model_of({"Neg", {"x"}, {"y"}}, {tensor})), kInvalid, "Tensor 'x' is not a valid protobuf message");
}

TEST(OnnxBytes, NumbersMayBePackedOrNot) {
  const std::string apart = Message().number(1, 2).number(1, 1).number(2, 1).text(8, "x").real(4, 3).real(4, 4);
  const std::vector<Tensor> y = run(model_of({"Neg", {"x"}, {"y"}}, {apart}));
  EXPECT_EQ(y.at(0), Tensor::f32({2, 1}, {-3, -4}));
}

TEST(OnnxBytes, UnknownElementTypesAreNamed) {
  for (const int64_t elem : {0, 15, 99, -1, 1 << 30}) {
    const std::string tensor = Message().numbers(1, {1}).number(2, elem).text(8, "x").text(9, "1234");
    EXPECT_THROW(run(model_of({"Neg", {"x"}, {"y"}}, {tensor})), Error) << elem;
    ModelText m;
    m.graph.node({"Identity", {"x"}, {"y"}}).input("x", tensor_type(static_cast<ElemType>(elem), {1})).output("y", "");
    const auto session = open(m);
    EXPECT_ERROR(run(*session), kInvalid, "'x'") << elem;
    EXPECT_ERROR(run(*session, {{"x", Tensor::f32({1}, {1})}}), kInvalid, "Input 'x'") << elem;
  }
}

}  // namespace rlx::test
