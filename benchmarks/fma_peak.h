#pragma once

namespace rlx::bench {

// Multiply-adds of f32 per second, in GFLOP/s, that `threads` threads reach when nothing else limits them.
double fma_peak_gflops(int threads);

}  // namespace rlx::bench
