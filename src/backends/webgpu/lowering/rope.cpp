#include "rlx/ops/rope.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/axial_rope2d.h"
#include "wgsl/rope.h"

namespace rlx::webgpu {

namespace {

void rotate(LowerCall& call, float sign) {
  namespace k = wgsl::rope;
  const auto& attrs = call.attrs<ops::RopeAttrs>();
  const TensorType &x = call.input_type(0), &table = call.input_type(1);
  const int64_t axis = attrs.layout == ops::AttentionLayout::kBshd ? 1 : x.rank() - 2;
  const auto [outer, seq, inner] = split_at(x.shape, axis);
  const int64_t batch = axis == 0 ? 1 : x.dim(0).value(), n_rot = attrs.n_rot.value_or(attrs.head_dim);
  const int64_t half = n_rot / 2, units = attrs.head_dim - half, heads = inner / attrs.head_dim;
  const bool positions = call.num_inputs() == 4, tables = table.rank() == 3;
  const int64_t n = outer * seq * heads * units;
  to_u32(x.shape.num_elements());
  to_u32(table.shape.num_elements());
  // The extent cuts the threads if nothing lies before its axis.
  const int64_t bucket = call.bucket_axis(0);
  bool outermost = bucket >= 0;
  for (int64_t i = 0; i < bucket; ++i) outermost &= x.dim(i).is(1);
  // The batch of tables and positions must be x's: one of their own would be broadcast at one row, and not at two.
  bool follows = true;
  for (int64_t i = 1; i < call.num_inputs(); ++i)
    if (call.bucket_axis(i) == 0 && call.input_type(i).rank() == (i == 3 ? 2 : 3)) follows &= bucket == 0 && axis > 0;
  const uint32_t unused[] = {0};
  const Operand in = call.read(0), cosines = call.read(1), sines = call.read(2), out = call.write(0);
  if (positions)
    check_indices(call, 3, IndexRange{0, table.dim(0).value()}, [](int64_t value, int64_t, int64_t end) {
      return str("Position (", value, ") is outside the table's rows (", end, ").");
    });
  const Operand rows = positions ? call.read(3) : call.table(unused);
  const bool own_positions = positions && call.input_type(3).rank() == 2 && call.input_type(3).dim(0).value() > 1;
  const k::Params params{.n = to_u32(n),
                         .units = to_u32(units),
                         .heads = to_u32(heads),
                         .head_dim = to_u32(attrs.head_dim),
                         .half_rot = to_u32(half),
                         .seq = to_u32(seq),
                         .outer_per_batch = to_u32(std::max<int64_t>(outer / std::max<int64_t>(batch, 1), 1)),
                         .table_rows = to_u32(table.dim(tables ? 1 : 0).value()),
                         .table_batch = to_u32(tables && table.dim(0).value() > 1 ? seq : 0),
                         .position_batch = to_u32(own_positions ? seq : 0),
                         .sign = sign};
  call.emit({.kernel = {"rope",
                        {{"T", std::string(call.element(out))},
                         {"TC", std::string(call.element(cosines))},
                         {"TS", std::string(call.element(sines))},
                         {"I", std::string(call.element(rows))}},
                        {{"NEOX", attrs.style == ops::RopeStyle::kNeox}, {"POSITIONS", positions}}},
             .operands = {in, cosines, sines, rows, out},
             .params = outermost ? Params(params, {&k::Params::n}) : Params(params),
             .grid = {.x = {.items = n, .per_group = 128, .active = outermost}},
             .extent_safe = follows,  // what is not cut short only does too much
             .own_bound = true});
}

}  // namespace

void lower_rope(LowerCall& call) { rotate(call, 1); }
void lower_rope_backward(LowerCall& call) { rotate(call, -1); }

// A table of no rows or no columns has no bytes to bind.
bool rope_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  if (s.attrs.as<ops::RopeAttrs>().head_dim < 2) return false;
  const TensorType& table = s.input(1);
  for (int64_t i = 0; i < table.rank(); ++i)
    if (table.dim(i).is(0)) return false;
  return !is_complex(s.input(0).dtype);
}

void lower_axial_rope2d(LowerCall& call) {
  namespace k = wgsl::axial_rope2d;
  const auto& attrs = call.attrs<ops::AxialRope2dAttrs>();
  const TensorType& x = call.input_type(0);
  const int64_t quarter = attrs.head_dim / 4;
  // Angles in double, once: a thread would lose digits in theta^e.
  std::vector<uint32_t> angles;
  for (int64_t at = 0; at < std::max(attrs.end_x, attrs.end_y); ++at)
    for (int64_t c = 0; c < quarter; ++c) {
      const double exponent = -4.0 * static_cast<double>(c) / static_cast<double>(attrs.head_dim);
      const double angle = static_cast<double>(at) * std::pow(static_cast<double>(attrs.theta), exponent);
      angles.push_back(std::bit_cast<uint32_t>(static_cast<float>(std::cos(angle))));
      angles.push_back(std::bit_cast<uint32_t>(static_cast<float>(std::sin(angle))));
    }
  const bool tiled = attrs.repeat == ops::AxialRepeat::kTile;
  const int64_t n = x.shape.num_elements() / 2;
  to_u32(2 * n);
  const Operand in = call.read(0), out = call.write(0);
  call.emit({.kernel = {"axial_rope2d", {{"T", std::string(call.element(out))}}},
             .operands = {in, call.table(angles), out},
             .params = {k::Params{.n = to_u32(n),
                                  .pairs = to_u32(attrs.head_dim / 2),
                                  .heads = to_u32(attrs.num_heads),
                                  .seq = to_u32(x.dim(1).value()),
                                  .end_x = to_u32(attrs.end_x),
                                  .tile = to_u32(tiled ? attrs.end_x * attrs.end_y : x.dim(1).value()),
                                  .repeat = to_u32(tiled ? 1 : std::max<int64_t>(attrs.repeat_factor, 1))},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 128, .active = true}},
             .extent_safe = true});
}

}  // namespace rlx::webgpu
