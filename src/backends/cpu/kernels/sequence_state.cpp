#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/sequence_state.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/exp-inl.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/sequence_state.h"

#ifndef RLX_SEQUENCE_STATE_BLOCK_
#define RLX_SEQUENCE_STATE_BLOCK_
namespace rlx::cpu {
// Channels (scan) or values (delta net) that a task carries through the whole sequence; a row of its state is so wide.
inline constexpr int64_t kChannels = 64;
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// One token of up to kChannels channels: state[j][c] = exp(delta[c] * a[j][c]) * state[j][c] + delta[c] * b[j] * x[c],
// y[c] = sum over j of c[j] * state[j][c].
void ScanToken(const float* x, const float* delta, const float* a, const float* b, const float* c, int64_t n,
               int64_t channels, float* state, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < channels; i += lanes) {
    const V dt = load_n(d, delta + i, channels - i, 0.0f);
    const V u = hn::Mul(dt, load_n(d, x + i, channels - i, 0.0f));
    V sum = hn::Zero(d);
    for (int64_t j = 0; j < n; ++j) {
      float* s = state + j * kChannels + i;
      const V decay = exp(d, hn::Mul(dt, hn::LoadU(d, a + j * kChannels + i)));
      const V next = hn::MulAdd(decay, hn::LoadU(d, s), hn::Mul(u, hn::Set(d, b[j])));
      hn::StoreU(next, d, s);
      sum = hn::MulAdd(hn::Set(d, c[j]), next, sum);
    }
    store_n(d, sum, y + i, channels - i);
  }
}

// One token of kVecs vectors of columns: recalled = decay * S^T k, diff = (v - recalled) * beta, S = decay * S + k
// diff^T, o = S^T q * scale. Rows of S are kChannels apart.
template <int kVecs>
HWY_INLINE void delta_columns(const float* q, const float* k, const float* v, float decay, float beta, float scale,
                              int64_t n, int64_t left, float* state, float* o) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kVecs], diff[kVecs];
  for (int i = 0; i < kVecs; ++i) sum[i] = hn::Zero(d);
  for (int64_t r = 0; r < n; ++r) {
    const V key = hn::Set(d, k[r]);
    for (int i = 0; i < kVecs; ++i) sum[i] = hn::MulAdd(key, hn::LoadU(d, state + r * kChannels + i * lanes), sum[i]);
  }
  const V by = hn::Set(d, decay);
  for (int i = 0; i < kVecs; ++i) {
    const int64_t rest = std::max<int64_t>(left - i * lanes, 0);
    const V value = rest > 0 ? load_n(d, v + i * lanes, rest, 0.0f) : hn::Zero(d);
    diff[i] = hn::Mul(hn::NegMulAdd(by, sum[i], value), hn::Set(d, beta));
    sum[i] = hn::Zero(d);
  }
  for (int64_t r = 0; r < n; ++r) {
    const V key = hn::Set(d, k[r]), query = hn::Set(d, q[r]);
    for (int i = 0; i < kVecs; ++i) {
      float* s = state + r * kChannels + i * lanes;
      const V next = hn::MulAdd(key, diff[i], hn::Mul(by, hn::LoadU(d, s)));
      hn::StoreU(next, d, s);
      sum[i] = hn::MulAdd(query, next, sum[i]);
    }
  }
  for (int i = 0; i < kVecs; ++i)
    if (left > i * lanes) store_n(d, hn::Mul(sum[i], hn::Set(d, scale)), o + i * lanes, left - i * lanes);
}

void DeltaToken(const float* q, const float* k, const float* v, float decay, float beta, float scale, int64_t n,
                int64_t columns, float* state, float* o) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  while (i < columns)
    if (columns - i > 2 * lanes && i + 4 * lanes <= kChannels) {
      delta_columns<4>(q, k, v + i, decay, beta, scale, n, columns - i, state + i, o + i);
      i += 4 * lanes;
    } else {
      delta_columns<1>(q, k, v + i, decay, beta, scale, n, columns - i, state + i, o + i);
      i += lanes;
    }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(ScanToken);
HWY_EXPORT(DeltaToken);

bool sequence_state_supports(const Signature& s) {
  return std::all_of(s.inputs.begin(), s.inputs.end(), [](const TensorType& t) { return is_small_float(t.dtype); });
}

