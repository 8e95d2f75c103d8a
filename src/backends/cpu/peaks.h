// What this machine can do at best, measured: the floor that benchmarks are held against.
#pragma once

#include "core/thread_pool.h"

namespace rlx::cpu {

struct Peaks {
  double gflops = 0;    // f32 multiply-adds in registers, all threads
  double copy_gbs = 0;  // memcpy of buffers far larger than the caches, bytes read + written
  double read_gbs = 0;  // reading such a buffer
  const char* target;   // the SIMD target that was chosen
};
Peaks measure_peaks(ThreadPool& pool);

}  // namespace rlx::cpu
