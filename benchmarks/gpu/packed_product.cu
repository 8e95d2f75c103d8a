// What a product of one row with Q4_K weights can take on an NVIDIA GPU: the structure of dequant_gemv_one.wgsl in CUDA, whose
// compiler keeps loads where they are written, and the reading of W alone. Weights and digits of x are any bytes: results mean
// nothing. Beside it, how many lanes finish an instruction per nanosecond and multiprocessor.
//   nvcc -O3 -std=c++17 -arch=sm_90 benchmarks/gpu/packed_product.cu -o packed_product && ./packed_product
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

void check(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "packed_product: %s\n", cudaGetErrorString(e));
  std::exit(1);
}

enum Instruction { kDot, kFma };
template <Instruction I>
__global__ void throughput(int* out, int a, float f) {
  int v[8];
  float u[8];
  for (int i = 0; i < 8; ++i) v[i] = threadIdx.x + i, u[i] = threadIdx.x + i;
  for (int turn = 0; turn < 4096; ++turn)
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (I == kDot)
        v[i] = __dp4a(v[i], a, v[i]);
      else
        u[i] = fmaf(u[i], f, f);
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += v[i] + static_cast<int>(u[i]);
  if (sum == 123456789) *out = sum;
}

// What a lane has of x: 32 elements as words of three digits, their unit, sums of both halves.
struct Digits {
  uint4 high0, high1, middle0, middle1, low0, low1;
  float unit, sum0, sum1;
};
__device__ int dot16(uint4 c, uint4 d) {
  int sum = __dp4a(static_cast<int>(c.x), static_cast<int>(d.x), 0);
  sum = __dp4a(static_cast<int>(c.y), static_cast<int>(d.y), sum);
  sum = __dp4a(static_cast<int>(c.z), static_cast<int>(d.z), sum);
  return __dp4a(static_cast<int>(c.w), static_cast<int>(d.w), sum);
}
__device__ uint4 nibbles(uint4 q, int shift) {
  constexpr uint32_t kMask = 0x0f0f0f0f;
  return make_uint4((q.x >> shift) & kMask, (q.y >> shift) & kMask, (q.z >> shift) & kMask, (q.w >> shift) & kMask);
}
__device__ float part(uint4 head, uint4 q, const Digits& x, int pair) {
  const float2 d = __half22float2(*reinterpret_cast<const __half2*>(&head.x));
  const int shift = (pair & 1) * 16;
  const uint32_t own_s = head.y >> shift, own_m = head.z >> shift, last = head.w >> shift, upper = head.w >> (shift + 4);
  const uint32_t s = pair < 2 ? own_s & 0x3f3f : (last & 0x0f0f) | ((own_s >> 2) & 0x3030);
  const uint32_t m = pair < 2 ? own_m & 0x3f3f : (upper & 0x0f0f) | ((own_m >> 2) & 0x3030);
  const int first = s & 0xff, second = s >> 8;
  const uint4 a = nibbles(q, 0), b = nibbles(q, 4);
  const int high = first * dot16(a, x.high0) + second * dot16(b, x.high1);
  const int middle = first * dot16(a, x.middle0) + second * dot16(b, x.middle1);
  const int low = first * dot16(a, x.low0) + second * dot16(b, x.low1);
  const float n = fmaf(static_cast<float>(high), 32768.f, static_cast<float>((middle << 8) + low));
  return d.x * (x.unit * n) - d.y * (static_cast<float>(m & 0xff) * x.sum0 + static_cast<float>(m >> 8) * x.sum1);
}

