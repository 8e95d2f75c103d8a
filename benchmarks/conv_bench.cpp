// Convolutions of real models on the cpu device, beside oneDNN where that was found when this was built: GFLOP/s of
// both, and the ratio. Both run in this process in turns, weights packed beforehand; the best of several rounds counts.
// oneDNN is asked twice: with its own layouts for all three tensors, whose conversion it does not pay, and with the
// layout that rlx has, N C spatial.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "rlx/graph.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#ifdef RLX_BENCH_ONEDNN
#include <dnnl.hpp>
#endif

namespace {

using namespace rlx;

struct ConvShape {
  const char* name;
  std::vector<int64_t> x, w;
  int64_t stride = 1, padding = 0, groups = 1;
};

const ConvShape kShapes[] = {
    {"resnet50 conv1 7x7/2", {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3},
    {"resnet50 1x1 64-64 @56", {1, 64, 56, 56}, {64, 64, 1, 1}},
    {"resnet50 3x3 64 @56", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1},
    {"resnet50 1x1 64-256 @56", {1, 64, 56, 56}, {256, 64, 1, 1}},
    {"resnet50 3x3 128 @28", {1, 128, 28, 28}, {128, 128, 3, 3}, 1, 1},
    {"resnet50 3x3/2 128 @56", {1, 128, 56, 56}, {128, 128, 3, 3}, 2, 1},
    {"resnet50 1x1/2 256-512", {1, 256, 56, 56}, {512, 256, 1, 1}, 2},
    {"resnet50 1x1 512-128 @28", {1, 512, 28, 28}, {128, 512, 1, 1}},
    {"resnet50 3x3 256 @14", {1, 256, 14, 14}, {256, 256, 3, 3}, 1, 1},
    {"resnet50 1x1 1024-256 @14", {1, 1024, 14, 14}, {256, 1024, 1, 1}},
    {"resnet50 3x3 512 @7", {1, 512, 7, 7}, {512, 512, 3, 3}, 1, 1},
    {"resnet50 1x1 2048-512 @7", {1, 2048, 7, 7}, {512, 2048, 1, 1}},
    {"resnet50 3x3 256 @14 x8", {8, 256, 14, 14}, {256, 256, 3, 3}, 1, 1},
    {"mobilenet dw 3x3 32 @112", {1, 32, 112, 112}, {32, 1, 3, 3}, 1, 1, 32},
    {"mobilenet dw 3x3/2 96 @112", {1, 96, 112, 112}, {96, 1, 3, 3}, 2, 1, 96},
    {"mobilenet dw 3x3 144 @56", {1, 144, 56, 56}, {144, 1, 3, 3}, 1, 1, 144},
    {"mobilenet dw 3x3/2 192 @28", {1, 192, 28, 28}, {192, 1, 3, 3}, 2, 1, 192},
    {"mobilenet dw 3x3 576 @14", {1, 576, 14, 14}, {576, 1, 3, 3}, 1, 1, 576},
    {"mobilenet dw 3x3 960 @7", {1, 960, 7, 7}, {960, 1, 3, 3}, 1, 1, 960},
    {"unet 3x3 64 @128", {1, 64, 128, 128}, {64, 64, 3, 3}, 1, 1},
    {"unet 3x3 320 @64", {1, 320, 64, 64}, {320, 320, 3, 3}, 1, 1},
    {"unet 3x3 1280 @16", {1, 1280, 16, 16}, {1280, 1280, 3, 3}, 1, 1},
    {"unet out 3x3 320-4 @64", {1, 320, 64, 64}, {4, 320, 3, 3}, 1, 1},
    {"whisper conv1 80-384 @3000", {1, 80, 3000}, {384, 80, 3}, 1, 1},
    {"whisper conv2/2 384 @3000", {1, 384, 3000}, {384, 384, 3}, 2, 1},
    {"resnext 3x3 128 g32 @56", {1, 128, 56, 56}, {128, 4, 3, 3}, 1, 1, 32},
    {"c3d 3x3x3 64 @8x28x28", {1, 64, 8, 28, 28}, {64, 64, 3, 3, 3}, 1, 1},
};

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Tensor filled(const std::vector<int64_t>& sizes, float scale) {
  Tensor t(DType::F32, sizes);
  uint32_t state = 12345;
  for (float& v : t.mutable_values<float>()) {
    state = state * 1664525 + 1013904223;
    v = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
  }
  return t;
}

#ifdef RLX_BENCH_ONEDNN
std::function<void()> make_dnnl(const ConvShape& s, const std::vector<int64_t>& y, bool plain) {
  using namespace dnnl;
  static engine eng(engine::kind::cpu, 0);
  static stream queue(eng);
  const auto rank = s.x.size() - 2;
  memory::dims w(s.w.begin(), s.w.end());
  if (s.groups > 1) {
    w[0] /= s.groups;
    w.insert(w.begin(), s.groups);
  }
  static const memory::format_tag tags[] = {memory::format_tag::ncw, memory::format_tag::nchw,
                                            memory::format_tag::ncdhw};
  const auto tagged = [&](const memory::dims& d) {
    return memory::desc(d, memory::data_type::f32, plain ? tags[rank - 1] : memory::format_tag::any);
  };
  const auto any = [](const memory::dims& d) {
    return memory::desc(d, memory::data_type::f32, memory::format_tag::any);
  };
  const memory::dims strides(rank, s.stride), padding(rank, s.padding);
  const convolution_forward::desc desc(prop_kind::forward_inference, algorithm::convolution_direct,
                                       tagged({s.x.begin(), s.x.end()}), any(w), tagged({y.begin(), y.end()}), strides,
                                       padding, padding);
  const convolution_forward::primitive_desc pd(desc, eng);
  memory x(pd.src_desc(), eng), weights(pd.weights_desc(), eng), result(pd.dst_desc(), eng);
  for (const memory& m : {x, weights}) {
    auto* p = static_cast<float*>(m.get_data_handle());
    for (size_t i = 0; i < m.get_desc().get_size() / 4; ++i) p[i] = 0.01f * static_cast<float>(i % 17);
  }
  const convolution_forward conv(pd);
  return [=] {
    conv.execute(queue, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, result}});
    queue.wait();
  };
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  double log_sum[2] = {};
  int count = 0;
  std::printf("%-28s %9s %9s %7s %11s %7s   GFLOP/s\n", "conv", "rlx", "oneDNN", "ratio", "oneDNN ncx", "ratio");
  for (const ConvShape& s : kShapes) {
    if (std::strstr(s.name, wanted) == nullptr) continue;
    const std::vector<int64_t> kernel(s.w.begin() + 2, s.w.end());
    const Tensor input = filled(s.x, 1), weight = filled(s.w, 0.1f);
    Graph graph;
    const Value x = graph.input("x", input.type()), w = graph.param("w", weight.type());
    const std::vector<int64_t> stride(kernel.size(), s.stride), padding(kernel.size(), s.padding);
    const Value y = ops::conv(x, w, {kernel, stride, padding, {}, s.groups});
    graph.output(y, "y");
    const std::vector<int64_t> sizes = y.type().shape.sizes();
    Executable exe = compile(graph, {.device = "cpu", .threads = threads});
    exe.set_param("w", weight);
    const double flops = 2.0 * static_cast<double>(product(std::span<const int64_t>(sizes))) *
                         static_cast<double>(s.w[1]) * static_cast<double>(product(std::span<const int64_t>(kernel)));
    std::vector<std::function<void()>> runs = {[&] { exe.run_slots({&input, 1}); }};
#ifdef RLX_BENCH_ONEDNN
    runs.push_back(make_dnnl(s, sizes, false));
    runs.push_back(make_dnnl(s, sizes, true));
#endif
    std::vector<double> best(runs.size(), 1e9);
    for (const auto& run : runs) run();
    const int rounds = static_cast<int>(std::min(1000.0, 10 + 1e10 / flops));
    for (int i = 0; i < rounds; ++i)
      for (size_t r = 0; r < runs.size(); ++r) best[r] = std::min(best[r], seconds(runs[r]));
    std::printf("%-28s %9.1f", s.name, flops / best[0] / 1e9);
    for (size_t r = 1; r < runs.size(); ++r) {
      std::printf(" %*.1f %7.2f", r == 1 ? 9 : 11, flops / best[r] / 1e9, best[r] / best[0]);
      log_sum[r - 1] += std::log(best[r] / best[0]);
    }
    ++count;
    std::printf("\n");
    std::fflush(stdout);
  }
#ifdef RLX_BENCH_ONEDNN
  std::printf("%-28s %27.2f %19.2f\n", "geometric mean", std::exp(log_sum[0] / count), std::exp(log_sum[1] / count));
#endif
}