namespace {

constexpr int64_t kF32 = sizeof(float);

// Per thread: state and A by channel, rows of x, delta and y, rows of B and C.
int64_t scan_floats(int64_t n) { return 2 * n * kChannels + 3 * kChannels + round_up(2 * n, 16); }
// Per thread: the state, rows of q, k, v and o, and room for g and beta.
int64_t delta_floats(int64_t n) { return n * kChannels + round_up(2 * n, 16) + 2 * kChannels + 16; }

// The tensor has [channel][rows] from element `first` on, the block [rows][channel].
void load_channels(DType dtype, const std::byte* data, int64_t first, int64_t rows, int64_t channels, float* block) {
  if (dtype == DType::F32) {
    const float* from = reinterpret_cast<const float*>(data) + first;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < rows; ++j) block[j * kChannels + c] = from[c * rows + j];
    return;
  }
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t j = 0; j < rows; ++j) to_f32(dtype, data, first + c * rows + j, block + j * kChannels + c, 1);
}
void store_channels(const float* block, int64_t rows, int64_t channels, DType dtype, std::byte* data, int64_t first) {
  if (dtype == DType::F32) {
    float* to = reinterpret_cast<float*>(data) + first;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < rows; ++j) to[c * rows + j] = block[j * kChannels + c];
    return;
  }
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t j = 0; j < rows; ++j) from_f32(dtype, block + j * kChannels + c, data, first + c * rows + j, 1);
}

}  // namespace

int64_t selective_scan_scratch(const Signature& s, int threads) {
  return threads * scan_floats(s.attrs.as<ops::SelectiveScanAttrs>().state_size) * kF32;
}

// The new state may lie in the bytes of the old one: a task reads its own part first and writes it last.
void selective_scan(const Call& call) {
  const host::View &x = call.input(0), &delta = call.input(1), &a = call.input(2), &b = call.input(3),
                   &c = call.input(4);
  const int64_t batch = x.dim(0), seq = x.dim(1), channels = x.dim(2), n = a.dim(1);
  const int64_t blocks = div_up(channels, kChannels);
  call.pool().parallel_for(0, batch * blocks, 1, [&](int64_t begin, int64_t end) {
    float* state = call.scratch_as<float>() + ThreadPool::this_thread() * scan_floats(n);
    float *decay = state + n * kChannels, *x_row = decay + n * kChannels, *delta_row = x_row + kChannels;
    float *y_row = delta_row + kChannels, *b_row = y_row + kChannels, *c_row = b_row + n;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / blocks, first = task % blocks * kChannels;
      const int64_t count = std::min(kChannels, channels - first);
      const int64_t own = (image * channels + first) * n;  // of the state
      std::fill(state, state + 2 * n * kChannels, 0.0f);
      load_channels(a.dtype, a.data, first * n, n, count, decay);
      if (call.num_inputs() == 6) load_channels(call.input(5).dtype, call.input(5).data, own, n, count, state);
      for (int64_t t = 0; t < seq; ++t) {
        const int64_t token = image * seq + t, at = token * channels + first;
        const bool direct = call.wants(0) && call.output(0).dtype == DType::F32;
        float* y = direct ? call.output_as<float>(0) + at : y_row;
        HWY_DYNAMIC_DISPATCH(ScanToken)
        (row_as_f32(x.dtype, x.data, at, x_row, count), row_as_f32(delta.dtype, delta.data, at, delta_row, count),
         decay, row_as_f32(b.dtype, b.data, token * n, b_row, n), row_as_f32(c.dtype, c.data, token * n, c_row, n), n,
         count, state, y);
        if (!direct && call.wants(0)) from_f32(call.output(0).dtype, y, call.output(0).data, at, count);
      }
      if (call.wants(1)) store_channels(state, n, count, call.output(1).dtype, call.output(1).data, own);
    }
  });
}

bool causal_conv_supports(const Signature& s) { return s.input(0).dtype == DType::F32; }

// Per thread: the rows before the block's own, and the weights by tap.
int64_t causal_conv_scratch(const Signature& s, int threads) {
  return threads * (2 * s.input(1).shape.sizes()[1] - 1) * kChannels * kF32;
}

