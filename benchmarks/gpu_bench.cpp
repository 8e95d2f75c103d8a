// Kernels of a GPU at sizes where it is busy: bandwidth beside a copy kernel's, arithmetic in TFLOP/s, whole models.
// Every case is a chain of the op; the time of one is the difference between a long chain and a short one, so that
// submitting and waiting (60 us) are not in it. Inputs stay on the device and one element is read back; tests/ops
// checks the results.
//   gpu_bench [--device webgpu:0] [--small] [--json] [CASE]      CASE: a name, or a part of names
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graphs.h"
#include "passes/pipeline.h"
#include "rlx/ops.h"
#include "rlx/rlx.h"

namespace rlx::bench {

namespace {

struct Args {
  std::string device = "webgpu", filter;
  bool small = false, json = false;
};

struct Case {
  std::string name;
  double flops = 0, bytes = 0;           // of one op
  std::function<Graph(int count)> make;  // a chain of `count`
  int few = 4, many = 24;
};

TensorType f32(Shape shape) { return {std::move(shape), DType::F32}; }

// PCG: rows of a weight do not resemble each other, as they would with a bare linear sequence.
uint32_t next_random(uint32_t& seed) {
  const uint32_t state = seed;
  seed = seed * 747796405u + 2891336453u;
  const uint32_t word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
  return (word >> 22) ^ word;
}

// A packed weight: its name begins with the scheme's number. Any codes, small scales and a mean of 0, so that a chain
// of products stays finite.
void fill_packed(Tensor& t, Scheme scheme, uint32_t& seed) {
  const std::span<uint8_t> bytes = t.mutable_values<uint8_t>();
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const uint32_t word = next_random(seed);
    std::memcpy(&bytes[i], &word, std::min<size_t>(4, bytes.size() - i));
  }
  const bool large = scheme == Scheme::kGgufQ4K || scheme == Scheme::kGgufQ5K || scheme == Scheme::kGgufQ6K;
  const auto block = static_cast<size_t>(weight_bytes(scheme, large ? 256 : 32, 1));
  const auto put_scale = [&](size_t at) {  // 1.2e-4 to 1.5e-4; less where groups have scales too
    bytes[at] = static_cast<uint8_t>(next_random(seed) >> 24);
    bytes[at + 1] = large ? 0x01 : 0x08;
  };
  const auto put_half = [&](size_t at, uint16_t bits) {
    bytes[at] = static_cast<uint8_t>(bits);
    bytes[at + 1] = static_cast<uint8_t>(bits >> 8);
  };
  for (size_t at = 0; at + block <= bytes.size(); at += block) {
    put_scale(scheme == Scheme::kGgufQ6K ? at + 208 : at);
    // Minima, so that the mean weight is 0 (the mean code by the mean scale), or in Q4_1 that of Q4_0: with 0 a chain
    // would end among numbers below 1e-35, whose products are computed the careful way.
    if (scheme == Scheme::kGgufQ4K) put_half(at + 2, 0x099e);
    if (scheme == Scheme::kGgufQ5K) put_half(at + 2, 0x0dce);
    if (scheme == Scheme::kGgufQ4_1) put_half(at + 2, 0x946c);
  }
}

void set_inputs(Executable& exe) {
  uint32_t seed = 12345;
  const auto fill = [&](const Port& port) {
    Tensor t(port.type.dtype, port.type.shape.sizes());
    if (port.type.dtype == DType::F32)
      for (float& x : t.mutable_values<float>())
        x = (static_cast<float>(next_random(seed) >> 8) / 16777216.0f - 0.5f) * 0.05f;
    if (port.type.dtype == DType::U8) fill_packed(t, static_cast<Scheme>(std::stoi(port.name)), seed);
    return t;
  };
  for (const Port& p : exe.params()) exe.set_param(p.name, fill(p));
  for (const Port& p : exe.inputs()) exe.bind_handle(p.name, fill(p));  // uploaded once
}

// The graph with one element of each output in its place.
Graph with_small_outputs(Graph graph) {
  std::vector<Output> outputs;
  for (const Output& o : graph.outputs()) {
    const Value flat = ops::reshape(Value(graph, o.value), {.new_shape = {graph.type(o.value).shape.num_elements()}});
    outputs.push_back({o.name, ops::narrow(flat, {.axis = 0, .start = 0, .len = 1}).id()});
  }
  graph.set_outputs(outputs);
  return graph;
}

// A compiled graph with its inputs.
struct Ready {
  Executable exe;

