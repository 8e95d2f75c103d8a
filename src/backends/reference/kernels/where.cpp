#include <cstring>

#include "backends/host/broadcast.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void where(const Call& call) {
  const View &cond = call.input(0), &yes = call.input(1), &no = call.input(2), &y = call.output(0);
  const size_t size = size_of(y.dtype);
  const int64_t bytes = static_cast<int64_t>(size), cond_bytes = static_cast<int64_t>(size_of(cond.dtype));
  host::BroadcastWalk<3> walk(y.sizes, {cond.sizes, yes.sizes, no.sizes});
  const int64_t n = y.elements();
  for (int64_t i = 0; i < n; ++i, walk.next()) {
    bool chosen = false;  // by the rule of Cast to Bool: cond != 0, so NaN chooses on_true
    convert_elements(cond.dtype, cond.data + walk.offset(0) * cond_bytes, DType::Bool,
                     reinterpret_cast<std::byte*>(&chosen), 1);
    const std::byte* from = chosen ? yes.data + walk.offset(1) * bytes : no.data + walk.offset(2) * bytes;
    std::memmove(y.data + i * bytes, from, size);  // y may be one of the sides
  }
}

}  // namespace rlx::reference
