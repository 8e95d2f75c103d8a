#include <cstring>

#include "backends/cpu/quant/packed.h"
#include "core/convert.h"
#include "rlx/error.h"

namespace rlx::cpu::quant {

namespace {

constexpr int32_t code_bytes(Codes codes) {
  switch (codes) {
    case Codes::k8: return 512;
    case Codes::k4:
    case Codes::kTable: return 256;
    case Codes::k5: return 320;
    case Codes::k6: return 384;
    case Codes::k2: return 128;
    case Codes::k3: return 192;
  }
  return 0;
}

constexpr Layout layout(Codes codes, Scales scales, int32_t offset) {
  int32_t super_units = 1, super_bytes = 0, scale_bytes = 0;
  switch (scales) {
    case Scales::kHalf: scale_bytes = 32; break;
    case Scales::kHalfMin: scale_bytes = 64; break;
    case Scales::kSuperMin:
    case Scales::kSuperMin16: super_units = 8, super_bytes = 64, scale_bytes = 32; break;
    case Scales::kSuper: super_units = 8, super_bytes = 32, scale_bytes = 16; break;
    case Scales::kSuper16: super_units = 8, super_bytes = 32, scale_bytes = 32; break;
    case Scales::kSuperFloat: super_units = 8, super_bytes = 64; break;
    case Scales::kSide:
    case Scales::kSideZero:
    case Scales::kSideFp8: break;
  }
  return {codes, scales, offset, super_units, super_bytes, scale_bytes, code_bytes(codes)};
}

struct Row {
  Scheme scheme;
  Layout layout;
};
constexpr Row kLayouts[] = {
    {Scheme::kInt8, layout(Codes::k8, Scales::kSide, 128)},
    {Scheme::kInt8Asym, layout(Codes::k8, Scales::kSideZero, 128)},
    {Scheme::kInt4, layout(Codes::k4, Scales::kSide, 8)},
    {Scheme::kNvfp4, layout(Codes::kTable, Scales::kSideFp8, 12)},
    {Scheme::kGgufQ4_0, layout(Codes::k4, Scales::kHalf, 8)},
    {Scheme::kGgufQ4_1, layout(Codes::k4, Scales::kHalfMin, 0)},
    {Scheme::kGgufQ5_0, layout(Codes::k5, Scales::kHalf, 16)},
    {Scheme::kGgufQ5_1, layout(Codes::k5, Scales::kHalfMin, 0)},
    {Scheme::kGgufQ8_0, layout(Codes::k8, Scales::kHalf, 128)},
    {Scheme::kGgufQ8_1, layout(Codes::k8, Scales::kHalf, 128)},
    {Scheme::kGgufQ2K, layout(Codes::k2, Scales::kSuperMin16, 0)},
    {Scheme::kGgufQ3K, layout(Codes::k3, Scales::kSuper16, 4)},
    {Scheme::kGgufQ4K, layout(Codes::k4, Scales::kSuperMin, 0)},
    {Scheme::kGgufQ5K, layout(Codes::k5, Scales::kSuperMin, 0)},
    {Scheme::kGgufQ6K, layout(Codes::k6, Scales::kSuper16, 32)},
    {Scheme::kGgufQ8K, layout(Codes::k8, Scales::kSuperFloat, 128)},
    {Scheme::kGgufIq4Nl, layout(Codes::kTable, Scales::kHalf, 128)},
    {Scheme::kGgufIq4Xs, layout(Codes::kTable, Scales::kSuper, 128)},
};

// The levels of the schemes whose codes are numbers of levels; those of nvfp4 are doubled, to be integers.
constexpr int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

uint8_t nibble(const uint8_t* qs, int j) { return static_cast<uint8_t>(j < 16 ? qs[j] & 15 : qs[j - 16] >> 4); }

// The stored codes (offset added) of unit u of a block.
void codes_of(Scheme scheme, const uint8_t* b, int u, uint8_t* q) {
  const int h = u / 4, g = u % 4;  // half and group of the K schemes with 16 scales
  for (int j = 0; j < kUnit; ++j) {
    int code = 0;
    switch (scheme) {
      case Scheme::kGgufQ4_0:
      case Scheme::kGgufIq4Nl: code = nibble(b + 2, j); break;
      case Scheme::kGgufQ4_1: code = nibble(b + 4, j); break;
      case Scheme::kGgufQ5_0: code = nibble(b + 6, j) | (b[2 + j / 8] >> (j % 8) & 1) << 4; break;
      case Scheme::kGgufQ5_1: code = nibble(b + 8, j) | (b[4 + j / 8] >> (j % 8) & 1) << 4; break;
      case Scheme::kGgufQ8_0: code = b[2 + j] ^ 0x80; break;
      case Scheme::kGgufQ8_1: code = b[4 + j] ^ 0x80; break;
      case Scheme::kGgufQ8K: code = b[4 + kUnit * u + j] ^ 0x80; break;
      case Scheme::kGgufQ2K: code = b[16 + 32 * h + j] >> (2 * g) & 3; break;
      case Scheme::kGgufQ3K: code = (b[32 + 32 * h + j] >> (2 * g) & 3) | (b[j] >> u & 1) << 2; break;
      case Scheme::kGgufQ4K: code = b[16 + 32 * (u / 2) + j] >> (4 * (u % 2)) & 15; break;
      case Scheme::kGgufQ5K: code = (b[48 + 32 * (u / 2) + j] >> (4 * (u % 2)) & 15) | (b[16 + j] >> u & 1) << 4; break;
      case Scheme::kGgufQ6K:
        code = (b[64 * h + j + 32 * (g & 1)] >> (g < 2 ? 0 : 4) & 15) | (b[128 + 32 * h + j] >> (2 * g) & 3) << 4;
        break;
      case Scheme::kGgufIq4Xs: code = nibble(b + 8 + 16 * u, j); break;
      default: RLX_ASSERT(false && "a scheme without blocks");
    }
    q[j] = static_cast<uint8_t>(code);
  }
}

// Byte t of step s of the codes of `column` goes to byte 4 * column + t of vector s, in planes of the code's bits.
void put_codes(Codes codes, const uint8_t* q, int64_t column, uint8_t* out) {
  for (int step = 0; step < 8; ++step)
    for (int t = 0; t < 4; ++t) {
      const int code = q[4 * step + t];
      const int64_t at = 4 * column + t;
      const auto put = [&](int64_t plane, int bits, int steps, int value) {
        out[plane + step % steps * 64 + at] |= static_cast<uint8_t>(value << (bits * (step / steps)));
      };
      switch (codes) {
        case Codes::k8: put(0, 8, 8, code); break;
        case Codes::k4:
        case Codes::kTable: put(0, 4, 4, code); break;
        case Codes::k5: put(0, 4, 4, code & 15), put(256, 1, 1, code >> 4); break;
        case Codes::k6: put(0, 4, 4, code & 15), put(256, 2, 2, code >> 4); break;
        case Codes::k2: put(0, 2, 2, code); break;
        case Codes::k3: put(0, 2, 2, code & 3), put(128, 1, 1, code >> 2); break;
      }
    }
}

void copy2(uint8_t* to, int64_t column, const uint8_t* from) { std::memcpy(to + 2 * column, from, 2); }

void put_super(Scheme scheme, const uint8_t* b, int64_t column, uint8_t* out) {
  switch (scheme) {
    case Scheme::kGgufQ2K: copy2(out, column, b + 80), copy2(out + 32, column, b + 82); break;
    case Scheme::kGgufQ3K: copy2(out, column, b + 108); break;
    case Scheme::kGgufQ4K:
    case Scheme::kGgufQ5K: copy2(out, column, b), copy2(out + 32, column, b + 2); break;
    case Scheme::kGgufQ6K: copy2(out, column, b + 208); break;
    case Scheme::kGgufQ8K: std::memcpy(out + 4 * column, b, 4); break;
    case Scheme::kGgufIq4Xs: copy2(out, column, b); break;
    default: break;
  }
}

// The scales of unit u of a block.
void put_scales(Scheme scheme, const uint8_t* b, int u, int64_t column, uint8_t* out) {
  switch (scheme) {
    case Scheme::kGgufQ4_0:
    case Scheme::kGgufQ5_0:
    case Scheme::kGgufQ8_0:
    case Scheme::kGgufQ8_1:
    case Scheme::kGgufIq4Nl: copy2(out, column, b); break;
    case Scheme::kGgufQ4_1:
    case Scheme::kGgufQ5_1: copy2(out, column, b), copy2(out + 32, column, b + 2); break;
    case Scheme::kGgufQ4K:
    case Scheme::kGgufQ5K: {
      const uint8_t* s = b + 4;
      out[column] = static_cast<uint8_t>(u < 4 ? s[u] & 63 : (s[u + 4] & 15) | s[u - 4] >> 6 << 4);
      out[16 + column] = static_cast<uint8_t>(u < 4 ? s[u + 4] & 63 : s[u + 4] >> 4 | s[u] >> 6 << 4);
      break;
    }
    case Scheme::kGgufQ2K:
      for (int i = 0; i < 2; ++i) out[16 * i + column] = b[2 * u + i];
      break;
    case Scheme::kGgufQ6K:
      for (int i = 0; i < 2; ++i) out[16 * i + column] = b[192 + 2 * u + i];
      break;
    case Scheme::kGgufQ3K:
      for (int i = 0; i < 2; ++i) {
        const int s = 2 * u + i, low = s < 8 ? b[96 + s] & 15 : b[88 + s] >> 4,
                  high = b[104 + s % 4] >> (2 * (s / 4)) & 3;
        out[16 * i + column] = static_cast<uint8_t>(low + 16 * high - 32);
      }
      break;
    case Scheme::kGgufIq4Xs: {
      const int high = b[2] | b[3] << 8;
      out[column] = static_cast<uint8_t>((b[4 + u / 2] >> (4 * (u % 2)) & 15) + 16 * (high >> (2 * u) & 3) - 32);
      break;
    }
    default: break;
  }
}

// The stored codes of 32 elements from row k0 on of column n of a side-tensor weight; those behind its end decode to 0.
void side_codes(Scheme scheme, const Layout& l, const uint8_t* w, int64_t k, int64_t n_total, int64_t k0, int64_t n,
                uint8_t* q) {
  for (int64_t j = 0; j < kUnit; ++j) {
    const int64_t index = (k0 + j) * n_total + n;
    int code = l.codes == Codes::kTable ? 0 : l.offset;
    if (k0 + j < k) {
      if (l.codes == Codes::k8)
        code = w[index] ^ 0x80;
      else
        code = (w[index / 2] >> (4 * (index % 2)) & 15) ^ (scheme == Scheme::kInt4 ? 8 : 0);
    }
    q[j] = static_cast<uint8_t>(code);
  }
}

}  // namespace

const Layout* layout_of(Scheme scheme) {
  for (const Row& row : kLayouts)
    if (row.scheme == scheme) return &row.layout;
  return nullptr;
}

const int8_t* code_table(Scheme scheme) { return scheme == Scheme::kNvfp4 ? kFp4 : kIq4; }

void pack_group(Scheme scheme, const uint8_t* weight, int64_t k, int64_t n, int64_t g, uint8_t* out) {
  const Layout& l = *layout_of(scheme);
  std::memset(out, 0, static_cast<size_t>(l.group_bytes(k)));
  const int64_t columns = std::min(kColumns, n - g * kColumns);
  const SchemeInfo& s = info(scheme);
  const int64_t row_bytes = is_gguf(scheme) ? weight_bytes(scheme, k, 1) : 0;
  uint8_t* codes = out + l.codes_at(k);
  for (int64_t k0 = 0, u = 0; k0 < k; k0 += kUnit, ++u) {
    const bool first = u % l.super_units == 0;
    uint8_t* scales = out + (first ? l.super_bytes : 0);
    for (int64_t c = 0; c < columns; ++c) {
      uint8_t q[kUnit];
      const int64_t column = g * kColumns + c;
      if (is_gguf(scheme)) {
        const uint8_t* block = weight + column * row_bytes + k0 / s.block_elems * s.block_bytes;
        const auto in_block = static_cast<int>(u % l.super_units);
        if (first) put_super(scheme, block, c, out);
        put_scales(scheme, block, in_block, c, scales);
        codes_of(scheme, block, in_block, q);
      } else {
        side_codes(scheme, l, weight, k, n, k0, column, q);
      }
      put_codes(l.codes, q, c, codes);
    }
    out = scales + l.scale_bytes;
    codes += l.code_bytes;
  }
}

}  // namespace rlx::cpu::quant
