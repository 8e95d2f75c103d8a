#include "core/byte_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "support/expect_error.h"

namespace rlx {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(ByteReader, ReadsLittleEndianValuesOneAfterTheOther) {
  const auto data =
      bytes_of({0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f});
  ByteReader r(data);
  EXPECT_EQ(r.u8(), 0x01);
  EXPECT_EQ(r.u16(), 0x0302);
  EXPECT_EQ(r.u32(), 0x07060504u);
  EXPECT_EQ(r.u64(), 0x0f0e0d0c0b0a0908u);
  EXPECT_TRUE(r.at_end());
}

TEST(ByteReader, SignedValuesKeepTheirSign) {
  const auto data =
      bytes_of({0xff, 0xfe, 0xff, 0xfd, 0xff, 0xff, 0xff, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  ByteReader r(data);
  EXPECT_EQ(r.i8(), -1);
  EXPECT_EQ(r.i16(), -2);
  EXPECT_EQ(r.i32(), -3);
  EXPECT_EQ(r.i64(), -4);
}

TEST(ByteReader, FloatsAreTheirBits) {
  const auto data = bytes_of({0, 0, 0xc0, 0xbf, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f, 0, 0, 0xc0, 0x7f});
  ByteReader r(data);
  EXPECT_EQ(r.f32(), -1.5f);
  EXPECT_EQ(r.f64(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(r.f32()));
}

TEST(ByteReader, BytesAndTextAreBorrowed) {
  const auto data = bytes_of({'a', 'b', 'c'});
  ByteReader r(data);
  r.skip(1);
  EXPECT_EQ(r.text(2), "bc");
  r.seek(0);
  EXPECT_EQ(r.bytes(3).data(), data.data());
  EXPECT_TRUE(r.bytes(0).empty());
}

TEST(ByteReader, AReadBeyondTheEndNamesWhatWhereAndHowMuch) {
  const auto data = bytes_of({1, 2, 3, 4, 5});
  ByteReader r(data, "'x.gguf'");
  r.skip(3);
  EXPECT_ERROR(r.u32("tensor count"), kInvalid,
               "Reading tensor count (4 bytes) at offset 3 of 'x.gguf' goes beyond its end (5 bytes).");
  EXPECT_EQ(r.offset(), 3u) << "a failed read moves nothing";
  EXPECT_EQ(r.u16(), 0x0504);
  EXPECT_ERROR(r.u8(), kInvalid, "(1 bytes) at offset 5");
}

TEST(ByteReader, CountsNearTheLimitOf64BitsDoNotWrapAround) {
  const auto data = bytes_of({1, 2, 3, 4});
  ByteReader r(data);
  r.skip(2);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const uint64_t count : {kMax, kMax - 1, kMax - 2, kMax / 2, uint64_t{3}}) {
    EXPECT_ERROR(r.bytes(count), kInvalid, "goes beyond its end");
    EXPECT_ERROR(r.skip(count), kInvalid, "goes beyond its end");
  }
  EXPECT_ERROR(r.seek(5, "tensor data"), kInvalid, "Moving to tensor data (5) in data");
  EXPECT_ERROR(r.seek(kMax), kInvalid, "goes beyond its end (4 bytes)");
  r.seek(4);
  EXPECT_EQ(r.remaining(), 0u);
}

TEST(ByteReader, EmptyDataHasAnEnd) {
  ByteReader r({});
  EXPECT_TRUE(r.at_end());
  EXPECT_ERROR(r.u8(), kInvalid, "goes beyond its end (0 bytes)");
}

}  // namespace
}  // namespace rlx
