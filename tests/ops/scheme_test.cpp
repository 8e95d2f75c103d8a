// Block decoders against what gguf-py decodes (fixtures/make_gguf.py), side-tensor codes against their tables.
#include "rlx/scheme.h"

#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

struct GgufName {
  Scheme scheme;
  const char* name;
};
static constexpr GgufName kInFixture[] = {
    {Scheme::kGgufQ4_0, "Q4_0"}, {Scheme::kGgufQ4_1, "Q4_1"},    {Scheme::kGgufQ5_0, "Q5_0"},
    {Scheme::kGgufQ5_1, "Q5_1"}, {Scheme::kGgufQ8_0, "Q8_0"},    {Scheme::kGgufQ2K, "Q2_K"},
    {Scheme::kGgufQ3K, "Q3_K"},  {Scheme::kGgufQ4K, "Q4_K"},     {Scheme::kGgufQ5K, "Q5_K"},
    {Scheme::kGgufQ6K, "Q6_K"},  {Scheme::kGgufIq4Nl, "IQ4_NL"}, {Scheme::kGgufIq4Xs, "IQ4_XS"},
};

TEST(Scheme, BlocksDecodeAsInGgufPy) {
  const auto fixture = read_npz(std::string(RLX_FIXTURES) + "/gguf.npz");
  for (const GgufName& row : kInFixture) {
    SCOPED_TRACE(row.name);
    const Tensor &bytes = fixture.at(std::string(row.name) + "_bytes"),
                 &values = fixture.at(std::string(row.name) + "_values");
    ASSERT_EQ(bytes.sizes()[1], info(row.scheme).block_bytes);
    ASSERT_EQ(values.num_elements(), bytes.sizes()[0] * info(row.scheme).block_elems);
    Tensor out(DType::F32, values.sizes());
    decode_blocks(row.scheme, bytes.values<uint8_t>().data(), values.num_elements(),
                  out.mutable_values<float>().data());
    EXPECT_TRUE(near(out, values, kExact));
  }
}

// gguf-py decodes neither: their layouts are a scale followed by plain int8 values (spec 10, 5.4).
TEST(Scheme, ByteFormatsAreScaledBytes) {
  uint8_t block[292] = {};
  const float scale = 0.125f;
  std::memcpy(block, &scale, 4);
  for (int j = 0; j < 256; ++j) block[4 + j] = static_cast<uint8_t>(j * 7);
  float out[256];
  decode_block(Scheme::kGgufQ8K, block, out);
  for (int j = 0; j < 256; ++j) EXPECT_EQ(out[j], 0.125f * static_cast<float>(static_cast<int8_t>(j * 7)));

  block[0] = 0x00, block[1] = 0x34;  // 0.25 as a half; bytes 2 and 3 are the sum
  decode_block(Scheme::kGgufQ8_1, block, out);
  for (int j = 0; j < 32; ++j) EXPECT_EQ(out[j], 0.25f * static_cast<float>(static_cast<int8_t>(j * 7)));
}

TEST(Scheme, TableAgreesWithTheEnumAndWithItself) {
  for (size_t i = 0; i < enum_names<Scheme>.size(); ++i) {
    const auto scheme = static_cast<Scheme>(i);
    const SchemeInfo& row = info(scheme);
    EXPECT_EQ(row.scheme, scheme);
    EXPECT_EQ(is_gguf(scheme), name_of(scheme).starts_with("gguf_"));
    if (!is_gguf(scheme)) continue;
    EXPECT_EQ(scheme_of_ggml_code(row.ggml_code), scheme);
    EXPECT_NEAR(row.bits_x10, 80.0 * static_cast<double>(row.block_bytes) / static_cast<double>(row.block_elems), 0.5);
    EXPECT_EQ(weight_bytes(scheme, row.block_elems * 3, 5), row.block_bytes * 15);
  }
  EXPECT_FALSE(scheme_of_ggml_code(0).has_value());
  EXPECT_FALSE(scheme_of_ggml_code(-1).has_value());
  EXPECT_TRUE(has_scale(Scheme::kInt8) && has_scale(Scheme::kInt8Asym) && has_scale(Scheme::kInt4));
  EXPECT_TRUE(has_scale(Scheme::kNvfp4) && scale_is_fp8(Scheme::kNvfp4) && has_zero_point(Scheme::kInt8Asym));
  EXPECT_FALSE(has_scale(Scheme::kFp8E4m3) || has_zero_point(Scheme::kInt8) || scale_is_fp8(Scheme::kInt8));
  EXPECT_EQ(weight_bytes(Scheme::kInt4, 3, 3), 5);
  EXPECT_EQ(weight_bytes(Scheme::kInt8, 3, 3), 9);
  EXPECT_THROW(weight_bytes(Scheme::kGgufQ4_0, 33, 1), Error);
  EXPECT_THROW(weight_bytes(Scheme::kInt8, int64_t{1} << 40, int64_t{1} << 40), Error);
  EXPECT_THROW(info(static_cast<Scheme>(99)), Error);
  float out[256];
  EXPECT_THROW(decode_block(Scheme::kFp8E4m3, nullptr, out), Error);
  EXPECT_THROW(decode_code(Scheme::kGgufQ4K, nullptr, 0), Error);
}

TEST(Scheme, CodesOfSideTensorSchemes) {
  const uint8_t bytes[] = {0x80, 0x7F, 0x98, 0xFF, 0x7E, 0x7C};
  EXPECT_EQ(decode_code(Scheme::kInt8, bytes, 0), -128);
  EXPECT_EQ(decode_code(Scheme::kInt8Asym, bytes, 1), 127);
  EXPECT_EQ(decode_code(Scheme::kInt4, bytes, 4), -8);  // low nibble first
  EXPECT_EQ(decode_code(Scheme::kInt4, bytes, 5), -7);
  EXPECT_TRUE(std::isnan(decode_code(Scheme::kFp8E4m3, bytes, 3)));
  EXPECT_EQ(decode_code(Scheme::kFp8E4m3, bytes, 4), 448);
  EXPECT_EQ(decode_code(Scheme::kFp8E5m2, bytes, 5), INFINITY);
  const float levels[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 16; ++code) {
    const uint8_t low = code, high = static_cast<uint8_t>(code << 4);
    const float expected = code < 8 ? levels[code] : -levels[code - 8];
    EXPECT_EQ(decode_code(Scheme::kNvfp4, &low, 0), expected);
    EXPECT_EQ(decode_code(Scheme::kNvfp4, &high, 1), expected);
  }
}

}  // namespace rlx::test
