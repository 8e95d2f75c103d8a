// Data movement: elements are bytes, so every dtype takes the same path.
#include <cstring>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/slice.h"
#include "rlx/ops/transpose.h"

namespace rlx::reference {

namespace {

size_t bytes_of(const View& view, int64_t elements) { return static_cast<size_t>(elements) * size_of(view.dtype); }

// An empty operand has no bytes at all.
void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// Result element at each index is the operand's at first + sum(index[d] * strides[d]).
void copy_strided(const Call& call, const std::vector<int64_t>& strides, int64_t first = 0) {
  const View &x = call.input(0), &y = call.output(0);
  const size_t size = size_of(x.dtype);
  std::vector<int64_t> index(strides.size(), 0);
  int64_t from = first;
  const int64_t n = y.elements();
  for (int64_t i = 0; i < n; ++i) {
    copy_bytes(y.data + static_cast<size_t>(i) * size, x.data + static_cast<size_t>(from) * size, size);
    for (size_t d = strides.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < y.sizes[d]) break;
      from -= strides[d] * y.sizes[d];
      index[d] = 0;
    }
  }
}

std::vector<int64_t> strides_of(const View& x) {
  std::vector<int64_t> strides(x.sizes.size());
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > 0; stride *= x.sizes[d]) strides[d] = stride;
  return strides;
}

}  // namespace

void concat(const Call& call) {
  const int64_t axis = call.attrs<ops::ConcatAttrs>().axis;
  const View& y = call.output(0);
  const auto [outer, cols, inner] = split_at(y.sizes, axis);
  int64_t first = 0;
  for (int64_t i = 0; i < call.num_inputs(); ++i) {
    const View& x = call.input(i);
    const int64_t own = split_at(x.sizes, axis).cols;
    const size_t bytes = bytes_of(x, own * inner);
    for (int64_t o = 0; o < outer; ++o)
      copy_bytes(y.data + bytes_of(y, (o * cols + first) * inner), x.data + static_cast<size_t>(o) * bytes, bytes);
    first += own;
  }
}

void expand(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const std::vector<int64_t> own = strides_of(x);
  const size_t added = y.sizes.size() - x.sizes.size();
  std::vector<int64_t> strides(y.sizes.size(), 0);
  for (size_t d = 0; d < own.size(); ++d)
    if (x.sizes[d] != 1) strides[added + d] = own[d];
  copy_strided(call, strides);
}

void narrow(const Call& call) {
  const auto& attrs = call.attrs<ops::NarrowAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const auto [outer, cols, inner] = split_at(x.sizes, attrs.axis);
  const int64_t start = attrs.start.value(), len = split_at(y.sizes, attrs.axis).cols;
  const size_t bytes = bytes_of(x, len * inner);
  for (int64_t o = 0; o < outer; ++o)
    copy_bytes(y.data + static_cast<size_t>(o) * bytes, x.data + bytes_of(x, (o * cols + start) * inner), bytes);
}

void reshape(const Call& call) {
  copy_bytes(call.output(0).data, call.input(0).data, bytes_of(call.input(0), call.input(0).elements()));
}

void resize_nearest_2x(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const size_t size = size_of(x.dtype);
  const int64_t height = y.dim(2), width = y.dim(3), n = y.elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t col = i % width, row = i / width % height, plane = i / (width * height);
    const int64_t from = (plane * (height / 2) + row / 2) * (width / 2) + col / 2;
    copy_bytes(y.data + static_cast<size_t>(i) * size, x.data + static_cast<size_t>(from) * size, size);
  }
}

void slice(const Call& call) {
  const auto& attrs = call.attrs<ops::SliceAttrs>();
  std::vector<int64_t> strides = strides_of(call.input(0));
  int64_t first = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    first += attrs.start[d].value() * strides[d];
    strides[d] *= attrs.step[d];
  }
  copy_strided(call, strides, first);
}

void transpose(const Call& call) {
  const std::vector<int64_t> own = strides_of(call.input(0));
  std::vector<int64_t> strides;
  for (const int64_t axis : call.attrs<ops::TransposeAttrs>().perm) strides.push_back(own[static_cast<size_t>(axis)]);
  copy_strided(call, strides);
}

}  // namespace rlx::reference
