#include "rlx/dtype.h"

#include <gtest/gtest.h>

#include "rlx/error.h"

namespace rlx {
namespace {

using enum DType;

TEST(DType, NamesReadBack) {
  EXPECT_EQ(all_dtypes().size(), 14u);
  for (const DType dtype : all_dtypes()) EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  for (const char* text : {"", "F32", "f8", "u128", "float", "f32 "}) EXPECT_EQ(parse_dtype(text), std::nullopt);
}

TEST(DType, EachIsOfOneClass) {
  for (const DType d : all_dtypes()) EXPECT_EQ(is_float(d) + is_int(d) + is_complex(d) + (d == Bool), 1) << name(d);
}

// Spec 10, Q2: what PyTorch does (of U16 and U64, which it has no rule for, what follows from that of U32); row and
// column in the order of the enum.
TEST(Promote, FollowsTheTable) {
  constexpr DType kTable[14][14] = {
      //        F32  F16  BF16  F64  I8   I16  I32  I64  U8   U32  Bool  C64  U16  U64
      /*F32 */ {F32, F32, F32, F64, F32, F32, F32, F32, F32, F32, F32, C64, F32, F32},
      /*F16 */ {F32, F16, F32, F64, F16, F16, F16, F16, F16, F16, F16, C64, F16, F16},
      /*BF16*/ {F32, F32, BF16, F64, BF16, BF16, BF16, BF16, BF16, BF16, BF16, C64, BF16, BF16},
      /*F64 */ {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, C64, F64, F64},
      /*I8  */ {F32, F16, BF16, F64, I8, I16, I32, I64, I16, I64, I8, C64, I32, I64},
      /*I16 */ {F32, F16, BF16, F64, I16, I16, I32, I64, I16, I64, I16, C64, I32, I64},
      /*I32 */ {F32, F16, BF16, F64, I32, I32, I32, I64, I32, I64, I32, C64, I32, I64},
      /*I64 */ {F32, F16, BF16, F64, I64, I64, I64, I64, I64, I64, I64, C64, I64, I64},
      /*U8  */ {F32, F16, BF16, F64, I16, I16, I32, I64, U8, U32, U8, C64, U16, U64},
      /*U32 */ {F32, F16, BF16, F64, I64, I64, I64, I64, U32, U32, U32, C64, U32, U64},
      /*Bool*/ {F32, F16, BF16, F64, I8, I16, I32, I64, U8, U32, Bool, C64, U16, U64},
      /*C64 */ {C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64},
      /*U16 */ {F32, F16, BF16, F64, I32, I32, I32, I64, U16, U32, U16, C64, U16, U64},
      /*U64 */ {F32, F16, BF16, F64, I64, I64, I64, I64, U64, U64, U64, C64, U64, U64},
  };
  for (const DType a : all_dtypes())
    for (const DType b : all_dtypes())
      EXPECT_EQ(promote(a, b), kTable[static_cast<int>(a)][static_cast<int>(b)])
          << str(a, " with ", b, " gives ", promote(a, b));
}

}  // namespace
}  // namespace rlx
