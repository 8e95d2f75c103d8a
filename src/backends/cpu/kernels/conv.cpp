// conv, and conv with an epilogue.
#include "rlx/ops/conv.h"

#include "backends/cpu/conv/implicit_gemm.h"
#include "backends/cpu/conv/operands.h"
#include "rlx/ops/fused_conv.h"

namespace rlx::cpu {

namespace {

using ops::ConvAttrs;
using ops::FusedConvBiasActAttrs;

template <class A>
ImplicitGemm forward(const A& attrs, DType dtype, const ConvSizes& s) {
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
template <class A>
void pack_forward(const A& attrs, const host::View& w, float* packed) {
  const int64_t rows = w.dim(0) / attrs.groups, k = w.dim(0) == 0 ? 0 : w.elements() / w.dim(0);
  with_weights(w.dtype, w.data, [&](const auto& at) {
    for (int64_t g = 0; g < attrs.groups; ++g)
      pack_weights(
          rows, k, [&](int64_t r, int64_t i) { return at((g * rows + r) * k + i); }, packed + g * rows * k);
  });
}

int64_t packed_bytes(const Signature& s) { return w_bytes(s.input(1).shape.sizes()); }

template <class A>
void pack_weight(const Call& call) {
  pack_forward(call.attrs<A>(), call.input(0), reinterpret_cast<float*>(call.output(0).data));
}

template <class A>
int64_t packed_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), w = s.input(1).shape.sizes(), y = s.output(0).shape.sizes();
  const DType dtype = s.input(0).dtype;
  return x_bytes(dtype, x) + implicit_gemm_scratch(forward(s.attrs.as<A>(), dtype, {x, w, y}), threads);
}

template <class A>
void run_forward(const Call& call, const float* weights, std::byte* scratch) {
  const auto& attrs = call.attrs<A>();
  ImplicitGemm g =
      forward(attrs, call.input(0).dtype, {call.input(0).sizes, call.input(1).sizes, call.output(0).sizes});
  g.x = x_as_f32(call, reinterpret_cast<float*>(scratch));
  g.weights = weights;
  g.y = call.output(0).data;
  g.epilogue = epilogue_of(call, attrs);
  run_implicit_gemm(g, call.pool(), scratch + x_bytes(call.input(0).dtype, call.input(0).sizes));
}

template <class A>
void run_packed(const Call& call) {
  run_forward<A>(call, reinterpret_cast<const float*>(call.input(1).data), call.scratch());
}

template <class A>
void run_plain(const Call& call) {
  float* packed = call.scratch_as<float>();
  pack_forward(call.attrs<A>(), call.input(1), packed);
  run_forward<A>(call, packed, call.scratch() + w_bytes(call.input(1).sizes));
}

}  // namespace

bool conv_packed_supports(const Signature& s) { return floats<0, 1>(s) && s.is_static(1); }

const host::Packing conv_packing = {.operand = 1, .bytes = packed_bytes, .pack = pack_weight<ConvAttrs>};
int64_t conv_packed_scratch(const Signature& s, int threads) { return packed_scratch<ConvAttrs>(s, threads); }
int64_t conv_scratch(const Signature& s, int threads) { return packed_bytes(s) + conv_packed_scratch(s, threads); }
void conv_packed(const Call& call) { run_packed<ConvAttrs>(call); }
void conv(const Call& call) { run_plain<ConvAttrs>(call); }

const host::Packing fused_conv_packing = {
    .operand = 1, .bytes = packed_bytes, .pack = pack_weight<FusedConvBiasActAttrs>};
int64_t fused_conv_bias_act_packed_scratch(const Signature& s, int threads) {
  return packed_scratch<FusedConvBiasActAttrs>(s, threads);
}
int64_t fused_conv_bias_act_scratch(const Signature& s, int threads) {
  return packed_bytes(s) + fused_conv_bias_act_packed_scratch(s, threads);
}
void fused_conv_bias_act_packed(const Call& call) { run_packed<FusedConvBiasActAttrs>(call); }
void fused_conv_bias_act(const Call& call) { run_plain<FusedConvBiasActAttrs>(call); }

}  // namespace rlx::cpu
