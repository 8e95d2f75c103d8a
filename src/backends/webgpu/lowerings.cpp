#include "backends/webgpu/lowering/lowerings.h"
#include "rlx/ops.h"

namespace rlx::webgpu {

// A line per lowering, sorted by op; several of one op: the first that supports a node.
// clang-format off
static const LoweringRow kTable[] = {
    {&ops::abs, lower_elementwise, elementwise_supports},
    {&ops::acos, lower_elementwise, elementwise_supports},
    {&ops::acosh, lower_elementwise, elementwise_supports},
    {&ops::add, lower_elementwise, elementwise_supports},
    {&ops::asin, lower_elementwise, elementwise_supports},
    {&ops::asinh, lower_elementwise, elementwise_supports},
    {&ops::atan, lower_elementwise, elementwise_supports},
    {&ops::atanh, lower_elementwise, elementwise_supports},
    {&ops::attention, lower_attention, attention_supports},
    {&ops::axial_rope2d, lower_axial_rope2d},
    {&ops::bit_and, lower_elementwise, elementwise_supports},
    {&ops::bit_not, lower_elementwise, elementwise_supports},
    {&ops::bit_or, lower_elementwise, elementwise_supports},
    {&ops::bit_xor, lower_elementwise, elementwise_supports},
    {&ops::cast, lower_elementwise, elementwise_supports},
    {&ops::ceil, lower_elementwise, elementwise_supports},
    {&ops::cos, lower_elementwise, elementwise_supports},
    {&ops::cosh, lower_elementwise, elementwise_supports},
    {&ops::div, lower_elementwise, elementwise_supports},
    {&ops::elementwise_region, lower_elementwise, elementwise_supports},
    {&ops::eq, lower_elementwise, elementwise_supports},
    {&ops::erf, lower_elementwise, elementwise_supports},
    {&ops::exp, lower_elementwise, elementwise_supports},
    {&ops::floor, lower_elementwise, elementwise_supports},
    {&ops::gated_delta_net, lower_gated_delta_net, gated_delta_net_supports},
    {&ops::ge, lower_elementwise, elementwise_supports},
    {&ops::gelu, lower_elementwise, elementwise_supports},
    {&ops::gelu_approx, lower_elementwise, elementwise_supports},
    {&ops::gt, lower_elementwise, elementwise_supports},
    {&ops::is_nan, lower_elementwise, elementwise_supports},
    {&ops::le, lower_elementwise, elementwise_supports},
    {&ops::log, lower_elementwise, elementwise_supports},
    {&ops::lt, lower_elementwise, elementwise_supports},
    {&ops::max, lower_elementwise, elementwise_supports},
    {&ops::min, lower_elementwise, elementwise_supports},
    {&ops::mul, lower_elementwise, elementwise_supports},
    {&ops::ne, lower_elementwise, elementwise_supports},
    {&ops::neg, lower_elementwise, elementwise_supports},
    {&ops::pow, lower_elementwise, elementwise_supports},
    {&ops::relu, lower_elementwise, elementwise_supports},
    {&ops::rope, lower_rope, rope_supports},
    {&ops::rope_backward, lower_rope_backward, rope_supports},
    {&ops::round, lower_elementwise, elementwise_supports},
    {&ops::rsqrt, lower_elementwise, elementwise_supports},
    {&ops::selective_scan, lower_selective_scan, selective_scan_supports},
    {&ops::shift_left, lower_elementwise, elementwise_supports},
    {&ops::shift_right, lower_elementwise, elementwise_supports},
    {&ops::sigmoid, lower_elementwise, elementwise_supports},
    {&ops::sign, lower_elementwise, elementwise_supports},
    {&ops::silu, lower_elementwise, elementwise_supports},
    {&ops::sin, lower_elementwise, elementwise_supports},
    {&ops::sinh, lower_elementwise, elementwise_supports},
    {&ops::softmax, lower_softmax},
    {&ops::sqrt, lower_elementwise, elementwise_supports},
    {&ops::sub, lower_elementwise, elementwise_supports},
    {&ops::tan, lower_elementwise, elementwise_supports},
    {&ops::tanh, lower_elementwise, elementwise_supports},
    {&ops::where, lower_elementwise, elementwise_supports},
};
// clang-format on

std::span<const LoweringRow> lowering_table() { return kTable; }

}  // namespace rlx::webgpu
