// The few vector operations of the integer-dot kernels, on 16 lanes: AVX-512 with VNNI, or plain loops that keep the
// layout readable on every other machine. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_QUANT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_QUANT_LANES_INL_H_
#undef RLX_BACKENDS_CPU_QUANT_LANES_INL_H_
#else
#define RLX_BACKENDS_CPU_QUANT_LANES_INL_H_
#endif

#include <bit>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

using Bytes = __m512i;  // 64 codes
using Ints = __m512i;   // 16 of i32
using Floats = __m512;  // 16 of f32

HWY_INLINE Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
HWY_INLINE void store(Bytes v, uint8_t* p) { _mm512_storeu_si512(p, v); }
HWY_INLINE void store(Floats v, float* p) { _mm512_storeu_ps(p, v); }
HWY_INLINE Floats set(float v) { return _mm512_set1_ps(v); }
HWY_INLINE Ints set(int32_t v) { return _mm512_set1_epi32(v); }

template <int kShift, int kMask>
HWY_INLINE Bytes bits(Bytes v) {
  return _mm512_and_si512(kShift == 0 ? v : _mm512_srli_epi16(v, kShift), _mm512_set1_epi8(kMask));
}
// v | (high << kShift & kMask)
template <int kShift, int kMask>
HWY_INLINE Bytes add_bits_left(Bytes v, Bytes high) {
  const Bytes s = kShift == 0 ? high : _mm512_slli_epi16(high, kShift);
  return _mm512_ternarylogic_epi64(v, s, _mm512_set1_epi8(kMask), 0xF8);
}
template <int kShift, int kMask>
HWY_INLINE Bytes add_bits_right(Bytes v, Bytes high) {
  return _mm512_ternarylogic_epi64(v, _mm512_srli_epi16(high, kShift), _mm512_set1_epi8(kMask), 0xF8);
}
HWY_INLINE Bytes table_of(const int8_t* levels, int32_t offset) {
  const __m128i t =
      _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)), _mm_set1_epi8(static_cast<char>(offset)));
  return _mm512_broadcast_i32x4(t);
}
HWY_INLINE Bytes look_up(Bytes table, Bytes v) { return _mm512_shuffle_epi8(table, v); }

// acc + the products of the four codes of each lane with four signed bytes
// Assembly, because Highway's AVX3_DL asks the machine for VNNI but does not tell the compiler.
HWY_INLINE Ints dot4(Ints acc, Bytes codes, const int8_t* four) {
  typedef int32_t __attribute__((may_alias)) Word;
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*reinterpret_cast<const Word*>(four)));
  return acc;
}
HWY_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
HWY_INLINE Ints shift_left_8(Ints a) { return _mm512_slli_epi32(a, 8); }
HWY_INLINE Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
HWY_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
HWY_INLINE Floats mul_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
HWY_INLINE Floats negate(Floats a) {
  return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
}

HWY_INLINE Floats load_floats(const uint8_t* p) { return _mm512_loadu_ps(p); }
HWY_INLINE Floats load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HWY_INLINE __m128i load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
HWY_INLINE Floats load_u8(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(p))); }
HWY_INLINE Floats load_i8(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(p))); }
HWY_INLINE Floats load_low_nibbles(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_cvtepu8_epi32(load16(p)), _mm512_set1_epi32(15)));
}
HWY_INLINE Floats load_high_nibbles(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_srli_epi32(_mm512_cvtepu8_epi32(load16(p)), 4));
}
HWY_INLINE __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
HWY_INLINE Floats load_some(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
HWY_INLINE Floats load_e4m3(const uint8_t* p, int64_t n) {
  const __m512i b = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n), p));
  const __m512i magnitude = _mm512_and_si512(b, _mm512_set1_epi32(0x7F));
  const __m512 v = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(magnitude, 20)), _mm512_set1_ps(0x1p120f));
  const __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(b, 7), 31);
  const __m512 with_sign = _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(v), sign));
  return _mm512_mask_mov_ps(with_sign, _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7F)),
                            _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN()));
}
HWY_INLINE void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }

#else

struct Bytes {
  uint8_t v[64];
};
struct Ints {
  int32_t v[16];
};
struct Floats {
  float v[16];
};

template <class R, class F>
HWY_INLINE R each(F f) {
  R r;
  for (size_t i = 0; i < std::size(r.v); ++i) r.v[i] = f(i);
  return r;
}

