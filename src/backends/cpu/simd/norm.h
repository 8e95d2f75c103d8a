// The passes of the norms over rows of f32, vectorised. Statistics are taken in double, in two passes, while the row is
// in a cache.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// A row becomes ((x - mean) - rest) * r: the mean in two parts, so that a large offset costs no precision.
struct RowStats {
  float mean = 0, rest = 0, r = 0;  // r = 1 / sqrt(variance + eps)
};

// The two passes, for rows that arrive in pieces: the sum, and then the squares around the mean.
double sum_of_row(const float* x, int64_t n);
double squares_of_row(const float* x, int64_t n, double mean);
RowStats row_stats(double mean, double squares, double count, double eps);
// Both for a whole row, in f32 where that is enough.
RowStats stats_of_row(const float* x, int64_t n, bool centred, double eps);

// One factor and one term for each column, or the same for all of them where the pointer is null.
struct Affine {
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float scale = 1, shift = 0;
};

// y = normalised x * gamma + beta for rows that follow each other; y may be x. Rms norms are not centred: their mean
// is 0. `stream` writes y past the caches; a stream_flush follows.
// `ahead` is what the caller reads next, as many elements: it is fetched while y is written.
struct Ahead {
  const float* a = nullptr;
  const float* b = nullptr;
  int64_t element = sizeof(float);  // bytes
};
void norm_rows(const float* x, float* y, int64_t rows, int64_t cols, const Affine& affine, bool centred, double eps,
               bool stream, Ahead ahead);
// The same of F16 or BF16; `v` holds a row of f32. y may be x or, for a single row, v; to stream, its rows begin with a
// cache line.
void norm_half_rows(bool bf16, const uint16_t* x, float* v, uint16_t* y, int64_t rows, int64_t cols,
                    const Affine& affine, bool centred, double eps, bool stream);
void normalise(const float* x, float* y, int64_t n, const RowStats& stats, const Affine& affine, bool stream);

// `width` columns side by side, `cols` elements each, in place.
inline constexpr int64_t kNormStrip = 256;  // width at most
void norm_columns(float* v, int64_t cols, int64_t width, const float* gamma, const float* beta, double eps);

// v = x + residual [+ bias]; v may be x or residual.
void residual_rows(const float* x, const float* residual, const float* bias, float* v, int64_t rows, int64_t cols);

// Backwards, with h = dy * gamma and n = the normalised x. Adds dy * n to dgamma and dy to dbeta where they are wanted.
struct BackwardSums {
  double h = 0, hn = 0;
};
BackwardSums norm_backward_sums(const float* x, const float* dy, int64_t n, const RowStats& stats, const Affine& affine,
                                float* dgamma, float* dbeta);
// dx = r (h - mean_h - n mean_hn). What follows x and dy is fetched on the way.
void norm_backward_dx(const float* x, const float* dy, float* dx, int64_t n, const RowStats& stats,
                      const Affine& affine, float mean_h, float mean_hn);

}  // namespace rlx::cpu
