// Interpolation: the places and weights of every axis are computed here, as the oracle does, and uploaded once.
#include "rlx/ops/resize.h"

#include <array>
#include <bit>

#include "backends/host/resize_axis.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "core/convert.h"
#include "wgsl/resize_axis.h"
#include "wgsl/resize_nearest.h"

namespace rlx::webgpu {

namespace {

constexpr uint32_t kBeyond = 0xffffffffu;

std::vector<host::ResizeAxis> axes_of(const LowerCall& call) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), y = call.output_type(0).shape.sizes();
  std::vector<host::ResizeAxis> axes;
  for (size_t a = 0; a < x.size(); ++a)
    axes.emplace_back(call.attrs<ops::ResizeAttrs>(), call.input_type(0).rank(), static_cast<int64_t>(a), x[a], y[a]);
  return axes;
}

// The extrapolation value as the words of one stored element.
std::vector<uint32_t> stored(Storage storage, DType dtype, float value) {
  std::vector<uint32_t> words(2, 0);
  if (storage == Storage::kI32 || storage == Storage::kU32) {
    const double wide = static_cast<double>(value);
    int64_t element = 0;  // of the declared dtype, little endian
    const DType stored_as = storage == Storage::kI32 ? DType::I32 : DType::U32;
    convert_elements(DType::F64, reinterpret_cast<const std::byte*>(&wide), dtype,
                     reinterpret_cast<std::byte*>(&element), 1);
    convert_elements(dtype, reinterpret_cast<const std::byte*>(&element), stored_as,
                     reinterpret_cast<std::byte*>(words.data()), 1);
  } else {
    const DType to = storage == Storage::kF16 ? DType::F16 : DType::F32;
    convert_elements(DType::F32, reinterpret_cast<const std::byte*>(&value), to,
                     reinterpret_cast<std::byte*>(words.data()), 1);
  }
  return words;
}

void emit_nearest(LowerCall& call, const std::vector<host::ResizeAxis>& axes) {
  namespace k = wgsl::resize_nearest;
  const Operand x = call.read(0), y = call.write(0);
  const Unit unit = widest_unit(call, std::array{x, y}, std::array{int64_t{1}});
  const std::vector<int64_t> strides = row_major_strides(call.input_type(0).shape.sizes());
  std::vector<uint32_t> table(3 * axes.size()), places;
  for (size_t a = axes.size(); a-- > 0;) {
    uint32_t* head = &table[3 * (axes.size() - 1 - a)];
    head[0] = to_u32(axes[a].out());
    head[1] = to_u32(strides[a]);
    head[2] = to_u32(static_cast<int64_t>(3 * axes.size() + places.size()));
    for (int64_t j = 0; j < axes[a].out(); ++j) {
      int64_t place = j;
      double weight = 1;
      const bool inside = axes[a].is_identity() || axes[a].at(j, &place, &weight);
      places.push_back(inside ? to_u32(place) : kBeyond);
    }
  }
  table.insert(table.end(), places.begin(), places.end());
  if (table.empty()) table.push_back(0);  // a table is not empty
  const Operand beyond = call.table(
      stored(call.storage(y), call.output_type(0).dtype, call.attrs<ops::ResizeAttrs>().extrapolation_value));
  const int64_t n = call.output_type(0).shape.num_elements();
  call.emit({.kernel = {"resize_nearest", {{"T", unit.type}}},
             .operands = {x, call.table(table), beyond, y},
             .params = {k::Params{.n = to_u32(n), .rank = to_u32(static_cast<int64_t>(axes.size()))}, {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = axes.empty() || axes[0].is_identity()});
}

// Axis after axis; sums between them stay f32.
void emit_axes(LowerCall& call, const std::vector<host::ResizeAxis>& axes) {
  namespace k = wgsl::resize_axis;
  std::vector<int64_t> sizes = call.input_type(0).shape.sizes();
  std::vector<size_t> moving;
  for (size_t a = 0; a < axes.size(); ++a)
    if (!axes[a].is_identity()) moving.push_back(a);
  Operand from = call.read(0);
  for (size_t m = 0; m < moving.size(); ++m) {
    const host::ResizeAxis& axis = axes[moving[m]];
    const auto taps = static_cast<size_t>(axis.taps());
    const auto out = static_cast<size_t>(axis.out());
    std::vector<uint32_t> table(2 * taps * out);
    std::vector<int64_t> place(taps);
    std::vector<double> weight(taps);
    for (size_t j = 0; j < out; ++j) {
      const bool inside = axis.at(static_cast<int64_t>(j), place.data(), weight.data());
      for (size_t t = 0; t < taps; ++t) {
        table[j * taps + t] = inside ? to_u32(place[t]) : kBeyond;
        table[(out + j) * taps + t] = std::bit_cast<uint32_t>(static_cast<float>(weight[t]));
      }
    }
    sizes[moving[m]] = axis.out();
    const bool last = m + 1 == moving.size();
    const Operand to = last ? call.write(0) : call.temporary(Storage::kF32, sizes);
    const std::span<const int64_t> all(sizes);
    const int64_t n = product(all), inner = product(all.subspan(moving[m] + 1));
    call.emit(
        {.kernel = {"resize_axis", {{"T", std::string(call.element(from))}, {"U", std::string(call.element(to))}}},
         .operands = {from, call.table(table), to},
         .params = {k::Params{.n = to_u32(n),
                              .inner = to_u32(inner),
                              .in_size = to_u32(axis.in()),
                              .out_size = to_u32(axis.out()),
                              .taps = to_u32(axis.taps()),
                              .beyond = call.attrs<ops::ResizeAttrs>().extrapolation_value},
                    {&k::Params::n}},
         .grid = {.x = {.items = n, .per_group = 256, .active = true}},
         .extent_safe = moving[0] > 0});
    from = LowerCall::reading(to);
  }
}

}  // namespace

// Integers are rounded to the nearest, which sums in f32 cannot tell near the middle of two: left to the host.
bool resize_supports(const LowerSignature& s, const Device&) {
  return s.attrs.as<ops::ResizeAttrs>().mode == ops::ResizeMode::kNearest || is_float(s.input(0).dtype);
}

void lower_resize(LowerCall& call) {
  const std::vector<host::ResizeAxis> axes = axes_of(call);
  bool stays = true;
  for (const host::ResizeAxis& axis : axes) stays = stays && axis.is_identity();
  if (stays || call.attrs<ops::ResizeAttrs>().mode == ops::ResizeMode::kNearest)
    emit_nearest(call, axes);
  else
    emit_axes(call, axes);
}

}  // namespace rlx::webgpu
