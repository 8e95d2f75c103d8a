// The inner loops of attention, on small f32 tiles that lie in the cache. See attention.cpp for how they fit together.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// c[i][x] = (accumulate ? c[i][x] : 0) + sum over k of a[i * ai + k * ak] * b[k][x], i < m, x < n; n a multiple of 16.
// a is read element by element, so its strides may be anything.
struct TileProduct {
  const float* a;
  int64_t ai, ak;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int64_t m, k, n;
  bool accumulate;
};
void multiply(const TileProduct& p);

// s[r][j] = q[r] . k[j] over `width` elements.
struct RowDots {
  const float* q;
  int64_t q_stride;
  const float* k;
  int64_t k_stride;
  float* s;
  int64_t s_stride;
  int64_t rows, keys, width;
};
void dot(const RowDots& p);

// One step of the online softmax: scores of some keys become weights exp(s - max), and what was summed up with an older
// max (`sum`, and the weighted values in `o`) is rescaled. A row that has seen no key has max -inf and sum 0; the sum
// of a row that has seen a score of NaN or +inf is NaN.
struct SoftmaxStep {
  float* s;  // scores, then weights; one row (by_rows) or column of it per query
  int64_t s_stride;
  int64_t queries, keys;
  float softcap;      // 0: none
  const float* mask;  // null: none; laid out as s, or one value per key for all queries
  int64_t mask_stride;
  bool mask_shared;
  bool mask_adds;  // the mask is added to the scores; otherwise a value of -inf drops the key
  bool keep_tiny;  // weights of keys that count are never 0, so that 0 means a dropped key
  float* max;
  float* sum;
  float* o;  // [width][queries], or [queries][width] by rows
  int64_t o_stride, width;
};
void softmax_columns(const SoftmaxStep& p);  // queries side by side in vectors; a multiple of 16
void softmax_rows(const SoftmaxStep& p);     // keys side by side

// 0 where the key at column or row offset j is seen by the query at `position` (relative to the block's first key),
// that is position - window <= j <= position, else -inf.
void position_tile(const float* positions, float window, float* tile, int64_t stride, int64_t keys, int64_t queries);

// Values of a custom mask as 0 where they are at least 0.5, else -inf (NaN too); how many are 0.
int64_t threshold_mask(float* values, int64_t n);

// dst[c][r] = src[r][c]; rows and cols multiples of 4, strides in elements.
void transpose_tile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols);

}  // namespace rlx::cpu
