// Type rules that convolutions share.
#pragma once

#include "ops/window.h"

namespace rlx::ops {

void require_groups(const Dim& channels, int64_t groups, std::string_view what);
// channels / groups
Dim grouped(const Dim& channels, int64_t groups, std::string_view what, SymbolTable& symbols);
// One element per channel of the result.
void require_bias(const TensorType& bias, const TensorType& y);
// Conv mixes channels and space; rows of the batch stay apart.
inline bool mixes_all_but_batch(const Attrs&, int64_t, int64_t axis) { return axis >= 1; }
// The weight's last dims are kernel_size.
void require_kernel(const TensorType& w, const Window& window);
// The result of a conv; throws when the operands do not fit. The shape alone asks for no dtype.
Shape conv_shape(const TensorType& x, const TensorType& w, const Window& window, int64_t groups, SymbolTable& symbols);
TensorType conv_type(const TensorType& x, const TensorType& w, const Window& window, int64_t groups,
                     SymbolTable& symbols);

}  // namespace rlx::ops
