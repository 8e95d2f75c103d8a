#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/conv_depthwise.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/conv/window_axes.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/conv.h"

#ifndef RLX_CONV_DEPTHWISE_BLOCK_
#define RLX_CONV_DEPTHWISE_BLOCK_
namespace rlx::cpu {

// Result rows of one plane. They are computed from a padded copy of the input that is split by phases: the elements
// whose line is py and whose column is px modulo the strides lie together, [py][px][lines][pitch]. So the taps of
// neighbouring results are neighbours for every stride.
struct DepthwiseBlock {
  const float* x;  // the plane
  int64_t in_h, in_w;
  int64_t first_y, first_x;  // of the input, at the padded copy's line 0 and column 0; may lie outside
  int64_t lines;             // of the padded copy in all phases
  int64_t stride_y, stride_x, taps_y, taps_x, step_y, step_x;
  float* padded;
  int64_t pitch, phase;  // floats of a line of a phase, and of a phase
  const float* w;        // [taps_y][taps_x]
  float* y;              // [rows][y_pitch]
  int64_t rows, n, y_pitch;
  bool flat;  // y has the pitch of the copy and is computed without regard to rows: for short ones
  bool add;   // to what y holds: further planes of a 3-D kernel

  const int32_t* offsets;  // where the taps of result 0 lie in the copy
};

}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// The part of an input row that lies inside, into its phases. What surrounds it stays zero.
HWY_INLINE void copy_line(const DepthwiseBlock& b, const float* row, float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t left = std::max<int64_t>(-b.first_x, 0), from = std::max<int64_t>(b.first_x, 0), n = b.in_w - from;
  if (b.stride_x == 1) {
    const int64_t inside = std::min(n, b.pitch - left);
    for (int64_t i = 0; i < inside; i += lanes)
      store_n(d, load_n(d, row + from + i, inside - i, 0.0f), to + left + i, inside - i);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (b.stride_x == 2) {  // elements of even and odd distance from the first
    const int64_t at_even = left / 2, at_odd = (left + 1) / 2;
    float *even = to + left % 2 * b.phase + at_even, *odd = to + (left + 1) % 2 * b.phase + at_odd;
    const int64_t evens = std::min((n + 1) / 2, b.pitch - at_even), odds = std::min(n / 2, b.pitch - at_odd);
    for (int64_t i = 0; i < evens; i += lanes) {
      const int64_t rest = n - 2 * i;
      const auto low = load_n(d, row + from + 2 * i, rest, 0.0f);
      const auto high = rest > lanes ? load_n(d, row + from + 2 * i + lanes, rest - lanes, 0.0f) : hn::Zero(d);
      store_n(d, hn::ConcatEven(d, high, low), even + i, evens - i);
      if (i < odds) store_n(d, hn::ConcatOdd(d, high, low), odd + i, odds - i);
    }
    return;
  }
#endif
  for (int64_t px = 0; px < b.stride_x; ++px) {
    // The first element of this phase that is inside, and where it belongs.
    const int64_t at = div_up(left - px, b.stride_x);
    const int64_t first = at * b.stride_x + px + b.first_x;
    const int64_t count = std::min(div_up(b.in_w - first, b.stride_x), b.pitch - at);
    for (int64_t i = 0; i < count; ++i) to[px * b.phase + at + i] = row[first + i * b.stride_x];
  }
}

void CopyLines(const DepthwiseBlock& b) {
  int64_t py = 0;
  float* to = b.padded;
  for (int64_t l = 0; l < b.lines; ++l) {
    const int64_t iy = b.first_y + l;
    if (iy >= 0 && iy < b.in_h)
      copy_line(b, b.x + iy * b.in_w, to);
    else
      for (int64_t px = 0; px < b.stride_x; ++px) std::memset(to + px * b.phase, 0, static_cast<size_t>(b.pitch) * 4);
    to += b.stride_x * b.phase;
    if (++py < b.stride_y) continue;
    py = 0;
    to += b.pitch - b.stride_y * b.stride_x * b.phase;
  }
}

// kRows result rows at a time, so that a loaded vector serves several of them. A square kernel of kTaps with stride
// kStride, dilation 1: everything is unrolled.
template <int kTaps, int kStride, int kRows>
HWY_INLINE void square(const DepthwiseBlock& b, int64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* top = b.padded + first * b.pitch;
  float* y = b.y + first * b.y_pitch;
  for (int64_t i = 0; i < b.n; i += lanes) {
    hn::Vec<D> sum[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] = b.add ? load_n(d, y + r * b.y_pitch + i, b.n - i, 0.0f) : hn::Zero(d);
#pragma GCC unroll 16
    for (int line = 0; line < (kRows - 1) * kStride + kTaps; ++line)
#pragma GCC unroll 8
      for (int x = 0; x < kTaps; ++x) {
        const auto v = hn::LoadU(
            d, top + (line % kStride * kStride + x % kStride) * b.phase + line / kStride * b.pitch + x / kStride + i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const int tap = line - r * kStride;
          if (tap >= 0 && tap < kTaps) sum[r] = hn::MulAdd(v, hn::Set(d, b.w[tap * kTaps + x]), sum[r]);
        }
      }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(d, sum[r], y + r * b.y_pitch + i, b.n - i);
  }
}

template <int kTaps, int kStride>
void Square(const DepthwiseBlock& b) {
  int64_t r = 0;
  for (; r + 4 <= b.rows; r += 4) square<kTaps, kStride, 4>(b, r);
  for (; r < b.rows; ++r) square<kTaps, kStride, 1>(b, r);
}

// n neighbouring results, kVecs vectors at a time; kTaps along each axis or 0: any number.
template <int kVecs, int kTaps>
HWY_INLINE void stretch(const DepthwiseBlock& b, const float* from, float* y, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += kVecs * lanes) {
    hn::Vec<D> sum[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const int64_t left = n - i - v * lanes;
      sum[v] = b.add && left > 0 ? load_n(d, y + i + v * lanes, left, 0.0f) : hn::Zero(d);
    }
    const int64_t taps_y = kTaps > 0 ? kTaps : b.taps_y, taps_x = kTaps > 0 ? kTaps : b.taps_x;
#pragma GCC unroll 4
    for (int64_t ty = 0; ty < taps_y; ++ty)
#pragma GCC unroll 4
      for (int64_t tx = 0; tx < taps_x; ++tx) {
        const float* p = from + (kTaps > 0 ? ty * b.pitch + tx : b.offsets[ty * taps_x + tx]) + i;
        const auto w = hn::Set(d, b.w[ty * taps_x + tx]);
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) sum[v] = hn::MulAdd(hn::LoadU(d, p + v * lanes), w, sum[v]);
      }
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const int64_t left = n - i - v * lanes;
      if (left > 0) store_n(d, sum[v], y + i + v * lanes, left);
    }
  }
}

