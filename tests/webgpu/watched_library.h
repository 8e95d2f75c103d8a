// What the watched WebGPU library has seen (watched_library.cpp).
#pragma once

#include "webgpu.h"

struct WatchedModules {
  int64_t checked = 0;    // shader modules made as WebGPU's standard has it
  int64_t unchecked = 0;  // by wgpu-native's own function, without any check
  int64_t other = 0;      // by that with some
};

// An operand of a bind group that lies in one of the large buffers.
struct WatchedWindow {
  int64_t group = 0;  // which bind group, in the order they were made
  const void* buffer = nullptr;
  uint64_t buffer_bytes = 0, offset = 0, bytes = 0;
};

extern "C" {
void watched_modules(WatchedModules* seen);
// The windows since the last call; at most `room` are written, the number of all is returned.
size_t watched_windows(WatchedWindow* windows, size_t room);
}
