// Kernels that fold elements of any dtype (fold_float.wgsl, fold_int.wgsl).
#pragma once

#include "backends/webgpu/kernel_source.h"
#include "rlx/dtype.h"

namespace rlx::webgpu {

// A kernel on elements of `dtype`, which are stored as `element`.
KernelKey fold_key(std::string kernel, DType dtype, std::string_view element);

}  // namespace rlx::webgpu
