// Norms of rows, of groups of channels and of pixels. A row is read from memory once: its statistics, and then its
// result, come from the cache.
#include "rlx/ops/norm.h"

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/simd/norm.h"

namespace rlx::cpu {

namespace {

RowScratch row_scratch(const RowGroups& g, DType dtype) {
  return {dtype, g.cols, may_buffer(dtype, g.rows * g.cols) ? g.buffer : 0};
}

void norm(const Call& call, const RowGroups& g, bool centred, double eps) {
  const host::View &x = call.input(0), &y = call.output(0);
  const RowScratch scratch = row_scratch(g, x.dtype);
  Affine affine{.gamma = all_as_f32(call.input(1), scratch.of_param(call, 0))};
  if (call.num_inputs() > 2) affine.beta = all_as_f32(call.input(2), scratch.of_param(call, 1));
  const RowWriter out(y, x.data == y.data);
  g.each(call.pool(), [&](int64_t row, int64_t rows) {
    float* buffer = scratch.of_thread(call);
    const int64_t first = row * g.cols, n = rows * g.cols;
    if (x.dtype != DType::F32 && g.cols >= kLongHalfRow)
      return each_half_row(x, out, row, rows, g.cols, buffer, [&](auto* in, auto* to, int64_t count, bool stream) {
        norm_half_rows(x.dtype == DType::BF16, in, buffer, to, count, g.cols, affine, centred, eps, stream);
      });
    const float* from = row_as_f32(x.dtype, x.data, first, buffer, n);
    const Ahead ahead{x.dtype == DType::F32 ? from + n : nullptr};
    if (out.streams_rows(g.cols))
      return norm_rows(from, out.at(first), rows, g.cols, affine, centred, eps, true, ahead);
    float* to = out.target(first, buffer);
    norm_rows(from, to, rows, g.cols, affine, centred, eps, false, ahead);
    out.finish(first, to, n);
  });
}

// Rows of a group norm may be long: they pass through a buffer in pieces.
constexpr int64_t kPiece = kGroupElements;

struct Groups {
  int64_t rows, channels, spatial, groups;  // channels of a group; rows = batch * groups

  Groups(std::span<const int64_t> sizes, int64_t num_groups)
      : rows(sizes[0] * num_groups),
        channels(sizes[1] / num_groups),
        spatial(product(sizes.subspan(2))),
        groups(num_groups) {}
};

// f(offset, x as f32, n) for the pieces of a row; `buffer` holds kPiece floats.
template <class F>
void each_piece(const host::View& x, int64_t first, int64_t count, float* buffer, const F& f) {
  if (x.dtype == DType::F32) return f(first, reinterpret_cast<const float*>(x.data) + first, count);
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t n = std::min(kPiece, count - i);
    f(first + i, row_as_f32(x.dtype, x.data, first + i, buffer, n), n);
  }
}

Strips pixels_of(std::span<const int64_t> sizes) { return {sizes[0], sizes[1], sizes[2] * sizes[3], kNormStrip}; }

}  // namespace

int64_t layer_norm_scratch(const Signature& s, int threads) {
  const RowGroups g = trailing_rows(s.input(0).shape.sizes(), s.attrs.as<ops::LayerNormAttrs>().axis);
  return row_scratch(g, s.input(0).dtype).bytes(threads);
}
void layer_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::LayerNormAttrs>();
  norm(call, trailing_rows(call.input(0).sizes, attrs.axis), true, attrs.eps);
}

int64_t rms_norm_scratch(const Signature& s, int threads) {
  const RowGroups g = trailing_rows(s.input(0).shape.sizes(), s.attrs.as<ops::RmsNormAttrs>().axis);
  return row_scratch(g, s.input(0).dtype).bytes(threads);
}
void rms_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::RmsNormAttrs>();
  norm(call, trailing_rows(call.input(0).sizes, attrs.axis), false, attrs.eps);
}

int64_t group_norm_scratch(const Signature& s, int threads) {
  const TensorType& x = s.input(0);
  return RowScratch(x.dtype, s.input(1).shape.num_elements(), kPiece).bytes(threads);
}

void group_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::GroupNormAttrs>();
  const host::View &x = call.input(0), &y = call.output(0);
  const Groups g(x.sizes, attrs.num_groups);
  const RowScratch scratch(x.dtype, call.input(1).elements(), kPiece);
  const float* gamma = all_as_f32(call.input(1), scratch.of_param(call, 0));
  const float* beta = all_as_f32(call.input(2), scratch.of_param(call, 1));
  const RowWriter out(y, x.data == y.data);
  const int64_t count = g.channels * g.spatial;
  call.pool().parallel_for(0, g.rows, std::max<int64_t>(1, kGrain / count), [&](int64_t begin, int64_t end) {
    float* buffer = scratch.of_thread(call);
    for (int64_t row = begin; row < end; ++row) {
      const auto n = static_cast<double>(count);
      double sum = 0, squares = 0;
      each_piece(x, row * count, count, buffer,
                 [&](int64_t, const float* v, int64_t size) { sum += sum_of_row(v, size); });
      each_piece(x, row * count, count, buffer,
                 [&](int64_t, const float* v, int64_t size) { squares += squares_of_row(v, size, sum / n); });
      const RowStats stats = row_stats(sum / n, squares, n, attrs.eps);
      const int64_t channel = row % g.groups * g.channels;
      // Runs with one gamma, or the whole row where each element has its own.
      const int64_t runs = g.spatial == 1 ? 1 : g.channels, run = count / runs;
      for (int64_t c = 0; c < runs; ++c) {
        Affine affine{.scale = gamma[channel + c], .shift = beta[channel + c]};
        if (g.spatial == 1) affine = {.gamma = gamma + channel, .beta = beta + channel};
        for (int64_t i = 0; i < run; i += kPiece) {
          const int64_t first = row * count + c * run + i, size = std::min(kPiece, run - i);
          const float* from = row_as_f32(x.dtype, x.data, first, buffer, size);
          const bool stream = out.streams_rows(run);
          float* to = stream ? out.at(first) : out.target(first, buffer);
          normalise(from, to, size, stats, affine, stream);
          if (!stream) out.finish(first, to, size);
          if (affine.gamma != nullptr) affine.gamma += size, affine.beta += size;
        }
      }
    }
    stream_flush();
  });
}

int64_t layer_norm2d_scratch(const Signature& s, int threads) {
  const auto sizes = s.input(0).shape.sizes();
  return RowScratch(s.input(0).dtype, sizes[1], pixels_of(sizes).buffer()).bytes(threads);
}

void layer_norm2d(const Call& call) {
  const Strips strips = pixels_of(call.input(0).sizes);
  const RowScratch scratch(call.input(0).dtype, strips.cols, strips.buffer());
  const float* gamma = all_as_f32(call.input(1), scratch.of_param(call, 0));
  const float* beta = all_as_f32(call.input(2), scratch.of_param(call, 1));
  const double eps = call.attrs<ops::LayerNorm2dAttrs>().eps;
  strips.each(call, scratch, [&](float* v, int64_t width) { norm_columns(v, strips.cols, width, gamma, beta, eps); });
}

}  // namespace rlx::cpu
