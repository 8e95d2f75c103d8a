#include "rlx/scheme.h"

#include <cstring>

#include "core/convert.h"
#include "core/iq4_levels.h"
#include "rlx/error.h"
#include "rlx/shape.h"

namespace rlx {

// In the order of the enum; a test checks that.
static constexpr SchemeInfo kSchemes[] = {
    {Scheme::kInt8, 0, 0, 8, -1, 80},        {Scheme::kInt8Asym, 0, 0, 8, -1, 80},
    {Scheme::kInt4, 0, 0, 4, -1, 40},        {Scheme::kFp8E4m3, 1, 0, 8, -1, 80},
    {Scheme::kFp8E5m2, 1, 0, 8, -1, 80},     {Scheme::kNvfp4, 16, 0, 4, -1, 40},
    {Scheme::kGgufQ4_0, 32, 18, 0, 2, 45},   {Scheme::kGgufQ4_1, 32, 20, 0, 3, 50},
    {Scheme::kGgufQ5_0, 32, 22, 0, 6, 55},   {Scheme::kGgufQ5_1, 32, 24, 0, 7, 60},
    {Scheme::kGgufQ8_0, 32, 34, 0, 8, 85},   {Scheme::kGgufQ8_1, 32, 36, 0, 9, 90},
    {Scheme::kGgufQ2K, 256, 84, 0, 10, 26},  {Scheme::kGgufQ3K, 256, 110, 0, 11, 34},
    {Scheme::kGgufQ4K, 256, 144, 0, 12, 45}, {Scheme::kGgufQ5K, 256, 176, 0, 13, 55},
    {Scheme::kGgufQ6K, 256, 210, 0, 14, 66}, {Scheme::kGgufQ8K, 256, 292, 0, 15, 91},
    {Scheme::kGgufIq4Nl, 32, 18, 0, 20, 45}, {Scheme::kGgufIq4Xs, 256, 136, 0, 23, 43},
    {Scheme::kGgufF16, 1, 2, 0, 1, 160},     {Scheme::kGgufBf16, 1, 2, 0, 30, 160},
};

const SchemeInfo& info(Scheme scheme) {
  const auto i = static_cast<size_t>(scheme);
  require(i < std::size(kSchemes), "Scheme (", static_cast<int>(scheme), ") is not known.");
  return kSchemes[i];
}

bool has_scale(Scheme s) {
  return s == Scheme::kInt8 || s == Scheme::kInt8Asym || s == Scheme::kInt4 || s == Scheme::kNvfp4;
}
bool has_zero_point(Scheme s) { return s == Scheme::kInt8Asym; }
bool scale_is_fp8(Scheme s) { return s == Scheme::kNvfp4; }
bool is_gguf(Scheme s) { return info(s).ggml_code >= 0; }

std::optional<Scheme> scheme_of_ggml_code(int code) {
  for (const SchemeInfo& row : kSchemes)
    if (row.ggml_code >= 0 && row.ggml_code == code) return row.scheme;
  return std::nullopt;
}

int64_t weight_bytes(Scheme scheme, int64_t k, int64_t n) {
  const SchemeInfo& row = info(scheme);
  require(k >= 0 && n >= 0, "Weight sizes (", k, ", ", n, ") are negative.");
  if (!is_gguf(scheme)) {
    const int64_t codes = checked_mul(k, n);
    return row.code_bits == 8 ? codes : codes / 2 + codes % 2;
  }
  require(k % row.block_elems == 0, "Contraction size (", k, ") is not a multiple of the block (", row.block_elems,
          ") of ", scheme, ".");
  return checked_mul(checked_mul(k / row.block_elems, row.block_bytes), n);
}

namespace {

double half_at(const uint8_t* p) { return f16_to_double(static_cast<uint16_t>(p[0] | p[1] << 8)); }

uint32_t u32_at(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

double f32_at(const uint8_t* p) {
  const uint32_t bits = u32_at(p);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

int i8(uint8_t byte) { return static_cast<int8_t>(byte); }

// Nibble j of the 16 bytes that hold 32: the low halves first, then the high ones.
int nibble(const uint8_t* qs, int j) { return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4; }

// The six-bit scale and minimum number s of the 12 bytes that Q4_K and Q5_K keep them in.
struct ScaleMin {
  int scale, min;
};
ScaleMin scale_min(const uint8_t* packed, int s) {
  if (s < 4) return {packed[s] & 63, packed[s + 4] & 63};
  return {(packed[s + 4] & 15) + 16 * (packed[s - 4] >> 6), (packed[s + 4] >> 4) + 16 * (packed[s] >> 6)};
}

// Where element e of a Q2_K, Q3_K or Q6_K block lies: half h, group g of 32 in it, element l of the group, scale i.
struct Place {
  int h, g, l, i;
  explicit Place(int e) : h(e / 128), g(e % 128 / 32), l(e % 32), i(8 * h + 2 * g + l / 16) {}
};

double q2k(const uint8_t* b, int e) {
  const Place p(e);
  const int c = b[p.i], q = b[16 + 32 * p.h + p.l] >> (2 * p.g) & 3;
  return half_at(b + 80) * (c & 15) * q - half_at(b + 82) * (c >> 4);
}

double q3k(const uint8_t* b, int e) {
  const Place p(e);
  const uint8_t* packed = b + 96;
  const int low = p.i < 8 ? packed[p.i] & 15 : packed[p.i - 8] >> 4;
  const int high = packed[8 + p.i % 4] >> (2 * (p.i / 4)) & 3;
  const int q = (b[32 + 32 * p.h + p.l] >> (2 * p.g) & 3) - ((b[p.l] >> (4 * p.h + p.g) & 1) != 0 ? 0 : 4);
  return half_at(b + 108) * (low + 16 * high - 32) * q;
}

double q4k(const uint8_t* b, int e) {
  const int s = e / 32, byte = b[16 + 32 * (s / 2) + e % 32], q = s % 2 == 0 ? byte & 15 : byte >> 4;
  const ScaleMin sm = scale_min(b + 4, s);
  return half_at(b) * sm.scale * q - half_at(b + 2) * sm.min;
}

double q5k(const uint8_t* b, int e) {
  const int s = e / 32, l = e % 32, byte = b[48 + 32 * (s / 2) + l];
  const int q = (s % 2 == 0 ? byte & 15 : byte >> 4) + 16 * (b[16 + l] >> s & 1);
  const ScaleMin sm = scale_min(b + 4, s);
  return half_at(b) * sm.scale * q - half_at(b + 2) * sm.min;
}

double q6k(const uint8_t* b, int e) {
  const Place p(e);
  const int byte = b[64 * p.h + p.l + 32 * (p.g & 1)];
  const int q = (p.g < 2 ? byte & 15 : byte >> 4) + 16 * (b[128 + 32 * p.h + p.l] >> (2 * p.g) & 3) - 32;
  return half_at(b + 208) * i8(b[192 + p.i]) * q;
}

double iq4xs(const uint8_t* b, int e) {
  const int i = e / 32, high = b[2] | b[3] << 8;
  const int scale = (b[4 + i / 2] >> (4 * (i % 2)) & 15) + 16 * (high >> (2 * i) & 3) - 32;
  return half_at(b) * scale * kIq4Levels[nibble(b + 8 + 16 * i, e % 32)];
}

// Element j of a block. The products of a half, the small integers and their difference are exact in double.
double element(Scheme scheme, const uint8_t* b, int j) {
  switch (scheme) {
    case Scheme::kGgufQ4_0: return half_at(b) * (nibble(b + 2, j) - 8);
    case Scheme::kGgufQ4_1: return half_at(b) * nibble(b + 4, j) + half_at(b + 2);
    case Scheme::kGgufQ5_0: return half_at(b) * (nibble(b + 6, j) + 16 * static_cast<int>(u32_at(b + 2) >> j & 1) - 16);
    case Scheme::kGgufQ5_1:
      return half_at(b) * (nibble(b + 8, j) + 16 * static_cast<int>(u32_at(b + 4) >> j & 1)) + half_at(b + 2);
    case Scheme::kGgufQ8_0: return half_at(b) * i8(b[2 + j]);
    case Scheme::kGgufQ8_1: return half_at(b) * i8(b[4 + j]);
    case Scheme::kGgufQ2K: return q2k(b, j);
    case Scheme::kGgufQ3K: return q3k(b, j);
    case Scheme::kGgufQ4K: return q4k(b, j);
    case Scheme::kGgufQ5K: return q5k(b, j);
    case Scheme::kGgufQ6K: return q6k(b, j);
    case Scheme::kGgufQ8K: return f32_at(b) * i8(b[4 + j]);
    case Scheme::kGgufIq4Nl: return half_at(b) * kIq4Levels[nibble(b + 2, j)];
    case Scheme::kGgufIq4Xs: return iq4xs(b, j);
    case Scheme::kGgufF16: return half_at(b);
    case Scheme::kGgufBf16: return bf16_to_double(static_cast<uint16_t>(b[0] | b[1] << 8));
    default: fail(ErrorKind::kInvalid, str("Scheme ", scheme, " has no self-contained blocks."));
  }
}

constexpr float kFp4[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};

}  // namespace

void decode_block(Scheme scheme, const uint8_t* bytes, float* out) {
  const auto n = static_cast<int>(info(scheme).block_elems);
  for (int j = 0; j < n; ++j) out[j] = static_cast<float>(element(scheme, bytes, j));
}

void decode_blocks(Scheme scheme, const uint8_t* bytes, int64_t elements, float* out) {
  const SchemeInfo& row = info(scheme);
  for (int64_t b = 0; b < elements / row.block_elems; ++b)
    decode_block(scheme, bytes + b * row.block_bytes, out + b * row.block_elems);
}

float decode_code(Scheme scheme, const uint8_t* weight, int64_t index) {
  switch (scheme) {
    case Scheme::kInt8:
    case Scheme::kInt8Asym: return static_cast<float>(i8(weight[index]));
    case Scheme::kInt4: return static_cast<float>(i4_unpack(weight, index));
    case Scheme::kFp8E4m3: return static_cast<float>(f8e4m3_to_double(weight[index]));
    case Scheme::kFp8E5m2: return static_cast<float>(f8e5m2_to_double(weight[index]));
    case Scheme::kNvfp4: return kFp4[index % 2 == 0 ? weight[index / 2] & 15 : weight[index / 2] >> 4];
    default: fail(ErrorKind::kInvalid, str("Scheme ", scheme, " has no side tensors."));
  }
}

void append_text(std::string& out, Scheme scheme) { out += names_of(scheme)[static_cast<size_t>(scheme)]; }

}  // namespace rlx
