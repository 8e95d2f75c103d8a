// TfIdfVectorizer: counts of the n-grams of a pool, on known values.
#include <algorithm>
#include <map>

#include "import/onnx/ops.h"
#include "import/onnx/ops/strings.h"

namespace rlx::onnx {

namespace {

// The n-grams of the pool as a tree; an n-gram that ends here has an id.
template <class T>
struct Gram {
  int64_t id = -1;
  std::map<T, Gram> next;
};

struct TfIdf {
  int64_t shortest, longest, skips;
  std::vector<int64_t> counts, indexes;
};

template <class T>
Gram<T> pool_tree(const TfIdf& t, const std::vector<T>& pool) {
  Gram<T> root;
  int64_t id = 0;
  const auto total = static_cast<int64_t>(pool.size());
  for (size_t i = 0; i < t.counts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1;
    const int64_t begin = t.counts[i], end = i + 1 < t.counts.size() ? t.counts[i + 1] : total;
    require(begin >= 0 && begin <= end && end <= total && (end - begin) % length == 0, "The n-gram counts ", t.counts,
            " do not divide a pool of ", total, " items.");
    for (int64_t at = begin; at < end; at += length, ++id) {
      if (length < t.shortest || length > t.longest) continue;
      Gram<T>* g = &root;
      for (int64_t k = 0; k < length; ++k) g = &g->next[pool[static_cast<size_t>(at + k)]];
      g->id = id;
    }
  }
  require(id <= static_cast<int64_t>(t.indexes.size()), "There are ", id, " n-grams, but ", t.indexes.size(),
          " indexes.");
  return root;
}

// Adds up the n-grams of a row whose items are 1, 2, … skips + 1 apart. Single items have no distance: they count once.
template <class T>
void count_row(const TfIdf& t, const Gram<T>& root, std::span<const T> row, std::span<double> out) {
  const auto size = static_cast<int64_t>(row.size());
  int64_t shortest = t.shortest;
  for (int64_t distance = 1; distance <= t.skips + 1; ++distance) {
    for (int64_t start = 0; start + distance * (shortest - 1) < size; ++start) {
      const Gram<T>* g = &root;
      int64_t at = start;
      for (int64_t length = 1; length <= t.longest && at < size; ++length, at += distance) {
        const auto it = g->next.find(row[static_cast<size_t>(at)]);
        if (it == g->next.end()) break;
        g = &it->second;
        if (length >= shortest && g->id >= 0) ++out[static_cast<size_t>(t.indexes[static_cast<size_t>(g->id)])];
      }
    }
    if (shortest == 1 && ++shortest > t.longest) break;
  }
}

template <class T>
std::vector<double> count_all(const TfIdf& t, const std::vector<T>& pool, const std::vector<T>& items, int64_t rows,
                              int64_t width) {
  const Gram<T> root = pool_tree(t, pool);
  const size_t row = rows == 0 ? 0 : items.size() / static_cast<size_t>(rows);
  std::vector<double> counts(static_cast<size_t>(rows * width));
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
    count_row<T>(t, root, std::span(items).subspan(r * row, row),
                 std::span(counts).subspan(r * static_cast<size_t>(width), static_cast<size_t>(width)));
  return counts;
}

Built tf_idf_vectorizer(OnnxNode& n) {
  const TfIdf t{n.required_int("min_gram_length"), n.required_int("max_gram_length"), n.required_int("max_skip_count"),
                n.required_ints("ngram_counts"), n.required_ints("ngram_indexes")};
  require(t.shortest >= 1 && t.longest >= t.shortest && t.longest <= 1000 && t.counts.size() <= 1000 && t.skips >= 0 &&
              t.skips < (1 << 20),
          "N-grams of ", t.shortest, " to ", t.longest, " items with up to ", t.skips, " skipped are not possible.");
  for (const int64_t i : t.indexes)
    require(i >= 0 && i < 1 << 24, "The n-gram index ", i, " is negative or too large.");
  const int64_t width = t.indexes.empty() ? 0 : *std::max_element(t.indexes.begin(), t.indexes.end()) + 1;
  const bool words = is_strings(n, 0);
  const Tensor known = words ? Tensor() : n.known(0).cast(DType::I64);
  const std::vector<int64_t> sizes = words ? strings_of(n, 0).sizes : known.sizes();
  require(sizes.size() <= 2, "The operand has rank ", sizes.size(), "; [C] or [N, C] is expected.");
  const int64_t rows = sizes.size() == 2 ? sizes[0] : 1;
  require(checked_mul(rows, width) <= 1 << 26, "A result of ", rows, " times ", width, " counts is too large.");
  std::vector<double> y;
  if (words) {
    y = count_all(t, n.attr("pool_strings", std::vector<std::string>()), strings_of(n, 0).values, rows, width);
  } else {
    const auto items = known.values<int64_t>();
    y = count_all(t, n.attr("pool_int64s", std::vector<int64_t>()), std::vector<int64_t>(items.begin(), items.end()),
                  rows, width);
  }
  const std::string mode = n.attr("mode", "");
  require(mode == "TF" || mode == "IDF" || mode == "TFIDF", "The mode '", mode, "' is not known.");
  // Weights belong to n-grams; the result has one column per index.
  const std::vector<float> given = n.attr("weights", std::vector<float>());
  std::vector<double> weights(static_cast<size_t>(width), 1.0);
  for (size_t i = 0; i < given.size() && i < t.indexes.size(); ++i)
    weights[static_cast<size_t>(t.indexes[i])] = given[i];
  for (size_t i = 0; i < y.size() && mode != "TF"; ++i)
    y[i] = (mode == "IDF" ? (y[i] > 0 ? 1 : 0) : y[i]) * weights[i % static_cast<size_t>(width)];
  std::vector<int64_t> shape{width};
  if (sizes.size() == 2) shape.insert(shape.begin(), rows);
  return n.constant(Tensor::from_doubles(DType::F32, shape, y));
}

}  // namespace

Rows tfidf_rows() { return {{"TfIdfVectorizer", 9, tf_idf_vectorizer}}; }

}  // namespace rlx::onnx
