// Numbers to the blocks of a GGUF scheme. Scales are found by trying a few and solving for the best in the least
// squares that weigh large elements more: those are what a product shows.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "core/convert.h"
#include "core/iq4_levels.h"
#include "rlx/error.h"
#include "rlx/scheme.h"

namespace rlx {

namespace {

void put_half(uint8_t* to, float x) {
  const uint16_t bits = f16_from_double(static_cast<double>(x));
  to[0] = static_cast<uint8_t>(bits & 0xFF);
  to[1] = static_cast<uint8_t>(bits >> 8);
}
float rounded_half(float x) { return static_cast<float>(f16_to_double(f16_from_double(static_cast<double>(x)))); }

// To even where it is between two. Adding 1.5 * 2^23 rounds: a call of the library's for each try of each element would
// take minutes for a small model.
int nearest(float x, int low, int high) {
  constexpr float kRounds = 12582912;
  return static_cast<int>(std::clamp(x, static_cast<float>(low), static_cast<float>(high)) + kRounds - kRounds);
}

float inverse(float x) { return x == 0 ? 0 : 1 / x; }

std::vector<float> weights_of(std::span<const float> x) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
  const auto rms = static_cast<float>(std::sqrt(squares / static_cast<double>(x.size())));
  std::vector<float> out;
  for (const float v : x) out.push_back(rms + std::abs(v));
  return out;
}

struct Affine {
  float scale = 0, minimum = 0;  // x is about scale * q - minimum, and the minimum is not negative
};

// Codes 0 … top.
Affine fit_affine(std::span<const float> x, int top) {
  const std::vector<float> w = weights_of(x);
  const float low = std::min(0.0f, *std::ranges::min_element(x)), high = *std::ranges::max_element(x);
  if (high <= low) return {0, -low};
  Affine best{(high - low) / static_cast<float>(top), -low};
  double least = -1;
  for (int step = -10; step <= 12; ++step) {
    const float inv = (static_cast<float>(top) + 0.1f * static_cast<float>(step)) / (high - low);
    double sw = 0, sq = 0, sqq = 0, sx = 0, sxq = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double q = nearest(inv * (x[i] - low), 0, top), wi = static_cast<double>(w[i]),
                   xi = static_cast<double>(x[i]);
      sw += wi, sq += wi * q, sqq += wi * q * q, sx += wi * xi, sxq += wi * xi * q;
    }
    const double d = sw * sqq - sq * sq;
    if (d <= 0) continue;
    double scale = (sw * sxq - sx * sq) / d, shift = (sqq * sx - sq * sxq) / d;
    if (shift > 0) shift = 0, scale = sqq > 0 ? sxq / sqq : 0;
    double error = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double q = nearest(inv * (x[i] - low), 0, top), e = scale * q + shift - static_cast<double>(x[i]);
      error += static_cast<double>(w[i]) * e * e;
    }
    if (scale > 0 && (least < 0 || error < least)) {
      least = error;
      best = {static_cast<float>(scale), static_cast<float>(-shift)};
    }
  }
  return best;
}

// x is about scale * q, q from low to high; `level` gives the number of a code.
template <class Code, class Level>
float fit_scale(std::span<const float> x, float largest_level, const Code& code, const Level& level) {
  const std::vector<float> w = weights_of(x);
  float extreme = 0;
  for (const float v : x)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  if (extreme == 0) return 0;
  float best = 0;
  double most = -1;
  for (const float sign : {1.0f, -1.0f})
    for (int step = -9; step <= 9; ++step) {
      const float inv = sign * (largest_level + 0.1f * static_cast<float>(step)) / extreme;
      double xq = 0, qq = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double q = level(code(inv * x[i]));
        xq += static_cast<double>(w[i]) * static_cast<double>(x[i]) * q;
        qq += static_cast<double>(w[i]) * q * q;
      }
      if (qq > 0 && xq * xq / qq > most) {
        most = xq * xq / qq;
        best = static_cast<float>(xq / qq);
      }
    }
  return best;
}

