// Gradients of the norms. dgamma and dbeta are summed over blocks of rows, and then over the blocks: which rows make a
// block is decided by sizes alone, so that the results are the same for any number of threads.
#include <algorithm>

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/norm.h"
#include "rlx/ops/norm.h"

namespace rlx::cpu {

namespace {

// Few enough that f32 is good for their sum, enough that the partial sums are few.
constexpr int64_t kBlockRows = 64;

// Scratch behind the buffers of the threads: partial sums of dgamma, then of dbeta.
struct Partial {
  int64_t count, elements;  // partial sums, and gammas
  int64_t bytes(int64_t size) const { return 2 * count * elements * size; }
};

Partial partial_rows(const RowGroups& g) { return {div_up(g.rows, kBlockRows), g.cols}; }

// Each thread: x, dy and dx as f32.
RowScratch row_scratch(const RowGroups& g, DType dtype) {
  return {dtype, g.cols, may_buffer(dtype, g.rows * g.cols) ? 3 * round_up(g.cols, 16) : 0};
}

// The sums over all blocks, in double.
template <class T>
void write_sums(const Call& call, int64_t result, const T* partial, const Partial& p) {
  if (!call.wants(result)) return;
  const host::View& out = call.output(result);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, p.count));
  call.pool().parallel_for(0, p.elements, grain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTogether = 256;
    double sums[kTogether];
    float rounded[kTogether];
    for (int64_t first = begin; first < end; first += kTogether) {
      const int64_t n = std::min(kTogether, end - first);
      std::fill(sums, sums + n, 0.0);
      for (int64_t b = 0; b < p.count; ++b)
        for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(partial[b * p.elements + first + i]);
      for (int64_t i = 0; i < n; ++i) rounded[i] = static_cast<float>(sums[i]);
      from_f32(out.dtype, rounded, out.data, first, n);
    }
  });
}

void backward_rows(const Call& call, const RowGroups& g, bool centred, double eps) {
  const host::View &x = call.input(0), &dy = call.input(call.num_inputs() - 1), &dx = call.output(0);
  const DType dtype = x.dtype;
  const RowScratch scratch = row_scratch(g, dtype);
  const Partial p = partial_rows(g);
  const bool wants_dx = call.wants(0), wants_gamma = call.wants(1), wants_beta = call.wants(2);
  const Affine affine{.gamma = all_as_f32(call.input(1), scratch.of_param(call, 0))};
  auto* partial = reinterpret_cast<float*>(call.scratch() + scratch.bytes(call.pool().threads()));
  const RowWriter out(wants_dx ? dx : x, false);
  const auto count = static_cast<double>(g.cols);
  const int64_t grain = std::max<int64_t>(1, kGrain / (kBlockRows * std::max<int64_t>(1, g.cols)));
  call.pool().parallel_for(0, p.count, grain, [&](int64_t begin, int64_t end) {
    float *a = scratch.of_thread(call), *b = a + scratch.per_thread / 3, *c = b + scratch.per_thread / 3;
    for (int64_t block = begin; block < end; ++block) {
      float* dgamma = wants_gamma ? partial + block * g.cols : nullptr;
      float* dbeta = wants_beta ? partial + (p.count + block) * g.cols : nullptr;
      for (float* sums : {dgamma, dbeta})
        if (sums != nullptr) std::fill(sums, sums + g.cols, 0.0f);
      for (int64_t row = block * kBlockRows; row < std::min(g.rows, (block + 1) * kBlockRows); ++row) {
        const int64_t first = row * g.cols;
        const float* xs = row_as_f32(dtype, x.data, first, a, g.cols);
        const float* dys = row_as_f32(dtype, dy.data, first, b, g.cols);
        const RowStats stats = stats_of_row(xs, g.cols, centred, eps);
        const BackwardSums sums = norm_backward_sums(xs, dys, g.cols, stats, affine, dgamma, dbeta);
        if (!wants_dx) continue;
        float* to = out.target(first, c);
        norm_backward_dx(xs, dys, to, g.cols, stats, affine, centred ? static_cast<float>(sums.h / count) : 0.0f,
                         static_cast<float>(sums.hn / count));
        out.finish(first, to, g.cols);
      }
    }
    stream_flush();
  });
  write_sums(call, 1, partial, p);
  write_sums(call, 2, partial + p.count * p.elements, p);
}

int64_t rows_scratch(const RowGroups& g, DType dtype, int threads) {
  return row_scratch(g, dtype).bytes(threads) + partial_rows(g).bytes(sizeof(float));
}