constexpr int kRows = 8, kTeams = 4, kUnderWay = 4;
template <bool ReadOnly>
__global__ void __launch_bounds__(kTeams * 32) product(const uint4* __restrict__ w, const uint4* __restrict__ digits, float* y, int k) {
  const int lane = threadIdx.x & 31, team = threadIdx.x >> 5, first = blockIdx.x * kRows, row_quads = k / 256 * 9;
  float sums[kRows] = {};
  for (int chunk = team; chunk * 1024 < k; chunk += kTeams) {
    const uint4* blocks = w + static_cast<size_t>(chunk) * 36 + (lane >> 3) * 9;
    uint4 head[kUnderWay], q[kUnderWay];
    const auto fetch = [&](int r) {
      const uint4* at = blocks + static_cast<size_t>(first + r) * row_quads;
      head[r % kUnderWay] = __ldg(at);
      q[r % kUnderWay] = __ldg(at + 1 + (lane & 7));
    };
#pragma unroll
    for (int r = 0; r < kUnderWay; ++r) fetch(r);
    const uint4* d = digits + chunk * 224 + lane;
    const uint4 rest = d[192];
    const Digits x = {d[0], d[32], d[64], d[96], d[128], d[160], __uint_as_float(rest.x), __uint_as_float(rest.y),
                      __uint_as_float(rest.z)};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint4 h = head[r % kUnderWay], c = q[r % kUnderWay];
      if (r + kUnderWay < kRows) fetch(r + kUnderWay);
      if (ReadOnly)
        sums[r] += __uint_as_float((h.x ^ h.y ^ h.z ^ h.w ^ c.x ^ c.y ^ c.z ^ c.w) & 0x3fffffff);
      else
        sums[r] += part(h, c, x, (lane >> 1) & 3);
    }
  }
  __shared__ float cells[kRows][kTeams];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    for (int o = 16; o > 0; o /= 2) sums[r] += __shfl_xor_sync(~0u, sums[r], o);
    if (lane == 0) cells[r][team] = sums[r];
  }
  __syncthreads();
  if (threadIdx.x >= kRows) return;
  float sum = 0;
  for (int t = 0; t < kTeams; ++t) sum += cells[threadIdx.x][t];
  y[first + threadIdx.x] = sum;
}

template <class F>
double best_us(int launches, const F& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float best = 1e9f;
  for (int turn = 0; turn < 5; ++turn) {
    check(cudaEventRecord(begin));
    for (int i = 0; i < launches; ++i) launch(i);
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end));
    best = std::min(best, ms);
  }
  check(cudaGetLastError());
  return 1e3 * best / launches;
}

int main() {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  const int groups = device.multiProcessorCount * 8;
  float* y;
  check(cudaMalloc(&y, 1 << 20));
  const double lanes = 8.0 * 256 * 4096 * 8 / 1e3;  // per multiprocessor and launch, in thousands
  std::printf("lanes per ns and multiprocessor: dp4a %.0f, fma %.0f\n",
              lanes / best_us(1, [&](int) { throughput<kDot><<<groups, 256>>>(reinterpret_cast<int*>(y), 0x01020304, 1.f); }),
              lanes / best_us(1, [&](int) { throughput<kFma><<<groups, 256>>>(reinterpret_cast<int*>(y), 3, 0.99f); }));
  constexpr size_t kBytes = 640 << 20;  // weights that follow each other are other bytes, more than a cache holds
  uint4 *w, *digits;
  check(cudaMalloc(&w, kBytes));
  check(cudaMalloc(&digits, 1 << 20));
  check(cudaMemset(digits, 0x12, 1 << 20));
  std::vector<uint32_t> words(1 << 22);
  uint32_t seed = 1;
  for (uint32_t& word : words) word = (seed = seed * 747796405u + 2891336453u) ^ (seed >> 13);
  for (size_t at = 0; at < kBytes; at += words.size() * 4)
    check(cudaMemcpy(reinterpret_cast<char*>(w) + at, words.data(), words.size() * 4, cudaMemcpyHostToDevice));
  for (const int n : {4096, 8192, 16384}) {
    const size_t bytes = static_cast<size_t>(n) * n / 256 * 144, copies = std::min<size_t>(8, kBytes / bytes);
    const auto weight = [&](int i) { return w + i % copies * bytes / 16; };
    const double us = best_us(40, [&](int i) { product<false><<<n / kRows, kTeams * 32>>>(weight(i), digits, y, n); });
    const double read = best_us(40, [&](int i) { product<true><<<n / kRows, kTeams * 32>>>(weight(i), digits, y, n); });
    std::printf("q4_k 1 x %d x %d: %.1f us, %.0f GB/s; reading W alone %.1f us\n", n, n, us, bytes / us / 1e3, read);
  }
}
