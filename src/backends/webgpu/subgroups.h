// Whether reductions by subgroups may be used on a device (spec 40, 1): it is asked to do some.
#pragma once

#include "backends/webgpu/device.h"

namespace rlx::webgpu {

struct SubgroupProbe {
  bool passed = false;
  uint32_t min = 0, max = 0;  // sizes that were seen; adapters may not tell theirs
};
// The device was made with the feature. What the functions of reduce_subgroup.wgsl give, with workgroups of the sizes
// that kernels on rows have, is compared with plain sums: they are wrong where the threads of a subgroup do not follow
// each other.
SubgroupProbe probe_subgroups(Device& device);

}  // namespace rlx::webgpu
