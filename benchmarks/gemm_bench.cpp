// Our f32 matrix product against OpenBLAS and oneDNN, over shapes of real models; see docs/performance.md.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/peaks.h"
#include "core/thread_pool.h"
#include "gemm_shapes.h"
#ifdef RLX_BENCH_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
extern "C" char* openblas_get_config();
#endif
#ifdef RLX_BENCH_ONEDNN
#include <dnnl.hpp>
extern "C" void omp_set_num_threads(int);
#endif

using namespace rlx;
namespace gemm = rlx::cpu::gemm;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kThreads = 2;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Free>;
template <class T>
Buffer<T> buffer(int64_t n) {
  return Buffer<T>(static_cast<T*>(std::aligned_alloc(64, (static_cast<size_t>(n) * sizeof(T) + 127) / 64 * 64)));
}

void fill(float* x, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525 + 1013904223;
    x[i] = static_cast<float>(static_cast<int32_t>(seed)) * 4.6e-10f;
  }
}

// A way to compute the products; seconds is the best time of one call.
struct Contender {
  std::string name;
  std::function<void()> run;
  double seconds = 1e30;
};

double time_calls(const std::function<void()>& run, int calls) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) run();
  return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

// Contenders take turns, and many short measurements of which the best counts: a busy moment of the machine meets all
// of them alike. Before its turn each waits until the threads of the one before have stopped spinning (OpenBLAS and
// OpenMP look for work for some 20 ms).
void measure(std::vector<Contender>& contenders, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (Contender& c : contenders) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      c.run();  // wakes its threads, warms its caches
      const double once = time_calls(c.run, 1);
      const int calls = std::clamp(static_cast<int>(0.0005 / once), 1, 1000);
      const auto end = Clock::now() + std::chrono::milliseconds(25);
      for (int part = 0; part < 4 || Clock::now() < end; ++part)
        c.seconds = std::min(c.seconds, time_calls(c.run, calls));
    }
}

double worst_error(const GemmShape& s, const float* a, const float* b, const float* c) {
  double worst = 0, largest = 1e-30;
  for (int64_t batch = 0; batch < s.batch; batch += std::max<int64_t>(1, s.batch / 2))
    for (int64_t i = 0; i < s.m; i += std::max<int64_t>(1, s.m / 7))
      for (int64_t j = 0; j < s.n; j += std::max<int64_t>(1, s.n / 13)) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k)
          sum += static_cast<double>(a[(batch * s.m + i) * s.k + k]) *
                 (s.b_transposed ? b[(batch * s.n + j) * s.k + k] : b[(batch * s.k + k) * s.n + j]);
        largest = std::max(largest, std::fabs(sum));
        worst = std::max(worst, std::fabs(sum - c[(batch * s.m + i) * s.n + j]));
      }
  return worst / largest;
}

#ifdef RLX_BENCH_ONEDNN
struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  dnnl::memory a, b, c;

  OneDnn(const GemmShape& s, float* pa, float* pb, float* pc, bool best_layout) {
    using M = dnnl::memory;
    const auto f32 = M::data_type::f32;
    const bool batched = s.batch > 1;
    const auto dims = [&](int64_t rows, int64_t cols) {
      return batched ? M::dims{s.batch, rows, cols} : M::dims{rows, cols};
    };
    const auto rowmajor = batched ? M::format_tag::abc : M::format_tag::ab;
    const auto turned = batched ? M::format_tag::acb : M::format_tag::ba;
    const M::desc da(dims(s.m, s.k), f32, rowmajor), dc(dims(s.m, s.n), f32, rowmajor);
    const M::desc db(dims(s.k, s.n), f32, s.b_transposed ? turned : rowmajor);
    const M::desc any(dims(s.k, s.n), f32, M::format_tag::any);
    const dnnl::matmul::primitive_desc pd({da, best_layout ? any : db, dc}, engine);
    primitive = dnnl::matmul(pd);
    a = M(da, engine, pa);
    c = M(dc, engine, pc);
    const M plain(db, engine, pb);
    b = plain;
    if (best_layout && pd.weights_desc() != db) {
      b = M(pd.weights_desc(), engine);
      dnnl::reorder(plain, b).execute(stream, const_cast<M&>(plain), b);
      stream.wait();
    }
  }
  void run() {
    primitive.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};
