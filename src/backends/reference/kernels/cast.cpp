#include <cstring>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void cast(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  convert_elements(x.dtype, x.data, y.dtype, y.data, y.elements());
}

// May find its result in its operand's bytes.
void bitcast(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  std::memmove(y.data, x.data, static_cast<size_t>(y.elements()) * size_of(y.dtype));
}

}  // namespace rlx::reference
