#include "rlx/ops/gather.h"

#include <complex>
#include <cstring>
#include <vector>

#include "backends/host/index.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using host::checked_index;

// d[o, idx[k], t] += dy[o, k, t], k ascending. T is the type of the sums: they are rounded once, at the end.
template <class T, class X, class Set>
void scatter(const Call& call, int64_t axis, const X& dy, const Set& set) {
  const View& out = call.output(0);
  const auto [outer, cols, inner] = split_at(out.sizes, axis);
  const int64_t count = call.input(1).elements();
  const IntReader indices = call.int_reader(1);
  std::vector<T> sums(static_cast<size_t>(out.elements()), T{});
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = checked_index(indices[k], cols);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t t = 0; t < inner; ++t)
        sums[static_cast<size_t>((o * cols + index) * inner + t)] += static_cast<T>(dy[(o * count + k) * inner + t]);
  }
  for (size_t i = 0; i < sums.size(); ++i) set(static_cast<int64_t>(i), sums[i]);
}

void scatter(const Call& call, int64_t axis) {
  const DType dtype = call.output(0).dtype;
  if (is_complex(dtype)) {
    auto* y = call.output_as<std::complex<float>>(0);
    scatter<std::complex<double>>(call, axis, call.input_as<std::complex<float>>(0), [&](int64_t i, auto v) {
      y[i] = {static_cast<float>(v.real()), static_cast<float>(v.imag())};
    });
  } else if (is_float(dtype)) {
    const Writer y = call.writer(0);
    scatter<double>(call, axis, call.reader(0), [&](int64_t i, double v) { y.set(i, v); });
  } else {
    const IntWriter y = call.int_writer(0);
    scatter<uint64_t>(call, axis, call.int_reader(0),
                      [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); });
  }
}

}  // namespace

void gather(const Call& call) {
  const View &table = call.input(0), &y = call.output(0);
  const auto [outer, cols, inner] = split_at(table.sizes, call.attrs<ops::GatherAttrs>().axis);
  const int64_t count = call.input(1).elements();
  const IntReader indices = call.int_reader(1);
  const size_t bytes = static_cast<size_t>(inner) * size_of(table.dtype);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = checked_index(indices[k], cols);
    for (int64_t o = 0; o < outer; ++o)
      std::memcpy(y.data + static_cast<size_t>(o * count + k) * bytes,
                  table.data + static_cast<size_t>(o * cols + index) * bytes, bytes);
  }
}

void gather_backward(const Call& call) { scatter(call, call.attrs<ops::GatherBackwardAttrs>().axis); }
void scatter_add(const Call& call) { scatter(call, 0); }

}  // namespace rlx::reference
