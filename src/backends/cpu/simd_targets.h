// Which instruction sets the SIMD kernels are compiled for; included before hwy/foreach_target.h. Each costs compile
// time: SSE machines take the portable baseline, and only integer dot products gain from AVX3_DL (VNNI).
#ifndef RLX_BACKENDS_CPU_SIMD_TARGETS_H_
#define RLX_BACKENDS_CPU_SIMD_TARGETS_H_

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#ifdef RLX_SIMD_VNNI
#define HWY_WANT_AVX3_DL
#endif

#endif
