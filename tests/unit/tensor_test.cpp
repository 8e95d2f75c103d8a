#include "rlx/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <limits>
#include <memory>
#include <vector>

#include "support/expect_error.h"

namespace rlx {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Tensor, ADefaultOneIsEmpty) {
  const Tensor t;
  EXPECT_EQ(t.type(), (TensorType{{0}, DType::F32}));
  EXPECT_TRUE(t.bytes().empty());
  EXPECT_TRUE(t.values<float>().empty());
  EXPECT_EQ(t, t.clone());
}

TEST(Tensor, AnOwnedOneStartsAsZeros) {
  for (const DType dtype : all_dtypes()) {
    const Tensor t(dtype, {2, 3});
    EXPECT_EQ(t.bytes().size(), 6 * size_of(dtype));
    EXPECT_EQ(t.to_doubles(), std::vector<double>(6));
    EXPECT_TRUE(t.is_owned());
  }
}

TEST(Tensor, AScalarHasOneElementAndASizeOfZeroNone) {
  EXPECT_EQ(Tensor(DType::I8, {}).num_elements(), 1);
  EXPECT_EQ(Tensor(DType::F64, {3, 0, 5}).num_elements(), 0);
  EXPECT_EQ(Tensor(DType::F64, {0, kMax, kMax}).num_elements(), 0);
}

