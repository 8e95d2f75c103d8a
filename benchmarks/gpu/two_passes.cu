// What an NVIDIA GPU takes at the least to read 256 MiB twice and write them once, as a softmax or norm of rows does that no
// workgroup holds: the first pass only adds up, the second multiplies by a constant. It goes through the tensor forwards or
// backwards, where the first has left its last bytes in the cache. Beside it: a copy.
//   nvcc -O3 -std=c++17 -arch=sm_90 benchmarks/gpu/two_passes.cu -o two_passes && ./two_passes
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

void check(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "two_passes: %s\n", cudaGetErrorString(e));
  std::exit(1);
}

constexpr size_t kBytes = size_t{256} << 20, kLoads = kBytes / sizeof(float4);
constexpr int kThreads = 256;

template <int kEach>
__global__ void sum(const float4* x, float* out) {
  constexpr size_t kBlock = kThreads * kEach;
  float total = 0;
  for (size_t b = blockIdx.x; b < kLoads / kBlock; b += gridDim.x) {
    float4 v[kEach];
    for (int i = 0; i < kEach; ++i) v[i] = x[b * kBlock + i * kThreads + threadIdx.x];
    for (int i = 0; i < kEach; ++i) total += v[i].x + v[i].y + v[i].z + v[i].w;
  }
  if (total == 12345.0f) *out = total;
}

template <int kEach>
__global__ void scale(const float4* x, float4* y, bool backwards) {
  constexpr size_t kBlock = kThreads * kEach;
  const size_t b = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  float4 v[kEach];
  for (int i = 0; i < kEach; ++i) v[i] = x[b * kBlock + i * kThreads + threadIdx.x];
  for (int i = 0; i < kEach; ++i) {
    v[i].x *= 1.0001f;
    y[b * kBlock + i * kThreads + threadIdx.x] = v[i];
  }
}

// Microseconds of one call: the median of twelve times ten.
template <class F>
float timed(F call) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int turn = 0; turn < 12; ++turn) {
    check(cudaEventRecord(begin));
    for (int i = 0; i < 10; ++i) call();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    check(cudaEventElapsedTime(&times.emplace_back(), begin, end));
  }
  std::nth_element(times.begin(), times.begin() + 6, times.end());
  return times[6] * 100;
}

int main() {
  float4 *x = nullptr, *y = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&x, kBytes));
  check(cudaMalloc(&y, kBytes));
  check(cudaMalloc(&out, sizeof(float)));
  check(cudaMemset(x, 0, kBytes));
  constexpr int kGroups = kLoads / (kThreads * 4);
  const auto copy = [&] { scale<4><<<kGroups, kThreads>>>(x, y, false); };
  for (int i = 0; i < 200; ++i) copy();  // the GPU's clock rises
  const float copied = timed(copy);
  std::printf("copy                                              %6.1f us\n", copied);
  for (const int groups : {264, 528, 1056, 8192}) {
    const auto first = [&] { sum<8><<<groups, kThreads>>>(x, out); };
    std::printf("first pass alone, %4d groups                     %6.1f us\n", groups, timed(first));
    for (const bool backwards : {false, true})
      for (float4* const to : {x, y}) {
        const float us = timed([&] {
          first();
          scale<4><<<kGroups, kThreads>>>(x, to, backwards);
        });
        std::printf("both, %4d groups, second %-9s %-14s %6.1f us, %3.0f%% of the copy\n", groups,
                    backwards ? "backwards" : "forwards", to == x ? "in place" : "out of place", us, 100 * copied / us);
      }
  }
  check(cudaDeviceSynchronize());
  return 0;
}
