// Type rules that conv shares with its gradients.
#pragma once

#include "ops/window.h"

namespace rlx::ops {

void require_groups(const Dim& channels, int64_t groups, std::string_view what);
// channels / groups
Dim grouped(const Dim& channels, int64_t groups, std::string_view what, SymbolTable& symbols);
// The weight's last dims are kernel_size.
void require_kernel(const TensorType& w, const Window& window);
// The result of a conv; throws when the operands do not fit.
TensorType conv_type(const TensorType& x, const TensorType& w, const Window& window, int64_t groups,
                     SymbolTable& symbols);

}  // namespace rlx::ops
