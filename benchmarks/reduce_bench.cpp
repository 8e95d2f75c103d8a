// Memory-bound ops over 64 MiB operands on the cpu device: GB/s of operand and result bytes beside memcpy's, measured
// in turns in the same process. Times are the best of the repetitions; the percentage is the median of op against the
// memcpy just before it, which other work on the machine slows down alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "rlx/rlx.h"

using namespace rlx;

namespace {

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Tensor filled(const TensorType& type) {
  Tensor t(type.dtype, type.shape.sizes());
  uint32_t word = 1;
  std::vector<double> values(static_cast<size_t>(std::min<int64_t>(t.num_elements(), 1 << 16)));
  for (double& v : values) v = static_cast<double>((word = word * 1664525u + 1013904223u) >> 8) * 0x1p-23 - 1;
  const Tensor some = Tensor::from_doubles(type.dtype, {static_cast<int64_t>(values.size())}, values);
  const size_t bytes = static_cast<size_t>(t.num_elements()) * size_of(type.dtype),
               piece = values.size() * size_of(type.dtype);
  for (size_t i = 0; i < bytes; i += piece)
    std::memcpy(t.mutable_bytes().data() + i, some.bytes().data(), std::min(piece, bytes - i));
  return t;
}

struct Case {
  std::string name;
  std::function<Value(Graph&)> build;
};

Value input(Graph& g, const char* name, std::vector<int64_t> sizes, DType dtype = DType::F32) {
  return g.input(name, {Shape(sizes), dtype});
}

std::vector<Case> cases() {
  const DType f32 = DType::F32;
  const auto sum = [](std::vector<int64_t> sizes, std::vector<int64_t> axes, DType dtype) {
    return [=](Graph& g) { return ops::reduce_sum(input(g, "x", sizes, dtype), {.axes = axes}); };
  };
  const auto softmax = [](std::vector<int64_t> sizes, int64_t axis, DType dtype) {
    return [=](Graph& g) { return ops::softmax(input(g, "x", sizes, dtype), {.axis = axis}); };
  };
  const auto layer = [](std::vector<int64_t> sizes, DType dtype) {
    return [=](Graph& g) {
      const std::vector<int64_t> row{sizes.back()};
      return ops::layer_norm(input(g, "x", sizes, dtype), input(g, "g", row, dtype), input(g, "b", row, dtype));
    };
  };
  return {
      {"reduce_sum 4096x4096 last axis", sum({4096, 4096}, {1}, f32)},
      {"reduce_sum 4096x4096 first axis", sum({4096, 4096}, {0}, f32)},
      {"reduce_sum 4096x4096 all", sum({4096, 4096}, {0, 1}, f32)},
      {"reduce_sum 1048576x16 last axis", sum({1048576, 16}, {1}, f32)},
      {"reduce_sum 1048576x16 first axis", sum({1048576, 16}, {0}, f32)},
      {"reduce_sum 64x64x64x64 axes 0, 2", sum({64, 64, 64, 64}, {0, 2}, f32)},
      {"reduce_sum 64x64x64x64 axes 1, 3", sum({64, 64, 64, 64}, {1, 3}, f32)},
      {"reduce_sum 8192x4096 bf16 all", sum({8192, 4096}, {0, 1}, DType::BF16)},
      {"reduce_max 4096x4096 last axis",
       [](Graph& g) {
         return ops::reduce_max(input(g, "x", {4096, 4096}), {.axes = {1}});
       }},
      {"softmax 4096x4096", softmax({4096, 4096}, -1, f32)},
      {"softmax 65536x256", softmax({65536, 256}, -1, f32)},
      {"softmax 160x100000", softmax({160, 100000}, -1, f32)},
      {"softmax 1600000x10", softmax({1600000, 10}, -1, f32)},
      {"softmax 256x256x256 axis 1", softmax({256, 256, 256}, 1, f32)},
      {"softmax 8192x4096 f16", softmax({8192, 4096}, -1, DType::F16)},
      {"layer_norm 4096x4096", layer({4096, 4096}, f32)},
      {"layer_norm 21845x768", layer({21845, 768}, f32)},
      {"layer_norm 262144x64", layer({262144, 64}, f32)},
      {"layer_norm 8192x4096 bf16", layer({8192, 4096}, DType::BF16)},
      {"rms_norm 4096x4096",
       [](Graph& g) {
         return ops::rms_norm(input(g, "x", {4096, 4096}), input(g, "g", {4096}));
       }},
      {"layer_norm2d 4x256x128x128",
       [](Graph& g) {
         return ops::layer_norm2d(input(g, "x", {4, 256, 128, 128}), input(g, "g", {256}), input(g, "b", {256}));
       }},
      {"group_norm 4x256x128x128, 32 groups",
       [](Graph& g) {
         return ops::group_norm(input(g, "x", {4, 256, 128, 128}), input(g, "g", {256}), input(g, "b", {256}),
                                {.num_groups = 32});
       }},
      {"fused_residual_ln 4096x4096 and sum",
       [](Graph& g) {
         const Value y = ops::fused_residual_ln(input(g, "x", {4096, 4096}), input(g, "r", {4096, 4096}),
                                                input(g, "g", {4096}), input(g, "b", {4096}));
         g.output(y.result(1), "sum");
         return y;
       }},
      {"fused_residual_rms_norm 4096x4096",
       [](Graph& g) {
         return ops::fused_residual_rms_norm(input(g, "x", {4096, 4096}), input(g, "r", {4096, 4096}),
                                             input(g, "g", {4096}));
       }},
      {"cumsum 4096x4096",
       [](Graph& g) {
         return ops::cumsum(input(g, "x", {4096, 4096}));
       }},
      {"cumsum 4096x4096 axis 0",
       [](Graph& g) {
         return ops::cumsum(input(g, "x", {4096, 4096}), {.axis = 0});
       }},
      {"argmax 4096x4096",
       [](Graph& g) {
         return ops::argmax(input(g, "x", {4096, 4096}));
       }},
      {"topk 128x131072, k = 40",
       [](Graph& g) {
         return ops::topk(input(g, "x", {128, 131072}), {.k = 40});
       }},
      {"softmax_cross_entropy 4096x4096",
       [](Graph& g) {
         return ops::softmax_cross_entropy_with_logits(input(g, "x", {4096, 4096}), input(g, "l", {4096}, DType::I32));
       }},
      {"layer_norm_backward 4096x4096",
       [](Graph& g) {
         const Value y =
             ops::layer_norm_backward(input(g, "x", {4096, 4096}), input(g, "g", {4096}), input(g, "dy", {4096, 4096}));
         g.output(y.result(1), "dgamma");
         g.output(y.result(2), "dbeta");
         return y;
       }},
      {"sample 128x131072",
       [](Graph& g) {
         return ops::sample(input(g, "x", {128, 131072}));
       }},
      {"sample 128x131072, top_p = 0.9",
       [](Graph& g) {
         return ops::sample(input(g, "x", {128, 131072}), {.top_p = 0.9f});
       }},
  };
}

constexpr int kRepetitions = 31;
constexpr size_t kCopyBytes = 64 << 20;

class Memcpy {
 public:
  explicit Memcpy(int threads) : from_(kCopyBytes), to_(kCopyBytes), pool_(threads) {}
  double seconds() {
    return seconds_of([&] {
      pool_.parallel_for(0, static_cast<int64_t>(kCopyBytes >> 20), 4, [&](int64_t begin, int64_t end) {
        std::memcpy(to_.data() + (begin << 20), from_.data() + (begin << 20), static_cast<size_t>(end - begin) << 20);
      });
    });
  }

