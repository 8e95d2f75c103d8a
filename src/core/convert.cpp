#include "core/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

namespace rlx {

namespace {

// A small float format: 1 sign bit, exponent and mantissa bits below it.
struct Format {
  int exp_bits, mant_bits;
  uint32_t largest;  // magnitude bits of the largest finite value
  uint32_t inf;      // magnitude bits an overflow turns into
  uint32_t nan;

  constexpr int bias() const { return (1 << (exp_bits - 1)) - 1; }
  constexpr int sign_shift() const { return exp_bits + mant_bits; }
};

constexpr Format kF16 = {5, 10, 0x7BFF, 0x7C00, 0x7E00};
constexpr Format kBF16 = {8, 7, 0x7F7F, 0x7F80, 0x7FC0};
constexpr Format kE4M3 = {4, 3, 0x7E, 0x7E, 0x7F};  // saturating
constexpr Format kE5M2 = {5, 2, 0x7B, 0x7B, 0x7E};  // saturating

uint32_t encode(const Format& f, double x) {
  const uint32_t sign = static_cast<uint32_t>(std::signbit(x)) << f.sign_shift();
  if (std::isnan(x)) return sign | f.nan;
  const double a = std::fabs(x);
  if (a == 0) return sign;
  if (std::isinf(a)) return sign | f.inf;
  int e = 0;
  std::frexp(a, &e);
  const int exponent = std::max(e - 1, 1 - f.bias());  // subnormals share the smallest exponent
  if (exponent > f.bias() + 1) return sign | f.inf;
  // a in units of the last place; at most mant_bits + 1 bits survive, so nearbyint rounds exactly once.
  const double ulps = std::nearbyint(std::ldexp(a, f.mant_bits - exponent));
  // The implicit bit of a normal number carries into the exponent, and so does a mantissa that rounds up.
  const uint32_t bits = (static_cast<uint32_t>(exponent + f.bias() - 1) << f.mant_bits) + static_cast<uint32_t>(ulps);
  return sign | (bits > f.largest ? f.inf : bits);
}

double decode(const Format& f, uint32_t bits, bool ieee_specials) {
  const uint32_t mant_mask = (1u << f.mant_bits) - 1, exp_mask = (1u << f.exp_bits) - 1;
  const double sign = (bits >> f.sign_shift()) & 1 ? -1.0 : 1.0;
  const uint32_t exponent = (bits >> f.mant_bits) & exp_mask, mant = bits & mant_mask;
  if (ieee_specials && exponent == exp_mask)
    return mant == 0 ? sign * std::numeric_limits<double>::infinity()
                     : std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mant), 1 - f.bias() - f.mant_bits);
  return sign *
         std::ldexp(static_cast<double>(mant + mant_mask + 1), static_cast<int>(exponent) - f.bias() - f.mant_bits);
}

}  // namespace

uint16_t f16_from_double(double x) { return static_cast<uint16_t>(encode(kF16, x)); }
uint16_t bf16_from_double(double x) { return static_cast<uint16_t>(encode(kBF16, x)); }
double f16_to_double(uint16_t bits) { return decode(kF16, bits, true); }
double bf16_to_double(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint8_t f8e4m3_from_double(double x) { return static_cast<uint8_t>(encode(kE4M3, x)); }
uint8_t f8e5m2_from_double(double x) { return static_cast<uint8_t>(encode(kE5M2, x)); }
double f8e5m2_to_double(uint8_t bits) { return decode(kE5M2, bits, true); }
double f8e4m3_to_double(uint8_t bits) {
  if ((bits & 0x7F) == kE4M3.nan) return std::copysign(std::numeric_limits<double>::quiet_NaN(), bits & 0x80 ? -1 : 1);
  return decode(kE4M3, bits, false);
}

int i4_unpack(const uint8_t* packed, int64_t index) {
  const int nibble = (packed[index / 2] >> (4 * (index % 2))) & 15;
  return nibble < 8 ? nibble : nibble - 16;
}

void i4_pack(uint8_t* packed, int64_t index, int value) {
  const int shift = static_cast<int>(4 * (index % 2));
  packed[index / 2] = static_cast<uint8_t>((packed[index / 2] & ~(15 << shift)) | ((value & 15) << shift));
}

double u64_to_double_sticky(uint64_t value) {
  if (value < (uint64_t{1} << 53)) return static_cast<double>(value);
  return std::ldexp(static_cast<double>((value >> 11) | ((value & 2047) != 0)), 11);
}

double i64_to_double_sticky(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return value < 0 ? -u64_to_double_sticky(0 - bits) : u64_to_double_sticky(bits);
}

int64_t saturate_to_int(double x, int64_t low, int64_t high) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(low)) return low;
  if (x >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(x);  // truncates
}