void causal_conv(const Call& call) {
  const host::View& x = call.input(0);
  const int64_t batch = x.dim(0), seq = x.dim(1), channels = x.dim(2), taps = call.input(1).dim(1), kept = taps - 1;
  const int64_t blocks = div_up(channels, kChannels);
  const float *rows = call.input_as<float>(0), *w = call.input_as<float>(1), *before = call.input_as<float>(2);
  call.pool().parallel_for(0, batch * blocks, 1, [&](int64_t begin, int64_t end) {
    float* old = call.scratch_as<float>() + ThreadPool::this_thread() * (taps + kept) * kChannels;
    float* weights = old + kept * kChannels;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / blocks, first = task % blocks * kChannels, count = std::min(kChannels, channels - first);
      const int64_t used = call.num_inputs() == 4 ? call.int_reader(3)[b] : seq;
      if (used < 0 || used > seq)
        fail(ErrorKind::kRuntime, str("Rows in use (", used, ") of batch ", b, " are not between 0 and ", seq, "."));
      for (int64_t c = 0; c < count; ++c)
        for (int64_t j = 0; j < taps; ++j) weights[j * kChannels + c] = w[(first + c) * taps + j];
      for (int64_t j = 0; j < kept; ++j)
        std::copy_n(before + (b * kept + j) * channels + first, count, old + j * kChannels);
      // Row t of the rows before and those of x, of this block.
      const auto row = [&](int64_t t) {
        return t < kept ? old + t * kChannels : rows + (b * seq + t - kept) * channels + first;
      };
      for (int64_t t = 0; t < seq && call.wants(0); ++t) {
        float* y = call.output_as<float>(0) + (b * seq + t) * channels + first;
        for (int64_t j = 0; j < taps; ++j) {
          const float *u = row(t + j), *by = weights + j * kChannels;
          if (j == 0)
            for (int64_t c = 0; c < count; ++c) y[c] = by[c] * u[c];
          else
            for (int64_t c = 0; c < count; ++c) y[c] += by[c] * u[c];
        }
      }
      for (int64_t j = 0; j < kept && call.wants(1); ++j)
        std::copy_n(row(used + j), count, call.output_as<float>(1) + (b * kept + j) * channels + first);
    }
  });
}

int64_t gated_delta_net_scratch(const Signature& s, int threads) {
  return threads * delta_floats(s.attrs.as<ops::GatedDeltaNetAttrs>().state_size) * kF32;
}

// Columns of the state do not see each other: a task carries some of one head's through the sequence.
void gated_delta_net(const Call& call) {
  const host::View &q = call.input(0), &k = call.input(1), &v = call.input(2), &g = call.input(3),
                   &beta = call.input(4);
  const int64_t batch = q.dim(0), seq = q.dim(1), heads = q.dim(2), n = q.dim(3);
  const int64_t blocks = div_up(n, kChannels);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(n)));
  call.pool().parallel_for(0, batch * heads * blocks, 1, [&](int64_t begin, int64_t end) {
    float* state = call.scratch_as<float>() + ThreadPool::this_thread() * delta_floats(n);
    float *q_row = state + n * kChannels, *k_row = q_row + n, *v_row = q_row + round_up(2 * n, 16);
    float* o_row = v_row + kChannels;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t outer = task / blocks, b = outer / heads, h = outer % heads;
      const int64_t first = task % blocks * kChannels, count = std::min(kChannels, n - first);
      std::fill(state, state + n * kChannels, 0.0f);
      if (call.num_inputs() == 6)
        for (int64_t i = 0; i < n; ++i)
          to_f32(call.input(5).dtype, call.input(5).data, (outer * n + i) * n + first, state + i * kChannels, count);
      for (int64_t t = 0; t < seq; ++t) {
        const int64_t head = (b * seq + t) * heads + h, row = head * n;
        float gate = 0, rate = 0;
        to_f32(g.dtype, g.data, head, &gate, 1);
        to_f32(beta.dtype, beta.data, head, &rate, 1);
        const bool direct = call.wants(0) && call.output(0).dtype == DType::F32;
        float* o = direct ? call.output_as<float>(0) + row + first : o_row;
        HWY_DYNAMIC_DISPATCH(DeltaToken)
        (row_as_f32(q.dtype, q.data, row, q_row, n), row_as_f32(k.dtype, k.data, row, k_row, n),
         row_as_f32(v.dtype, v.data, row + first, v_row, count), std::exp(gate), rate, scale, n, count, state, o);
        if (!direct && call.wants(0)) from_f32(call.output(0).dtype, o, call.output(0).data, row + first, count);
      }
      if (call.wants(1))
        for (int64_t i = 0; i < n; ++i)
          from_f32(call.output(1).dtype, state + i * kChannels, call.output(1).data, (outer * n + i) * n + first,
                   count);
    }
  });
}

}  // namespace rlx::cpu
#endif
