// The new state may lie in the bytes of the old one: each kernel reads what it needs of the old before it writes.
#include "rlx/ops/sequence_state.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void selective_scan(const Call& call) {
  const View& x_view = call.input(0);
  const int64_t batch = x_view.dim(0), seq = x_view.dim(1), channels = x_view.dim(2), n = call.input(2).dim(1);
  const Reader x = call.reader(0), delta = call.reader(1), a = call.reader(2), b = call.reader(3), c = call.reader(4);
  std::vector<double> state(static_cast<size_t>(n));
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t ch = 0; ch < channels; ++ch) {
      const int64_t first = (i * channels + ch) * n;
      for (int64_t j = 0; j < n; ++j)
        state[static_cast<size_t>(j)] = call.num_inputs() == 6 ? call.reader(5)[first + j] : 0;
      for (int64_t t = 0; t < seq; ++t) {
        const int64_t token = i * seq + t;
        const double dt = delta[token * channels + ch], u = x[token * channels + ch];
        double y = 0;
        for (int64_t j = 0; j < n; ++j) {
          double& s = state[static_cast<size_t>(j)];
          s = std::exp(dt * a[ch * n + j]) * s + dt * b[token * n + j] * u;
          y += c[token * n + j] * s;
        }
        if (call.wants(0)) call.writer(0).set(token * channels + ch, y);
      }
      for (int64_t j = 0; j < n && call.wants(1); ++j) call.writer(1).set(first + j, state[static_cast<size_t>(j)]);
    }
}

void gated_delta_net(const Call& call) {
  const View& q_view = call.input(0);
  const int64_t batch = q_view.dim(0), seq = q_view.dim(1), heads = q_view.dim(2), n = q_view.dim(3);
  const Reader q = call.reader(0), k = call.reader(1), v = call.reader(2), g = call.reader(3), beta = call.reader(4);
  const double scale = 1 / std::sqrt(static_cast<double>(n));
  std::vector<double> state(static_cast<size_t>(n * n));  // [i, j]: key i, value j
  const auto at = [&](int64_t i, int64_t j) -> double& { return state[static_cast<size_t>(i * n + j)]; };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t first = (b * heads + h) * n * n;
      for (int64_t i = 0; i < n * n; ++i)
        state[static_cast<size_t>(i)] = call.num_inputs() == 6 ? call.reader(5)[first + i] : 0;
      for (int64_t t = 0; t < seq; ++t) {
        const int64_t head = (b * seq + t) * heads + h, row = head * n;
        const double decay = std::exp(g[head]);
        for (double& s : state) s *= decay;
        for (int64_t j = 0; j < n; ++j) {
          double recalled = 0;
          for (int64_t i = 0; i < n; ++i) recalled += at(i, j) * k[row + i];
          const double d = (v[row + j] - recalled) * beta[head];
          double o = 0;
          for (int64_t i = 0; i < n; ++i) o += (at(i, j) += k[row + i] * d) * q[row + i];
          if (call.wants(0)) call.writer(0).set(row + j, o * scale);
        }
      }
      for (int64_t i = 0; i < n * n && call.wants(1); ++i) call.writer(1).set(first + i, state[static_cast<size_t>(i)]);
    }
}

void causal_conv(const Call& call) {
  const View& x_view = call.input(0);
  const int64_t batch = x_view.dim(0), seq = x_view.dim(1), channels = x_view.dim(2), taps = call.input(1).dim(1);
  const Reader x = call.reader(0), w = call.reader(1), before = call.reader(2);
  std::vector<double> rows(static_cast<size_t>(taps - 1 + seq));  // of one channel
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t used = call.num_inputs() == 4 ? call.int_reader(3)[b] : seq;
    if (used < 0 || used > seq)
      fail(ErrorKind::kRuntime, str("Rows in use (", used, ") of batch ", b, " are not between 0 and ", seq, "."));
    for (int64_t c = 0; c < channels; ++c) {
      const auto state_at = [&](int64_t j) { return (b * (taps - 1) + j) * channels + c; };
      for (int64_t j = 0; j < taps - 1; ++j) rows[static_cast<size_t>(j)] = before[state_at(j)];
      for (int64_t t = 0; t < seq; ++t) rows[static_cast<size_t>(taps - 1 + t)] = x[(b * seq + t) * channels + c];
      for (int64_t t = 0; t < seq && call.wants(0); ++t) {
        double sum = 0;
        for (int64_t j = 0; j < taps; ++j) sum += w[c * taps + j] * rows[static_cast<size_t>(t + j)];
        call.writer(0).set((b * seq + t) * channels + c, sum);
      }
      for (int64_t j = 0; j < taps - 1 && call.wants(1); ++j)
        call.writer(1).set(state_at(j), rows[static_cast<size_t>(used + j)]);
    }
  }
}

void kv_append(const Call& call) {
  const View &cache = call.input(0), &rows = call.input(1), &out = call.output(0);
  const auto [outer, cap, inner] = split_at(cache.sizes, call.attrs<ops::KvAppendAttrs>().axis);
  const int64_t batch = cache.dim(0), count = split_at(rows.sizes, call.attrs<ops::KvAppendAttrs>().axis).cols;
  const IntReader len = call.int_reader(2);
  for (int64_t b = 0; b < batch; ++b)
    if (len[b] < 0 || len[b] > cap - count)
      fail(ErrorKind::kRuntime,
           str("Rows ", len[b], " … ", len[b] + count, " of batch ", b, " do not fit the cache (", cap, ")."));
  const size_t bytes = static_cast<size_t>(inner) * size_of(cache.dtype);  // of one row
  if (out.data != cache.data) std::memcpy(out.data, cache.data, static_cast<size_t>(outer * cap) * bytes);
  const int64_t per_batch = outer / batch;
  for (int64_t o = 0; o < outer && count > 0; ++o)
    std::memcpy(out.data + static_cast<size_t>(o * cap + len[o / per_batch]) * bytes,
                rows.data + static_cast<size_t>(o * count) * bytes, static_cast<size_t>(count) * bytes);
}

}  // namespace rlx::reference
