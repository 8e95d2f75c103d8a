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

// One of the convolutions that a transposed one consists of: a phase of every axis.
struct Phases {
  std::array<Phase, 3> axes;
  int64_t y_first = 0;  // the first result of this phase
  int64_t before = 0;   // floats of the packed weights of the phases before it

  int64_t taps() const { return axes[0].axis.taps * axes[1].axis.taps * axes[2].axis.taps; }
};

// Of both ops that transpose: x [N, C, in...], w [C, rows * groups, taps...], y [N, rows * groups, out...].
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

  template <class F>
  void for_each_phase(const F& f) const {
    const auto& [az, ay, ax] = forward;
    int64_t before = 0;
    for (int64_t z = 0; z < az.stride; ++z)
      for (int64_t y = 0; y < ay.stride; ++y)
        for (int64_t x = 0; x < ax.stride; ++x) {
          const Phases p = {.axes = {phase_of(az, z), phase_of(ay, y), phase_of(ax, x)},
                            .y_first = (z * ay.in + y) * ax.in + x,
                            .before = before};
          f(p);
          before += groups * packed_weights_size(rows, channels * p.taps());
        }
  }

  ImplicitGemm gemm(const Phases& p) const {
    ImplicitGemm g;
    g.axes = {p.axes[0].axis, p.axes[1].axis, p.axes[2].axis};
    g.images = images;
    g.groups = groups;
    g.channels = channels;
    g.rows = rows;
    g.dtype = dtype;
    g.y_plane = plane_of(forward);
    g.y_first = p.y_first;
    g.y_step = {forward[0].stride * forward[1].in * forward[2].in, forward[1].stride * forward[2].in,
                forward[2].stride};
    return g;
  }

  void pack(DType type, const std::byte* w, float* packed) const {
    const int64_t taps = taps_of(forward);
    with_weights(type, w, [&](const auto& at) {
      for_each_phase([&](const Phases& p) {
        const auto &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
        const int64_t own = p.taps(), ty = y.axis.taps, tx = x.axis.taps, k = channels * own;
        if (k == 0) return;
        for (int64_t g = 0; g < groups; ++g)
          pack_weights(
              rows, k,
              [&](int64_t r, int64_t i) {
                const int64_t kz = z.first_tap + i % own / (ty * tx) * z.tap_step;
                const int64_t ky = y.first_tap + i / tx % ty * y.tap_step, kx = x.first_tap + i % tx * x.tap_step;
                return at(((g * channels + i / own) * rows + r) * taps + (kz * forward[1].taps + ky) * forward[2].taps +
                          kx);
              },
              packed + p.before + g * packed_weights_size(rows, k));
      });
    });
  }

  int64_t scratch(int threads) const {
    int64_t most = 0;
    for_each_phase([&](const Phases& p) { most = std::max(most, implicit_gemm_scratch(gemm(p), threads)); });
    return most;
  }

  void run(const float* x, const float* weights, const ConvEpilogue& epilogue, std::byte* result, ThreadPool& pool,
           std::byte* scratch) const {
    for_each_phase([&](const Phases& p) {
      ImplicitGemm g = gemm(p);
      g.x = x;
      g.weights = weights + p.before;
      g.y = result;
      g.epilogue = epilogue;
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
  t.run(x, weights, epilogue_of(call, call.attrs<A>()), call.output(0).data, call.pool(), scratch);
}

// Which taps a phase has depends on no size of x or y.
template <class A>
void pack_transposed(const Call& call) {
  const host::View& w = call.input(0);
  const std::array<int64_t, 5> x = {1, w.dim(0), 1, 1, 1}, y = {1, w.dim(1), 1, 1, 1};
  const Transposed t(call.attrs<A>(), w.dtype, {x, w.sizes, y});
  t.pack(w.dtype, w.data, reinterpret_cast<float*>(call.output(0).data));
}

}  // namespace

const host::Packing conv_transpose_packing = {
    .operand = 1,
    .bytes = [](const Signature& s) { return w_bytes(s.input(1).shape.sizes()); },
    .pack = pack_transposed<ops::ConvTransposeAttrs>,
};

int64_t conv_transpose_packed_scratch(const Signature& s, int threads) {
  return transposed_scratch<ops::ConvTransposeAttrs>(s, threads);
}
void conv_transpose_packed(const Call& call) { run_transposed<ops::ConvTransposeAttrs>(call, true); }

int64_t conv_transpose_scratch(const Signature& s, int threads) {
  return w_bytes(s.input(1).shape.sizes()) + transposed_scratch<ops::ConvTransposeAttrs>(s, threads);
}
void conv_transpose(const Call& call) { run_transposed<ops::ConvTransposeAttrs>(call, false); }

int64_t conv2d_backward_input_scratch(const Signature& s, int threads) {
  return w_bytes(s.input(1).shape.sizes()) + transposed_scratch<ops::Conv2dBackwardInputAttrs>(s, threads);
}
void conv2d_backward_input(const Call& call) { run_transposed<ops::Conv2dBackwardInputAttrs>(call, false); }

}  // namespace rlx::cpu
