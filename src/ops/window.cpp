#include "ops/window.h"

#include <algorithm>

#include "ops/infer.h"

namespace rlx::ops {

int64_t Window::taps() const { return product(kernel); }

int64_t Window::extent(int64_t axis) const {
  const auto a = static_cast<size_t>(axis);
  return checked_add(checked_mul(dilation[a], kernel[a] - 1), 1);
}

std::vector<int64_t> filled(const std::vector<int64_t>& list, int64_t rank, int64_t missing, int64_t least,
                            std::string_view what) {
  require(static_cast<int64_t>(list.size()) <= rank, what, " (", list, ") has more than ", rank, " entries.");
  for (const int64_t v : list) require(v >= least, what, " (", list, ") has an entry below ", least, ".");
  std::vector<int64_t> out = list;
  out.resize(static_cast<size_t>(rank), missing);
  return out;
}

Window make_window(const std::vector<int64_t>& kernel_size, const std::vector<int64_t>& stride,
                   const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation) {
  const auto rank = static_cast<int64_t>(kernel_size.size());
  require(rank >= 1 && rank <= 3, "kernel_size (", kernel_size, ") does not have 1, 2 or 3 entries.");
  const auto entries = static_cast<int64_t>(padding.size());
  require(entries <= rank || entries == 2 * rank, "padding (", padding, ") has neither ", rank, " entries nor ",
          2 * rank, ": one per spatial axis, or all beginnings and then all ends.");
  const std::vector<int64_t> both = filled(padding, 2 * rank, 0, 0, "padding");
  const auto middle = both.begin() + rank;
  Window window = {.kernel = filled(kernel_size, rank, 1, 1, "kernel_size"),
                   .stride = filled(stride, rank, 1, 1, "stride"),
                   .dilation = filled(dilation, rank, 1, 1, "dilation"),
                   .padding = {both.begin(), middle},
                   .padding_end = {}};
  if (entries == 2 * rank)
    window.padding_end = {middle, both.end()};
  else
    window.padding_end = window.padding;
  return window;
}

Dim window_count(const Window& window, int64_t axis, const Dim& in, SymbolTable& symbols, bool ceil_mode) {
  const auto a = static_cast<size_t>(axis);
  const int64_t extent = window.extent(axis), stride = window.stride[a], padding = window.padding[a];
  const int64_t both = checked_add(padding, window.padding_end[a]);
  if (in.is_static()) {
    const int64_t padded = checked_add(in.value(), both);
    require(extent <= padded || (ceil_mode && extent - padded < stride), "Window (", extent,
            ") is larger than the padded input (", padded, ") along spatial axis ", axis, ".");
  }
  if (!ceil_mode) return symbols.add(symbols.div(symbols.add(in, both - extent), stride), 1);
  // Windows start at o * stride: below in + both - extent + stride (at most `stride` past the last whole one) and below
  // in + padding (inside the input or the padding before it). ceil(bound / stride) of them, for the smaller bound.
  const int64_t slack = std::min<int64_t>(checked_add(both - extent, stride), padding);
  return symbols.div(symbols.add(in, checked_add(slack, stride - 1)), stride);
}

void require_spatial(const Window& window, const TensorType& x, std::string_view what) {
  require(x.rank() == window.rank() + 2, what, " rank (", x.rank(), ") is not that of ", window.rank(),
          " spatial axes plus 2.");
}

}  // namespace rlx::ops
