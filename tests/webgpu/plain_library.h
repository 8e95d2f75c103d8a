// What a test makes the plain WebGPU library do wrong (plain_library.cpp).
#pragma once

#include "webgpu.h"

struct PlainFaults {
  uint64_t full_from_bytes = 0;  // no memory for buffers of this size and larger; 0: there is
  uint32_t bad_groups = 0;       // a dispatch of so many workgroups is an invalid one; 0: none
};

extern "C" void plain_set_faults(const PlainFaults* wanted);