// A row of a group norm passes through buffers of x, dy and dx in pieces.
constexpr int64_t kPiece = kGroupElements;
RowScratch group_scratch(DType dtype, int64_t channels) { return {dtype, channels, 3 * kPiece}; }

}  // namespace

int64_t layer_norm_backward_scratch(const Signature& s, int threads) {
  const RowGroups g = trailing_rows(s.input(0).shape.sizes(), s.attrs.as<ops::LayerNormAttrs>().axis);
  return rows_scratch(g, s.input(0).dtype, threads);
}
void layer_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::LayerNormAttrs>();
  backward_rows(call, trailing_rows(call.input(0).sizes, attrs.axis), true, attrs.eps);
}

int64_t rms_norm_backward_scratch(const Signature& s, int threads) {
  const RowGroups g = trailing_rows(s.input(0).shape.sizes(), s.attrs.as<ops::RmsNormAttrs>().axis);
  return rows_scratch(g, s.input(0).dtype, threads);
}
void rms_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::RmsNormAttrs>();
  backward_rows(call, trailing_rows(call.input(0).sizes, attrs.axis), false, attrs.eps);
}

int64_t group_norm_backward_scratch(const Signature& s, int threads) {
  const auto sizes = s.input(0).shape.sizes();
  return group_scratch(s.input(0).dtype, sizes[1]).bytes(threads) + Partial{sizes[0], sizes[1]}.bytes(sizeof(double));
}

void group_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::GroupNormAttrs>();
  const host::View &x = call.input(0), &dy = call.input(call.num_inputs() - 1), &dx = call.output(0);
  const DType dtype = x.dtype;
  const int64_t all_channels = x.dim(1), groups = attrs.num_groups, channels = all_channels / groups;
  const int64_t spatial = product(x.sizes.subspan(2)), elements = channels * spatial;
  const RowScratch scratch = group_scratch(dtype, all_channels);
  const float* gamma = all_as_f32(call.input(1), scratch.of_param(call, 0));
  // One partial sum for each channel of each image: dy * n, then dy.
  const Partial p{x.dim(0), all_channels};
  auto* partial = reinterpret_cast<double*>(call.scratch() + scratch.bytes(call.pool().threads()));
  const RowWriter out(call.wants(0) ? dx : x, false);
  const auto count = static_cast<double>(elements);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
  call.pool().parallel_for(0, p.count * groups, grain, [&](int64_t begin, int64_t end) {
    float *a = scratch.of_thread(call), *b = a + kPiece, *c = b + kPiece;
    // f(offset, x, dy, n) for pieces of at most kPiece elements of a run.
    const auto pieces = [&](int64_t first, int64_t n, const auto& f) {
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t size = std::min(kPiece, n - i);
        f(first + i, row_as_f32(dtype, x.data, first + i, a, size), row_as_f32(dtype, dy.data, first + i, b, size),
          size);
      }
    };
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0, squares = 0, mean_h = 0, mean_hn = 0;
      pieces(row * elements, elements,
             [&](int64_t, const float* xs, const float*, int64_t n) { sum += sum_of_row(xs, n); });
      pieces(row * elements, elements,
             [&](int64_t, const float* xs, const float*, int64_t n) { squares += squares_of_row(xs, n, sum / count); });
      const RowStats stats = row_stats(sum / count, squares, count, attrs.eps);
      for (int64_t k = 0; k < channels; ++k) {
        const int64_t channel = row % groups * channels + k, at = row / groups * all_channels + channel;
        BackwardSums sums;  // without gamma: of dy, and of dy * n
        pieces(row * elements + k * spatial, spatial, [&](int64_t, const float* xs, const float* dys, int64_t n) {
          const BackwardSums s = norm_backward_sums(xs, dys, n, stats, {}, nullptr, nullptr);
          sums.h += s.h, sums.hn += s.hn;
        });
        partial[at] = sums.hn;
        partial[p.count * all_channels + at] = sums.h;
        mean_h += static_cast<double>(gamma[channel]) * sums.h / count;
        mean_hn += static_cast<double>(gamma[channel]) * sums.hn / count;
      }
      for (int64_t k = 0; k < channels && call.wants(0); ++k) {
        const Affine affine{.scale = gamma[row % groups * channels + k]};
        pieces(row * elements + k * spatial, spatial, [&](int64_t first, const float* xs, const float* dys, int64_t n) {
          float* to = out.target(first, c);
          norm_backward_dx(xs, dys, to, n, stats, affine, static_cast<float>(mean_h), static_cast<float>(mean_hn));
          out.finish(first, to, n);
        });
      }
    }
    stream_flush();
  });
  write_sums(call, 1, partial, p);
  write_sums(call, 2, partial + p.count * p.elements, p);
}

}  // namespace rlx::cpu