void Depthwise(const DepthwiseBlock& b) {
  const bool square_kernel = b.taps_y == b.taps_x && b.step_y == 1 && b.step_x == 1 && b.stride_y == b.stride_x;
  if (b.flat) {
    const int64_t n = (b.rows - 1) * b.pitch + b.n;
    if (square_kernel && b.taps_x == 3 && b.stride_x == 1)
      stretch<4, 3>(b, b.padded, b.y, n);
    else
      stretch<4, 0>(b, b.padded, b.y, n);
    return;
  }
  if (square_kernel) {
    if (b.taps_x == 3 && b.stride_x == 1) return Square<3, 1>(b);
    if (b.taps_x == 3 && b.stride_x == 2) return Square<3, 2>(b);
    if (b.taps_x == 5 && b.stride_x == 1) return Square<5, 1>(b);
    if (b.taps_x == 5 && b.stride_x == 2) return Square<5, 2>(b);
  }
  for (int64_t r = 0; r < b.rows; ++r) stretch<4, 0>(b, b.padded + r * b.pitch, b.y + r * b.y_pitch, b.n);
}

// rows of n from a wider pitch
void TakeRows(const float* from, int64_t pitch, int64_t rows, int64_t n, float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, from += pitch, to += n)
    for (int64_t i = 0; i < n; i += lanes) store_n(d, load_n(d, from + i, n - i, 0.0f), to + i, n - i);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(CopyLines);
HWY_EXPORT(Depthwise);
HWY_EXPORT(TakeRows);

namespace {

constexpr int64_t kSlack = 4 * 16;  // floats behind a phase: the last vectors of a stretch reach beyond it

constexpr int64_t kMostTogether = 8;

// Sizes of the padded copy. A task is a block of result rows of a plane, so that its copy stays in the L1 cache.
struct Blocks {
  int64_t pitch, phase, lines, rows;  // rows: of the result, per task
  bool flat;
  int64_t copy, sums, taps;  // floats per block: the copy, results, weights
  int64_t together;          // blocks that are copied before the first is computed
  int64_t floats;            // per thread

