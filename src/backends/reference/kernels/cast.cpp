#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void cast(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  convert_elements(x.dtype, x.data, y.dtype, y.data, y.elements());
}

}  // namespace rlx::reference
