#include <vector>

#include "backends/host/broadcast.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// Floats are summed as double; integers wrap, which unsigned arithmetic does by definition.
template <class T>
struct Elements;
template <>
struct Elements<double> {
  static Reader reader(const Call& call, int64_t i) { return call.reader(i); }
  static Writer writer(const Call& call) { return call.writer(0); }
};
template <>
struct Elements<uint64_t> {
  static IntReader reader(const Call& call, int64_t i) { return call.int_reader(i); }
  static IntWriter writer(const Call& call) { return call.int_writer(0); }
};

// Converted once, not once per product.
template <class T>
std::vector<T> load(const Call& call, int64_t i) {
  std::vector<T> out(static_cast<size_t>(call.input(i).elements()));
  const auto reader = Elements<T>::reader(call, i);
  for (size_t e = 0; e < out.size(); ++e) out[e] = static_cast<T>(reader[static_cast<int64_t>(e)]);
  return out;
}

// y[0, n) = a[0, k) · b[k, n]: sums in ascending order of k.
template <class T, class W>
void row_times_matrix(const T* a, const T* b, int64_t k, int64_t n, std::vector<T>& sums, const W& y, int64_t first) {
  sums.assign(static_cast<size_t>(n), T{0});
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) sums[static_cast<size_t>(j)] += a[i] * b[i * n + j];
  for (int64_t j = 0; j < n; ++j) y.set(first + j, sums[static_cast<size_t>(j)]);
}

template <class T>
void matmul_as(const Call& call) {
  const View &a = call.input(0), &b = call.input(1), &y = call.output(0);
  const int64_t m = a.dim(a.rank() - 2), k = a.dim(a.rank() - 1), n = b.dim(b.rank() - 1);
  const auto batch = [](const View& v) { return v.sizes.first(v.sizes.size() - 2); };
  const std::vector<T> av = load<T>(call, 0), bv = load<T>(call, 1);
  const auto out = Elements<T>::writer(call);
  std::vector<T> sums;
  host::BroadcastWalk<2> walk(batch(y), {batch(a), batch(b)});
  for (int64_t i = 0; i < product(batch(y)); ++i, walk.next())
    for (int64_t row = 0; row < m; ++row)
      row_times_matrix(av.data() + (walk.offset(0) * m + row) * k, bv.data() + walk.offset(1) * k * n, k, n, sums, out,
                       (i * m + row) * n);
}

template <class T>
void grouped_matmul_as(const Call& call) {
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1);
  const int64_t experts = call.input(1).dim(0), n = call.input(1).dim(2);
  const IntReader index = call.int_reader(2);
  const std::vector<T> x = load<T>(call, 0), w = load<T>(call, 1);
  const auto out = Elements<T>::writer(call);
  std::vector<T> sums;
  for (int64_t row = 0; row < m; ++row) {
    const int64_t e = index[row];
    if (e < 0 || e >= experts)
      fail(ErrorKind::kRuntime,
           str("Expert index (", e, ") of row ", row, " is not one of the ", experts, " experts."));
    row_times_matrix(x.data() + row * k, w.data() + e * k * n, k, n, sums, out, row * n);
  }
}

}  // namespace

void matmul(const Call& call) { is_float(call.output(0).dtype) ? matmul_as<double>(call) : matmul_as<uint64_t>(call); }

void grouped_matmul(const Call& call) {
  is_float(call.output(0).dtype) ? grouped_matmul_as<double>(call) : grouped_matmul_as<uint64_t>(call);
}

}  // namespace rlx::reference