  explicit Blocks(const WindowAxes& a) {
    const WindowAxis &ay = a[1], &ax = a[2];
    constexpr int64_t kFloats = 4096;  // half of an L1 cache
    pitch = ax.out + (ax.taps - 1) * ax.step / ax.stride;
    const int64_t span = (ay.taps - 1) * ay.step + 1, line = pitch * ax.stride;
    rows = std::clamp<int64_t>((kFloats / line - span) / ay.stride + 1, 4, 64) / 4 * 4;
    rows = std::min(rows, ay.out);
    lines = (rows - 1) * ay.stride + span;
    flat = ax.out < 24 && ax.out != 16;  // of whole vectors too much would be for nothing
    phase = div_up(lines, ay.stride) * pitch + kSlack;
    copy = ay.stride * ax.stride * phase;
    sums = rows * pitch + kSlack;
    taps = taps_of(a);
    // A load soon after the stores that it overlaps waits for them: small blocks are copied a few at a time.
    together = a[0].taps > 1 ? 1 : std::clamp<int64_t>(kFloats / copy, 1, kMostTogether);
    floats = round_up(together * (copy + sums + taps) + taps + lines * ax.in, 16);
  }

  void tap_offsets(const WindowAxes& a, int32_t* offsets) const {
    const WindowAxis &ay = a[1], &ax = a[2];
    for (int64_t ty = 0; ty < ay.taps; ++ty)
      for (int64_t tx = 0; tx < ax.taps; ++tx) {
        const int64_t line = ty * ay.step, column = tx * ax.step;
        *offsets++ = static_cast<int32_t>((line % ay.stride * ax.stride + column % ax.stride) * phase +
                                          line / ay.stride * pitch + column / ax.stride);
      }
  }
};

// A task's place in the result, counted along: dividing takes longer than computing a small plane.
struct Position {
  int64_t block = 0, z = 0, channel = 0, image = 0;
  int64_t blocks = 1, planes = 1, channels = 1;

  Position() = default;
  Position(int64_t task, int64_t blocks_, int64_t planes_, int64_t channels_)
      : block(task % blocks_),
        z(task / blocks_ % planes_),
        channel(task / blocks_ / planes_ % channels_),
        image(task / blocks_ / planes_ / channels_),
        blocks(blocks_),
        planes(planes_),
        channels(channels_) {}
  void next() {
    if (++block < blocks) return;
    block = 0;
    if (++z < planes) return;
    z = 0;
    if (++channel < channels) return;
    channel = 0;
    ++image;
  }
};

}  // namespace

bool conv_depthwise_supports(const Signature& s) {
  const auto& w = s.input(1);
  const int64_t groups = s.attrs.as<ops::ConvAttrs>().groups;
  return floats<0, 1>(s) && w.dim(1).is(1) && groups > 1;
}

int64_t conv_depthwise_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), y = s.output(0).shape.sizes();
  const WindowAxes axes = window_axes(s.attrs.as<ops::ConvAttrs>(), x, y);
  if (windows_of(axes) == 0) return 0;
  return threads * Blocks(axes).floats * static_cast<int64_t>(sizeof(float));
}

