#include "backends/cpu/elementwise/layout.h"

namespace rlx::cpu {

int64_t Layout::rows() const {
  int64_t n = 1;
  for (int d = 0; d + 1 < rank; ++d) n *= sizes[d];
  return n;
}

bool Layout::is_contiguous(int input) const {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[input][d] != stride) return false;
    stride *= sizes[d];
  }
  return true;
}

bool Layout::is_scalar(int input) const { return strides[input][rank - 1] == 0 && is_one_row(input); }

bool Layout::is_one_row(int input) const {
  for (int d = 0; d + 1 < rank; ++d)
    if (strides[input][d] != 0) return false;
  return true;
}

Layout broadcast_layout(std::span<const int64_t> sizes, std::span<const host::View> inputs, int resized) {
  Layout l;
  const int rank = static_cast<int>(sizes.size()), extra = resized < 0 ? 0 : 2;
  RLX_ASSERT(rank + extra <= kMaxLayoutRank && inputs.size() <= kMaxProgramInputs);
  l.rank = rank + extra;
  l.num_inputs = static_cast<int>(inputs.size());
  // Axis d of the result, or the outer part of it, where two axes are split.
  const auto split = [&](int d) { return extra != 0 && d >= rank - 2; };
  const auto at = [&](int d) { return split(d) ? d + (d - (rank - 2)) : d; };
  for (int d = 0; d < rank; ++d) {
    l.sizes[at(d)] = split(d) ? sizes[static_cast<size_t>(d)] / 2 : sizes[static_cast<size_t>(d)];
    if (split(d)) l.sizes[at(d) + 1] = 2;
  }
  for (int i = 0; i < l.num_inputs; ++i) {
    const std::span<const int64_t> own = inputs[static_cast<size_t>(i)].sizes;
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int o = d - (rank - static_cast<int>(own.size()));
      const int64_t size = o < 0 ? 1 : own[static_cast<size_t>(o)];
      const int64_t step = size == 1 ? 0 : stride;
      l.strides[i][at(d)] = split(d) && i != resized ? 2 * step : step;
      if (split(d)) l.strides[i][at(d) + 1] = i == resized ? 0 : step;
      stride *= size;
    }
  }
  merge_axes(l);
  return l;
}

void merge_axes(Layout& l) {
  int kept = 0;
  for (int d = 0; d < l.rank; ++d) {
    if (l.sizes[d] == 1) continue;
    bool merges = kept > 0;
    for (int i = 0; merges && i < l.num_inputs; ++i) merges = l.strides[i][kept - 1] == l.strides[i][d] * l.sizes[d];
    const int to = merges ? kept - 1 : kept++;
    l.sizes[to] = merges ? l.sizes[to] * l.sizes[d] : l.sizes[d];
    for (int i = 0; i < l.num_inputs; ++i) l.strides[i][to] = l.strides[i][d];
  }
  if (kept == 0) {
    l.sizes[kept] = 1;
    for (int i = 0; i < l.num_inputs; ++i) l.strides[i][kept] = 1;
    ++kept;
  }
  l.rank = kept;
}

}  // namespace rlx::cpu