 private:
  std::vector<char> from_, to_;
  ThreadPool pool_;
};

void report(const Case& c, int threads, Memcpy& copy) {
  Graph graph("bench");
  graph.output(c.build(graph), "y");
  Executable exe = compile(graph, {.device = "cpu", .threads = threads, .skip_passes = {"lower_reduce"}});
  std::vector<Tensor> inputs;
  double bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "input") continue;
    inputs.push_back(node.results[0].type.dtype == DType::I32 ? Tensor(DType::I32, node.results[0].type.shape.sizes())
                                                              : filled(node.results[0].type));
    bytes += static_cast<double>(inputs.back().num_elements()) * size_of(inputs.back().dtype());
  }
  for (const Tensor& t : exe.run_slots(inputs)) bytes += static_cast<double>(t.num_elements()) * size_of(t.dtype());
  double best = 1e9, best_copy = 1e9;
  std::vector<double> ratios;
  for (int i = 0; i < kRepetitions; ++i) {
    const double copied = copy.seconds(), ran = seconds_of([&] { exe.run_slots(inputs); });
    best_copy = std::min(best_copy, copied);
    best = std::min(best, ran);
    ratios.push_back(bytes / ran / (2.0 * kCopyBytes / copied));
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("%-38s %9.2f ms  %7.2f GB/s  memcpy %7.2f GB/s  %4.0f %%\n", c.name.c_str(), best * 1e3,
              bytes / best / 1e9, 2.0 * kCopyBytes / best_copy / 1e9, 100 * ratios[ratios.size() / 2]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 || (argc == 2 && std::strcmp(argv[1], "--help") == 0)) {
    std::printf("usage: reduce_bench [PART_OF_A_NAME [THREADS]]\n");
    return argc > 3 ? 2 : 0;
  }
  try {
    const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
    Memcpy copy(threads);
    for (const Case& c : cases())
      if (argc < 2 || c.name.find(argv[1]) != std::string::npos) report(c, threads, copy);
  } catch (const Error& e) {
    std::fprintf(stderr, "reduce_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
