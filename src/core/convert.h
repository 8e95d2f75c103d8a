// Exact conversions between element types (spec 10, 1.4, 5.2 and 5.3). Every narrowing rounds once, to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx {

uint16_t f16_from_double(double x);  // overflow gives a signed infinity, NaN stays NaN
uint16_t bf16_from_double(double x);
double f16_to_double(uint16_t bits);
double bf16_to_double(uint16_t bits);

// OCP FP8. Encoding saturates to the largest finite value; E4M3 has no infinity, so an infinite input saturates as
// well.
uint8_t f8e4m3_from_double(double x);
uint8_t f8e5m2_from_double(double x);
double f8e4m3_to_double(uint8_t bits);
double f8e5m2_to_double(uint8_t bits);

// Two's complement nibbles, element 0 in the low half of byte 0.
int i4_unpack(const uint8_t* packed, int64_t index);
void i4_pack(uint8_t* packed, int64_t index, int value);

// The integer whose conversion to any dtype with at most 50 significant bits rounds once: the bits beyond a double's 53
// survive as a sticky bit.
double i64_to_double_sticky(int64_t value);
double u64_to_double_sticky(uint64_t value);

// Truncates toward zero, saturates to [low, high], NaN gives 0.
int64_t saturate_to_int(double x, int64_t low, int64_t high);
uint64_t saturate_to_uint(double x);  // the same for [0, 2^64)

// The range of an integer dtype; of other dtypes that of I64. The largest U64 is given by its bits.
int64_t smallest_int(DType dtype);
int64_t largest_int(DType dtype);

// One element at a time, by dtype; of C64 the real part (imaginary part 0 when stored). An int64_t carries a U64 by its
// bits: whoever orders, divides or converts such elements to floats asks for the dtype first.
using LoadFn = double (*)(const std::byte* data, int64_t index);
using StoreFn = void (*)(std::byte* data, int64_t index, double value);
using LoadIntFn = int64_t (*)(const std::byte* data, int64_t index);
using StoreIntFn = void (*)(std::byte* data, int64_t index, int64_t value);
LoadFn load_fn(DType dtype);
StoreFn store_fn(DType dtype);
LoadIntFn load_int_fn(DType dtype);    // integers and Bool exactly, floats by the rule of Cast to I64
StoreIntFn store_int_fn(DType dtype);  // integers keep the low bits, floats round once, Bool is x != 0

// Cast of n elements (spec 10, 1.4). Source and target are the same bytes (dtypes of one size), or do not overlap.
void convert_elements(DType from, const std::byte* src, DType to, std::byte* dst, int64_t n);

}  // namespace rlx