void conv_depthwise(const Call& call) {
  const host::View &x = call.input(0), &w = call.input(1), &y = call.output(0);
  const WindowAxes axes = window_axes(call.attrs<ops::ConvAttrs>(), x.sizes, y.sizes);
  const WindowAxis &az = axes[0], &ay = axes[1], &ax = axes[2];
  const Blocks blocks(axes);
  const int64_t channels = y.dim(1), per_input = channels / x.dim(1), taps = taps_of(axes);
  const int64_t per_plane = div_up(ay.out, blocks.rows);
  const int64_t tasks = y.dim(0) * channels * az.out * per_plane;
  const int64_t grain = std::max(blocks.together, kGrain / (blocks.rows * ax.out * taps));
  const bool direct = y.dtype == DType::F32 && !blocks.flat;
  const auto first_result = [&](const Position& p) {
    return (((p.image * channels + p.channel) * az.out + p.z) * ay.out + p.block * blocks.rows) * ax.out;
  };
  const auto copy_block = [&](DepthwiseBlock& b, int64_t at, float* converted) {
    if (x.dtype == DType::F32) {
      b.x = reinterpret_cast<const float*>(x.data) + at;
      return HWY_DYNAMIC_DISPATCH(CopyLines)(b);
    }
    // The lines that lie inside are converted, and are all there is.
    DepthwiseBlock part = b;
    const int64_t y0 = std::max<int64_t>(b.first_y, 0), y1 = std::min(b.first_y + b.lines, ay.in);
    if (y0 < y1) to_f32(x.dtype, x.data, at + y0 * ax.in, converted, (y1 - y0) * ax.in);
    part.x = converted;
    part.in_h = std::max<int64_t>(y1 - y0, 0);
    part.first_y = b.first_y - y0;
    HWY_DYNAMIC_DISPATCH(CopyLines)(part);
  };
  call.pool().parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
    float* padded = call.scratch_as<float>() + ThreadPool::this_thread() * blocks.floats;
    float *sums = padded + blocks.together * blocks.copy, *weights = sums + blocks.together * blocks.sums;
    float* converted = weights + blocks.together * taps;
    auto* offsets = reinterpret_cast<int32_t*>(converted + blocks.lines * ax.in);
    std::fill(padded, padded + blocks.together * blocks.copy, 0.0f);
    blocks.tap_offsets(axes, offsets);
    DepthwiseBlock block[kMostTogether];
    for (int64_t i = 0; i < blocks.together; ++i)
      block[i] = {.in_h = ay.in,
                  .in_w = ax.in,
                  .first_x = ax.first,
                  .stride_y = ay.stride,
                  .stride_x = ax.stride,
                  .taps_y = ay.taps,
                  .taps_x = ax.taps,
                  .step_y = ay.step,
                  .step_x = ax.step,
                  .padded = padded + i * blocks.copy,
                  .pitch = blocks.pitch,
                  .phase = blocks.phase,
                  .n = ax.out,
                  .y_pitch = blocks.flat ? blocks.pitch : ax.out,
                  .flat = blocks.flat,
                  .offsets = offsets};
    Position at(begin, per_plane, az.out, channels);
    Position places[kMostTogether];
    for (int64_t group = begin; group < end; group += blocks.together) {
      const int64_t count = std::min(blocks.together, end - group);
      for (int64_t i = 0; i < count; ++i, at.next()) {
        DepthwiseBlock& b = block[i];
        places[i] = at;
        const int64_t first = at.block * blocks.rows;
        b.first_y = first * ay.stride + ay.first;
        b.w = row_as_f32(w.dtype, w.data, at.channel * taps, weights + i * taps, taps);
        b.rows = std::min(blocks.rows, ay.out - first);
        b.lines = (b.rows - 1) * ay.stride + (ay.taps - 1) * ay.step + 1;
        b.y = direct ? reinterpret_cast<float*>(y.data) + first_result(at) : sums + i * blocks.sums;
        b.add = false;
      }
      const float* w_plane = block[0].w;
      for (int64_t tz = 0; tz < az.taps; ++tz) {
        bool any = false;
        for (int64_t i = 0; i < count; ++i) {
          const Position& p = places[i];
          const int64_t z = p.z * az.stride + az.first + tz * az.step;
          if (!az.inside(z)) continue;  // only where there is one block at a time
          const int64_t in_channel = per_input == 1 ? p.channel : p.channel / per_input;
          const int64_t in_plane = p.image * x.dim(1) + in_channel;
          copy_block(block[i], (in_plane * az.in + z) * ay.in * ax.in, converted);
          any = true;
        }
        if (!any) continue;
        if (az.taps > 1) block[0].w = w_plane + tz * ay.taps * ax.taps;
        for (int64_t i = 0; i < count; ++i) {
          HWY_DYNAMIC_DISPATCH(Depthwise)(block[i]);
          block[i].add = true;
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        const DepthwiseBlock& b = block[i];
        if (!b.add) std::fill(b.y, b.y + (b.rows - 1) * b.y_pitch + b.n, 0.0f);
        if (direct) continue;
        if (y.dtype == DType::F32) HWY_DYNAMIC_DISPATCH(TakeRows)
        (b.y, b.y_pitch, b.rows, b.n, reinterpret_cast<float*>(y.data) + first_result(places[i]));
        else for (int64_t r = 0; r < b.rows; ++r)
            from_f32(y.dtype, b.y + r * b.y_pitch, y.data, first_result(places[i]) + r * b.n, b.n);
      }
    }
  });
}

}  // namespace rlx::cpu
#endif