TEST(Tensor, SizesThatDoNotFitAreErrors) {
  EXPECT_ERROR(Tensor(DType::I8, {kMax, 2}), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(Tensor(DType::I8, {int64_t{1} << 32, int64_t{1} << 32}), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(Tensor(DType::F64, {int64_t{1} << 61}), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(Tensor(DType::F32, {2, -1}), kInvalid, "Tensor size (-1) is negative.");
  EXPECT_ERROR(Tensor(DType::F32, {0, -1}), kInvalid, "Tensor size (-1) is negative.");
  EXPECT_ERROR(Tensor(DType::I8, {int64_t{1} << 60}), kMemory, "needs 1152921504606846976 bytes");
}

TEST(Tensor, ValuesMustMatchTheSizes) {
  EXPECT_EQ(Tensor::f32({2}, {1, 2}).at(1), 2);
  EXPECT_ERROR(Tensor::f32({3}, {1, 2}), kInvalid, "Number of values (2) does not match the tensor's elements (3).");
  EXPECT_ERROR(Tensor::i64({}, {}), kInvalid, "Number of values (0)");
  EXPECT_ERROR(Tensor::from_doubles(DType::F16, {1}, std::vector<double>{1, 2}), kInvalid, "Number of values (2)");
}

TEST(Tensor, EachDTypeIsReadAsItsOwnElementTypeOnly) {
  Tensor t(DType::I32, {2});
  EXPECT_NO_THROW(t.values<int32_t>());
  EXPECT_ERROR(t.values<float>(), kInvalid, "Tensor [2] i32 is read or written as another element type.");
  EXPECT_ERROR(t.values<uint32_t>(), kInvalid, "another element type");
  EXPECT_ERROR(t.mutable_values<int64_t>(), kInvalid, "another element type");
  EXPECT_ERROR(Tensor::of<float>(DType::F64, {1}, std::vector<float>{1}), kInvalid, "another element type");
  EXPECT_NO_THROW(Tensor(DType::F16, {1}).values<uint16_t>());
  EXPECT_NO_THROW(Tensor(DType::BF16, {1}).values<uint16_t>());
  EXPECT_NO_THROW(Tensor(DType::Bool, {1}).values<uint8_t>());
  EXPECT_NO_THROW(Tensor(DType::Bool, {1}).values<bool>());
  EXPECT_NO_THROW(Tensor(DType::C64, {1}).values<std::complex<float>>());
  EXPECT_ERROR(Tensor(DType::C64, {1}).values<float>(), kInvalid, "another element type");
}

TEST(Tensor, ABorrowedOneSharesMemoryAndIsNotWritten) {
  std::vector<float> memory = {1, 2, 3};
  Tensor t = Tensor::borrow(DType::F32, {3}, std::as_bytes(std::span(memory)));
  EXPECT_FALSE(t.is_owned());
  memory[1] = 7;
  EXPECT_EQ(t.at(1), 7);
  EXPECT_ERROR(t.mutable_bytes(), kInvalid, "Tensor [3] f32 is borrowed or mapped; clone it before writing.");
  EXPECT_ERROR(t.mutable_values<float>(), kInvalid, "borrowed");
  Tensor copy = t.clone();
  copy.mutable_values<float>()[1] = 9;
  EXPECT_EQ(memory[1], 7);
  EXPECT_FALSE(t.reshaped({3, 1}).is_owned());
}

TEST(Tensor, FixedIdNamesBytesThatNobodyCanWrite) {
  Tensor t = Tensor::f32({2}, {1, 2});
  const uint64_t first = t.fixed_id();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(Tensor(t).fixed_id(), first);
  EXPECT_EQ(t.reshaped({1, 2}).fixed_id(), first);
  EXPECT_NE(t.clone().fixed_id(), first);
  EXPECT_NE(t.clone().fixed_id(), 0u);
  Tensor copy = t;
  const std::span<float> values = copy.mutable_values<float>();  // from here on anybody may write
  EXPECT_EQ(t.fixed_id(), 0u);
  values[0] = 3;
  t.seal();
  EXPECT_NE(t.fixed_id(), 0u);
  EXPECT_NE(t.fixed_id(), first);
  EXPECT_EQ(copy.fixed_id(), t.fixed_id());

  const std::vector<float> memory = {1, 2, 3};
  Tensor borrowed = Tensor::borrow(DType::F32, {3}, std::as_bytes(std::span(memory)));
  EXPECT_EQ(borrowed.fixed_id(), 0u);
  EXPECT_EQ(Tensor::borrow(DType::F32, {3}, borrowed.bytes(), std::make_shared<int>()).fixed_id(), 0u);
  borrowed.seal();
  EXPECT_NE(borrowed.fixed_id(), 0u);
}

TEST(Tensor, ASealedOneIsNotWritten) {
  Tensor t = Tensor::f32({2}, {1, 2}), copy = t;
  t.seal();
  const uint64_t id = t.fixed_id();
  t.seal();
  EXPECT_EQ(t.fixed_id(), id);
  EXPECT_ERROR(t.mutable_bytes(), kInvalid, "Tensor [2] f32 is sealed; clone it before writing.");
  EXPECT_ERROR(copy.mutable_values<float>(), kInvalid, "is sealed");
  EXPECT_NO_THROW(t.clone().mutable_bytes());
}

TEST(Tensor, ABorrowedOneMustHaveExactlyItsBytes) {
  const std::array<std::byte, 8> memory{};
  EXPECT_ERROR(Tensor::borrow(DType::F32, {3}, memory), kInvalid,
               "Number of bytes (8) does not match tensor [3] f32 (12 bytes).");
  EXPECT_ERROR(Tensor::borrow(DType::F32, {1}, memory), kInvalid, "(4 bytes)");
  EXPECT_ERROR(Tensor::borrow(DType::F64, {int64_t{1} << 61}, memory), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(Tensor::borrow(DType::F64, {-1}, memory), kInvalid, "negative");
}

TEST(Tensor, ABorrowedOneKeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{1, 2});
  const std::weak_ptr<std::vector<int32_t>> watch = owner;
  {
    Tensor copy;
    {
      const Tensor t = Tensor::borrow(DType::I32, {2}, std::as_bytes(std::span(*owner)), owner);
      owner.reset();
      copy = t.reshaped({1, 2});
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(copy.values<int32_t>()[1], 2);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, AnUnalignedOneIsReadElementwiseButNotAsASpan) {
  alignas(8) std::array<std::byte, 12> memory{};
  memory[5] = std::byte{1};
  const Tensor t = Tensor::borrow(DType::I32, {2}, std::span(memory).subspan(1, 8));
  EXPECT_EQ(t.at(1), 1);
  EXPECT_EQ(t.cast(DType::F32).at(1), 1);
  EXPECT_ERROR(t.values<int32_t>(), kInvalid, "not a multiple of 4");
  EXPECT_EQ(t.clone().values<int32_t>()[1], 1);
}

TEST(Tensor, CopiesShareTheirBytesAndClonesDoNot) {
  Tensor a = Tensor::f32({2}, {1, 2}), b = a, c = a.clone();
  a.mutable_values<float>()[0] = 5;
  EXPECT_EQ(b.at(0), 5);
  EXPECT_EQ(c.at(0), 1);
}

TEST(Tensor, ReshapeKeepsTheElements) {
  const Tensor t = Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(t.reshaped({3, 2}), Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_ERROR(t.reshaped({4, 2}), kInvalid, "Tensor [2, 3] f32 cannot be reshaped to [4, 2].");
  EXPECT_ERROR(t.reshaped({-2, -3}), kInvalid, "negative");
}

TEST(Tensor, EqualityIsDTypeSizesAndBytes) {
  const Tensor t = Tensor::f32({2}, {1, 2});
  EXPECT_EQ(t, Tensor::f32({2}, {1, 2}));
  EXPECT_NE(t, Tensor::f32({2}, {1, 3}));
  EXPECT_NE(t, Tensor::f32({1, 2}, {1, 2}));
  EXPECT_NE(Tensor(DType::I32, {1}), Tensor(DType::U32, {1}));
  EXPECT_NE(Tensor::f32({1}, {0.0f}), Tensor::f32({1}, {-0.0f}));
}

TEST(Tensor, AnIndexOutOfRangeIsAnError) {
  const Tensor t(DType::F32, {2});
  EXPECT_ERROR(t.at(2), kInvalid, "Index (2) is out of range for 2 elements.");
  EXPECT_ERROR(t.at(-1), kInvalid, "Index (-1)");
}

}  // namespace
}  // namespace rlx
