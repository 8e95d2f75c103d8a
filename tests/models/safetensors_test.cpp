// safetensors: what a file says, and every way in which it may lie.
#include "import/safetensors/safetensors.h"

#include <gtest/gtest.h>

#include "models/safetensors_file.h"
#include "rlx/error.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace rlx::test {

namespace {

safetensors::File parse(const std::string& bytes) {
  return safetensors::File::parse(std::as_bytes(std::span(bytes)), "file");
}

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.message().back(), '.') << e.message();
    EXPECT_EQ(e.message().find('\n'), std::string::npos) << e.message();
    return e.message();
  }
  return "";
}

void expect_refused(const std::string& bytes, const std::string& part) {
  const std::string message = error_of(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' does not say '" << part << "'";
}

// b first in the data, a behind it; an empty one between.
std::string small_file() {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("a", "F32", "[2,1]", 6, 14) + "," +
                             entry("b", "BF16", "[3]", 0, 6) + "," + entry("empty", "I64", "[0,5]", 6, 6) + "}  ";
  return safetensors_bytes(header, std::string("\1\2\3\4\5\6abcdefgh"));
}

TEST(Safetensors, ReadsNamesSizesAndBytesInPlace) {
  const std::string bytes = small_file();
  const safetensors::File file = parse(bytes);
  ASSERT_EQ(file.tensors().size(), 3u);
  const safetensors::Tensor* a = file.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, DType::F32);
  EXPECT_EQ(a->sizes, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(reinterpret_cast<const char*>(a->bytes.data()), bytes.data() + bytes.size() - 8);
  EXPECT_EQ(file.find("b")->dtype, DType::BF16);
  EXPECT_EQ(file.find("b")->bytes.size(), 6u);
  EXPECT_TRUE(file.find("empty")->bytes.empty());
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(Safetensors, KnowsEveryDtypeOfRlx) {
  const std::pair<const char*, DType> rows[] = {
      {"F64", DType::F64}, {"F32", DType::F32}, {"F16", DType::F16},   {"BF16", DType::BF16}, {"I8", DType::I8},
      {"I16", DType::I16}, {"I32", DType::I32}, {"I64", DType::I64},   {"U8", DType::U8},     {"U16", DType::U16},
      {"U32", DType::U32}, {"U64", DType::U64}, {"BOOL", DType::Bool}, {"C64", DType::C64}};
  EXPECT_EQ(std::size(rows), all_dtypes().size());
  for (const auto& [name, dtype] : rows) {
    const auto bytes = static_cast<int>(2 * size_of(dtype));
    const std::string file =
        safetensors_bytes("{" + entry("x", name, "[2]", 0, bytes) + "}", std::string(static_cast<size_t>(bytes), 'x'));
    EXPECT_EQ(parse(file).find("x")->dtype, dtype) << name;
  }
  // Read, so that a file that holds one among others is of use; whoever asks for it is told.
  const std::string f8 = safetensors_bytes("{" + entry("x", "F8_E4M3", "[2]", 0, 2) + "}", "xy");
  EXPECT_FALSE(parse(f8).find("x")->dtype.has_value());
  expect_refused(safetensors_bytes("{" + entry("x", "F5", "[2]", 0, 2) + "}", "xy"), "dtype 'F5'");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = small_file();
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(error_of(whole.substr(0, n)), "") << n;
  EXPECT_NE(error_of(whole + "x"), "");
}

TEST(Safetensors, FlippedBytesAreReadOrRefused) {
  const std::string whole = small_file();
  int refused = 0;
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      if (error_of(bytes) != "") ++refused;
    }
  EXPECT_GT(refused, 500);
}

TEST(Safetensors, HeaderLengthsThatLie) {
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1} << 32, uint64_t{100'000'001}}) {
    std::string bytes = small_file();
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
    expect_refused(bytes, "is not a safetensors file");
  }
  std::string bytes = small_file();
  bytes[1] = 1;  // 256 more
  expect_refused(bytes, "cut off");
}