  double run_ms() {
    const auto begin = std::chrono::steady_clock::now();
    exe.run({});
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
};

Ready prepare(const Graph& graph, const Args& args, bool passes) {
  CompileOptions options = CompileOptions::from_environment();
  options.device = args.device;
  options.webgpu.bounds_checks = options.webgpu.check_indices = false;  // as in a release build
  if (!passes)                                                          // a chain would become one region, or nothing
    for (const passes::Pass& p : passes::pipeline()) options.skip_passes.emplace_back(p.name);
  Ready ready{compile(with_small_outputs(graph), options)};
  set_inputs(ready.exe);
  ready.run_ms();
  return ready;
}

// A GPU that had little to do runs at a fraction of its clock, and short dispatches with pauses between them do not
// raise it: large products do, before anything is timed.
void warm_up(const Args& args) {
  if (args.small) return;
  constexpr int64_t kSize = 4096;
  Graph g("warm");
  Value x = g.input("x", f32({kSize, kSize}));
  const Value w = g.param("w", f32({kSize, kSize}));
  for (int i = 0; i < 8; ++i) x = ops::matmul(x, w);
  g.output(x, "y");
  static Ready ready = prepare(g, args, false);
  for (double total = 0; total < 400;) total += ready.run_ms();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double milliseconds(const Graph& graph, const Args& args) {
  Ready ready = prepare(graph, args, true);
  warm_up(args);
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i < 50 && (i < 10 || total < 1000); ++i) total += times.emplace_back(ready.run_ms());
  return median(times);
}

// A long chain less a short one, run in turns: the GPU's clock is the same for both. `copy`: a chain of copies that is
// timed in the same turns, for the ratio.
struct Times {
  double ms = 0, copy_ms = 0;
};
Times milliseconds(const Case& c, const Case* copy, const Args& args) {
  Ready few = prepare(c.make(c.few), args, false), many = prepare(c.make(c.many), args, false);
  std::optional<Ready> copy_few, copy_many;
  if (copy) {
    copy_few = prepare(copy->make(copy->few), args, false);
    copy_many = prepare(copy->make(copy->many), args, false);
  }
  std::vector<double> times, copy_times;
  double total = 0;
  warm_up(args);
  for (int i = 0; i < 60 && (i < 8 || total < 700); ++i) {
    const double shorter = few.run_ms(), longer = many.run_ms();
    total += shorter + longer;
    if (i >= 2) times.push_back(longer - shorter);
    if (!copy) continue;
    const double copy_shorter = copy_few->run_ms(), copy_longer = copy_many->run_ms();
    if (i >= 2) copy_times.push_back(copy_longer - copy_shorter);
  }
  return {std::max(median(times) / (c.many - c.few), 1e-6), copy ? median(copy_times) / (copy->many - copy->few) : 0};
}

Case chain(std::string name, Shape shape, double reads_and_writes, const std::function<Value(Graph&, Value)>& op,
           double flops = 0) {
  const double elements = static_cast<double>(shape.num_elements());
  return {std::move(name), flops, reads_and_writes * 4 * elements, [=](int count) {
            Graph g("chain");
            Value x = g.input("x", f32(shape));
            for (int i = 0; i < count; ++i) x = op(g, x);
            g.output(x, "y");
            return g;
          }};
}

// Decoding: one query of 32 heads on 8 kv heads whose cache is half full. Caches take turns, so that the GPU's own
// cache holds none of them.
void add_decoding(std::vector<Case>& list, int64_t capacity) {
  using namespace ops;
  constexpr int64_t kHeads = 32, kKvHeads = 8, kWidth = 128, kCaches = 6, kPage = 16;
  const int64_t length = capacity / 2;
  const double elements = 2.0 * static_cast<double>(length * kKvHeads * kWidth),
               flops = 2.0 * elements * kHeads / kKvHeads;
  const TensorType q_type = f32({1, 1, kHeads, kWidth});
  const auto chain = [=](int count, const TensorType& cache,
                         const std::function<Value(Graph&, Value, Value, Value)>& op) {
    Graph g("chain");
    std::vector<Value> caches;
    for (int64_t i = 0; i < 2 * std::min<int64_t>(count, kCaches); ++i) caches.push_back(g.input(str("c", i), cache));
    Value q = g.input("q", q_type);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      q = op(g, q, caches[2 * i % caches.size()], caches[(2 * i + 1) % caches.size()]);
    g.output(q, "y");
    return g;
  };
  const Tensor in_use = Tensor::i32({1}, {static_cast<int32_t>(length)});
  list.push_back({str("decode 32/8x128, ", length, " of ", capacity), flops, elements * 4, [=](int count) {
                    return chain(count, f32({1, capacity, kKvHeads, kWidth}), [=](Graph& g, Value q, Value k, Value v) {
                      return attention({q, k, v, g.constant(in_use)},
                                       {.num_heads = kHeads, .head_dim = kWidth, .layout = AttentionLayout::kBshd});
                    });
                  }});
  std::vector<int32_t> order;  // pages of a sequence, in no order
  for (int64_t i = 0; i < capacity / kPage; ++i) order.push_back(static_cast<int32_t>(i * 37 % (capacity / kPage)));
  const Tensor table = Tensor::i32({1, capacity / kPage}, order);
  for (const auto& [name, type, format] : {std::tuple{"f32", DType::F32, KvFormat::kFloat},
                                           {"f16", DType::F16, KvFormat::kFloat},
                                           {"q8_0", DType::U32, KvFormat::kQ8}}) {
    const int64_t row = kv_row_elements(format, kWidth);
    const auto bytes = static_cast<double>(row * static_cast<int64_t>(size_of(type))) / kWidth;
    list.push_back({str("decode in pages, ", name), flops, elements * bytes, [=, t = type, f = format](int count) {
                      return chain(count, {{capacity / kPage, kPage, kKvHeads, row}, t},
                                   [=](Graph& g, Value q, Value k, Value v) {
                                     return paged_attention({q, k, v, g.constant(table), g.constant(in_use)},
                                                            {.num_heads = kHeads, .head_dim = kWidth, .format = f});
                                   });
                    }});
  }
}

std::vector<Case> cases(bool small) {
  using namespace ops;
  std::vector<Case> list;
  const int64_t rows = small ? 64 : 8192, cols = small ? 256 : 8192;  // as in kernels.py
  const auto unary = [&](std::string name, const std::function<Value(Graph&, Value)>& op) {
    list.push_back(chain(std::move(name), {rows, cols}, 2, op));
  };
  unary("copy (neg)", [](Graph&, Value x) { return neg(x); });
  unary("gelu", [](Graph&, Value x) { return gelu(x); });
  unary("tanh", [](Graph&, Value x) { return tanh(x); });
  unary("pow", [](Graph& g, Value x) { return pow(abs(x), g.constant(Tensor::f32({1}, {0.9f}))); });
  list.push_back(chain("add", {rows, cols}, 3, [&](Graph&, Value x) { return x + x; }));
  list.back().bytes *= 2.0 / 3;  // both operands are the same bytes
  unary("add row", [cols](Graph& g, Value x) { return x + g.param(str("b", g.nodes().size()), f32({cols})); });
  unary("div row", [cols](Graph& g, Value x) { return g.param(str("b", g.nodes().size()), f32({cols})) / x; });
  unary("softmax last axis", [](Graph&, Value x) { return softmax(x, {.axis = 1}); });
  unary("softmax first axis", [](Graph&, Value x) { return softmax(x, {.axis = 0}); });
  if (!small) {  // other shapes of as many bytes
    const auto text = [](const Shape& shape) {
      std::string out;
      for (const int64_t n : shape.sizes()) out += str(out.empty() ? "" : "x", n);
      return out;
    };
    for (const auto& [shape, axis] : {std::pair{Shape{16384, 4096}, 0},
                                      {Shape{4096, 16384}, 0},
                                      {Shape{32768, 2048}, 0},
                                      {Shape{262144, 256}, 0},
                                      {Shape{64, 4096, 256}, 1},
                                      {Shape{256, 256, 1024}, 1},
                                      {Shape{16, 2048, 2048}, 1},
                                      {Shape{65536, 1024}, 1},
                                      {Shape{4096, 16384}, 1},
                                      {Shape{2048, 32768}, 1},
                                      {Shape{512, 131072}, 1},
                                      {Shape{16, 4194304}, 1}})
      list.push_back(chain(str("softmax ", text(shape), " axis ", axis), shape, 2,
                           [=](Graph&, Value x) { return softmax(x, {.axis = axis}); }));
    const auto norms = [&](const char* name, Shape shape, int64_t gammas, const auto& op) {
      list.push_back(chain(str(name, " ", text(shape)), shape, 2, [=](Graph& g, Value x) {
        const auto n = g.nodes().size();
        return op(x, g.param(str("g", n), f32({gammas})), g.param(str("b", n), f32({gammas})));
      }));
    };
    for (const int64_t n : {768, 4096, 16384, 20480, 24576, 32768, 131072}) {
      const int64_t m = (int64_t{1} << 26) / n;
      norms("layer_norm", {m, n}, n, [](Value x, Value g, Value b) { return layer_norm(x, g, b); });
      norms("rms_norm", {m, n}, n, [](Value x, Value g, Value) { return rms_norm(x, g); });
    }
    for (const auto& [shape, groups] : {std::pair{Shape{256, 64, 64, 64}, 32},
                                        {Shape{64, 256, 64, 64}, 32},
                                        {Shape{8, 512, 128, 128}, 32},
                                        {Shape{1, 256, 512, 512}, 32},
                                        {Shape{16, 64, 256, 256}, 64},
                                        {Shape{256, 256, 32, 32}, 256}})
      norms(shape[1].value() == groups ? "instance_norm" : "group_norm", shape, shape[1].value(),
            [=](Value x, Value g, Value b) { return group_norm(x, g, b, {.num_groups = groups}); });
    for (const Shape& shape : {Shape{16, 64, 256, 256}, Shape{64, 256, 64, 64}, Shape{64, 1024, 32, 32}})
      norms("layer_norm2d", shape, shape[1].value(), [](Value x, Value g, Value b) { return layer_norm2d(x, g, b); });
  }
  unary("layer_norm", [cols](Graph& g, Value x) {
    const auto n = g.nodes().size();
    return layer_norm(x, g.param(str("g", n), f32({cols})), g.param(str("b", n), f32({cols})));
  });
  unary("rms_norm",
        [cols](Graph& g, Value x) { return rms_norm(x, g.param(str("g", g.nodes().size()), f32({cols}))); });
  unary("cumsum", [](Graph&, Value x) { return cumsum(x, {.axis = 1}); });
  unary("transpose", [](Graph&, Value x) { return transpose(x, {.perm = {1, 0}}); });
  const auto reduction = [&](std::string name, std::vector<int64_t> axes) {
    // The sum is added back to the matrix: a broadcast that reads and writes it once more.
    list.push_back(chain(std::move(name), {rows, cols}, 3,
                         [axes](Graph&, Value x) { return x + reduce_sum(x, {.axes = axes, .keep_dim = true}); }));
  };
  reduction("reduce_sum last axis, and add", {1});
  reduction("reduce_sum first axis, and add", {0});
  const auto square = [&](std::string name, int64_t m, int64_t n) {
    list.push_back({std::move(name), 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(n), 0,
                    [=](int count) {
                      Graph g("chain");
                      Value x = g.input("x", f32({m, n}));
                      // Few rows are bound by the bytes of w: each link has its own, so that no cache has them.
                      Value w = g.param("w", f32({n, n}));
                      for (int i = 0; i < count; ++i) {
                        if (i > 0 && m <= 64) w = g.param(str("w", i), f32({n, n}));
                        x = matmul(x, w);
                      }
                      g.output(x, "y");
                      return g;
                    }});
    if (m <= 8) list.back().bytes = 4.0 * static_cast<double>(n) * static_cast<double>(n);
  };
  for (const int64_t n : small ? std::vector<int64_t>{128} : std::vector<int64_t>{512, 1024, 2048, 4096, 8192})
    square(str("matmul ", n, "^3"), n, n);
  for (const int64_t m : small ? std::vector<int64_t>{128} : std::vector<int64_t>{128, 4096})
    square(str("matmul ", m, " x 768^2"), m, 768);
  for (const int64_t m : small ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 8, 16, 64})
    square(str("matmul ", m, " x ", small ? 256 : 4096, "^2"), m, small ? 256 : 4096);
  if (!small) square("matmul 1 x 3072^2", 1, 3072);  // as many bytes as 8192^2 in 4.5 bits
  // Packed weights, each link its own: together they are more than a cache holds. A link goes from k to n and, where
  // they differ, back.
  const auto quantised = [&](const char* name, Scheme scheme, int64_t m, int64_t k, int64_t n) {
    const double products = k == n ? 1 : 2, bytes = static_cast<double>(weight_bytes(scheme, k, n));
    list.push_back({str("dequant_matmul ", name, " ", m, " x ", k, " x ", n, k == n ? "" : " and back"),
                    products * 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
                    m > 8 ? 0 : products * bytes, [=](int count) {
                      Graph g("chain");
                      Value x = g.input("x", f32({m, k}));
                      for (int i = 0; i < count; ++i)
                        for (const auto& [from, to] : {std::pair{k, n}, {n, k}}) {
                          const Value w = g.param(str(static_cast<int>(scheme), " ", i, " ", from, " ", to),
                                                  {{weight_bytes(scheme, from, to)}, DType::U8});
                          x = dequant_matmul(x, w, {.scheme = scheme});
                          if (k == n) break;
                        }
                      g.output(x, "y");
                      return g;
                    }});
    if (n > 8192) list.back().few = 2, list.back().many = 8;  // gigabytes to fill
  };
  const std::pair<const char*, Scheme> schemes[] = {{"q4_0", Scheme::kGgufQ4_0}, {"q4_1", Scheme::kGgufQ4_1},
                                                    {"q8_0", Scheme::kGgufQ8_0}, {"q4_k", Scheme::kGgufQ4K},
                                                    {"q5_k", Scheme::kGgufQ5K},  {"q6_k", Scheme::kGgufQ6K}};
  for (const auto& [name, scheme] : schemes) {
    if (small) {
      quantised(name, scheme, 1, 256, 256);
      continue;
    }
    quantised(name, scheme, 1, 4096, 4096);
    quantised(name, scheme, 1, 4096, 14336);
    quantised(name, scheme, 1, 8192, 8192);
    quantised(name, scheme, 1, 16384, 16384);
    quantised(name, scheme, 4, 4096, 4096);
  }
  for (const auto& [name, scheme] : {schemes[0], schemes[3]})
    if (!small) quantised(name, scheme, 512, 4096, 4096);
  const int64_t seq = small ? 64 : 2048;
  for (const bool causal : {false, true})
    list.push_back({str("attention 4x16x", seq, "x64", causal ? " causal" : ""),
                    4.0 * 4 * 16 * static_cast<double>(seq) * static_cast<double>(seq) * 64 * (causal ? 0.5 : 1), 0,
                    [=](int count) {
                      Graph g("chain");
                      const TensorType type = f32({4, 16, seq, 64});
                      Value q = g.input("q", type);
                      const Value k = g.input("k", type), v = g.input("v", type);
                      for (int i = 0; i < count; ++i)
                        q = attention({q, k, v}, {.num_heads = 16,
                                                  .head_dim = 64,
                                                  .layout = AttentionLayout::kBhsd,
                                                  .mask_kind = causal ? MaskKind::kCausal : MaskKind::kNone});
                      g.output(q, "y");
                      return g;
                    }});
  add_decoding(list, small ? 128 : 8192);
  const int64_t image = small ? 16 : 56;
  for (const int64_t batch : {int64_t{1}, int64_t{32}})
    list.push_back({str("conv 3x3 64 channels, ", batch, "x", image, "x", image),
                    2.0 * 9 * 64 * 64 * static_cast<double>(batch * image * image), 0, [=](int count) {
                      Graph g("chain");
                      Value x = g.input("x", f32({batch, 64, image, image}));
                      const Value w = g.param("w", f32({64, 64, 3, 3}));
                      for (int i = 0; i < count; ++i)
                        x = conv(x, w, {.kernel_size = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
                      g.output(x, "y");
                      return g;
                    }});
  return list;
}

struct Model {
  std::string name;
  Graph graph;
};
std::vector<Model> models(bool small) {
  if (small) return {};
  std::vector<Model> list;
  for (const int64_t batch : {1, 32}) {
    list.push_back({str("ResNet-50, batch ", batch), resnet50(batch)});
    list.push_back({str("BERT-base, 128 tokens, batch ", batch), transformer_encoder(batch, 128)});
  }
  return list;
}

int run(const Args& args) {
  std::printf(args.json ? "{\"cases\": [\n" : "%-40s %12s %12s %12s %10s\n", "case", "us", "GB/s", "TFLOP/s",
              "of copy");
  bool first = true;
  const auto print = [&](const std::string& name, double ms, double flops, double bytes, double copy) {
    const double gbs = bytes / ms / 1e6, tflops = flops / ms / 1e9;
    if (args.json)
      std::printf("%s{\"name\": \"%s\", \"us\": %.2f, \"gb_s\": %.1f, \"tflop_s\": %.3f}", first ? "" : ",\n",
                  name.c_str(), ms * 1e3, gbs, tflops);
    else
      std::printf("%-40s %12.1f %12.1f %12.2f %9.0f%%\n", name.c_str(), ms * 1e3, gbs, tflops,
                  copy > 0 ? 100 * gbs / copy : 0);
    std::fflush(stdout);
    first = false;
  };
  const std::vector<Case> list = cases(args.small);
  const bool is_name = std::any_of(list.begin(), list.end(), [&](const Case& c) { return c.name == args.filter; });
  const auto wanted = [&](const std::string& name) {
    return is_name ? name == args.filter : name.find(args.filter) != std::string::npos;
  };
  for (const Case& c : list) {
    if (!wanted(c.name)) continue;
    try {
      const bool beside_copy = c.flops == 0;
      const Times t = milliseconds(c, beside_copy ? &list[0] : nullptr, args);
      print(c.name, t.ms, c.flops, c.bytes, beside_copy ? list[0].bytes / t.copy_ms / 1e6 : 0);
    } catch (const Error& e) {
      std::printf("%s: %s\n", c.name.c_str(), e.what());
    }
  }
  for (const Model& m : models(args.small)) {
    if (!wanted(m.name)) continue;
    try {
      print(m.name, milliseconds(m.graph, args), 0, 0, 0);
    } catch (const Error& e) {
      std::printf("%s: %s\n", m.name.c_str(), e.what());
    }
  }
  if (args.json) std::printf("\n]}\n");
  return 0;
}

}  // namespace

}  // namespace rlx::bench

int main(int argc, char** argv) {
  rlx::bench::Args args;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--small")
      args.small = true;
    else if (arg == "--json")
      args.json = true;
    else if (arg == "--device" && i + 1 < argc)
      args.device = argv[++i];
    else
      args.filter = arg;
  }
  try {
    return rlx::bench::run(args);
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "gpu_bench: %s\n", e.what());
    return 1;
  }
}
