#include "backends/webgpu/strided.h"

#include <algorithm>

#include "backends/webgpu/lowering/movement.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/slice.h"
#include "rlx/ops/transpose.h"

namespace rlx::webgpu {

StridedLayout StridedLayout::dense(const TensorType& type) {
  const std::vector<int64_t> sizes = type.shape.sizes();
  return {sizes, row_major_strides(sizes), 0};
}

bool StridedLayout::is_dense() const {
  const std::vector<int64_t> own = row_major_strides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && strides[i] != own[i]) return false;
  return true;
}

int64_t StridedLayout::extent() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

bool moves_by_strides(const Node& symbolic) {
  const auto fixed = [](const Dim& d) { return d.is_static(); };
  if (symbolic.op == &ops::narrow) return fixed(symbolic.attrs.as<ops::NarrowAttrs>().start);
  if (symbolic.op == &ops::slice) {
    const auto& attrs = symbolic.attrs.as<ops::SliceAttrs>();
    return std::all_of(attrs.start.begin(), attrs.start.end(), fixed) &&
           std::all_of(attrs.step.begin(), attrs.step.end(), [](int64_t step) { return step > 0; });
  }
  return symbolic.op == &ops::transpose || symbolic.op == &ops::reshape;
}

// Runs of axes of the operand that lie densely behind one another and hold as many elements as a run of new axes.
static std::optional<StridedLayout> reshaped(const StridedLayout& from, const std::vector<int64_t>& sizes) {
  StridedLayout to{sizes, std::vector<int64_t>(sizes.size(), 1), from.offset};
  size_t own = 0, next = 0;
  while (next < sizes.size()) {
    if (sizes[next] == 1) {
      ++next;
      continue;
    }
    while (own < from.sizes.size() && from.sizes[own] == 1) ++own;
    // The smallest equal products: axes [own, own_end) become [next, next_end).
    size_t own_end = own + 1, next_end = next + 1;
    int64_t own_size = from.sizes[own], next_size = sizes[next];
    while (own_size != next_size) {
      if (own_size < next_size)
        own_size *= from.sizes[own_end++];
      else
        next_size *= sizes[next_end++];
    }
    int64_t stride = 0;  // of the last axis that counts; those before it must follow from it
    int64_t dense = 0;
    for (size_t i = own_end; i-- > own;) {
      if (from.sizes[i] == 1) continue;
      if (dense == 0)
        stride = from.strides[i];
      else if (from.strides[i] != dense)
        return std::nullopt;
      dense = from.strides[i] * from.sizes[i];
    }
    for (size_t i = next_end; i-- > next;) {
      to.strides[i] = stride;
      stride *= sizes[i];
    }
    own = own_end;
    next = next_end;
  }
  return to;
}

std::optional<StridedLayout> layout_of(const Node& bound, const StridedLayout& operand) {
  const std::vector<int64_t> sizes = bound.results[0].type.shape.sizes();
  StridedLayout to{sizes, operand.strides, operand.offset};
  if (operand.extent() == 0 || std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return std::nullopt;
  if (bound.op == &ops::narrow) {
    const auto& attrs = bound.attrs.as<ops::NarrowAttrs>();
    const auto axis = static_cast<size_t>(normalize_axis(attrs.axis, static_cast<int64_t>(sizes.size())));
    to.offset += attrs.start.value() * operand.strides[axis];
    return to;
  }
  if (bound.op == &ops::slice) {
    const auto& attrs = bound.attrs.as<ops::SliceAttrs>();
    for (size_t i = 0; i < sizes.size(); ++i) {
      to.offset += attrs.start[i].value() * operand.strides[i];
      to.strides[i] *= attrs.step[i];
    }
    return to;
  }
  if (bound.op == &ops::transpose) {
    const auto& perm = bound.attrs.as<ops::TransposeAttrs>().perm;
    for (size_t i = 0; i < perm.size(); ++i) to.strides[i] = operand.strides[static_cast<size_t>(perm[i])];
    return to;
  }
  return reshaped(operand, sizes);
}

}  // namespace rlx::webgpu
