#include "rlx/ops/softmax.h"

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/softmax.h"

namespace rlx::webgpu {

void lower_softmax(LowerCall& call) {
  namespace k = wgsl::softmax;
  const TensorType& x = call.input_type(0);
  const int64_t axis = normalize_axis(call.attrs<ops::SoftmaxAttrs>().axis, x.rank());
  const auto [outer, cols, inner] = split_at(x.shape, axis);
  const int64_t rows = outer * inner;
  const Operand in = call.read(0), out = call.write(0);
  call.emit(
      {.kernel = {"softmax", {{"T", std::string(call.element(out))}}, {{"WG", cols <= 64 ? 64u : 256u}}},
       .operands = {in, out},
       .params = {k::Params{.rows = to_u32(rows), .cols = to_u32(cols), .inner = to_u32(inner)}, {&k::Params::rows}},
       .grid = {.x = {.items = rows, .active = true}},
       .extent_safe = axis > 0,  // along axis 0 a row would mix active and inactive elements
       .in_place = true});
}

}  // namespace rlx::webgpu
