// The functions that element-wise programs are made of: each computes one block of lanes from up to three others.
//
// A block holds its values as f32 (F32, F16, BF16), as i32 (I32, I16, I8, U16, U8, Bool as 0 or 1) or as i64 (I64)
// lanes.
#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

enum class Lane : uint8_t { kF32, kI32, kI64, kNone };

constexpr Lane lane_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::F16:
    case DType::BF16: return Lane::kF32;
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U16:
    case DType::U8:
    case DType::Bool: return Lane::kI32;
    case DType::I64: return Lane::kI64;
    default: return Lane::kNone;
  }
}

// Its lanes are its bytes.
constexpr bool is_stored_as_lane(DType dtype) {
  return dtype == DType::F32 || dtype == DType::I32 || dtype == DType::I64;
}

constexpr int64_t lane_bytes(Lane lane) { return lane == Lane::kI64 ? 8 : 4; }

// Suffixes: F, I and L are the lanes of the operands; comparisons and tests give i32 lanes of 0 and 1.
// clang-format off: grouped by kind
enum class Micro : uint8_t {
  kNone,
  // float_steps.cpp
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kMaxF,
  kMinF,
  kNegF,
  kAbsF,
  kReluF,
  kSqrtF,
  kRsqrtF,
  kRoundF,
  kFloorF,
  kCeilF,
  kSignOrNaNF,
  kIsNaNF,
  kIsInfF,
  kIsPlusInfF,
  kIsMinusInfF,
  kEqF,
  kNeF,
  kLtF,
  kLeF,
  kGtF,
  kGeF,
  kReluBackwardF,  // (x, dy)
  kSignF,
  kRecipF,
  kSqrtSlopeF,
  kRsqrtSlopeF,
  kAtanSlopeF,
  kToF16,
  kToBF16,  // rounded, still f32 lanes
  kIsTrueF,
  kFToI,
  kFToL,
  // math_steps.cpp
  kSigmoidF,
  kTanhF,
  kExpF,
  kLogF,
  kGeluF,
  kSiluF,
  kGeluApproxF,
  kSinF,
  kCosF,
  kTanF,
  kAtanF,
  kPowF,
  kSigmoidSlopeF,
  kTanhSlopeF,
  kGeluSlopeF,
  kSiluSlopeF,
  kGeluApproxSlopeF,
  kMinusSinF,
  kTanSlopeF,
  kErfF,
  // library_steps.cpp
  kAsinF,
  kAcosF,
  kSinhF,
  kCoshF,
  kAsinhF,
  kAcoshF,
  kAtanhF,
  kModF,
  kFmodF,
  kDivL,
  kModL,
  kFmodL,
  // int_steps.cpp
  kAddI,
  kSubI,
  kMulI,
  kDivI,
  kModI,
  kFmodI,
  kMaxI,
  kMinI,
  kNegI,
  kAbsI,
  kReluI,
  kSignI,
  kAndI,
  kOrI,
  kXorI,
  kNotI,
  kIsFalseI,
  kShiftLeftI,
  kShiftRightI,
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kGtI,
  kGeI,
  kIsTrueI,
  kWrapI8,
  kWrapI16,
  kWrapU8,
  kWrapU16,
  kClampI8,
  kClampI16,
  kClampU8,
  kClampU16,
  kIToF,
  kIToFOdd,
  kIToL,  // Odd: inexact ones become odd, so that a later rounding to BF16 is the only one
  kAddL,
  kSubL,
  kMulL,
  kMaxL,
  kMinL,
  kNegL,
  kAbsL,
  kReluL,
  kSignL,
  kAndL,
  kOrL,
  kXorL,
  kNotL,
  kShiftLeftL,
  kShiftRightL,
  kEqL,
  kNeL,
  kLtL,
  kLeL,
  kGtL,
  kGeL,
  kIsTrueL,
  kLToF,
  kLToI,
  kWhere,   // (i32 condition, two blocks of 32 bit lanes)
  kWhereL,  // (i32 condition, two blocks of i64 lanes)
  // pair_steps.cpp: kPairF + 5 * first + second, see pair_of()
  kPairF,
  kLastPairF = kPairF + 14,
};
// clang-format on

// Two f32 steps at once, (a, b, c) to second(first(a, b), c), with the roundings of both: `first` is add, sub or mul;
// `second` is one of them, sub with its operands swapped, or relu, which has no c. A relu may follow a pair as well.
// kNone for other pairs.
inline constexpr int kPairs = 15;
constexpr Micro pair_of(Micro first, Micro second, bool swapped) {
  const int pair = static_cast<int>(Micro::kPairF);
  if (first >= Micro::kPairF)
    return second == Micro::kReluF && static_cast<int>(first) < pair + kPairs
               ? static_cast<Micro>(static_cast<int>(first) + kPairs)
               : Micro::kNone;
  const int f = first == Micro::kAddF ? 0 : first == Micro::kSubF ? 1 : first == Micro::kMulF ? 2 : -1;
  const int s = second == Micro::kAddF    ? 0
                : second == Micro::kSubF  ? (swapped ? 2 : 1)
                : second == Micro::kMulF  ? 3
                : second == Micro::kReluF ? 4
                                          : -1;
  return f < 0 || s < 0 ? Micro::kNone : static_cast<Micro>(pair + 5 * f + s);
}

// out may be one of the operands.
using StepFn = void (*)(const void* const* operands, void* out, int64_t n);

// For the instruction set of this machine.
StepFn step_fn(Micro micro);
// The same, but f32 results go past the caches, to an address that is a multiple of kStreamAlignment (see lanes.h).
// Null where that would save nothing.
StepFn streaming_step_fn(Micro micro);
inline constexpr int64_t kStreamAlignment = 64;

// Rough cost of one element, in units of an addition.
constexpr int cost_of(Micro micro) {
  if (micro < Micro::kSigmoidF || micro >= Micro::kAddI) return micro >= Micro::kDivI && micro <= Micro::kFmodI ? 8 : 1;
  return micro < Micro::kAsinF ? 8 : 24;
}

// Per file; null for what another file has.
StepFn float_step(Micro micro);
StepFn math_step(Micro micro);
StepFn library_step(Micro micro);
StepFn int_step(Micro micro);
StepFn pair_step(Micro micro);
StepFn float_streaming_step(Micro micro);
StepFn pair_streaming_step(Micro micro);

// Throws where one of them is 0, as integer division does.
void check_divisors(const int32_t* divisors, int64_t n);

}  // namespace rlx::cpu
