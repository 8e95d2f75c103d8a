#include "rlx/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "core/rng.h"

namespace rlx::reference {

namespace {

U32x2 stream_key(const Call& call) {
  if (call.num_inputs() == 1) {
    const uint64_t seed = call.attrs<ops::SampleAttrs>().seed;
    return threefry2x32({0, 0}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  const auto* rng = call.input_as<uint32_t>(1);
  return threefry2x32({rng[2], rng[3]}, {rng[0], rng[1]});
}

// Of equal values the first; NaN is smaller than everything.
int64_t argmax_of(const std::vector<double>& row) {
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best] || (std::isnan(row[best]) && !std::isnan(row[i]))) best = i;
  return static_cast<int64_t>(best);
}

// A softmax over the row exists: no NaN, no +inf, and something above -inf.
bool has_softmax(const std::vector<double>& row) {
  bool some = false;
  for (const double z : row) {
    if (std::isnan(z) || z == INFINITY) return false;
    some |= z != -INFINITY;
  }
  return some;
}

// The probabilities that are left after temperature, top-k and top-p; 0 for every token that is not kept.
std::vector<double> probabilities(const std::vector<double>& z, const ops::SampleAttrs& attrs) {
  std::vector<size_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  // Descending, equal ones by index.
  const auto sort_by = [&](const std::vector<double>& key) {
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return key[a] != key[b] ? key[a] > key[b] : a < b; });
  };
  sort_by(z);
  if (attrs.top_k > 0 && attrs.top_k < static_cast<int64_t>(z.size())) order.resize(static_cast<size_t>(attrs.top_k));

  std::vector<double> p(z.size(), 0.0);
  double sum = 0;
  for (const size_t i : order) sum += p[i] = std::exp(z[i] - z[order[0]]);
  for (const size_t i : order) p[i] /= sum;
  if (attrs.top_p >= 1) return p;

  sort_by(p);
  double kept = 0;
  for (size_t n = 0; n < order.size(); ++n) {
    if (n > 0 && kept >= attrs.top_p)
      p[order[n]] = 0;
    else
      kept += p[order[n]];
  }
  for (double& v : p) v /= kept;
  return p;
}

int64_t sample_row(const std::vector<double>& logits, const ops::SampleAttrs& attrs, uint32_t row, U32x2 key) {
  if (logits.empty()) return 0;
  if (attrs.temperature <= 1e-6f || attrs.top_k == 1) return argmax_of(logits);
  std::vector<double> z = logits;
  for (double& v : z) v /= attrs.temperature;
  if (!has_softmax(z)) return argmax_of(logits);
  const std::vector<double> p = probabilities(z, attrs);
  int64_t best = -1;
  double top = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] > 0)) continue;
    const double u = std::max<double>(unit_from_word(threefry2x32({row, static_cast<uint32_t>(i)}, key)[0]), 1e-30);
    const double score = std::log(p[i]) - std::log(-std::log(u));
    if (best < 0 || score > top) {
      best = static_cast<int64_t>(i);
      top = score;
    }
  }
  return best;
}

}  // namespace

void sample(const Call& call) {
  const auto& attrs = call.attrs<ops::SampleAttrs>();
  const U32x2 key = stream_key(call);
  const View& logits = call.input(0);
  const int64_t vocabulary = logits.dim(logits.rank() - 1), rows = call.output(0).elements();
  const Reader x = call.reader(0);
  const IntWriter y = call.int_writer(0);
  std::vector<double> values(static_cast<size_t>(vocabulary));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < vocabulary; ++i) values[static_cast<size_t>(i)] = x[row * vocabulary + i];
    y.set(row, sample_row(values, attrs, static_cast<uint32_t>(row), key));
  }
}

}  // namespace rlx::reference
