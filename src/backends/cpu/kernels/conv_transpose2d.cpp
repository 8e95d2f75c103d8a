#include <algorithm>
#include <numeric>

#include "backends/cpu/conv/implicit_gemm.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/round_up.h"
#include "rlx/ops/conv.h"
#include "rlx/ops/conv_backward.h"

namespace rlx::cpu {

// A transposed convolution with stride s is s convolutions per axis, one for the results q = phase, phase + s, ...: of
// the taps k only those reach them whose k * dilation is phase + padding modulo s, and those are evenly spaced.
namespace {

struct Phase {
  WindowAxis axis;
  int64_t first_tap, tap_step;
};

// `forward` is the axis of the convolution that is transposed: its input is our result.
Phase phase_of(const WindowAxis& forward, int64_t phase) {
  const int64_t s = forward.stride, d = forward.step, padding = -forward.first, common = std::gcd(s, d);
  Phase p = {.axis = {.in = forward.out,
                      .out = phase < forward.in ? div_up(forward.in - phase, s) : 0,
                      .taps = 0,
                      .step = -d / common},
             .first_tap = 0,
             .tap_step = s / common};
  for (int64_t k = 0; k < std::min(forward.taps, p.tap_step); ++k) {
    const int64_t at = phase + padding - k * d;
    if (at % s != 0) continue;
    p.first_tap = k;
    p.axis.first = at / s;
    p.axis.taps = div_up(forward.taps - k, p.tap_step);
  }
  return p;
}

// Of both ops that transpose: x [N, C, H, W], w [C, rows * groups, kH, kW], y [N, rows * groups, H', W'].
struct Transposed {
  WindowAxes forward;
  int64_t groups, images, channels, rows;
  DType dtype;

  template <class A>
  Transposed(const A& attrs, DType type, const ConvSizes& s)
      : forward(window_axes(attrs, s.y, s.x)),
        groups(attrs.groups),
        images(s.x[0]),
        channels(s.x[1] / attrs.groups),
        rows(s.w[1]),
        dtype(type) {}

  // f(phase y, phase x, floats of the weights before this phase)
  template <class F>
  void for_each_phase(const F& f) const {
    int64_t before = 0;
    for (int64_t py = 0; py < forward[1].stride; ++py)
      for (int64_t px = 0; px < forward[2].stride; ++px) {
        const Phase y = phase_of(forward[1], py), x = phase_of(forward[2], px);
        f(y, x, py, px, before);
        before += groups * packed_weights_size(rows, channels * y.axis.taps * x.axis.taps);
      }
  }

  ImplicitGemm gemm(const Phase& y, const Phase& x, int64_t py, int64_t px) const {
    ImplicitGemm g;
    g.axes = {WindowAxis{}, y.axis, x.axis};
    g.images = images;
    g.groups = groups;
    g.channels = channels;
    g.rows = rows;
    g.dtype = dtype;
    g.y_plane = plane_of(forward);
    g.y_first = py * forward[2].in + px;
    g.y_step = {0, forward[1].stride * forward[2].in, forward[2].stride};
    return g;
  }

  void pack(DType type, const std::byte* w, float* packed) const {
    const int64_t taps = taps_of(forward), kw = forward[2].taps;
    with_weights(type, w, [&](const auto& at) {
      for_each_phase([&](const Phase& y, const Phase& x, int64_t, int64_t, int64_t before) {
        const int64_t ty = y.axis.taps, tx = x.axis.taps, k = channels * ty * tx;
        if (k == 0) return;
        for (int64_t g = 0; g < groups; ++g)
          pack_weights(
              rows, k,
              [&](int64_t r, int64_t i) {
                const int64_t c = i / (ty * tx), a = i / tx % ty, b = i % tx;
                return at(((g * channels + c) * rows + r) * taps + (y.first_tap + a * y.tap_step) * kw + x.first_tap +
                          b * x.tap_step);
              },
              packed + before + g * packed_weights_size(rows, k));
      });
    });
  }

  int64_t scratch(int threads) const {
    int64_t most = 0;
    for_each_phase([&](const Phase& y, const Phase& x, int64_t py, int64_t px, int64_t) {
      most = std::max(most, implicit_gemm_scratch(gemm(y, x, py, px), threads));
    });
    return most;
  }

  void run(const float* x, const float* weights, std::byte* result, ThreadPool& pool, std::byte* scratch) const {
    for_each_phase([&](const Phase& y, const Phase& v, int64_t py, int64_t px, int64_t before) {
      ImplicitGemm g = gemm(y, v, py, px);
      g.x = x;
      g.weights = weights + before;
      g.y = result;
      run_implicit_gemm(g, pool, scratch);
    });
  }
};

template <class A>
int64_t transposed_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), w = s.input(1).shape.sizes(), y = s.output(0).shape.sizes();
  const DType dtype = s.input(0).dtype;
  return x_bytes(dtype, x) + Transposed(s.attrs.as<A>(), dtype, {x, w, y}).scratch(threads);
}

template <class A>
void run_transposed(const Call& call, bool packed) {
  const Transposed t(call.attrs<A>(), call.input(0).dtype,
                     {call.input(0).sizes, call.input(1).sizes, call.output(0).sizes});
  std::byte* scratch = call.scratch();
  const float* x = x_as_f32(call, reinterpret_cast<float*>(scratch));
  scratch += x_bytes(call.input(0).dtype, call.input(0).sizes);
  const auto* weights = reinterpret_cast<const float*>(call.input(1).data);
  if (!packed) {
    t.pack(call.input(1).dtype, call.input(1).data, reinterpret_cast<float*>(scratch));
    weights = reinterpret_cast<const float*>(scratch);
    scratch += w_bytes(call.input(1).sizes);
  }
  t.run(x, weights, call.output(0).data, call.pool(), scratch);
}

// Which taps a phase has depends on no size of x or y.
template <class A>
void pack_transposed(const Call& call) {
  const host::View& w = call.input(0);
  const std::array<int64_t, 4> x = {1, w.dim(0), 1, 1}, y = {1, w.dim(1), 1, 1};
  const Transposed t(call.attrs<A>(), w.dtype, {x, w.sizes, y});
  t.pack(w.dtype, w.data, reinterpret_cast<float*>(call.output(0).data));
}

}  // namespace

const host::Packing conv_transpose2d_packing = {
    .operand = 1,
    .bytes = [](const Signature& s) { return w_bytes(s.input(1).shape.sizes()); },
    .pack = pack_transposed<ops::ConvTranspose2dAttrs>,
};

int64_t conv_transpose2d_packed_scratch(const Signature& s, int threads) {
  return transposed_scratch<ops::ConvTranspose2dAttrs>(s, threads);
}
void conv_transpose2d_packed(const Call& call) { run_transposed<ops::ConvTranspose2dAttrs>(call, true); }

int64_t conv_transpose2d_scratch(const Signature& s, int threads) {
  return w_bytes(s.input(1).shape.sizes()) + transposed_scratch<ops::ConvTranspose2dAttrs>(s, threads);
}
void conv_transpose2d(const Call& call) { run_transposed<ops::ConvTranspose2dAttrs>(call, false); }

int64_t conv2d_backward_input_scratch(const Signature& s, int threads) {
  return w_bytes(s.input(1).shape.sizes()) + transposed_scratch<ops::Conv2dBackwardInputAttrs>(s, threads);
}
void conv2d_backward_input(const Call& call) { run_transposed<ops::Conv2dBackwardInputAttrs>(call, false); }

}  // namespace rlx::cpu
