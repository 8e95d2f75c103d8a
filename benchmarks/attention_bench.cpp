// GFLOP/s of attention (4 * B * H * Sq * Sk * D; half of it for causal masks) beside the FMA peak of the machine, and
// for decode shapes GB/s of keys and values beside memcpy. usage: attention_bench [THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/peaks.h"
#include "rlx/rlx.h"

using namespace rlx;

namespace {

struct Case {
  const char* name;
  int64_t heads, kv_heads, queries, keys, width;
  DType dtype = DType::F32;
  ops::MaskKind mask = ops::MaskKind::kNone;
  ops::AttentionLayout layout = ops::AttentionLayout::kBhsd;
};

Tensor random_heads(const Case& c, int64_t heads, int64_t seq, uint32_t seed) {
  const bool bhsd = c.layout == ops::AttentionLayout::kBhsd;
  Tensor t(DType::F32,
           bhsd ? std::vector<int64_t>{1, heads, seq, c.width} : std::vector<int64_t>{1, seq, heads, c.width});
  for (float& v : t.mutable_values<float>()) {
    seed = seed * 1664525 + 1013904223;
    v = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return t.cast(c.dtype);
}

// Best of several runs, in seconds.
template <class F>
double best_of(F&& run, double budget_s = 0.5) {
  run();
  double best = 1e9, spent = 0;
  for (int i = 0; i < 5 || (spent < budget_s && i < 2000); ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, s);
    spent += s;
  }
  return best;
}

void report(const Case& c, int threads, double peak) {
  Graph g("attention");
  const Tensor q = random_heads(c, c.heads, c.queries, 1), k = random_heads(c, c.kv_heads, c.keys, 2),
               v = random_heads(c, c.kv_heads, c.keys, 3);
  std::vector<Value> operands = {g.input("q", q.type()), g.input("k", k.type()), g.input("v", v.type())};
  std::vector<Tensor> inputs = {q, k, v};
  if (ops::has_mask_operand(c.mask)) {
    Tensor mask(DType::F32, {1, c.queries, c.keys});
    for (int64_t i = 0; auto& m : mask.mutable_values<float>()) m = i++ % 7 == 0 ? 0.0f : 1.0f;
    operands.push_back(g.input("mask", mask.type()));
    inputs.push_back(mask);
  }
  const ops::AttentionAttrs attrs = {
      .num_heads = c.heads, .head_dim = c.width, .layout = c.layout, .mask_kind = c.mask};
  g.output(g.add(ops::attention, operands, Attrs(attrs)), "y");
  Executable exe = compile(g, {.device = "cpu", .threads = threads});
  const double s = best_of([&] { exe.run_slots(inputs); });
  const double pairs =
      static_cast<double>(c.queries) * static_cast<double>(c.keys) * (c.mask == ops::MaskKind::kCausal ? 0.5 : 1);
  const double flop = 4 * static_cast<double>(c.heads * c.width) * pairs;
  const double bytes = static_cast<double>(k.bytes().size() + v.bytes().size());
  std::printf("%-34s %9.3f ms  %7.1f GFLOP/s  %5.1f %% of the FMA peak", c.name, s * 1e3, flop / s * 1e-9,
              flop / s * 1e-9 / peak * 100);
  if (c.queries == 1) {
    // Reads of keys and values, against a copy of as many bytes, half read and half written.
    std::vector<char> from(static_cast<size_t>(bytes) / 2, 1), to(from.size());
    const double copy = best_of([&] { std::memcpy(to.data(), from.data(), from.size()); });
    std::printf("  %6.1f GB/s (memcpy on one thread %.1f)", bytes / s * 1e-9, bytes / copy * 1e-9);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    using M = ops::MaskKind;
    using L = ops::AttentionLayout;
    const Case cases[] = {
        {"2x512x64", 2, 2, 512, 512, 64},
        {"2x512x64 custom", 2, 2, 512, 512, 64, DType::F32, M::kCustom},
        {"12x512x64", 12, 12, 512, 512, 64},
        {"12x512x64 BSHD", 12, 12, 512, 512, 64, DType::F32, M::kNone, L::kBshd},
        {"12x512x64 F16", 12, 12, 512, 512, 64, DType::F16},
        {"12x512x64 BF16 BSHD", 12, 12, 512, 512, 64, DType::BF16, M::kNone, L::kBshd},
        {"12x512x64 custom [B,Sq,Sk]", 12, 12, 512, 512, 64, DType::F32, M::kCustom},
        {"12x128x64", 12, 12, 128, 128, 64},
        {"32x1024x128 GQA 8 causal", 32, 8, 1024, 1024, 128, DType::F32, M::kCausal},
        {"12x1024x64 causal", 12, 12, 1024, 1024, 64, DType::F32, M::kCausal},
        {"32x1x4096x128 GQA 8", 32, 8, 1, 4096, 128},
        {"32x1x4096x128 GQA 8 F16", 32, 8, 1, 4096, 128, DType::F16},
        {"32x1x4096x128 GQA 8 BF16 BSHD", 32, 8, 1, 4096, 128, DType::BF16, M::kNone, L::kBshd},
        {"32x1x4096x128", 32, 32, 1, 4096, 128},
    };
    ThreadPool pool(threads);
    const double peak = cpu::measure_peaks(pool).gflops;
    std::printf("%d threads, FMA peak %.1f GFLOP/s\n", threads, peak);
    for (const Case& c : cases) report(c, threads, peak);
  } catch (const Error& e) {
    std::fprintf(stderr, "attention_bench: %s\n", e.what());
    return 1;
  }
}
