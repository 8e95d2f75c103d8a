// A model whose weights and whose activations each exceed 4 GiB, on a GPU: rows of an embedding table go through layers
// of two products with a residual, and all layers' results are needed at the end. Sampled rows are compared with the
// cpu device, which runs those rows alone. Says what it took, and fails when a row differs.
//   gpu_large [--device webgpu:0] [--width 8192] [--rows 24576] [--layers 5] [--vocabulary 100000] [--binding BYTES]
// Smaller numbers try it out on a software adapter: --width 64 --rows 100 --vocabulary 500 --binding 65536
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rlx/ops.h"
#include "rlx/rlx.h"

namespace rlx::bench {

namespace {

struct Args {
  std::string device = "webgpu";
  int64_t width = 8192, rows = 24576, layers = 5, vocabulary = 100000, binding = 0;
};

constexpr int64_t kSamples = 8;

Args parse(int argc, char** argv) {
  Args args;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    require(i + 1 < argc, "Argument ", name, " has no value.");
    const char* value = argv[++i];
    if (name == "--device") {
      args.device = value;
      continue;
    }
    int64_t* to = name == "--width"        ? &args.width
                  : name == "--rows"       ? &args.rows
                  : name == "--layers"     ? &args.layers
                  : name == "--vocabulary" ? &args.vocabulary
                  : name == "--binding"    ? &args.binding
                                           : nullptr;
    require(to != nullptr, "Argument ", name, " is not known.");
    *to = std::atoll(value);
    require(*to > 0, "Argument ", name, " (", value, ") is not a positive number.");
  }
  return args;
}

// ids -> the sampled rows of the sum of all layers.
Graph model(const Args& args, int64_t rows) {
  Graph g;
  const Value ids = g.input("ids", {{rows}, DType::I32}), samples = g.input("samples", {{kSamples}, DType::I32});
  Value x = ops::gather(g.param("table", {{args.vocabulary, args.width}, DType::F32}), ids);
  Values kept = {x};
  for (int64_t i = 0; i < args.layers; ++i) {
    const Value up = g.param(str("up", i), {{args.width, 2 * args.width}, DType::F32}),
                down = g.param(str("down", i), {{2 * args.width, args.width}, DType::F32});
    x = x + ops::matmul(ops::relu(ops::matmul(x, up)), down);
    kept.push_back(x);
  }
  const Value last = ops::tanh(x);  // nothing can be added up before it is there
  Value sum = kept[0] * last;
  for (size_t i = 1; i < kept.size(); ++i) sum = sum + kept[i] * last;
  g.output(ops::gather(sum, samples), "y");
  return g;
}

Tensor random(const TensorType& type, float size, uint32_t& seed) {
  Tensor t(type.dtype, type.shape.sizes());
  for (float& x : t.mutable_values<float>()) {
    seed = seed * 1664525u + 1013904223u;
    x = (static_cast<float>(seed >> 8) / 8388608.0f - 1.0f) * size;
  }
  return t;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int run(const Args& args) {
  constexpr double kGiB = 1 << 30;
  CompileOptions options = CompileOptions::from_environment();
  options.device = args.device;
  options.webgpu.bounds_checks = options.webgpu.check_indices = false;  // as in a release build
  options.webgpu.max_binding_bytes = args.binding;
  auto begin = std::chrono::steady_clock::now();
  Executable gpu = compile(model(args, args.rows), options), cpu = compile(model(args, kSamples), {.device = "cpu"});
  const PlanInfo plan = gpu.plan();
  std::printf("weights %.2f GiB, activations %.2f GiB; compiled in %.1f s\n",
              static_cast<double>(plan.param_bytes) / kGiB, static_cast<double>(plan.arena_bytes) / kGiB,
              seconds_since(begin));

  uint32_t seed = 1;
  for (const Port& p : gpu.params()) {
    const auto fan_in = static_cast<float>(p.type.dim(0).value());
    const Tensor t = random(p.type, p.name == "table" ? 1.0f : std::sqrt(3.0f / fan_in), seed);
    gpu.set_param(p.name, t);
    cpu.set_param(p.name, t);
  }
  Tensor ids(DType::I32, {args.rows}), samples(DType::I32, {kSamples}), own(DType::I32, {kSamples}),
      sampled_ids(DType::I32, {kSamples});
  for (int64_t i = 0; i < args.rows; ++i)  // all over the table, its ends too
    ids.mutable_values<int32_t>()[static_cast<size_t>(i)] =
        static_cast<int32_t>(i == 0 ? args.vocabulary - 1 : i * 7919 % args.vocabulary);
  for (int64_t i = 0; i < kSamples; ++i) {
    const auto s = static_cast<size_t>(i);
    const int64_t row = i * (args.rows - 1) / (kSamples - 1);
    samples.mutable_values<int32_t>()[s] = static_cast<int32_t>(row);
    own.mutable_values<int32_t>()[s] = static_cast<int32_t>(i);
    sampled_ids.mutable_values<int32_t>()[s] = ids.values<int32_t>()[static_cast<size_t>(row)];
  }

  begin = std::chrono::steady_clock::now();
  gpu.run({{"ids", ids}, {"samples", samples}});
  const double first = seconds_since(begin);
  begin = std::chrono::steady_clock::now();
  const Tensor y = gpu.run({{"ids", ids}, {"samples", samples}}).at("y");
  const double second = seconds_since(begin);
  const double flops = 8.0 * static_cast<double>(args.rows * args.layers) * static_cast<double>(args.width) *
                       static_cast<double>(args.width);
  std::printf("first run, with upload, %.2f s; then %.3f s, %.1f TFLOP/s\n", first, second, flops / second * 1e-12);

  const Tensor expected = cpu.run({{"ids", sampled_ids}, {"samples", own}}).at("y");
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    const double error = std::abs(y.at(i) - expected.at(i)) / (1 + std::abs(expected.at(i)));
    worst = std::isnan(error) ? error : std::max(worst, error);
    largest = std::max(largest, std::abs(expected.at(i)));
    if (std::isnan(error)) break;
  }
  std::printf("%lld rows of %lld compared with the cpu: largest value %.3g, largest error %.3g\n",
              static_cast<long long>(kSamples), static_cast<long long>(args.rows), largest, worst);
  const bool right = worst < 1e-3;
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

}  // namespace rlx::bench

int main(int argc, char** argv) {
  try {
    return rlx::bench::run(rlx::bench::parse(argc, argv));
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
