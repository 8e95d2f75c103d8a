// Quantised matmuls on the cpu backend: matrix-vector in GB/s of packed bytes beside a pure read loop over as much
// memory as never fits a cache, timed in turns in the same process, and GFLOP/s at M = 512. Best of several runs: the
// machine may be busy with other things.
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rlx/rlx.h"

using namespace rlx;

namespace {

// With one thread its own CPU time is taken, which others on the machine disturb less.
bool one_thread = false;

double seconds() {
  if (!one_thread) return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
double best_of(int runs, F&& f) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const double start = seconds();
    f();
    best = std::min(best, seconds() - start);
  }
  return best;
}

// The sum of all words, with as many threads.
class ReadLoop {
 public:
  // In large pages where the system gives them, as the weights are.
  ReadLoop() {
    void* memory = nullptr;
    if (posix_memalign(&memory, 2 << 20, kBytes) != 0) fail(ErrorKind::kMemory, "No memory for the read loop.");
#ifdef __linux__
    madvise(memory, kBytes, MADV_HUGEPAGE);
#endif
    std::memset(memory, 3, kBytes);
    words_ = {static_cast<uint64_t*>(memory), kBytes / 8};
  }
  ~ReadLoop() { std::free(words_.data()); }
  ReadLoop(const ReadLoop&) = delete;
  double gb_per_s() {
    const double t = best_of(1, [&] {
      if (one_thread) return add(0, words_.size());
      std::thread other([&] { add(0, words_.size() / 2); });
      add(words_.size() / 2, words_.size());
      other.join();
    });
    return static_cast<double>(kBytes) / t * 1e-9;
  }

 private:
  static constexpr size_t kBytes = size_t{384} << 20;
  void add(size_t begin, size_t end) {
    const uint64_t* w = words_.data();
    uint64_t a = 0, b = 0, c = 0, d = 0;  // four sums, which even plain code keeps in registers
    for (size_t i = begin; i < end; i += 8) {
      a += w[i] + w[i + 1];
      b += w[i + 2] + w[i + 3];
      c += w[i + 4] + w[i + 5];
      d += w[i + 6] + w[i + 7];
    }
    sink_ += a + b + c + d;
  }
  std::span<uint64_t> words_;
  std::atomic<uint64_t> sink_ = 0;
};

uint64_t state = 88172645463325252u;
uint64_t next() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// Random bytes with an exponent bit cleared everywhere, so that no scale is infinite.
Tensor random_bytes(std::vector<int64_t> sizes) {
  Tensor t(DType::U8, std::move(sizes));
  for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(next() & 0xBF);
  return t;
}
Tensor random_floats(std::vector<int64_t> sizes) {
  Tensor t(DType::F32, std::move(sizes));
  for (float& v : t.mutable_values<float>()) v = static_cast<float>(next() >> 40) * 0x1p-23f - 1;
  return t;
}

struct Model {
  Executable exe;
  NamedTensors inputs;
  std::string kernel;
  double bytes = 0;
};