TEST(Safetensors, OffsetsThatLie) {
  const auto file = [](const std::string& entries) { return safetensors_bytes("{" + entries + "}", "12345678"); };
  expect_refused(file(entry("a", "U8", "[9]", 0, 9)), "behind the end");
  expect_refused(file(entry("a", "U8", "[8]", 8, 0)), "not a begin and an end");
  expect_refused(file(entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[5]", 3, 8)), "within another");
  expect_refused(file(entry("a", "U8", "[3]", 0, 3) + "," + entry("b", "U8", "[4]", 4, 8)), "a hole");
  expect_refused(file(entry("a", "U8", "[7]", 1, 8)), "a hole");
  expect_refused(file(entry("a", "U8", "[7]", 0, 7)), "its tensors end at 7");
  expect_refused(file(entry("a", "F32", "[3]", 0, 8)), "takes 12 bytes");
  expect_refused(file(entry("a", "F4", "[3]", 0, 1)), "ends within a byte");
  expect_refused(file("\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[-8,0]}"), "no size");
  expect_refused(file("\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8,8]}"), "not a begin and an end");
  expect_refused(file("\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,99999999999999999999]}"), "no size");
}

TEST(Safetensors, ShapesThatLie) {
  const auto file = [](const std::string& shape) {
    return safetensors_bytes("{" + entry("a", "U8", shape, 0, 8) + "}", "12345678");
  };
  EXPECT_EQ(error_of(file("[8]")), "");
  EXPECT_EQ(error_of(file("[2,2,2]")), "");
  expect_refused(file("[4611686018427387904,4611686018427387904]"), "overflow");
  expect_refused(file("[9223372036854775807]"), "overflow");
  expect_refused(file("[18446744073709551615]"), "no size");
  expect_refused(file("[8.0]"), "no size");
  expect_refused(file("[\"8\"]"), "no size");
  expect_refused(file("8"), "list");
  expect_refused(file("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]"), "at most 16");
}

TEST(Safetensors, HeadersThatAreNoneAreRefused) {
  expect_refused(safetensors_bytes("", ""), "begin with '{'");
  expect_refused(safetensors_bytes("[]", ""), "begin with '{'");
  expect_refused(safetensors_bytes("{", ""), "not valid JSON");
  expect_refused(safetensors_bytes("{\"a\"}", ""), "not valid JSON");
  expect_refused(safetensors_bytes("{\"\xff\":1}", ""), "not valid JSON");
  expect_refused(safetensors_bytes("{\"a\":1}", ""), "not described");
  expect_refused(safetensors_bytes("{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", "x"), "not described");
  expect_refused(safetensors_bytes("{\"__metadata__\":[]}", ""), "'__metadata__' is not an object");
  expect_refused(safetensors_bytes("{\"__metadata__\":{\"a\":1}}", ""), "is not a text");
  expect_refused(
      safetensors_bytes("{" + entry("a", "U8", "[1]", 0, 1) + "," + entry("a", "U8", "[1]", 1, 2) + "}", "xy"),
      "'a' is given twice");
  expect_refused(safetensors_bytes("{\"a\":" + std::string(100'000, '['), ""), "nested more than");
  EXPECT_EQ(error_of(safetensors_bytes("{}", "")), "");
}

TEST(Safetensors, ShardsAreFoundByTheirIndex) {
  const TempFolder folder;
  folder.write("model-1.safetensors", safetensors_bytes("{" + entry("a", "U8", "[2]", 0, 2) + "}", "xy"));
  folder.write("model-2.safetensors", safetensors_bytes("{" + entry("b", "U8", "[3]", 0, 3) + "}", "pqr"));
  const std::string index = "model.safetensors.index.json";
  folder.write(index,
               R"({"metadata":{"total_size":5},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  const std::string root = folder.path("");
  const safetensors::File file = safetensors::File::open_folder(root);
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.find("b")->bytes.size(), 3u);

  const auto refused = [&](const std::string& text, const std::string& part) {
    folder.write(index, text);
    try {
      safetensors::File::open_folder(root);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
    }
  };
  refused(R"({"weight_map":{"a":"model-3.safetensors"}})", "model-3.safetensors");
  refused(R"({"weight_map":{"c":"model-1.safetensors"}})", "'c' is not in its shard");
  refused(R"({"weight_map":{"b":"model-1.safetensors"}})", "'b' is not in its shard");
  refused(R"({"weight_map":{"a":"../model-1.safetensors"}})", "beside it");
  refused(R"({"weight_map":{"a":"/etc/passwd"}})", "beside it");
  refused(R"({"weight_map":{"a":".."}})", "beside it");
  refused(R"({"weight_map":{"a":7}})", "not a text");
  refused(R"({"weight_map":[]})", "no 'weight_map'");
  refused("[]", "no 'weight_map'");
  refused("{", "not valid JSON");
  // The same tensor in two shards, even though the index names one.
  folder.write("model-3.safetensors", safetensors_bytes("{" + entry("a", "U8", "[1]", 0, 1) + "}", "x"));
  refused(R"({"weight_map":{"a":"model-1.safetensors","b":"model-3.safetensors"}})", "more than one shard");
}

TEST(Safetensors, FoldersWithoutOneSayWhatIsThere) {
  const TempFolder folder;
  const std::string root = folder.path("");
  EXPECT_THROW(safetensors::File::open_folder(root + "missing"), Error);
  const auto error = [&] {
    try {
      safetensors::File::open_folder(root);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  EXPECT_NE(error().find("holds no .safetensors"), std::string::npos);
  folder.write("pytorch_model.bin", "x");
  EXPECT_NE(error().find("does not read pytorch_model.bin"), std::string::npos);
  folder.write("x.safetensors", small_file());
  EXPECT_EQ(safetensors::File::open_folder(root).tensors().size(), 3u);
  folder.write("y.safetensors", small_file());
  EXPECT_NE(error().find("holds 2 .safetensors files"), std::string::npos);
}

}  // namespace

}  // namespace rlx::test
