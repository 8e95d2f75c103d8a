// Convolution as other families of builders use it.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

// The attributes of a sliding window with every default filled in; pads are all begins, then all ends.
struct Window {
  std::vector<int64_t> kernel, stride, dilation, pads;
};
Window window_of(OnnxNode& n, const Shape& x, std::vector<int64_t> kernel);
Window conv_window(OnnxNode& n, const Shape& x, const Shape& w);

Value conv_of(OnnxNode& n, const Value& x, const Value& weight, const std::optional<Value>& bias);
Value conv_integer_of(OnnxNode& n, const Value& x, const Value& weight, const std::optional<Value>& x_zero,
                      const std::optional<Value>& w_zero);

}  // namespace rlx::onnx
