// Data movement on tensors of 64 MiB: operand + result bytes per second, beside a memcpy of 64 MiB by as many threads,
// measured in turns. usage: movement_bench [THREADS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "rlx/rlx.h"

using namespace rlx;

namespace {

constexpr int64_t kBytes = 64 << 20;

// Of one thread the time it ran, so that a busy machine does not matter much; of several the time that passed.
bool one_thread = false;
double now() {
  timespec t;
  clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
double seconds(F&& run) {
  const double start = now();
  run();
  return now() - start;
}

// One part per thread, threads started beforehand would not change it: a copy takes milliseconds.
class Copy {
 public:
  explicit Copy(int threads) : threads_(threads), from_(kBytes, 1), to_(kBytes, 2) {}
  void operator()() {
    std::vector<std::thread> running;
    const size_t part = kBytes / static_cast<size_t>(threads_);
    for (int t = 1; t < threads_; ++t)
      running.emplace_back([this, part, t] { copy(static_cast<size_t>(t) * part, part); });
    copy(0, part);
    for (std::thread& t : running) t.join();
  }

 private:
  void copy(size_t first, size_t n) { std::memcpy(to_.data() + first, from_.data() + first, n); }
  int threads_;
  std::vector<char> from_, to_;
};

int64_t bytes_of(const Tensor& t) { return static_cast<int64_t>(t.bytes().size()); }

void report(const char* name, Copy& copy, int threads, const std::vector<Tensor>& inputs,
            const std::function<Value(const std::vector<Value>&)>& op, int64_t bytes_read = -1) {
  Graph g("movement");
  std::vector<Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.input(str("x", i), inputs[i].type()));
  g.output(op(values), "y");
  Executable exe = compile(g, {.device = "cpu", .threads = threads});
  int64_t bytes = bytes_of(exe.run_slots(inputs)[0]);
  if (bytes_read >= 0)
    bytes += bytes_read;
  else
    for (const Tensor& t : inputs) bytes += bytes_of(t);
  double best = 1e9, best_copy = 1e9;
  for (int i = 0; i < 25; ++i) {
    best = std::min(best, seconds([&] { exe.run_slots(inputs); }));
    best_copy = std::min(best_copy, seconds(copy));
  }
  const double rate = static_cast<double>(bytes) / best * 1e-9, copy_rate = 2.0 * kBytes / best_copy * 1e-9;
  std::printf("%-34s %8.2f ms  %6.1f GB/s  memcpy %6.1f GB/s  %5.1f %%\n", name, best * 1e3, rate, copy_rate,
              rate / copy_rate * 100);
}

Tensor filled(std::vector<int64_t> sizes, DType dtype = DType::F32) {
  Tensor t(dtype, std::move(sizes));
  std::memset(t.mutable_bytes().data(), 1, t.bytes().size());  // pages of its own
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    one_thread = threads == 1;
    Copy copy(threads);
    const auto row = [&](const char* name, const std::vector<Tensor>& in,
                         const std::function<Value(const std::vector<Value>&)>& op,
                         int64_t read = -1) { report(name, copy, threads, in, op, read); };
    const auto turn = [](std::vector<int64_t> perm) {
      return [perm](const std::vector<Value>& v) { return ops::transpose(v[0], {.perm = perm}); };
    };
    row("transpose 4096x4096", {filled({4096, 4096})}, turn({1, 0}));
    row("transpose 4096x8192 f16", {filled({4096, 8192}, DType::F16)}, turn({1, 0}));
    row("transpose 8192x8192 i8", {filled({8192, 8192}, DType::I8)}, turn({1, 0}));
    row("NCHW to NHWC 16x64x128x128", {filled({16, 64, 128, 128})}, turn({0, 2, 3, 1}));
    row("NHWC to NCHW 16x128x128x64", {filled({16, 128, 128, 64})}, turn({0, 3, 1, 2}));
    row("NCHW to NHWC 16x3x590x590", {filled({16, 3, 590, 590})}, turn({0, 2, 3, 1}));
    row("heads out 8x2048x16x64", {filled({8, 2048, 16, 64})}, turn({0, 2, 1, 3}));
    row("concat on axis 0", {filled({2048, 4096}), filled({2048, 4096})},
        [](const auto& v) { return ops::concat(v[0], v[1], {.axis = 0}); });
    row("concat on the inner axis", {filled({4096, 2048}), filled({4096, 2048})},
        [](const auto& v) { return ops::concat(v[0], v[1], {.axis = 1}); });
    row(
        "narrow on the inner axis", {filled({4096, 8192})},
        [](const auto& v) { return ops::narrow(v[0], {.axis = 1, .start = 1024, .len = 4096}); }, kBytes);
    Tensor indices(DType::I32, {16384});
    for (uint32_t seed = 1; int32_t & i : indices.mutable_values<int32_t>()) {
      seed = seed * 1664525 + 1013904223;
      i = static_cast<int32_t>(seed >> 17);
    }
    row(
        "gather of rows of 4 KiB", {filled({32768, 1024}), indices},
        [](const auto& v) { return ops::gather(v[0], v[1]); }, kBytes);
    row("expand of a row", {filled({1, 4096})}, [](const auto& v) {
      return ops::expand(v[0], {.target_shape = {4096, 4096}});
    });
    row("expand of a column", {filled({4096, 1})}, [](const auto& v) {
      return ops::expand(v[0], {.target_shape = {4096, 4096}});
    });
    row("resize_nearest_2x 4x64x256x256", {filled({4, 64, 128, 256})},
        [](const auto& v) { return ops::resize_nearest_2x(v[0]); });
    row("rope 4x1024x32x128", {filled({4, 1024, 32, 128}), filled({1024, 64}), filled({1024, 64})}, [](const auto& v) {
      return ops::rope(v[0], v[1], v[2], {.head_dim = 128, .layout = ops::AttentionLayout::kBshd});
    });
    Tensor targets(DType::I32, {16384});
    for (int32_t n = 0; int32_t & i : targets.mutable_values<int32_t>()) i = n++ * 7919 % 16384;
    row("scatter_add of rows of 4 KiB", {filled({16384, 1024}), targets},
        [](const auto& v) { return ops::scatter_add(v[0], v[1], {.rows = 16384}); });
  } catch (const Error& e) {
    std::fprintf(stderr, "movement_bench: %s\n", e.what());
    return 1;
  }
}