// Several copies of a weight smaller than the caches, so that each run reads it from memory.
Model make(Scheme scheme, int64_t m, int64_t k, int64_t n, bool is_static) {
  double one = static_cast<double>(weight_bytes(scheme, k, n));
  const int copies = m > 8 ? 1 : std::max(1, static_cast<int>(256e6 / one));
  Graph g("quant");
  const Value x = g.input("x", {{m, k}, DType::F32});
  std::vector<std::pair<std::string, Tensor>> values;
  const auto leaf = [&](const std::string& name, Tensor t) {
    const Value v = is_static ? g.param(name, t.type()) : g.input(name, t.type());
    values.emplace_back(name, std::move(t));
    return v;
  };
  const int64_t block = 32;
  for (int c = 0; c < copies; ++c) {
    const std::string id = std::to_string(c);
    if (is_gguf(scheme)) {
      const Value w = leaf("w" + id, random_bytes({weight_bytes(scheme, k, n)}));
      g.output(ops::dequant_matmul({x, w}, {.scheme = scheme}), "y" + id);
      continue;
    }
    const bool eight = info(scheme).code_bits == 8, fp4 = scheme == Scheme::kNvfp4;
    const bool fp8 = scheme == Scheme::kFp8E4m3 || scheme == Scheme::kFp8E5m2;
    const Value w = leaf("w" + id, eight ? random_bytes({k, n}) : random_bytes({weight_bytes(scheme, k, n)}));
    const Value s = leaf("s" + id, fp4   ? random_bytes({k / 16, n})
                                   : fp8 ? random_floats({n})
                                         : random_floats({k / block, n}));
    const Value z = leaf("z" + id, fp4 ? random_floats({1}) : random_floats({k / block, n}));
    // Scales and zero points are read too; those of a GGUF scheme are among its bytes.
    const double scales = static_cast<double>(fp8 ? n : k / block * n) * sizeof(float);
    if (c == 0) one += fp4 ? static_cast<double>(k / 16 * n) : has_zero_point(scheme) ? 2 * scales : scales;
    g.output(ops::dequant_matmul({x, w, s, z}, {.scheme = scheme, .block = block}), "y" + id);
  }
  Model model{compile(g, {.device = "cpu", .threads = one_thread ? 1 : 2}), {}, "", one * copies};
  for (auto& [name, t] : values)
    if (is_static)
      model.exe.set_param(name, t);
    else
      model.inputs.emplace(name, t);
  model.inputs.emplace("x", random_floats({m, k}));
  model.kernel = model.exe.plan().steps.at(0).kernel;
  model.exe.run(model.inputs);
  return model;
}

void vector_rows(ReadLoop& read, Scheme scheme, int64_t k, int64_t n, bool is_static) {
  Model model = make(scheme, 1, k, n, is_static);
  double rate = 0, bandwidth = 0;
  for (int i = 0; i < 12; ++i) {
    const double t = best_of(1, [&] { model.exe.run(model.inputs); });
    rate = std::max(rate, model.bytes / t * 1e-9);
    bandwidth = std::max(bandwidth, read.gb_per_s());
  }
  std::printf("%-11s %6lld x %-5lld  %-14s M=1    %6.1f GB/s of packed bytes, read loop %6.1f GB/s, ratio %.2f\n",
              str(scheme).c_str(), static_cast<long long>(n), static_cast<long long>(k), model.kernel.c_str(), rate,
              bandwidth, rate / bandwidth);
  std::fflush(stdout);
}

void many_rows(Scheme scheme, int64_t m, int64_t k, int64_t n, bool is_static) {
  Model model = make(scheme, m, k, n, is_static);
  const double t = best_of(3, [&] { model.exe.run(model.inputs); });
  std::printf("%-11s %6lld x %-5lld  %-14s M=%-4lld %6.1f GFLOP/s\n", str(scheme).c_str(), static_cast<long long>(n),
              static_cast<long long>(k), model.kernel.c_str(), static_cast<long long>(m),
              2e-9 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) / t);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bool is_static = true, quick = false;
    for (int i = 1; i < argc; ++i) {
      const std::string_view option = argv[i];
      if (option == "--quick") {
        quick = true;
      } else if (option == "--raw") {
        is_static = false;
      } else if (option == "--one-thread") {
        one_thread = true;
      } else {
        std::printf(
            "usage: quant_bench [--quick] [--raw] [--one-thread]\n  --quick: Q4_0 and Q4_K only\n"
            "  --raw: weights not packed\n  --one-thread: one instead of two, and its CPU time\n");
        return option == "--help" ? 0 : 2;
      }
    }
    ReadLoop read;
    for (const Scheme scheme : {Scheme::kGgufQ4_0, Scheme::kGgufQ4K})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{4096, 4096}, {11008, 4096}, {32000, 4096}})
        vector_rows(read, scheme, k, n, is_static);
    if (quick) {
      many_rows(Scheme::kGgufQ4_0, 512, 4096, 4096, is_static);
      return 0;
    }
    for (size_t i = 0; i < names_of(Scheme::kInt8).size(); ++i) {
      vector_rows(read, static_cast<Scheme>(i), 4096, 4096, is_static);
      many_rows(static_cast<Scheme>(i), 512, 4096, 4096, is_static);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "quant_bench: %s\n", e.what());
    return 1;
  }
}
