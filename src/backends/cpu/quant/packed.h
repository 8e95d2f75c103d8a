// Packed weights of the integer-dot kernels: 16 output columns side by side, so that a lane of a 512-bit vector is one
// column and a block's scale is an element of a vector. Same number of bits per code as the scheme; the six-bit scales
// of the K schemes take a byte.
//
// Activations meet them as 24-bit fixed-point numbers, in blocks of 32 with a power of two for a scale: three signed
// bytes per element, whose products with the codes are summed exactly in integers. That keeps as many bits as an f32
// has (an element is off by at most 2^-23 of the largest of its block), and takes three byte dot products where f32
// takes four multiply-adds and the conversion of every code.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/round_up.h"
#include "rlx/scheme.h"

namespace rlx::cpu::quant {

inline constexpr int64_t kColumns = 16;  // of a group
inline constexpr int64_t kUnit = 32;     // elements along K that are decoded together

// How a code of a unit is stored; the planes of 4, 2 and 1 bits are added up.
enum class Codes : uint8_t { k8, k4, k5, k6, k2, k3, kTable };

// Where the scale of a lane comes from. "16": two per unit.
enum class Scales : uint8_t {
  kHalf,        // unit: d
  kHalfMin,     // unit: d, m
  kSuperMin,    // super: d, dmin; unit: scale u8, minimum u8
  kSuperMin16,  // super: d, dmin; unit: two of (scale, minimum) in a byte
  kSuper,       // super: d; unit: scale i8
  kSuper16,     // super: d; unit: two scales i8
  kSuperFloat,  // super: d as f32
  kSide,        // in a tensor of its own: f32 per block of K
  kSideZero,    // the same, with zero points
  kSideFp8      // in a tensor of its own: e4m3 per 16 elements
};

struct Layout {
  Codes codes;
  Scales scales;
  int32_t offset;                                // subtracted from the stored code
  int32_t super_units;                           // units that share a header
  int32_t super_bytes, scale_bytes, code_bytes;  // of a header, and of a unit

  bool halves() const {
    return scales == Scales::kSuperMin16 || scales == Scales::kSuper16 || scales == Scales::kSideFp8;
  }
  // A group is its scales, then its codes from a multiple of 64 bytes on: a vector of codes is one cache line.
  int64_t codes_at(int64_t k) const {
    const int64_t units = div_up(k, kUnit);
    return round_up(units * scale_bytes + units / super_units * super_bytes, 64);
  }
  int64_t group_bytes(int64_t k) const { return codes_at(k) + div_up(k, kUnit) * code_bytes; }
};

// Null for the schemes whose codes are not integers (fp8).
const Layout* layout_of(Scheme scheme);
const int8_t* code_table(Scheme scheme);  // 16 levels of Codes::kTable, offset not added

inline int64_t groups_of(int64_t n) { return div_up(n, kColumns); }

// Does the machine have the instructions that make this layout pay?
bool has_byte_dot();

// Group g of a GGUF weight of n rows of k elements, or of a side-tensor weight [k, n].
void pack_group(Scheme scheme, const uint8_t* weight, int64_t k, int64_t n, int64_t g, uint8_t* out);

// 32 activations. `sums` holds, for a unit with one scale: the sum of x, then -offset times the sums of a, b, c;
// with two scales: the sums of x of both halves, or the three integers of both halves where there is an offset.
struct alignas(64) Activations {
  int8_t a[32], b[32], c[32];
  float scale;
  union Sum {
    float real;
    int32_t integer;
  } sums[6];
};
static_assert(sizeof(Activations) == 128);

// One row of k elements as blocks, zeros behind its end. False: an element is not finite, and the blocks are useless.
bool prepare_row(const Layout& layout, const float* x, int64_t k, Activations* out);

// What a group's columns need besides their packed bytes: the side tensors at the group's first column.
struct Side {
  const float* scale = nullptr;
  const float* zero = nullptr;
  const uint8_t* scale8 = nullptr;
  float global = 1;
  int64_t stride = 0;          // columns of the tensors
  int64_t columns = kColumns;  // of this group that exist
  int64_t block = kUnit;       // elements of K per scale
  int64_t scale_rows = 0;      // of scale8
};

inline constexpr int64_t kRowsAtOnce = 8;

// y[r][0..16) of one group for up to kRowsAtOnce rows.
void dot_group(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
               std::span<const Activations* const> rows, float (*y)[kColumns]);

// One row with kGroupsAtOnce whole groups that follow each other; `side` is the first one's.
inline constexpr int64_t kGroupsAtOnce = 4;
void dot_four_groups(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
                     const Activations* row, float (*y)[kColumns]);

// The same as dot_group in f32 for one row as it is: for rows and scales that are not finite.
void dot_group_exactly(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side, int64_t k,
                       const float* x, float* y);

}  // namespace rlx::cpu::quant
