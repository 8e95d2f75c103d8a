#define RLX_SIMD_VNNI
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/dot.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/quant/small_floats.h"
//
#include "backends/cpu/quant/lanes-inl.h"
#include "backends/cpu/quant/packed.h"
#include "backends/cpu/round_up.h"
#include "rlx/error.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace rlx::cpu::quant;

HWY_INLINE float power_of_two(int n) { return std::bit_cast<float>((n + 127) << 23); }

// The power of two that brings `top` (bits of a finite number) up to 0x7F7F7F, the largest that three signed digits
// hold, as a pair of factors: one alone can leave the range of f32.
HWY_INLINE void scale_of(uint32_t top, float factors[2], float* inverse) {
  const int exponent = top >> 23 == 0 ? 1 : static_cast<int>(top >> 23);
  const bool close = (top & 0x7F'FFFF) >= 0x7E'FE00 && top >> 23 != 0;
  const int power = 149 - exponent - (close ? 1 : 0);
  factors[0] = power_of_two(power / 2);
  factors[1] = power_of_two(power - power / 2);
  *inverse = power_of_two(-(power / 2)) * power_of_two(-(power - power / 2));
}

// False when an element is not finite.
HWY_INLINE bool prepare_block(const float* x, int32_t offset, bool halves, Activations* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = hn::Lanes(d);
  HWY_ALIGN int32_t digits[32];
  std::memcpy(digits, x, sizeof digits);
  int32_t top = 0;
  for (int j = 0; j < 32; ++j) top = std::max(top, digits[j] & 0x7FFF'FFFF);
  if (top >= 0x7F80'0000) return false;
  float factors[2];
  scale_of(static_cast<uint32_t>(top), factors, &out->scale);
  const auto f0 = hn::Set(d, factors[0]), f1 = hn::Set(d, factors[1]);
  for (size_t j = 0; j < 32; j += lanes)
    hn::Store(hn::NearestInt(hn::Mul(hn::Mul(hn::LoadU(d, x + j), f0), f1)), di, digits + j);
  int32_t sums[2][3] = {};
  for (int h = 0; h < 2; ++h)
    for (int j = 16 * h; j < 16 * h + 16; ++j) {
      const int32_t v = digits[j], c = static_cast<int8_t>(v), bc = (v - c) >> 8, b = static_cast<int8_t>(bc),
                    a = (bc - b) >> 8;
      out->a[j] = static_cast<int8_t>(a);
      out->b[j] = static_cast<int8_t>(b);
      out->c[j] = static_cast<int8_t>(c);
      sums[h][0] += a, sums[h][1] += b, sums[h][2] += c;
    }
  const auto real = [&](const int32_t* s) {
    return (static_cast<float>(s[0]) * 65536.0f + static_cast<float>(s[1] * 256 + s[2])) * out->scale;
  };
  if (halves && offset != 0) {
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 3; ++i) out->sums[3 * h + i].integer = -offset * sums[h][i];
  } else if (halves) {
    for (int h = 0; h < 2; ++h) out->sums[h].real = real(sums[h]);
  } else {
    for (int i = 0; i < 3; ++i) sums[0][i] += sums[1][i];
    out->sums[0].real = real(sums[0]);
    for (int i = 0; i < 3; ++i) out->sums[1 + i].integer = -offset * sums[0][i];
  }
  return true;
}

bool PrepareRow(const Layout& layout, const float* x, int64_t k, Activations* out) {
  bool finite = true;
  for (; k >= kUnit; k -= kUnit, x += kUnit) finite = prepare_block(x, layout.offset, layout.halves(), out++) && finite;
  if (k > 0) {
    float last[kUnit] = {};
    std::memcpy(last, x, static_cast<size_t>(k) * sizeof(float));
    finite = prepare_block(last, layout.offset, layout.halves(), out) && finite;
  }
  return finite;
}

template <Codes kCodes>
HWY_INLINE void load_codes(const uint8_t* p, Bytes table, Bytes v[8]) {
  if constexpr (kCodes == Codes::k8) {
    for (int j = 0; j < 8; ++j) v[j] = load_bytes(p + 64 * j);
  } else if constexpr (kCodes == Codes::k2 || kCodes == Codes::k3) {
    for (int j = 0; j < 2; ++j) {
      const Bytes packed = load_bytes(p + 64 * j);
      v[j] = bits<0, 3>(packed);
      v[j + 2] = bits<2, 3>(packed);
      v[j + 4] = bits<4, 3>(packed);
      v[j + 6] = bits<6, 3>(packed);
    }
  } else {
    for (int j = 0; j < 4; ++j) {
      const Bytes packed = load_bytes(p + 64 * j);
      v[j] = bits<0, 15>(packed);
      v[j + 4] = bits<4, 15>(packed);
    }
  }
  if constexpr (kCodes == Codes::kTable)
    for (int j = 0; j < 8; ++j) v[j] = look_up(table, v[j]);
  if constexpr (kCodes == Codes::k6)
    for (int j = 0; j < 2; ++j) {
      const Bytes high = load_bytes(p + 256 + 64 * j);
      v[j] = add_bits_left<4, 0x30>(v[j], high);
      v[j + 2] = add_bits_left<2, 0x30>(v[j + 2], high);
      v[j + 4] = add_bits_left<0, 0x30>(v[j + 4], high);
      v[j + 6] = add_bits_right<2, 0x30>(v[j + 6], high);
    }
  if constexpr (kCodes == Codes::k5) {
    const Bytes high = load_bytes(p + 256);
    v[0] = add_bits_left<4, 16>(v[0], high);
    v[1] = add_bits_left<3, 16>(v[1], high);
    v[2] = add_bits_left<2, 16>(v[2], high);
    v[3] = add_bits_left<1, 16>(v[3], high);
    v[4] = add_bits_left<0, 16>(v[4], high);
    v[5] = add_bits_right<1, 16>(v[5], high);
    v[6] = add_bits_right<2, 16>(v[6], high);
    v[7] = add_bits_right<3, 16>(v[7], high);
  }
  if constexpr (kCodes == Codes::k3) {
    const Bytes high = load_bytes(p + 128);
    v[0] = add_bits_left<2, 4>(v[0], high);
    v[1] = add_bits_left<1, 4>(v[1], high);
    v[2] = add_bits_left<0, 4>(v[2], high);
    v[3] = add_bits_right<1, 4>(v[3], high);
    v[4] = add_bits_right<2, 4>(v[4], high);
    v[5] = add_bits_right<3, 4>(v[5], high);
    v[6] = add_bits_right<4, 4>(v[6], high);
    v[7] = add_bits_right<5, 4>(v[7], high);
  }
}

constexpr bool has_halves(Scales s) {
  return s == Scales::kSuperMin16 || s == Scales::kSuper16 || s == Scales::kSideFp8;
}
constexpr bool has_min(Scales s) {
  return s == Scales::kHalfMin || s == Scales::kSuperMin || s == Scales::kSuperMin16 || s == Scales::kSideZero;
}
constexpr int scale_bytes(Scales s) {
  switch (s) {
    case Scales::kHalf:
    case Scales::kSuperMin:
    case Scales::kSuperMin16:
    case Scales::kSuper16: return 32;
    case Scales::kHalfMin: return 64;
    case Scales::kSuper: return 16;
    default: return 0;
  }
}

// Walks the units of a group: its codes, the factor of each half and what is added per unit of the sum of x.
template <Codes kCodes, Scales kScales>
struct Walk {
  const uint8_t *p, *codes;  // the next scales and codes
  const Side& side;
  Bytes table;
  Floats super, super_min;
  Bytes v[8];
  Floats factor[2], minimum[2];
  static constexpr int kBytes = kCodes == Codes::k8   ? 512
                                : kCodes == Codes::k5 ? 320
                                : kCodes == Codes::k6 ? 384
                                : kCodes == Codes::k2 ? 128
                                : kCodes == Codes::k3 ? 192
                                                      : 256;

  HWY_INLINE Walk(const Layout& layout, const uint8_t* group, const Side& s, const int8_t* levels, int64_t k)
      : p(group), codes(group + layout.codes_at(k)), side(s), table(table_of(levels, layout.offset)) {}

  // Rows of side tensors lie far apart, where no hardware looks ahead.
  HWY_INLINE void fetch_side(int64_t u) const {
    constexpr int64_t kUnitsAhead = 6;
    if constexpr (kScales == Scales::kSide || kScales == Scales::kSideZero) {
      const int64_t row = (u + kUnitsAhead) * kUnit / side.block * side.stride;
      prefetch(reinterpret_cast<const uint8_t*>(side.scale + row));
      if constexpr (kScales == Scales::kSideZero) prefetch(reinterpret_cast<const uint8_t*>(side.zero + row));
    } else if constexpr (kScales == Scales::kSideFp8) {
      for (int h = 0; h < 2; ++h) prefetch(side.scale8 + (2 * (u + kUnitsAhead) + h) * side.stride);
    }
  }

  // Unit number u.
  HWY_INLINE void step(int64_t u) {
    if (u % 8 == 0) {
      if constexpr (kScales == Scales::kSuperFloat) {
        super = load_floats(p);
        p += 64;
      } else if constexpr (kScales == Scales::kSuper || kScales == Scales::kSuper16) {
        super = load_halves(p);
        p += 32;
      } else if constexpr (kScales == Scales::kSuperMin || kScales == Scales::kSuperMin16) {
        super = load_halves(p);
        super_min = negate(load_halves(p + 32));
        p += 64;
      }
    }
    if constexpr (kScales == Scales::kHalf) {
      factor[0] = load_halves(p);
    } else if constexpr (kScales == Scales::kHalfMin) {
      factor[0] = load_halves(p);
      minimum[0] = load_halves(p + 32);
    } else if constexpr (kScales == Scales::kSuperMin) {
      factor[0] = mul(super, load_u8(p));
      minimum[0] = mul(super_min, load_u8(p + 16));
    } else if constexpr (kScales == Scales::kSuperMin16) {
      for (int h = 0; h < 2; ++h) {
        factor[h] = mul(super, load_low_nibbles(p + 16 * h));
        minimum[h] = mul(super_min, load_high_nibbles(p + 16 * h));
      }
    } else if constexpr (kScales == Scales::kSuper) {
      factor[0] = mul(super, load_i8(p));
    } else if constexpr (kScales == Scales::kSuper16) {
      for (int h = 0; h < 2; ++h) factor[h] = mul(super, load_i8(p + 16 * h));
    } else if constexpr (kScales == Scales::kSuperFloat) {
      factor[0] = super;
    } else if constexpr (kScales == Scales::kSide || kScales == Scales::kSideZero) {
      const int64_t row = u * kUnit / side.block * side.stride;
      factor[0] = load_some(side.scale + row, side.columns);
      if constexpr (kScales == Scales::kSideZero)
        minimum[0] = negate(mul(factor[0], load_some(side.zero + row, side.columns)));
    } else {
      for (int h = 0; h < 2; ++h) {
        // A last unit of at most 16 elements has no second row of scales, and no codes that need one.
        const int64_t row = std::min(2 * u + h, side.scale_rows - 1) * side.stride;
        factor[h] = mul(load_e4m3(side.scale8 + row, side.columns), set(side.global * 0.5f));
      }
    }
    p += scale_bytes(kScales);
    load_codes<kCodes>(codes, table, v);
    codes += kBytes;
  }
};

template <int kFirst, int kLast>
HWY_INLINE Floats dot_steps(const Bytes* v, const Activations& x, Ints a, Ints b, Ints c) {
  for (int j = kFirst; j < kLast; ++j) {
    a = dot4(a, v[j], x.a + 4 * j);
    b = dot4(b, v[j], x.b + 4 * j);
    c = dot4(c, v[j], x.c + 4 * j);
  }
  return mul_add(to_floats(a), set(65536.0f), to_floats(add(shift_left_8(b), c)));
}

// How far ahead codes are asked for, into L2 (measured): alone, and as one of four streams, where the hardware sees
// for itself that bytes follow bytes.
constexpr int64_t kAhead = 8192;
constexpr int64_t ahead_of_four(int unit_bytes) { return unit_bytes == 512 ? 1024 : 2048; }

// What one unit adds to the sum of a row.
template <Codes kCodes, Scales kScales, bool kOffset>
HWY_INLINE Floats add_unit(const Walk<kCodes, kScales>& w, const Activations& x, Floats sum) {
  const Floats scale = set(x.scale);
  if constexpr (has_halves(kScales)) {
    const auto start = [&](int i) HWY_ATTR { return kOffset ? set(x.sums[i].integer) : set(0); };
    const Floats first = dot_steps<0, 4>(w.v, x, start(0), start(1), start(2));
    const Floats second = dot_steps<4, 8>(w.v, x, start(3), start(4), start(5));
    sum = mul_add(mul_add(first, w.factor[0], mul(second, w.factor[1])), scale, sum);
    if constexpr (has_min(kScales)) {
      sum = mul_add(w.minimum[0], set(x.sums[0].real), sum);
      sum = mul_add(w.minimum[1], set(x.sums[1].real), sum);
    }
  } else {
    const auto start = [&](int i) HWY_ATTR { return kOffset ? set(x.sums[i].integer) : set(0); };
    sum = mul_add(mul(dot_steps<0, 8>(w.v, x, start(1), start(2), start(3)), scale), w.factor[0], sum);
    if constexpr (has_min(kScales)) sum = mul_add(w.minimum[0], set(x.sums[0].real), sum);
  }
  return sum;
}

template <class Walk>
HWY_INLINE void step_ahead(Walk& walk, int64_t u, int64_t ahead) {
  for (int line = 0; line < Walk::kBytes; line += 64) prefetch(walk.codes + ahead + line);
  walk.fetch_side(u);
  walk.step(u);
}

template <Codes kCodes, Scales kScales, bool kOffset, int kRows>
HWY_INLINE void dot_rows(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
                         const Activations* const* rows, float (*y)[kColumns]) {
  Walk<kCodes, kScales> walk(layout, group, side, levels, k);
  Floats sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = set(0.0f);
  const int64_t units = div_up(k, kUnit);
  for (int64_t u = 0; u < units; ++u) {
    step_ahead(walk, u, kAhead);
    for (int r = 0; r < kRows; ++r) sum[r] = add_unit<kCodes, kScales, kOffset>(walk, rows[r][u], sum[r]);
  }
  for (int r = 0; r < kRows; ++r) store(sum[r], y[r]);
}

// Four groups at once for a single row: memory likes several streams, and x is loaded once for all.
template <Codes kCodes, Scales kScales, bool kOffset>
void DotFourOf(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
               const Activations* row, float (*y)[kColumns]) {
  const int64_t bytes = layout.group_bytes(k), units = div_up(k, kUnit);
  Side sides[kGroupsAtOnce] = {side, side, side, side};
  for (int64_t i = 1; i < kGroupsAtOnce; ++i) {
    if (side.scale != nullptr) sides[i].scale += i * kColumns;
    if (side.zero != nullptr) sides[i].zero += i * kColumns;
    if (side.scale8 != nullptr) sides[i].scale8 += i * kColumns;
  }
  Walk<kCodes, kScales> a(layout, group, sides[0], levels, k), b(layout, group + bytes, sides[1], levels, k),
      c(layout, group + 2 * bytes, sides[2], levels, k), d(layout, group + 3 * bytes, sides[3], levels, k);
  Floats sum[kGroupsAtOnce];
  for (Floats& s : sum) s = set(0.0f);
  const auto add = [&](Walk<kCodes, kScales>& walk, int64_t u, Floats s) HWY_ATTR {
    step_ahead(walk, u, ahead_of_four(walk.kBytes));
    return add_unit<kCodes, kScales, kOffset>(walk, row[u], s);
  };
  for (int64_t u = 0; u < units; ++u) {
    sum[0] = add(a, u, sum[0]);
    sum[1] = add(b, u, sum[1]);
    sum[2] = add(c, u, sum[2]);
    sum[3] = add(d, u, sum[3]);
  }
  for (int64_t g = 0; g < kGroupsAtOnce; ++g) store(sum[g], y[g]);
}

template <Codes kCodes, Scales kScales, bool kOffset>
void DotGroupOf(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
                std::span<const Activations* const> rows, float (*y)[kColumns]) {
  size_t r = 0;
  const auto run = [&]<int kRows>(std::integral_constant<int, kRows>) HWY_ATTR {
    for (; r + kRows <= rows.size(); r += kRows)
      dot_rows<kCodes, kScales, kOffset, kRows>(layout, levels, group, side, k, rows.data() + r, y + r);
  };
#if HWY_TARGET == HWY_AVX3_DL  // the others only have to be right
  run(std::integral_constant<int, 8>());
  run(std::integral_constant<int, 4>());
  run(std::integral_constant<int, 2>());
#endif
  run(std::integral_constant<int, 1>());
}

template <Codes kCodes, Scales kScales>
void DotExactlyOf(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
                  const float* x, float* y) {
  Walk<kCodes, kScales> walk(layout, group, side, levels, k);
  float sum[kColumns] = {};
  for (int64_t k0 = 0; k0 < k; k0 += kUnit) {
    walk.step(k0 / kUnit);
    uint8_t codes[8][64];
    float factor[2][kColumns], minimum[2][kColumns] = {};
    for (int j = 0; j < 8; ++j) store(walk.v[j], codes[j]);
    for (int h = 0; h < (has_halves(kScales) ? 2 : 1); ++h) {
      store(walk.factor[h], factor[h]);
      if constexpr (has_min(kScales)) store(walk.minimum[h], minimum[h]);
    }
    for (int64_t j = 0; j < std::min(kUnit, k - k0); ++j) {
      const int64_t h = has_halves(kScales) ? j / 16 : 0;
      for (int64_t c = 0; c < kColumns; ++c) {
        const auto code = static_cast<float>(codes[j / 4][4 * c + j % 4] - layout.offset);
        sum[c] += x[k0 + j] * (code * factor[h][c] + minimum[h][c]);
      }
    }
  }
  std::memcpy(y, sum, sizeof sum);
}

// Calls f with the layout's kinds as constants.
template <class F>
HWY_INLINE void with_kinds(const Layout& l, const F& f) {
#define RLX_CASE(CODES, SCALES, OFFSET)                                                   \
  if (l.codes == Codes::CODES && l.scales == Scales::SCALES && (l.offset != 0) == OFFSET) \
  return f.template operator()<Codes::CODES, Scales::SCALES, OFFSET>()
  RLX_CASE(k4, kHalf, true);
  RLX_CASE(k4, kSuperMin, false);
  RLX_CASE(k8, kHalf, true);
  RLX_CASE(k4, kHalfMin, false);
  RLX_CASE(k5, kHalf, true);
  RLX_CASE(k5, kHalfMin, false);
  RLX_CASE(k5, kSuperMin, false);
  RLX_CASE(k6, kSuper16, true);
  RLX_CASE(k2, kSuperMin16, false);
  RLX_CASE(k3, kSuper16, true);
  RLX_CASE(k8, kSuperFloat, true);
  RLX_CASE(kTable, kHalf, true);
  RLX_CASE(kTable, kSuper, true);
  RLX_CASE(k8, kSide, true);
  RLX_CASE(k8, kSideZero, true);
  RLX_CASE(k4, kSide, true);
  RLX_CASE(kTable, kSideFp8, true);
#undef RLX_CASE
  RLX_ASSERT(false && "a layout without a kernel");
}

void DotGroup(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
              std::span<const Activations* const> rows, float (*y)[kColumns]) {
  with_kinds(layout, [&]<Codes kCodes, Scales kScales, bool kOffset>()
                         HWY_ATTR { DotGroupOf<kCodes, kScales, kOffset>(layout, levels, group, side, k, rows, y); });
}

void DotFour(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
             const Activations* row, float (*y)[kColumns]) {
  with_kinds(layout, [&]<Codes kCodes, Scales kScales, bool kOffset>()
                         HWY_ATTR { DotFourOf<kCodes, kScales, kOffset>(layout, levels, group, side, k, row, y); });
}

void DotExactly(const Layout& layout, const int8_t* levels, const uint8_t* group, const Side& side, int64_t k,
                const float* x, float* y) {
  with_kinds(layout, [&]<Codes kCodes, Scales kScales, bool>()
                         HWY_ATTR { DotExactlyOf<kCodes, kScales>(layout, levels, group, side, k, x, y); });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(PrepareRow);
HWY_EXPORT(DotGroup);
HWY_EXPORT(DotFour);
HWY_EXPORT(DotExactly);

namespace quant {

bool has_byte_dot() { return (hwy::SupportedTargets() & HWY_AVX3_DL) != 0; }

bool prepare_row(const Layout& layout, const float* x, int64_t k, Activations* out) {
  return HWY_DYNAMIC_DISPATCH(PrepareRow)(layout, x, k, out);
}

void dot_group(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
               std::span<const Activations* const> rows, float (*y)[kColumns]) {
  HWY_DYNAMIC_DISPATCH(DotGroup)(layout, table, group, side, k, rows, y);
}

void dot_four_groups(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
                     const Activations* row, float (*y)[kColumns]) {
  HWY_DYNAMIC_DISPATCH(DotFour)(layout, table, group, side, k, row, y);
}

void dot_group_exactly(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
                       const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(DotExactly)(layout, table, group, side, k, x, y);
}

}  // namespace quant
}  // namespace rlx::cpu
#endif