float fit_symmetric(std::span<const float> x, int low, int high) {
  return fit_scale(
      x, static_cast<float>(-low), [&](float v) { return nearest(v, low, high); }, [](int q) { return q; });
}

int nearest_iq4(float x) {
  const auto middle = [](int i) { return 0.5f * static_cast<float>(kIq4Levels[i] + kIq4Levels[i + 1]); };
  int best = 0;
  for (int step = 8; step > 0; step /= 2)
    if (x > middle(best + step - 1)) best += step;
  return best;
}

float fit_iq4(std::span<const float> x) {
  return fit_scale(x, 120, nearest_iq4, [](int q) { return kIq4Levels[q]; });
}

// 32 codes of four bits: the low halves first.
void put_nibbles(uint8_t* qs, const std::array<int, 32>& codes) {
  for (size_t j = 0; j < 16; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

using Block32 = std::span<const float, 32>;

void encode_32(Scheme scheme, Block32 x, uint8_t* b) {
  const bool affine = scheme == Scheme::kGgufQ4_1 || scheme == Scheme::kGgufQ5_1;
  const bool five = scheme == Scheme::kGgufQ5_0 || scheme == Scheme::kGgufQ5_1;
  std::array<int, 32> codes{};
  const int top = five ? 31 : 15, half = (top + 1) / 2;
  if (scheme == Scheme::kGgufQ8_0) {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    const float d = rounded_half(largest / 127), inv = inverse(d);
    put_half(b, d);
    for (size_t j = 0; j < 32; ++j) b[2 + j] = static_cast<uint8_t>(nearest(x[j] * inv, -127, 127));
    return;
  }
  if (affine) {
    const auto [low, high] = std::ranges::minmax(x);
    const float d = rounded_half((high - low) / static_cast<float>(top)), m = rounded_half(low), inv = inverse(d);
    put_half(b, d);
    put_half(b + 2, m);
    for (size_t j = 0; j < 32; ++j) codes[j] = nearest((x[j] - m) * inv, 0, top);
  } else if (scheme == Scheme::kGgufIq4Nl) {
    const float d = rounded_half(fit_iq4(x)), inv = inverse(d);
    put_half(b, d);
    for (size_t j = 0; j < 32; ++j) codes[j] = nearest_iq4(x[j] * inv);
  } else {
    const float d = rounded_half(fit_symmetric(x, -half, half - 1)), inv = inverse(d);
    put_half(b, d);
    for (size_t j = 0; j < 32; ++j) codes[j] = nearest(x[j] * inv, -half, half - 1) + half;
  }
  uint8_t* at = b + (affine ? 4 : 2);
  if (five) {
    uint32_t high = 0;
    for (size_t j = 0; j < 32; ++j) high |= static_cast<uint32_t>(codes[j] >> 4) << j;
    for (int i = 0; i < 4; ++i) *at++ = static_cast<uint8_t>(high >> (8 * i));
  }
  put_nibbles(at, codes);
}

using Block256 = std::span<const float, 256>;

// Q4_K and Q5_K: eight groups with a scale and a minimum of six bits each.
void encode_q45k(Block256 x, uint8_t* b, bool five) {
  const int top = five ? 31 : 15;
  std::array<Affine, 8> fits;
  float scales = 0, minima = 0;
  for (size_t s = 0; s < 8; ++s) {
    fits[s] = fit_affine(x.subspan(32 * s, 32), top);
    scales = std::max(scales, fits[s].scale);
    minima = std::max(minima, fits[s].minimum);
  }
  const float d = rounded_half(scales / 63), dmin = rounded_half(minima / 63);
  std::fill(b, b + (five ? 176 : 144), uint8_t{0});
  put_half(b, d);
  put_half(b + 2, dmin);
  uint8_t *packed = b + 4, *high = b + 16, *qs = b + (five ? 48 : 16);
  for (size_t s = 0; s < 8; ++s) {
    const int sc = nearest(fits[s].scale * inverse(d), 0, 63), mn = nearest(fits[s].minimum * inverse(dmin), 0, 63);
    if (s < 4) {
      packed[s] = static_cast<uint8_t>(packed[s] | sc);
      packed[s + 4] = static_cast<uint8_t>(packed[s + 4] | mn);
    } else {
      packed[s + 4] = static_cast<uint8_t>((sc & 15) | (mn & 15) << 4);
      packed[s - 4] = static_cast<uint8_t>(packed[s - 4] | (sc >> 4) << 6);
      packed[s] = static_cast<uint8_t>(packed[s] | (mn >> 4) << 6);
    }
    const float scale = d * static_cast<float>(sc), minimum = dmin * static_cast<float>(mn), inv = inverse(scale);
    for (size_t l = 0; l < 32; ++l) {
      const int q = nearest((x[32 * s + l] + minimum) * inv, 0, top);
      uint8_t& byte = qs[32 * (s / 2) + l];
      byte = static_cast<uint8_t>(byte | (q & 15) << (s % 2 == 0 ? 0 : 4));
      if (five) high[l] = static_cast<uint8_t>(high[l] | (q >> 4) << s);
    }
  }
}

// Where sixteen elements that share a scale lie in a Q2_K, Q3_K or Q6_K block: scale i is of element first(i) on.
size_t first(size_t i) { return 16 * i; }

void encode_q2k(Block256 x, uint8_t* b) {
  std::array<Affine, 16> fits;
  float scales = 0, minima = 0;
  for (size_t i = 0; i < 16; ++i) {
    fits[i] = fit_affine(x.subspan(first(i), 16), 3);
    scales = std::max(scales, fits[i].scale);
    minima = std::max(minima, fits[i].minimum);
  }
  const float d = rounded_half(scales / 15), dmin = rounded_half(minima / 15);
  std::fill(b, b + 84, uint8_t{0});
  put_half(b + 80, d);
  put_half(b + 82, dmin);
  for (size_t i = 0; i < 16; ++i) {
    const int sc = nearest(fits[i].scale * inverse(d), 0, 15), mn = nearest(fits[i].minimum * inverse(dmin), 0, 15);
    b[i] = static_cast<uint8_t>(sc | mn << 4);
    const float inv = inverse(d * static_cast<float>(sc)), minimum = dmin * static_cast<float>(mn);
    for (size_t e = first(i); e < first(i) + 16; ++e) {
      const int q = nearest((x[e] + minimum) * inv, 0, 3);
      uint8_t& byte = b[16 + 32 * (e / 128) + e % 32];
      byte = static_cast<uint8_t>(byte | q << (2 * (e % 128 / 32)));
    }
  }
}

// The scales of groups of sixteen as multiples of d, from low to high.
float common_scale(const std::array<float, 16>& scales, int low) {
  float extreme = 0;
  for (const float s : scales)
    if (std::abs(s) > std::abs(extreme)) extreme = s;
  return rounded_half(extreme / static_cast<float>(low));
}

void encode_q3k(Block256 x, uint8_t* b) {
  std::array<float, 16> scales;
  for (size_t i = 0; i < 16; ++i) scales[i] = fit_symmetric(x.subspan(first(i), 16), -4, 3);
  const float d = common_scale(scales, -32);
  std::fill(b, b + 110, uint8_t{0});
  put_half(b + 108, d);
  uint8_t* packed = b + 96;
  for (size_t i = 0; i < 16; ++i) {
    const int signed_scale = nearest(scales[i] * inverse(d), -32, 31), sc = signed_scale + 32;
    uint8_t& low = packed[i % 8];
    low = static_cast<uint8_t>(low | (sc & 15) << (i < 8 ? 0 : 4));
    uint8_t& high = packed[8 + i % 4];
    high = static_cast<uint8_t>(high | (sc >> 4) << (2 * (i / 4)));
    const float inv = inverse(d * static_cast<float>(signed_scale));
    for (size_t e = first(i); e < first(i) + 16; ++e) {
      const int q = nearest(x[e] * inv, -4, 3) + 4;
      uint8_t& byte = b[32 + 32 * (e / 128) + e % 32];
      byte = static_cast<uint8_t>(byte | (q & 3) << (2 * (e % 128 / 32)));
      b[e % 32] = static_cast<uint8_t>(b[e % 32] | (q >> 2) << (e / 32));
    }
  }
}

void encode_q6k(Block256 x, uint8_t* b) {
  std::array<float, 16> scales;
  for (size_t i = 0; i < 16; ++i) scales[i] = fit_symmetric(x.subspan(first(i), 16), -32, 31);
  const float d = common_scale(scales, -128);
  std::fill(b, b + 210, uint8_t{0});
  put_half(b + 208, d);
  for (size_t i = 0; i < 16; ++i) {
    const int sc = nearest(scales[i] * inverse(d), -128, 127);
    b[192 + i] = static_cast<uint8_t>(sc);
    const float inv = inverse(d * static_cast<float>(sc));
    for (size_t e = first(i); e < first(i) + 16; ++e) {
      const int q = nearest(x[e] * inv, -32, 31) + 32;
      const size_t h = e / 128, g = e % 128 / 32, l = e % 32;
      uint8_t& low = b[64 * h + l + 32 * (g & 1)];
      low = static_cast<uint8_t>(low | (q & 15) << (g < 2 ? 0 : 4));
      uint8_t& high = b[128 + 32 * h + l];
      high = static_cast<uint8_t>(high | (q >> 4) << (2 * g));
    }
  }
}

void encode_iq4xs(Block256 x, uint8_t* b) {
  std::array<float, 16> scales{};
  for (size_t i = 0; i < 8; ++i) scales[i] = fit_iq4(x.subspan(32 * i, 32));
  const float d = common_scale(scales, -32);
  std::fill(b, b + 136, uint8_t{0});
  put_half(b, d);
  unsigned high = 0;
  for (size_t i = 0; i < 8; ++i) {
    const int signed_scale = nearest(scales[i] * inverse(d), -32, 31);
    const auto sc = static_cast<unsigned>(signed_scale + 32);
    b[4 + i / 2] = static_cast<uint8_t>(b[4 + i / 2] | (sc & 15) << (4 * (i % 2)));
    high |= (sc >> 4) << (2 * i);
    const float inv = inverse(d * static_cast<float>(signed_scale));
    std::array<int, 32> codes;
    for (size_t j = 0; j < 32; ++j) codes[j] = nearest_iq4(x[32 * i + j] * inv);
    put_nibbles(b + 8 + 16 * i, codes);
  }
  b[2] = static_cast<uint8_t>(high);
  b[3] = static_cast<uint8_t>(high >> 8);
}

void encode_block(Scheme scheme, const float* x, uint8_t* out) {
  switch (scheme) {
    case Scheme::kGgufQ4_0:
    case Scheme::kGgufQ4_1:
    case Scheme::kGgufQ5_0:
    case Scheme::kGgufQ5_1:
    case Scheme::kGgufQ8_0:
    case Scheme::kGgufIq4Nl: return encode_32(scheme, Block32(x, 32), out);
    case Scheme::kGgufQ2K: return encode_q2k(Block256(x, 256), out);
    case Scheme::kGgufQ3K: return encode_q3k(Block256(x, 256), out);
    case Scheme::kGgufQ4K: return encode_q45k(Block256(x, 256), out, false);
    case Scheme::kGgufQ5K: return encode_q45k(Block256(x, 256), out, true);
    case Scheme::kGgufQ6K: return encode_q6k(Block256(x, 256), out);
    case Scheme::kGgufIq4Xs: return encode_iq4xs(Block256(x, 256), out);
    default: fail(ErrorKind::kUnsupported, str("Numbers cannot be encoded as ", scheme, "."));
  }
}

}  // namespace

void encode_blocks(Scheme scheme, const float* values, int64_t elements, uint8_t* out) {
  const SchemeInfo& row = info(scheme);
  for (int64_t b = 0; b < elements / row.block_elems; ++b)
    encode_block(scheme, values + b * row.block_elems, out + b * row.block_bytes);
}

}  // namespace rlx
