#include "rlx/ops/conv.h"

#include "backends/cpu/conv/implicit_gemm.h"
#include "backends/cpu/conv/operands.h"

namespace rlx::cpu {

namespace {

ImplicitGemm forward(const ops::ConvAttrs& attrs, DType dtype, const ConvSizes& s) {
  ImplicitGemm g;
  const WindowAxes axes = window_axes(attrs, s.x, s.y);
  g.axes = joined_where_pointwise(axes);
  g.images = s.x[0];
  g.groups = attrs.groups;
  g.channels = s.x[1] / attrs.groups;
  g.rows = s.w[0] / attrs.groups;
  g.dtype = dtype;
  g.y_plane = windows_of(axes);
  g.y_step = {g.axes[1].out * g.axes[2].out, g.axes[2].out, 1};
  return g;
}

// [Cout, Cin / groups, taps], a group after the other.
void pack_forward(const ops::ConvAttrs& attrs, const host::View& w, float* packed) {
  const int64_t rows = w.dim(0) / attrs.groups, k = w.dim(0) == 0 ? 0 : w.elements() / w.dim(0);
  with_weights(w.dtype, w.data, [&](const auto& at) {
    for (int64_t g = 0; g < attrs.groups; ++g)
      pack_weights(
          rows, k, [&](int64_t r, int64_t i) { return at((g * rows + r) * k + i); }, packed + g * rows * k);
  });
}

}  // namespace

bool conv_packed_supports(const Signature& s) { return floats<0, 1>(s) && s.is_static(1); }

const host::Packing conv_packing = {
    .operand = 1,
    .bytes = [](const Signature& s) { return w_bytes(s.input(1).shape.sizes()); },
    .pack =
        [](const Call& call) {
          pack_forward(call.attrs<ops::ConvAttrs>(), call.input(0), reinterpret_cast<float*>(call.output(0).data));
        },
};

static ImplicitGemm forward(const Signature& s, const std::vector<int64_t>& x, const std::vector<int64_t>& w,
                            const std::vector<int64_t>& y) {
  return forward(s.attrs.as<ops::ConvAttrs>(), s.input(0).dtype, {x, w, y});
}

int64_t conv_packed_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), w = s.input(1).shape.sizes(), y = s.output(0).shape.sizes();
  return x_bytes(s.input(0).dtype, x) + implicit_gemm_scratch(forward(s, x, w, y), threads);
}

int64_t conv_scratch(const Signature& s, int threads) {
  return w_bytes(s.input(1).shape.sizes()) + conv_packed_scratch(s, threads);
}

static void run_forward(const Call& call, const float* weights, std::byte* scratch) {
  ImplicitGemm g = forward(call.attrs<ops::ConvAttrs>(), call.input(0).dtype,
                           {call.input(0).sizes, call.input(1).sizes, call.output(0).sizes});
  g.x = x_as_f32(call, reinterpret_cast<float*>(scratch));
  g.weights = weights;
  g.y = call.output(0).data;
  run_implicit_gemm(g, call.pool(), scratch + x_bytes(call.input(0).dtype, call.input(0).sizes));
}

void conv_packed(const Call& call) {
  run_forward(call, reinterpret_cast<const float*>(call.input(1).data), call.scratch());
}

void conv(const Call& call) {
  float* packed = call.scratch_as<float>();
  pack_forward(call.attrs<ops::ConvAttrs>(), call.input(1), packed);
  run_forward(call, packed, call.scratch() + w_bytes(call.input(1).sizes));
}

}  // namespace rlx::cpu
