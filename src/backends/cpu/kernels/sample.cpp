// Draws one index per row of logits. The arithmetic that decides is the oracle's, in double and in its order; vectors
// make the random words and the keys of the sort, and elements that cannot win are left out early.
#include "rlx/ops/sample.h"

#include <array>
#include <cmath>

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/top_of_row.h"
#include "backends/cpu/simd/random.h"

namespace rlx::cpu {

namespace {

// Each thread: two lists of ranked elements, probabilities, the row as f32 and its keys.
struct SampleScratch {
  int64_t n;
  explicit SampleScratch(int64_t vocabulary) : n(round_up(vocabulary, 16)) {}
  int64_t bytes() const { return n * (8 + 8 + 8 + 4 + 4); }
};

struct Buffers {
  uint64_t *order, *spare;
  double* p;
  float* values;
  int32_t* keys;

  Buffers(const Call& call, const SampleScratch& s)
      : order(reinterpret_cast<uint64_t*>(call.scratch() + ThreadPool::this_thread() * s.bytes())),
        spare(order + s.n),
        p(reinterpret_cast<double*>(spare + s.n)),
        values(reinterpret_cast<float*>(p + s.n)),
        keys(reinterpret_cast<int32_t*>(values + s.n)) {}
};

// Of equal values the first; NaN is smaller than everything.
int64_t argmax_without_nan(const float* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (std::isnan(x[best]) && !std::isnan(x[i]))) best = i;
  return best;
}

double gumbel(uint32_t word) { return -std::log(-std::log(std::max<double>(unit_from_word(word), 1e-30))); }

// All elements, largest first, equal ones by index: 11 bits at a time from the lowest, each pass stable.
void sort_all(const Buffers& b, int64_t n) {
  uint64_t *from = b.order, *to = b.spare;
  for (int64_t i = 0; i < n; ++i) from[i] = ranked(b.keys[i], i);
  for (const int shift : {32, 43, 54}) {
    std::array<int64_t, 2048> first{};
    const auto digit = [shift](uint64_t rank) { return static_cast<size_t>(~(rank >> shift) & 2047); };
    for (int64_t i = 0; i < n; ++i) ++first[digit(from[i])];
    int64_t at = 0;
    for (int64_t& f : first) at += std::exchange(f, at);
    for (int64_t i = 0; i < n; ++i) to[first[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  std::copy_n(from, n, b.order);  // three passes end in the other list
}

// Noise above `least` needs a word whose upper 24 bits are at least this: u > exp(-exp(-least)), two units below it for
// the rounding.
uint32_t bound_for(double least) {
  return static_cast<uint32_t>(std::max(0.0, std::exp(-std::exp(-least)) * 0x1p24 - 2));
}

// No filter: the largest of z + Gumbel noise. With every better element fewer words can win: their noise alone, added
// to the largest z, must be above the best.
int64_t draw(const float* x, int64_t n, double temperature, double top, uint32_t row, U32x2 key) {
  constexpr int64_t kWords = 1024;
  alignas(64) uint32_t words[kWords];
  int64_t best = -1;
  double best_score = 0;
  uint32_t bound = 0;
  for (int64_t first = 0; first < n; first += kWords) {
    const int64_t count = std::min(kWords, n - first);
    threefry_words(row, static_cast<uint32_t>(first), key, words, count);
    for (int64_t k = 0; k < count; ++k) {
      if (words[k] >> 8 < bound) continue;
      const double score = static_cast<double>(x[first + k]) / temperature - top + gumbel(words[k]);
      if (best >= 0 && !(score > best_score)) continue;
      best = first + k;
      best_score = score;
      bound = bound_for(score);
    }
  }
  return best;
}

// The elements order[0..n) that are left after top-k; top-p leaves a prefix of them by probability.
int64_t draw_of(const Buffers& b, const float* x, int64_t n, const ops::SampleAttrs& attrs, uint32_t row, U32x2 key) {
  const double temperature = attrs.temperature;
  const auto z = [&](int64_t i) { return static_cast<double>(x[index_of(b.order[i])]) / temperature; };
  const double top = z(0);
  double sum = 0;
  int64_t used = 0;  // behind them all probabilities are 0
  for (; used < n; ++used) {
    b.p[used] = std::exp(z(used) - top);
    if (!(b.p[used] > 0)) break;
    sum += b.p[used];
  }
  for (int64_t i = 0; i < used; ++i) b.p[i] /= sum;
  while (used > 0 && !(b.p[used - 1] > 0)) --used;  // the quotient may be 0 too
  double kept = 0;
  if (attrs.top_p < 1) {
    // Different logits may have equal probabilities: those stand by index.
    for (int64_t i = 0; i < used;) {
      int64_t end = i + 1;
      while (end < used && b.p[end] == b.p[i]) ++end;
      if (end > i + 1)
        std::sort(b.order + i, b.order + end, [](uint64_t l, uint64_t r) { return index_of(l) < index_of(r); });
      i = end;
    }
    int64_t count = 0;
    for (; count < used && (count == 0 || kept < static_cast<double>(attrs.top_p)); ++count) kept += b.p[count];
    used = count;
    for (int64_t i = 0; i < used; ++i) b.p[i] /= kept;
  }
  int64_t best = -1;
  double best_score = 0;
  const double largest = std::log(b.p[0]);
  uint32_t bound = 0;
  for (int64_t i = 0; i < used; ++i) {
    const int64_t index = index_of(b.order[i]);
    const uint32_t word = threefry2x32({row, static_cast<uint32_t>(index)}, key)[0];
    if (word >> 8 < bound) continue;
    const double score = std::log(b.p[i]) + gumbel(word);
    if (best >= 0 && !(score > best_score || (score == best_score && index < best))) continue;
    best = index;
    best_score = score;
    bound = bound_for(score - largest);
  }
  return best;
}

int64_t sample_row(const Buffers& b, const float* x, int64_t n, const ops::SampleAttrs& attrs, uint32_t row,
                   U32x2 key) {
  // A softmax over the row exists where its largest element (of NaN and others NaN) is a number.
  const int64_t best = arg_of_row(x, n, true);
  const float top = x[best];
  if (attrs.temperature <= 1e-6f || attrs.top_k == 1 || !std::isfinite(top))
    return std::isnan(top) ? argmax_without_nan(x, n) : best;
  const bool top_k = attrs.top_k > 0 && attrs.top_k < n;
  if (!top_k && attrs.top_p >= 1)
    return draw(x, n, attrs.temperature, static_cast<double>(top) / static_cast<double>(attrs.temperature), row, key);
  ordered_keys(x, b.keys, n, true);
  if (top_k)
    top_of_row(b.keys, n, attrs.top_k, b.order, reinterpret_cast<int32_t*>(b.spare));
  else
    sort_all(b, n);
  return draw_of(b, x, top_k ? attrs.top_k : n, attrs, row, key);
}

U32x2 stream_key(const Call& call) {
  if (call.num_inputs() == 1) {
    const uint64_t seed = call.attrs<ops::SampleAttrs>().seed;
    return threefry2x32({0, 0}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  const auto* rng = call.input_as<uint32_t>(1);
  return threefry2x32({rng[2], rng[3]}, {rng[0], rng[1]});
}

}  // namespace

int64_t sample_scratch(const Signature& s, int threads) {
  const auto sizes = s.input(0).shape.sizes();
  return threads * SampleScratch(sizes.back()).bytes();
}

void sample(const Call& call) {
  const auto& attrs = call.attrs<ops::SampleAttrs>();
  const host::View& x = call.input(0);
  const int64_t n = x.dim(x.rank() - 1), rows = call.output(0).elements();
  const host::IntWriter y = call.int_writer(0);
  if (n == 0) {
    for (int64_t row = 0; row < rows; ++row) y.set(row, 0);
    return;
  }
  const U32x2 key = stream_key(call);
  const SampleScratch scratch(n);
  call.pool().parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    const Buffers b(call, scratch);
    for (int64_t row = begin; row < end; ++row) {
      const float* logits = row_as_f32(x.dtype, x.data, row * n, b.values, n);
      y.set(row, sample_row(b, logits, n, attrs, static_cast<uint32_t>(row), key));
    }
  });
}

}  // namespace rlx::cpu