uint64_t saturate_to_uint(double x) {
  if (!(x > 0)) return 0;  // NaN too
  if (x >= 0x1p64) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(x);
}

int64_t smallest_int(DType dtype) {
  switch (dtype) {
    case DType::I8: return std::numeric_limits<int8_t>::min();
    case DType::I16: return std::numeric_limits<int16_t>::min();
    case DType::I32: return std::numeric_limits<int32_t>::min();
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64: return 0;
    default: return std::numeric_limits<int64_t>::min();
  }
}

int64_t largest_int(DType dtype) {
  switch (dtype) {
    case DType::I8: return std::numeric_limits<int8_t>::max();
    case DType::I16: return std::numeric_limits<int16_t>::max();
    case DType::I32: return std::numeric_limits<int32_t>::max();
    case DType::U8: return std::numeric_limits<uint8_t>::max();
    case DType::U16: return std::numeric_limits<uint16_t>::max();
    case DType::U32: return std::numeric_limits<uint32_t>::max();
    case DType::U64: return static_cast<int64_t>(std::numeric_limits<uint64_t>::max());
    default: return std::numeric_limits<int64_t>::max();
  }
}

namespace {

template <class T>
T get(const std::byte* data, int64_t i) {
  T v;
  std::memcpy(&v, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <class T>
void put(std::byte* data, int64_t i, T v) {
  std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

template <class T>
double load(const std::byte* d, int64_t i) {
  return static_cast<double>(get<T>(d, i));
}
template <class T>
void store(std::byte* d, int64_t i, double v) {
  if constexpr (std::is_floating_point_v<T>)
    put(d, i, static_cast<T>(v));
  else if constexpr (std::is_same_v<T, uint64_t>)
    put(d, i, saturate_to_uint(v));
  else
    put(d, i, static_cast<T>(saturate_to_int(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
}
template <class T>
int64_t load_int(const std::byte* d, int64_t i) {
  return static_cast<int64_t>(get<T>(d, i));
}
template <class T>
void store_int(std::byte* d, int64_t i, int64_t v) {
  put(d, i, static_cast<T>(v));
}

int64_t to_i64(double x) {
  return saturate_to_int(x, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

}  // namespace

LoadFn load_fn(DType dtype) {
  switch (dtype) {
    case DType::F32: return load<float>;
    case DType::F16: return [](const std::byte* d, int64_t i) { return f16_to_double(get<uint16_t>(d, i)); };
    case DType::BF16: return [](const std::byte* d, int64_t i) { return bf16_to_double(get<uint16_t>(d, i)); };
    case DType::F64: return load<double>;
    case DType::I8: return load<int8_t>;
    case DType::I16: return load<int16_t>;
    case DType::I32: return load<int32_t>;
    case DType::I64: return load<int64_t>;
    case DType::U8: return load<uint8_t>;
    case DType::U16: return load<uint16_t>;
    case DType::U32: return load<uint32_t>;
    case DType::U64: return load<uint64_t>;
    case DType::Bool: return [](const std::byte* d, int64_t i) { return get<uint8_t>(d, i) != 0 ? 1.0 : 0.0; };
    case DType::C64: return [](const std::byte* d, int64_t i) { return static_cast<double>(get<float>(d, 2 * i)); };
  }
  return nullptr;
}

StoreFn store_fn(DType dtype) {
  switch (dtype) {
    case DType::F32: return store<float>;
    case DType::F16: return [](std::byte* d, int64_t i, double v) { put(d, i, f16_from_double(v)); };
    case DType::BF16: return [](std::byte* d, int64_t i, double v) { put(d, i, bf16_from_double(v)); };
    case DType::F64: return store<double>;
    case DType::I8: return store<int8_t>;
    case DType::I16: return store<int16_t>;
    case DType::I32: return store<int32_t>;
    case DType::I64: return store<int64_t>;
    case DType::U8: return store<uint8_t>;
    case DType::U16: return store<uint16_t>;
    case DType::U32: return store<uint32_t>;
    case DType::U64: return store<uint64_t>;
    case DType::Bool: return [](std::byte* d, int64_t i, double v) { put(d, i, static_cast<uint8_t>(v != 0)); };
    case DType::C64:
      return [](std::byte* d, int64_t i, double v) {
        put(d, 2 * i, static_cast<float>(v));
        put(d, 2 * i + 1, 0.0f);
      };
  }
  return nullptr;
}

LoadIntFn load_int_fn(DType dtype) {
  switch (dtype) {
    case DType::I8: return load_int<int8_t>;
    case DType::I16: return load_int<int16_t>;
    case DType::I32: return load_int<int32_t>;
    case DType::I64: return load_int<int64_t>;
    case DType::U8: return load_int<uint8_t>;
    case DType::U16: return load_int<uint16_t>;
    case DType::U32: return load_int<uint32_t>;
    case DType::U64: return load_int<uint64_t>;
    case DType::Bool: return [](const std::byte* d, int64_t i) { return int64_t{get<uint8_t>(d, i) != 0}; };
    case DType::F32: return [](const std::byte* d, int64_t i) { return to_i64(get<float>(d, i)); };
    case DType::F64: return [](const std::byte* d, int64_t i) { return to_i64(get<double>(d, i)); };
    case DType::F16: return [](const std::byte* d, int64_t i) { return to_i64(f16_to_double(get<uint16_t>(d, i))); };
    case DType::BF16: return [](const std::byte* d, int64_t i) { return to_i64(bf16_to_double(get<uint16_t>(d, i))); };
    case DType::C64: return [](const std::byte* d, int64_t i) { return to_i64(get<float>(d, 2 * i)); };
  }
  return nullptr;
}

StoreIntFn store_int_fn(DType dtype) {
  switch (dtype) {
    case DType::I8: return store_int<int8_t>;
    case DType::I16: return store_int<int16_t>;
    case DType::I32: return store_int<int32_t>;
    case DType::I64: return store_int<int64_t>;
    case DType::U8: return store_int<uint8_t>;
    case DType::U16: return store_int<uint16_t>;
    case DType::U32: return store_int<uint32_t>;
    case DType::U64: return store_int<uint64_t>;
    case DType::Bool: return [](std::byte* d, int64_t i, int64_t v) { put(d, i, static_cast<uint8_t>(v != 0)); };
    case DType::F32: return store_int<float>;  // the hardware rounds an integer once
    case DType::F64: return store_int<double>;
    case DType::F16:
      return [](std::byte* d, int64_t i, int64_t v) { put(d, i, f16_from_double(i64_to_double_sticky(v))); };
    case DType::BF16:
      return [](std::byte* d, int64_t i, int64_t v) { put(d, i, bf16_from_double(i64_to_double_sticky(v))); };
    case DType::C64:
      return [](std::byte* d, int64_t i, int64_t v) {
        put(d, 2 * i, static_cast<float>(v));
        put(d, 2 * i + 1, 0.0f);
      };
  }
  return nullptr;
}

namespace {

// store_int_fn for a U64, whose upper half an int64_t does not hold: it matters where the target is a float.
using StoreUintFn = void (*)(std::byte* data, int64_t index, uint64_t value);
StoreUintFn store_uint_fn(DType float_or_complex) {
  switch (float_or_complex) {
    case DType::F32: return [](std::byte* d, int64_t i, uint64_t v) { put(d, i, static_cast<float>(v)); };
    case DType::F64: return [](std::byte* d, int64_t i, uint64_t v) { put(d, i, static_cast<double>(v)); };
    case DType::F16:
      return [](std::byte* d, int64_t i, uint64_t v) { put(d, i, f16_from_double(u64_to_double_sticky(v))); };
    case DType::BF16:
      return [](std::byte* d, int64_t i, uint64_t v) { put(d, i, bf16_from_double(u64_to_double_sticky(v))); };
    default:
      return [](std::byte* d, int64_t i, uint64_t v) {
        put(d, 2 * i, static_cast<float>(v));
        put(d, 2 * i + 1, 0.0f);
      };
  }
}

}  // namespace

void convert_elements(DType from, const std::byte* src, DType to, std::byte* dst, int64_t n) {
  if (n == 0) return;  // an empty tensor has no address, and memcpy takes none
  if (from == to && from != DType::Bool) {
    std::memmove(dst, src, static_cast<size_t>(n) * size_of(from));
    return;
  }
  if (from == DType::C64 && to == DType::Bool) {
    for (int64_t i = 0; i < n; ++i)
      put(dst, i, static_cast<uint8_t>(get<float>(src, 2 * i) != 0 || get<float>(src, 2 * i + 1) != 0));
    return;
  }
  if (from == DType::U64 && (is_float(to) || is_complex(to))) {
    const StoreUintFn store = store_uint_fn(to);
    for (int64_t i = 0; i < n; ++i) store(dst, i, get<uint64_t>(src, i));
    return;
  }
  if (is_int(from) || from == DType::Bool) {
    const LoadIntFn load = load_int_fn(from);
    const StoreIntFn store = store_int_fn(to);
    for (int64_t i = 0; i < n; ++i) store(dst, i, load(src, i));
    return;
  }
  const LoadFn load = load_fn(from);
  const StoreFn store = store_fn(to);
  for (int64_t i = 0; i < n; ++i) store(dst, i, load(src, i));
}

}  // namespace rlx
