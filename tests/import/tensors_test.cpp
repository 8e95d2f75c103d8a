// Weights: their sizes and bytes must fit, their files must lie beside the model, and nothing is copied.
#include <filesystem>

#include "core/aligned.h"
#include "import/onnx/elem_type.h"
#include "import/session.h"
#include "rlx/ops/leaves.h"
#include "support/temp_folder.h"

namespace rlx::test {

namespace {

ModelText negated(const std::string& tensor) { return model_of({"Neg", {"w"}, {"y"}}, {tensor}); }

Tensor negate(const std::string& tensor) { return run(negated(tensor)).at(0); }

// The constants of the graph, in order.
std::vector<Tensor> constants(const Session& session) {
  EXPECT_NE(session.graph(), nullptr) << session.why_not();
  std::vector<Tensor> all;
  for (const Node& node : session.graph()->nodes())
    if (node.op == &ops::constant) all.push_back(node.attrs.as<ops::ConstantAttrs>().value);
  return all;
}

}  // namespace

TEST(OnnxTensors, SizesAreChecked) {
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(negate(raw_tensor("w", ElemType::kFloat, {-1}, "")), kInvalid, "Tensor 'w' has a negative size (-1)");
  EXPECT_ERROR(negate(raw_tensor("w", ElemType::kFloat, {-1, -4}, "1234567890123456")), kInvalid, "negative size");
  EXPECT_ERROR(negate(raw_tensor("w", ElemType::kFloat, {kHigh, 2}, "")), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(negate(raw_tensor("w", ElemType::kFloat, {int64_t{1} << 62}, "")), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(negate(raw_tensor("w", ElemType::kInt4, {kHigh}, "")), kInvalid, "does not fit 64 bits");
  EXPECT_EQ(negate(raw_tensor("w", ElemType::kFloat, {3, 0}, "")), Tensor(DType::F32, {3, 0}));
}

TEST(OnnxTensors, RawDataOfTheWrongLengthIsRefused) {
  for (const size_t bytes : {0u, 1u, 11u, 13u, 16u})
    EXPECT_ERROR(negate(raw_tensor("w", ElemType::kFloat, {3}, std::string(bytes, 'a'))), kInvalid,
                 str("Tensor 'w' (float) has ", bytes, " bytes of data, but its sizes [3] need 12"));
  EXPECT_ERROR(run(model_of({"Identity", {"w"}, {"y"}}, {raw_tensor("w", ElemType::kInt4, {3}, "1")})), kInvalid,
               "need 2");
}

TEST(OnnxTensors, TypedDataOfTheWrongLengthIsRefused) {
  const auto typed = [](ElemType elem, const Message& data) {
    return negate(Message().numbers(1, {3}).number(2, static_cast<int32_t>(elem)).text(8, "w").bytes() + data.bytes());
  };
  EXPECT_EQ(typed(ElemType::kFloat, Message().reals(4, {1, 2, 3})), Tensor::f32({3}, {-1, -2, -3}));
  EXPECT_EQ(typed(ElemType::kInt64, Message().numbers(7, {1, 2, 3})), Tensor::i64({3}, {-1, -2, -3}));
  for (const auto& [elem, data] : std::vector<std::pair<ElemType, Message>>{
           {ElemType::kFloat, Message().reals(4, {1, 2})},
           {ElemType::kFloat, Message().numbers(7, {1, 2, 3})},  // elements in another field
           {ElemType::kFloat, Message()},
           {ElemType::kDouble, Message().reals(4, {1, 2, 3})},
           {ElemType::kInt64, Message().numbers(7, {1, 2, 3, 4})},
           {ElemType::kInt32, Message().numbers(5, {1})},
           {ElemType::kFloat16, Message().numbers(5, {1, 2, 3, 4})},
           {ElemType::kComplex64, Message().reals(4, {1, 2, 3})},
       })
    EXPECT_ERROR(typed(elem, data), kInvalid, "Tensor 'w' has");
}

TEST(OnnxTensors, BooleansAreZeroAndOne) {
  const std::string w = raw_tensor("w", ElemType::kBool, {4}, std::string("\0\1\2\xff", 4));
  const Tensor y = run(model_of({"Identity", {"w"}, {"y"}}, {w}, ElemType::kBool)).at(0);
  EXPECT_EQ(y, Tensor::from_doubles(DType::Bool, {4}, {{0.0, 1.0, 1.0, 1.0}}));
}

TEST(OnnxTensors, WeightsAreBorrowedFromTheFile) {
  ModelText m;
  m.graph.node({"MatMul", {"x", "w"}, {"p"}})
      .node({"Add", {"p", "c"}, {"y"}})
      .node({"Constant", {}, {"c"}, {tensor_attr("value", floats("", {30000}, std::vector<float>(30000, 1)))}})
      .initializer(floats("w", {1, 30000}, std::vector<float>(30000, 2)))
      .input("x", floats_type({"n", 1}))
      .output("y", floats_type({"n", 30000}));
  const auto bytes = std::make_shared<const std::string>(m);
  const Session session(onnx::parse_source(*bytes, bytes, "", "test"), {}, {});
  const std::vector<Tensor> weights = constants(session);
  ASSERT_EQ(weights.size(), 2u);
  for (const Tensor& w : weights) {
    EXPECT_FALSE(w.is_owned());
    const auto* at = reinterpret_cast<const char*>(w.bytes().data());
    EXPECT_TRUE(at >= bytes->data() && at + w.bytes().size() <= bytes->data() + bytes->size());
  }
}

// Bytes of a file stand at any address. Kernels read elements by typed pointers: what is misaligned is copied for them
// (the sanitizers' builds of this test see to it).
TEST(OnnxTensors, WeightsAtAnyAddressWork) {
  for (size_t shift = 0; shift < 9; ++shift) {
    ModelText m;
    m.graph.node({"MatMul", {"x", "w"}, {"p"}})
        .node({"Add", {"p", "b"}, {"q"}})
        .node({"Gather", {"q", "i"}, {"r"}, {attr("axis", 1)}})
        .node({"Reshape", {"r", "s"}, {"y"}})
        .node({"Mul", {"d", "d"}, {"z"}})
        .initializer(raw_tensor(std::string(shift + 1, 'u'), ElemType::kInt8, {0}, ""))
        .initializer(floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}))
        .initializer(floats("b", {2}, {10, 20}))
        .initializer(ints("i", {3}, {1, 0, 1}))
        .initializer(ints("s", {1}, {-1}))
        .initializer(raw_tensor("d", ElemType::kDouble, {2}, bytes_of(std::vector<double>{3, 4})))
        .input("x", floats_type({"n", 3}))
        .output("y", floats_type({"n"}))
        .output("z", tensor_type(ElemType::kDouble, {2}));
    const auto session = open(m);
    const std::vector<Tensor> y = run(*session, {{"x", Tensor::f32({1, 3}, {1, 1, 1})}});
    EXPECT_EQ(y.at(0), Tensor::f32({3}, {32, 19, 32}));
    EXPECT_EQ(y.at(1), Tensor::from_doubles(DType::F64, {2}, {{9.0, 16.0}}));
    EXPECT_NE(print(*session->graph()).find("constant"), std::string::npos);  // printing reads them too
    CompileOptions reference;
    reference.device = "reference";
    const NamedTensors same = compile(*session->graph(), reference).run({{"x", Tensor::f32({1, 3}, {1, 1, 1})}});
    EXPECT_EQ(same.at("y"), y.at(0));
  }
}

TEST(OnnxTensors, AlignedCopiesOnlyWhatIsNot) {
  alignas(8) std::byte bytes[17] = {};
  const Tensor good = Tensor::borrow(DType::F64, {2}, std::span(bytes).first(16));
  const Tensor bad = Tensor::borrow(DType::F64, {2}, std::span(bytes).subspan(1));
  EXPECT_TRUE(is_aligned(good));
  EXPECT_EQ(aligned(good).bytes().data(), bytes);
  EXPECT_FALSE(is_aligned(bad));
  EXPECT_TRUE(aligned(bad).is_owned());
  EXPECT_TRUE(is_aligned(aligned(bad)));
  EXPECT_EQ(aligned(bad), bad);
}

// ---- external data

class OnnxExternal : public testing::Test {
 protected:
  Tensor negate(const std::string& location, const std::vector<std::pair<std::string, std::string>>& entries = {}) {
    return run(*open(negated(external_tensor("w", ElemType::kFloat, {2}, location, entries)), folder_.path("model")))
        .at(0);
  }
  void SetUp() override {
    std::filesystem::create_directories(folder_.path("model/sub"));
    const std::string data = bytes_of(std::vector<float>{1, 2, 3, 4});
    for (const char* name : {"secret", "model/data", "model/sub/data"}) folder_.write(name, data);
  }
  TempFolder folder_;
};

TEST_F(OnnxExternal, IsReadWhereItLies) {
  const Tensor first = Tensor::f32({2}, {-1, -2}), second = Tensor::f32({2}, {-3, -4});
  EXPECT_EQ(negate("data"), first);
  EXPECT_EQ(negate("sub/data"), first);
  EXPECT_EQ(negate("./sub//data"), first);
  EXPECT_EQ(negate("data", {{"length", "8"}}), first);
  EXPECT_EQ(negate("data", {{"offset", "8"}}), second);
  EXPECT_EQ(negate("data", {{"offset", "8"}, {"length", "8"}}), second);
  EXPECT_EQ(negate("data", {{"offset", "8"}, {"checksum", "0123"}}), second);
  EXPECT_EQ(negate("data", {{"offset", "4"}}), Tensor::f32({2}, {-2, -3}));
}

TEST_F(OnnxExternal, IsMappedNotCopied) {
  const std::string model = negated(external_tensor("w", ElemType::kFloat, {2}, "data", {{"offset", "8"}}));
  const auto session = open(model, folder_.path("model"));
  const std::vector<Tensor> weights = constants(*session);
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_FALSE(weights[0].is_owned());
  // A page of the file: its address says where in the file it is.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights[0].bytes().data()) % 4096, 8u);
}

TEST_F(OnnxExternal, MustLieInTheModelsFolder) {
  const std::string outside = "which is not inside the model's folder";
  EXPECT_ERROR(negate("../secret"), kInvalid, outside);
  EXPECT_ERROR(negate("sub/../../secret"), kInvalid, outside);
  EXPECT_ERROR(negate("sub/../data"), kInvalid, outside);  // ends inside, but nobody needs to write it so
  EXPECT_ERROR(negate(folder_.path("secret")), kInvalid, outside);
  EXPECT_ERROR(negate(folder_.path("model/data")), kInvalid, outside);
  EXPECT_ERROR(negate("/etc/passwd"), kInvalid, outside);
  EXPECT_ERROR(negate(std::string("data\0", 5)), kInvalid, "a zero byte");
  std::filesystem::create_symlink(folder_.path("secret"), folder_.path("model/link"));
  std::filesystem::create_directory_symlink(folder_.path(""), folder_.path("model/up"));
  EXPECT_ERROR(negate("link"), kInvalid, outside);
  EXPECT_ERROR(negate("up/secret"), kInvalid, outside);
  std::filesystem::create_symlink("sub/data", folder_.path("model/inner"));  // a link that stays inside is fine
  EXPECT_EQ(negate("inner"), Tensor::f32({2}, {-1, -2}));
}

TEST_F(OnnxExternal, MustBeThereAndLongEnough) {
  EXPECT_ERROR(negate("nothing"), kUnavailable, "cannot be opened");
  EXPECT_ERROR(negate(""), kInvalid, "without a location");
  EXPECT_ERROR(negate("."), kInvalid, "");
  EXPECT_ERROR(negate("sub"), kInvalid, "it is a directory");
  EXPECT_ERROR(negate(std::string(5000, 'n')), kUnavailable, "cannot be opened");
  std::filesystem::create_symlink("loop", folder_.path("model/loop"));
  EXPECT_ERROR(negate("loop"), kUnavailable, "cannot be opened");
  EXPECT_ERROR(negate("data", {{"offset", "12"}}), kInvalid, "wants 8 bytes at offset 12 of 'data', which has 16");
  EXPECT_ERROR(negate("data", {{"offset", "17"}, {"length", "0"}}), kInvalid, "which has 16");
  EXPECT_ERROR(negate("data", {{"offset", "18446744073709551615"}, {"length", "8"}}), kInvalid, "which has 16");
  EXPECT_ERROR(negate("data", {{"length", "18446744073709551615"}}), kInvalid, "which has 16");
  EXPECT_ERROR(negate("data", {{"length", "4"}}), kInvalid, "has 4 bytes of data, but its sizes [2] need 8");
  EXPECT_ERROR(negate("data", {{"length", "16"}}), kInvalid, "has 16 bytes of data");
  for (const char* number : {"-8", "eight", "8 ", "", "99999999999999999999999"})
    EXPECT_ERROR(negate("data", {{"offset", number}}), kInvalid, "External data's offset");
}

TEST_F(OnnxExternal, NeedsAFolder) {
  EXPECT_ERROR(run(*open(negated(external_tensor("w", ElemType::kFloat, {2}, "data")))), kInvalid,
               "has external data, but the model is not a file");
}

// The file's own folder is the model's, wherever the program was started.
TEST_F(OnnxExternal, IsFoundBesideTheModelFile) {
  const std::string path =
      folder_.write("model/m.onnx", std::string(negated(external_tensor("w", ElemType::kFloat, {2}, "data"))));
  Session session(onnx::open_model(path), {}, {});
  EXPECT_EQ(run(session).at(0), Tensor::f32({2}, {-1, -2}));
  EXPECT_ERROR(onnx::open_model(folder_.path("model/none.onnx")), kUnavailable, "none.onnx");
}

}  // namespace rlx::test
