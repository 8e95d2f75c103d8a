// A chain of element-wise steps as one op (spec 10, 4.3).
//
// A chain is typed like the graph it stands for: every step has the type that its op infers from the types of its
// operands, a comparison is Bool (1 / 0), a cast has the dtype it names, and the region's result is the last step. So
// both sides of an add have one dtype, and a comparison that enters arithmetic is cast first.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// What happens to one input before the chain reads it.
enum class RegionPrologue : int32_t { kNone, kResizeNearest2x };
constexpr auto names_of(RegionPrologue) { return std::array<std::string_view, 2>{"none", "resize_nearest_2x"}; }

struct ElementwiseRegionAttrs {
  Chain chain;
  int64_t num_inputs = 1;
  RegionPrologue prologue = RegionPrologue::kNone;
  int64_t prologue_input = 0;
  static constexpr auto fields = std::tuple{field("chain", &ElementwiseRegionAttrs::chain),
                                            field("num_inputs", &ElementwiseRegionAttrs::num_inputs),
                                            field("prologue", &ElementwiseRegionAttrs::prologue),
                                            field("prologue_input", &ElementwiseRegionAttrs::prologue_input)};
};
extern const Op<ElementwiseRegionAttrs> elementwise_region;

// The chain on each of several slices [1, ...], the results side by side along axis 0.
struct BatchElementwiseRegionAttrs {
  Chain chain;  // input 0 is the slice
  int64_t num_batch_inputs = 1;
  RegionPrologue prologue = RegionPrologue::kNone;
  int64_t prologue_input = 0;
  static constexpr auto fields = std::tuple{field("chain", &BatchElementwiseRegionAttrs::chain),
                                            field("num_batch_inputs", &BatchElementwiseRegionAttrs::num_batch_inputs),
                                            field("prologue", &BatchElementwiseRegionAttrs::prologue),
                                            field("prologue_input", &BatchElementwiseRegionAttrs::prologue_input)};
};
extern const Op<BatchElementwiseRegionAttrs> batch_elementwise_region;

}  // namespace rlx::ops