#endif

struct Score {
  double log_sum = 0, worst = 1e30;
  std::string worst_name;
  int count = 0;
  void add(double ratio, const std::string& name) {
    log_sum += std::log(ratio);
    ++count;
    if (ratio < worst) worst = ratio, worst_name = name;
  }
  void print(const char* what) const {
    if (count > 0)
      std::printf("%-58s geometric mean %.3f over %d shapes, worst %.3f (%s)\n", what, std::exp(log_sum / count), count,
                  worst, worst_name.c_str());
  }
};

}  // namespace

// The caller on one core, everybody's worker on another: left to the scheduler, the two threads of a contender often
// share a core for a while when the machine is busy. For all contenders alike, once all have started their threads.
static void pin_threads() {
  const long caller = syscall(SYS_gettid);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const long thread = std::stol(entry.path().filename().string());
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(thread == caller ? 0 : 1, &core);
    sched_setaffinity(static_cast<pid_t>(thread), sizeof(core), &core);
  }
}

int main(int argc, char** argv) {
  int rounds = 3;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--rounds=", 9) == 0) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (argv[i][0] == '-') {
      std::printf("usage: gemm_bench [--rounds=N] [PART OF A NAME]\n");
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    } else {
      only = argv[i];
    }
  }
  ThreadPool pool(kThreads);
  // One thread at a time: on a busy machine two seldom have a core each for as long as that takes.
  ThreadPool alone(1);
  const double peak = kThreads * cpu::measure_peaks(alone).gflops;
  std::printf("%d threads; measured FMA peak %.0f GFLOP/s\npeers:", kThreads, peak);
#ifdef RLX_BENCH_OPENBLAS
  openblas_set_num_threads(kThreads);
  std::printf(" %s;", openblas_get_config());
#endif
#ifdef RLX_BENCH_ONEDNN
  omp_set_num_threads(kThreads);
  std::printf(" oneDNN %d.%d.%d", dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch);
#endif
#if !defined(RLX_BENCH_OPENBLAS) && !defined(RLX_BENCH_ONEDNN)
  std::printf(" none (libopenblas-dev and libdnnl-dev were not found)");