HWY_INLINE Bytes load_bytes(const uint8_t* p) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return p[i]; });
}
HWY_INLINE void store(const Bytes& v, uint8_t* p) { std::memcpy(p, v.v, sizeof v); }
HWY_INLINE void store(const Floats& v, float* p) { std::memcpy(p, v.v, sizeof v); }
HWY_INLINE Floats set(float v) {
  return each<Floats>([&](size_t) HWY_ATTR { return v; });
}
HWY_INLINE Ints set(int32_t v) {
  return each<Ints>([&](size_t) HWY_ATTR { return v; });
}
template <int kShift, int kMask>
HWY_INLINE Bytes bits(const Bytes& v) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return static_cast<uint8_t>(v.v[i] >> kShift & kMask); });
}
template <int kShift, int kMask>
HWY_INLINE Bytes add_bits_left(const Bytes& v, const Bytes& high) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return static_cast<uint8_t>(v.v[i] | (high.v[i] << kShift & kMask)); });
}
template <int kShift, int kMask>
HWY_INLINE Bytes add_bits_right(const Bytes& v, const Bytes& high) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return static_cast<uint8_t>(v.v[i] | (high.v[i] >> kShift & kMask)); });
}
HWY_INLINE Bytes table_of(const int8_t* levels, int32_t offset) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return static_cast<uint8_t>(levels[i % 16] + offset); });
}
HWY_INLINE Bytes look_up(const Bytes& table, const Bytes& v) {
  return each<Bytes>([&](size_t i) HWY_ATTR { return table.v[v.v[i]]; });
}
HWY_INLINE Ints dot4(const Ints& acc, const Bytes& codes, const int8_t* four) {
  return each<Ints>([&](size_t i) HWY_ATTR {
    const uint8_t* c = codes.v + 4 * i;
    return acc.v[i] + c[0] * four[0] + c[1] * four[1] + c[2] * four[2] + c[3] * four[3];
  });
}
HWY_INLINE Ints add(const Ints& a, const Ints& b) {
  return each<Ints>([&](size_t i) HWY_ATTR { return a.v[i] + b.v[i]; });
}
HWY_INLINE Ints shift_left_8(const Ints& a) {
  return each<Ints>([&](size_t i) HWY_ATTR { return a.v[i] * 256; });
}
HWY_INLINE Floats to_floats(const Ints& a) {
  return each<Floats>([&](size_t i) HWY_ATTR { return static_cast<float>(a.v[i]); });
}
HWY_INLINE Floats mul(const Floats& a, const Floats& b) {
  return each<Floats>([&](size_t i) HWY_ATTR { return a.v[i] * b.v[i]; });
}
HWY_INLINE Floats mul_add(const Floats& a, const Floats& b, const Floats& c) {
  return each<Floats>([&](size_t i) HWY_ATTR { return a.v[i] * b.v[i] + c.v[i]; });
}
HWY_INLINE Floats negate(const Floats& a) {
  return each<Floats>([&](size_t i) HWY_ATTR { return -a.v[i]; });
}
HWY_INLINE Floats load_floats(const uint8_t* p) {
  Floats r;
  std::memcpy(r.v, p, sizeof r);
  return r;
}
HWY_INLINE Floats load_halves(const uint8_t* p) {
  return each<Floats>([&](size_t i) HWY_ATTR {
    uint16_t h;
    std::memcpy(&h, p + 2 * i, 2);
    return half_to_float(h);
  });
}
HWY_INLINE Floats load_u8(const uint8_t* p) {
  return each<Floats>([&](size_t i) HWY_ATTR { return static_cast<float>(p[i]); });
}
HWY_INLINE Floats load_i8(const uint8_t* p) {
  return each<Floats>([&](size_t i) HWY_ATTR { return static_cast<float>(static_cast<int8_t>(p[i])); });
}
HWY_INLINE Floats load_low_nibbles(const uint8_t* p) {
  return each<Floats>([&](size_t i) HWY_ATTR { return static_cast<float>(p[i] & 15); });
}
HWY_INLINE Floats load_high_nibbles(const uint8_t* p) {
  return each<Floats>([&](size_t i) HWY_ATTR { return static_cast<float>(p[i] >> 4); });
}
HWY_INLINE Floats load_some(const float* p, int64_t n) {
  Floats r{};
  std::memcpy(r.v, p, static_cast<size_t>(n) * sizeof(float));
  return r;
}
HWY_INLINE Floats load_e4m3(const uint8_t* p, int64_t n) {
  Floats r{};
  for (int64_t i = 0; i < n; ++i) r.v[i] = e4m3_to_float(p[i]);
  return r;
}
HWY_INLINE void prefetch(const uint8_t*) {}

#endif

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
