// Element-wise ops on large f32 tensors beside memcpy: bytes of all operands and of the result per second. All run in
// turn, several times, in one process; the best time of each counts. With one thread it is CPU time, which other
// processes disturb less.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "rlx/rlx.h"

using namespace rlx;

namespace {

struct Case {
  std::string name;
  double bytes = 0;  // read and written
  std::function<void()> run;
  double best = 1e30;  // seconds
};

double seconds(bool of_cpu) {
  if (of_cpu) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ChainOperand in(int32_t i) { return {.is_step = false, .index = i}; }
ChainOperand step(int32_t s) { return {.is_step = true, .index = s}; }

// One node on `operands`, compiled for cpu; the result stays in the executable.
Case make_case(const std::string& name, const OpDef& op, const Attrs& attrs, const std::vector<Tensor>& operands,
               int threads) {
  Graph graph(name);
  Values values;
  double bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    values.push_back(graph.input(str("x", i), operands[i].type()));
    bytes += static_cast<double>(operands[i].bytes().size());
  }
  const Value y = graph.add(op, values, attrs);
  bytes += static_cast<double>(y.type().size_bytes());
  graph.output(y, "y");
  auto exe = std::make_shared<Executable>(compile(std::move(graph), {.device = "cpu", .threads = threads}));
  return {.name = name, .bytes = bytes, .run = [exe, operands] { exe->run_slots(operands); }};
}

Tensor filled(std::vector<int64_t> sizes, DType dtype) {
  Tensor t(DType::F32, sizes);
  uint32_t state = 1;
  for (float& v : t.mutable_values<float>()) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  if (dtype == DType::F32) return t;
  Graph graph("cast");
  graph.output(ops::cast(graph.input("x", t.type()), {.to = dtype}), "y");
  return compile(std::move(graph), {.device = "cpu"}).run({{"x", t}}).at("y").clone();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 3 || (argc >= 2 && std::strcmp(argv[1], "--help") == 0)) {
      std::printf("usage: elementwise_bench [MIB_PER_TENSOR [THREADS]]\n");
      return argc > 3 ? 2 : 0;
    }
    const int64_t mib = argc >= 2 ? std::atoll(argv[1]) : 64;
    const int threads = argc >= 3 ? std::atoi(argv[2]) : 0;
    require(mib >= 1, "Size (", mib, " MiB) is not positive.");
    const int64_t n = mib << 18, columns = 1024, rows = n / columns;
    ThreadPool pool(threads);
    const Tensor a = filled({rows, columns}, DType::F32), b = filled({rows, columns}, DType::F32);
    const Tensor row = filled({columns}, DType::F32), column = filled({rows, 1}, DType::F32);
    const Tensor half = filled({rows, columns}, DType::F16), scalar = filled({}, DType::F32);

    std::vector<Case> cases;
    Tensor copy(DType::F32, {rows, columns});
    cases.push_back({.name = "memcpy", .bytes = 8.0 * static_cast<double>(n), .run = [&] {
                       std::byte* to = copy.mutable_bytes().data();
                       pool.parallel_for(0, n * 4, 1 << 20, [&](int64_t begin, int64_t end) {
                         std::memcpy(to + begin, a.bytes().data() + begin, static_cast<size_t>(end - begin));
                       });
                     }});
    const auto add = [&](const std::string& name, const OpDef& op, const std::vector<Tensor>& operands,
                         const Attrs& attrs = Attrs()) {
      cases.push_back(make_case(name, op, attrs, operands, threads));
    };
    add("add", ops::add, {a, b});
    add("mul", ops::mul, {a, b});
    add("add scalar", ops::add, {a, scalar});
    add("add row", ops::add, {a, row});
    add("add column", ops::add, {a, column});
    add("relu", ops::relu, {a});
    const Chain chain = {{&ops::mul, {in(0), in(1)}},
                         {&ops::add, {step(0), in(2)}},
                         {&ops::relu, {step(1)}},
                         {&ops::mul, {step(2), in(3)}},
                         {&ops::sub, {step(3), in(0)}}};
    add("5-step chain", ops::elementwise_region, {a, b, row, scalar},
        Attrs(ops::ElementwiseRegionAttrs{.chain = chain, .num_inputs = 4}));
    add("lt", ops::lt, {a, b});
    for (const OpDef* op : {static_cast<const OpDef*>(&ops::exp), static_cast<const OpDef*>(&ops::log),
                            static_cast<const OpDef*>(&ops::tanh), static_cast<const OpDef*>(&ops::sigmoid),
                            static_cast<const OpDef*>(&ops::silu), static_cast<const OpDef*>(&ops::gelu),
                            static_cast<const OpDef*>(&ops::gelu_approx), static_cast<const OpDef*>(&ops::sin),
                            static_cast<const OpDef*>(&ops::atan)})
      add(std::string(op->name), *op, {a});
    add("pow", ops::pow, {a, b});
    add("fused_swiglu", ops::fused_swiglu, {a}, Attrs(ops::FusedSwigluAttrs{}));
    add("add f16", ops::add, {half, half});
    add("f16 to f32", ops::cast, {half}, Attrs(ops::CastAttrs{.to = DType::F32}));
    add("f32 to f16", ops::cast, {a}, Attrs(ops::CastAttrs{.to = DType::F16}));
    add("f32 to i32", ops::cast, {a}, Attrs(ops::CastAttrs{.to = DType::I32}));

    for (int repeat = 0; repeat < 15; ++repeat)
      for (Case& c : cases) {
        const double start = seconds(pool.threads() == 1);
        c.run();
        c.best = std::min(c.best, seconds(pool.threads() == 1) - start);
      }
    std::printf("%lld MiB f32 tensors, %d threads\n", static_cast<long long>(mib), pool.threads());
    const double reference = cases[0].bytes / cases[0].best;
    for (const Case& c : cases)
      std::printf("%-14s %8.2f ms  %7.2f GB/s  %.2f of memcpy\n", c.name.c_str(), c.best * 1e3, c.bytes / c.best * 1e-9,
                  c.bytes / c.best / reference);
  } catch (const Error& e) {
    std::fprintf(stderr, "elementwise_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