#endif
  std::printf("\nGFLOP/s; 'packed': B is a weight, laid out beforehand; ratios are to the best peer\n");
  std::printf("%-34s %5s %5s %5s %5s | %7s %7s | %7s %7s %7s | %6s %6s\n", "shape", "batch", "m", "n", "k", "packed",
              "plain", "OpenBL", "dnn pk", "dnn pl", "packed", "plain");

  Score packed_score, plain_score, task_score;
  double used_log = 0;
  bool right = true;
  for (const GemmShape& s : gemm_shapes()) {
    if (std::string(s.name).find(only) == std::string::npos) continue;
    const int64_t na = s.batch * s.m * s.k, nb = s.batch * s.k * s.n, nc = s.batch * s.m * s.n;
    const auto a = buffer<float>(na), b = buffer<float>(nb), c = buffer<float>(nc);
    fill(a.get(), na, 1);
    fill(b.get(), nb, 2);

    gemm::BatchDim dim = {s.batch, s.m * s.k, s.k * s.n, s.m * s.n, 0};
    gemm::Gemm g = {.m = s.m, .n = s.n, .k = s.k};
    g.a = {a.get(), DType::F32, s.k, 1};
    g.b = s.b_transposed ? gemm::Matrix{b.get(), DType::F32, 1, s.k} : gemm::Matrix{b.get(), DType::F32, s.n, 1};
    g.c = {c.get(), DType::F32, s.n, 1};
    if (s.batch > 1) g.batch = {&dim, 1};
    gemm::Gemm p = g;
    Buffer<std::byte> packed;
    if (s.batch == 1) {
      packed = buffer<std::byte>(gemm::packed_b_bytes(s.k, s.n, DType::F32));
      gemm::pack_b(g.b, s.k, s.n, packed.get(), pool);
      p.packed_b = packed.get();
    }
    const auto scratch =
        buffer<std::byte>(std::max(gemm::scratch_bytes(g, kThreads), gemm::scratch_bytes(p, kThreads)));

    std::vector<Contender> runs;
    runs.push_back({"packed", [&] { gemm::run(p, pool, scratch.get()); }});
    runs.push_back({"plain", [&] { gemm::run(g, pool, scratch.get()); }});
#ifdef RLX_BENCH_OPENBLAS
    runs.push_back({"OpenBLAS", [&] {
                      for (int64_t i = 0; i < s.batch; ++i)
                        cblas_sgemm(CblasRowMajor, CblasNoTrans, s.b_transposed ? CblasTrans : CblasNoTrans,
                                    static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), 1.0f,
                                    a.get() + i * s.m * s.k, static_cast<int>(s.k), b.get() + i * s.k * s.n,
                                    static_cast<int>(s.b_transposed ? s.k : s.n), 0.0f, c.get() + i * s.m * s.n,
                                    static_cast<int>(s.n));
                    }});
#endif
#ifdef RLX_BENCH_ONEDNN
    OneDnn best(s, a.get(), b.get(), c.get(), true), plain(s, a.get(), b.get(), c.get(), false);
    runs.push_back({"oneDNN packed", [&] { best.run(); }});
    runs.push_back({"oneDNN plain", [&] { plain.run(); }});
#endif
    for (Contender& r : runs) {
      std::fill(c.get(), c.get() + nc, NAN);
      r.run();
      const double error = worst_error(s, a.get(), b.get(), c.get());
      if (!(error < 1e-5)) {
        std::printf("%s: %s is wrong, by %g of the largest element.\n", s.name, r.name.c_str(), error);
        right = false;
      }
    }
    pin_threads();
    measure(runs, rounds);

    const double flops = 2e-9 * static_cast<double>(s.batch * s.m * s.n * s.k);
    const auto rate = [&](const char* name) {
      for (const Contender& r : runs)
        if (r.name == name) return flops / r.seconds;
      return 0.0;
    };
    const double best_plain = std::max(rate("OpenBLAS"), rate("oneDNN plain"));
    const double best_packed = std::max(best_plain, rate("oneDNN packed"));
    const double packed_ratio = rate("packed") / best_packed, plain_ratio = rate("plain") / best_plain;
    std::printf("%-34s %5ld %5ld %5ld %5ld | %7.1f %7.1f | %7.1f %7.1f %7.1f | %6.3f %6.3f\n", s.name,
                static_cast<long>(s.batch), static_cast<long>(s.m), static_cast<long>(s.n), static_cast<long>(s.k),
                rate("packed"), rate("plain"), rate("OpenBLAS"), rate("oneDNN packed"), rate("oneDNN plain"),
                packed_ratio, plain_ratio);
    std::fflush(stdout);
    if (best_plain > 0) {
      if (s.weight) packed_score.add(packed_ratio, s.name);
      plain_score.add(plain_ratio, s.name);
      task_score.add(s.weight ? packed_ratio : plain_ratio, s.name);
    }
    used_log += std::log(rate(s.weight ? "packed" : "plain") / peak);
  }
  plain_score.print("B as it is, all shapes:");
  packed_score.print("B packed beforehand, shapes whose B is a weight:");
  task_score.print("as the backend runs them (weights packed, others plain):");
  if (task_score.count > 0)
    std::printf("geometric mean of ours to the FMA peak: %.3f\n", std::exp(used_log / task_score.count));
  return right ? 0 : 1;
}
