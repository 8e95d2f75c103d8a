#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent_gates.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "backends/cpu/simd/math-inl.h"
#include "backends/cpu/simd/recurrent_gates.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// f(first element, how many are left) for every vector.
template <class F>
HWY_INLINE void for_vectors(int64_t n, const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < n; i += lanes) f(i, n - i);
}

void LstmGates(const float* gates, const float* peephole, int64_t n, float* c, float* h) {
  const D d;
  for_vectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const auto load = [&](const float* p) HWY_ATTR { return load_n(d, p + i, left, 0.0f); };
    const V old = load(c);
    V in = load(gates), forget = load(gates + n), out = load(gates + 3 * n);
    if (peephole) {
      in = hn::MulAdd(load(peephole), old, in);
      forget = hn::MulAdd(load(peephole + n), old, forget);
    }
    const V cell = hn::MulAdd(sigmoid(d, forget), old, hn::Mul(sigmoid(d, in), tanh(d, load(gates + 2 * n))));
    if (peephole) out = hn::MulAdd(load(peephole + 2 * n), cell, out);
    store_n(d, cell, c + i, left);
    store_n(d, hn::Mul(sigmoid(d, out), tanh(d, cell)), h + i, left);
  });
}

// h = fresh + z (h - fresh)
HWY_INLINE V blend(V z, V fresh, V h) { return hn::MulAdd(z, hn::Sub(h, fresh), fresh); }

void GruGates(const float* x, const float* hidden, int64_t n, float* h) {
  const D d;
  for_vectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const auto load = [&](const float* p) HWY_ATTR { return load_n(d, p + i, left, 0.0f); };
    const V r = sigmoid(d, hn::Add(load(x), load(hidden)));
    const V z = sigmoid(d, hn::Add(load(x + n), load(hidden + n)));
    const V fresh = tanh(d, hn::MulAdd(r, load(hidden + 2 * n), load(x + 2 * n)));
    store_n(d, blend(z, fresh, load(h)), h + i, left);
  });
}

void GruReset(const float* x, const float* hidden, const float* h, int64_t n, float* to) {
  const D d;
  for_vectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const auto load = [&](const float* p) HWY_ATTR { return load_n(d, p + i, left, 0.0f); };
    store_n(d, hn::Mul(sigmoid(d, hn::Add(load(x), load(hidden))), load(h)), to + i, left);
  });
}

void GruBlend(const float* x, const float* hidden, const float* fresh, int64_t n, float* h) {
  const D d;
  for_vectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const auto load = [&](const float* p) HWY_ATTR { return load_n(d, p + i, left, 0.0f); };
    const V z = sigmoid(d, hn::Add(load(x), load(hidden)));
    store_n(d, blend(z, tanh(d, load(fresh)), load(h)), h + i, left);
  });
}

void RnnGates(const float* sums, bool relu, int64_t n, float* h) {
  const D d;
  for_vectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const V v = load_n(d, sums + i, left, 0.0f);
    const V zero = hn::Zero(d);
    store_n(d, relu ? hn::IfThenElse(hn::Lt(v, zero), zero, v) : tanh(d, v), h + i, left);
  });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(LstmGates);
HWY_EXPORT(GruGates);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruBlend);
HWY_EXPORT(RnnGates);

void lstm_gates(const float* gates, const float* peephole, int64_t n, float* c, float* h) {
  HWY_DYNAMIC_DISPATCH(LstmGates)(gates, peephole, n, c, h);
}
void gru_gates(const float* x, const float* hidden, int64_t n, float* h) {
  HWY_DYNAMIC_DISPATCH(GruGates)(x, hidden, n, h);
}
void gru_reset(const float* x, const float* hidden, const float* h, int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(GruReset)(x, hidden, h, n, to);
}
void gru_blend(const float* x, const float* hidden, const float* fresh, int64_t n, float* h) {
  HWY_DYNAMIC_DISPATCH(GruBlend)(x, hidden, fresh, n, h);
}
void rnn_gates(const float* sums, bool relu, int64_t n, float* h) { HWY_DYNAMIC_DISPATCH(RnnGates)(sums, relu, n, h); }

}  // namespace rlx::cpu
#endif
