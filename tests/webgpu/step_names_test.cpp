// Every step name of spec 40, 4 stands in a report: a row is a name and a graph whose schedule must show it.
#include <functional>
#include <sstream>

#include "as_oracle.h"
#include "rlx/custom_op.h"
#include "rlx/log.h"

namespace rlx::test {

namespace {

struct Row {
  const char* name;
  std::function<void(Maker&)> build;
};

const Chain kTwice = {{.op = &ops::tanh, .operands = {{false, 0}}}, {.op = &ops::exp, .operands = {{true, 0}}}};

ops::ConvAttrs window(int64_t axes) {
  const std::vector<int64_t> ones(static_cast<size_t>(axes), 1), zeros(static_cast<size_t>(axes), 0),
      twos(static_cast<size_t>(axes), 2);
  return {.kernel_size = twos, .stride = ones, .padding = zeros, .dilation = ones};
}

Shape image(int64_t channels, int64_t axes, int64_t size) {
  std::vector<int64_t> sizes = {2, channels};
  sizes.insert(sizes.end(), static_cast<size_t>(axes), size);
  return Shape(std::span<const int64_t>(sizes));
}

void conv(Maker& m, int64_t axes) {
  const Value x = m.in(image(3, axes, 5));
  Shape w = image(3, axes, 2);
  m.out(ops::conv(x, m.weight(std::move(w)), window(axes)));
}

void pool(Maker& m, int64_t axes) {
  const ops::ConvAttrs a = window(axes);
  m.out(
      ops::pool_max(m.in(image(3, axes, 5)),
                    {.kernel_size = a.kernel_size, .stride = a.stride, .padding = a.padding, .dilation = a.dilation}));
}

void norm_gradients(Maker& m, bool rms) {
  const Value x = m.in({4, 6}), gamma = m.weight({6}), dy = m.in({4, 6});
  const Value dx = rms ? ops::rms_norm_backward({x, gamma, m.weight({6}), dy}) : ops::layer_norm_backward(x, gamma, dy);
  for (int64_t i = 0; i < 3; ++i) m.out(dx.result(i));
}

Values scene(Maker& m) {
  const int64_t n = 5;
  return {m.in({3 * n}), m.in({3 * n}), m.in({4 * n}), m.in({n}), m.in({3 * n}), m.in({9 * n}), m.in({23})};
}

void codes(Maker& m, Scheme scheme) {
  const int64_t k = 2 * info(scheme).block_elems, n = 4;
  m.out(ops::dequant_matmul(m.in({3, k}), m.weight({weight_bytes(scheme, k, n)}, DType::U8), {.scheme = scheme}));
}

Bytes words(std::vector<uint32_t> list) {
  Bytes bytes;
  for (const uint32_t w : list)
    for (int i = 0; i < 4; ++i) bytes.data.push_back(static_cast<uint8_t>(w >> (8 * i)));
  return bytes;
}

Value knn(Maker& m) { return custom_op("umap.knn", Values{m.in({6, 6})}, words({2}).data); }

// What the GPU has no kernel for, for want of doubles, is the cpu's.
const DType kWide = DType::F64;

const Row kRows[] = {
    {"cast_f32_to_f16", [](Maker& m) { m.out(ops::cast(m.in({3}), {.to = DType::F16})); }},
    {"matmul",
     [](Maker& m) {
       m.out(ops::matmul(m.in({3, 4}), m.weight({4, 5})));
     }},
    {"binary", [](Maker& m) { m.out(m.in({3}) + m.in({3})); }},
    {"compare", [](Maker& m) { m.out(ops::lt(m.in({3}), m.in({3}))); }},
    {"unary", [](Maker& m) { m.out(ops::tanh(m.in({3}))); }},
    {"where", [](Maker& m) { m.out(ops::where(m.in({3}, DType::Bool), m.in({3}), m.in({3}))); }},
    {"reduce",
     [](Maker& m) {
       m.out(ops::reduce_sum(m.in({3, 4}), {.axes = {0}}));
     }},
    {"softmax",
     [](Maker& m) {
       m.out(ops::softmax(m.in({3, 4})));
     }},
    {"layer_norm",
     [](Maker& m) {
       m.out(ops::layer_norm(m.in({3, 4}), m.weight({4}), m.weight({4})));
     }},
    {"cumsum",
     [](Maker& m) {
       m.out(ops::cumsum(m.in({3, 4})));
     }},
    {"fft_gpu",
     [](Maker& m) {
       m.out(ops::fft(m.in({2, 16})));
     }},
    {"fft_host",
     [](Maker& m) {
       m.out(ops::fft(m.in({2, 16}, kWide)));
     }},
    {"welch_peaks_gpu",
     [](Maker& m) {
       m.out(ops::welch_peaks(m.in({2, 16}), {.k = 2}));
     }},
    {"welch_peaks_host",
     [](Maker& m) {
       m.out(ops::welch_peaks(m.in({2, 16}, kWide), {.k = 2}));
     }},
    {"log_mel",
     [](Maker& m) {
       m.out(ops::log_mel(m.in({2, 16}), m.weight({3, 5})));
     }},
    {"log_mel_host",
     [](Maker& m) {
       m.out(ops::log_mel(m.in({2, 16}, kWide), m.weight({3, 5}, kWide)));
     }},
    {"log_mel_backward",
     [](Maker& m) {
       m.out(ops::log_mel_backward(m.in({2, 16}), m.weight({3, 5}), m.in({2, 3})));
     }},
    {"log_mel_backward_host",
     [](Maker& m) {
       m.out(ops::log_mel_backward(m.in({2, 16}, kWide), m.weight({3, 5}, kWide), m.in({2, 3}, kWide)));
     }},
    {"im2col",
     [](Maker& m) {
       const ops::ConvAttrs a = window(2);
       m.out(ops::im2col(m.in({1, 2, 4, 4}), {a.kernel_size, a.stride, a.padding, a.dilation}));
     }},
    {"im2col_host",
     [](Maker& m) {
       const ops::ConvAttrs a = window(2);
       m.out(ops::im2col(m.in({1, 2, 4, 4}, kWide), {a.kernel_size, a.stride, a.padding, a.dilation}));
     }},
    {"buffer_copy",
     [](Maker& m) {  // two states that change places
       const Value a = m.g.state("a", {{3}, DType::F32}), b = m.g.state("b", {{3}, DType::F32});
       m.g.update(a, b);
       m.g.update(b, a);
       m.out(a + b);
     }},
    {"copy",  // of the cache, which is an input that must stay as it is
     [](Maker& m) {
       m.out(ops::kv_append(m.in({1, 4, 2}), m.in({1, 1, 2}), m.in({1}, DType::I32)));
     }},
    {"transpose",
     [](Maker& m) {
       m.out(ops::transpose(m.in({3, 4}), {.perm = {1, 0}}));
     }},
    {"narrow",
     [](Maker& m) {
       m.out(ops::narrow(m.in({3, 4}), {.axis = 1, .start = 1, .len = 2}));
     }},
    {"concat",
     [](Maker& m) {
       m.out(ops::concat(m.in({3, 4}), m.in({3, 2}), {.axis = 1}));
     }},
    {"gather",
     [](Maker& m) {
       m.out(ops::gather(m.in({3, 4}), m.in({2}, DType::I32)));
     }},
    {"gather_axis",
     [](Maker& m) {
       m.out(ops::gather(m.in({3, 4}), m.in({2}, DType::I32), {.axis = 1}));
     }},
    {"attention",
     [](Maker& m) {
       m.out(
           ops::attention(m.in({1, 2, 3, 4}), m.in({1, 2, 3, 4}), m.in({1, 2, 3, 4}), {.num_heads = 2, .head_dim = 4}));
     }},
    {"attention_bwd",
     [](Maker& m) {
       const auto x = [&] { return m.in({1, 2, 3, 4}); };
       m.out(ops::attention_backward(Values{x(), x(), x(), x()}, {.num_heads = 2, .head_dim = 4}));
     }},
    {"rope",
     [](Maker& m) {
       m.out(ops::rope(m.in({1, 2, 3, 4}), m.weight({3, 2}), m.weight({3, 2}), {.head_dim = 4}));
     }},
    {"rope_backward",
     [](Maker& m) {
       m.out(ops::rope_backward(m.in({1, 2, 3, 4}), m.weight({3, 2}), m.weight({3, 2}), {.head_dim = 4}));
     }},
    {"expand",
     [](Maker& m) {
       m.out(ops::expand(m.in({3, 1}), {.target_shape = {3, 4}}));
     }},
    {"argmax",
     [](Maker& m) {
       m.out(ops::argmax(m.in({3, 4})));
     }},
    {"pool1d", [](Maker& m) { pool(m, 1); }},
    {"pool2d", [](Maker& m) { pool(m, 2); }},
    {"pool3d", [](Maker& m) { pool(m, 3); }},
    {"conv1d", [](Maker& m) { conv(m, 1); }},
    {"conv2d", [](Maker& m) { conv(m, 2); }},
    {"conv3d", [](Maker& m) { conv(m, 3); }},
    {"scatter_add",
     [](Maker& m) {
       m.out(ops::scatter_add(m.in({3, 4}), m.in({3}, DType::I32), {.rows = 5}));
     }},
    {"topk",
     [](Maker& m) {
       m.out(ops::topk(m.in({3, 8}), {.k = 2}));
     }},
    {"grouped_matmul",
     [](Maker& m) {
       m.out(ops::grouped_matmul(m.in({3, 4}), m.weight({2, 4, 5}), m.in({3}, DType::I32)));
     }},
    {"sample",
     [](Maker& m) {
       m.out(ops::sample(m.in({2, 9}), {.top_k = 3}));
     }},
    {"selective_scan",
     [](Maker& m) {
       m.out(ops::selective_scan(
           Values{m.in({1, 3, 4}), m.in({1, 3, 4}), m.weight({4, 2}), m.in({1, 3, 2}), m.in({1, 3, 2})},
           {.state_size = 2}));
     }},
    {"dequant_matmul",
     [](Maker& m) {
       m.out(
           ops::dequant_matmul(Values{m.in({2, 32}), m.weight({32, 3}, DType::U8), m.weight({1, 3}), m.weight({1, 3})},
                               {.scheme = Scheme::kInt8}));
     }},
    {"dequant_matmul_gguf", [](Maker& m) { codes(m, Scheme::kGgufQ4K); }},
    {"dequant_grouped_matmul_gguf",
     [](Maker& m) {
       const int64_t bytes = 2 * weight_bytes(Scheme::kGgufQ4_0, 32, 3);
       m.out(ops::dequant_grouped_matmul(m.in({4, 32}), m.weight({bytes}, DType::U8), m.in({4}, DType::I32),
                                         {.scheme = Scheme::kGgufQ4_0, .n = 3}));
     }},
    {"gated_delta_net",
     [](Maker& m) {
       const auto x = [&] { return m.in({1, 3, 2, 4}); };
       m.out(ops::gated_delta_net(Values{x(), x(), x(), m.in({1, 3, 2}), m.in({1, 3, 2})}, {.state_size = 4}));
     }},
    {"llada2_group_limited_gate",
     [](Maker& m) {
       m.out(custom_op("llada2.group_limited_gate", Values{m.in({2, 4}), m.in({2, 4})},
                       words({2, 1, 2, 0x3f800000, 4}).data));
     }},
    {"umap_knn", [](Maker& m) { m.out(knn(m)); }},
    {"gaussian_splat_render", [](Maker& m) { m.out(ops::gaussian_splat_render(scene(m))); }},
    {"gaussian_splat_render_backward",
     [](Maker& m) {
       Values all = scene(m);
       all.push_back(m.in({64 * 64 * 4}));
       m.out(ops::gaussian_splat_render_backward(all));
     }},
    {"gaussian_splat_prepare", [](Maker& m) { m.out(ops::gaussian_splat_prepare(scene(m))); }},
    {"gaussian_splat_rasterize",
     [](Maker& m) {
       const Values all = scene(m);
       const Value prep = ops::gaussian_splat_prepare(all);
       m.out(ops::gaussian_splat_rasterize(prep, prep.result(1), all[6]));
     }},
    {"rms_norm_backward_input", [](Maker& m) { norm_gradients(m, true); }},
    {"rms_norm_backward_gamma", [](Maker& m) { norm_gradients(m, true); }},
    {"rms_norm_backward_beta", [](Maker& m) { norm_gradients(m, true); }},
    {"layer_norm_backward_input", [](Maker& m) { norm_gradients(m, false); }},
    {"layer_norm_backward_gamma_partial", [](Maker& m) { norm_gradients(m, false); }},
    {"layer_norm_backward_gamma_reduce", [](Maker& m) { norm_gradients(m, false); }},
    {"cumsum_backward",
     [](Maker& m) {
       m.out(ops::cumsum_backward(m.in({3, 4})));
     }},
    {"gather_backward",
     [](Maker& m) {
       m.out(ops::gather_backward(m.in({2, 4}), m.in({2}, DType::I32), {.table_shape = {5, 4}}));
     }},
    {"fused_residual_ln",
     [](Maker& m) {
       m.out(ops::layer_norm(m.in({3, 4}) + m.in({3, 4}), m.weight({4}), m.weight({4})));
     }},
    {"fused_residual_ln_tee",
     [](Maker& m) {
       const Value sum = m.in({3, 4}) + m.in({3, 4});
       m.out(ops::layer_norm(sum, m.weight({4}), m.weight({4})));
       m.out(sum);
     }},
    {"fused_residual_rms_norm",
     [](Maker& m) {
       m.out(ops::rms_norm(m.in({3, 4}) + m.in({3, 4}), m.weight({4})));
     }},
    {"fused_residual_rms_norm_tee",
     [](Maker& m) {
       const Value sum = m.in({3, 4}) + m.in({3, 4});
       m.out(ops::rms_norm(sum, m.weight({4})));
       m.out(sum);
     }},
    {"matmul_qkv",
     [](Maker& m) {
       const Value qkv = ops::matmul(m.in({3, 4}), m.weight({4, 12})) + m.weight({12});
       for (int64_t i = 0; i < 3; ++i) m.out(ops::narrow(qkv, {.axis = 1, .start = 4 * i, .len = 4}));
     }},
    {"elementwise_region", [](Maker& m) { m.out(ops::exp(ops::tanh(m.in({3})))); }},
    {"batch_elementwise_region",
     [](Maker& m) {
       m.out(ops::batch_elementwise_region(m.in({1, 2}), m.in({1, 2}), {.chain = kTwice, .num_batch_inputs = 2}));
     }},
};

// The steps and their counts, as the report of RLX_WGPU_SCHEDULE lists them, and the plan's own names.
struct Schedule {
  std::map<std::string, int64_t> report;
  std::vector<StepInfo> steps;
};
Schedule schedule_of(const Row& row) {
  Maker m;
  row.build(m);
  std::string text;
  set_log([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::kReport) text += line;
  });
  CompileOptions options = webgpu_options();
  options.webgpu.schedule_report = true;
  Schedule out;
  out.steps = compile(m.g, options).plan().steps;
  set_log({});
  std::istringstream lines(text);
  std::string line, name;
  for (int64_t count = 0; std::getline(lines, line);)
    if (std::istringstream(line) >> name >> count) out.report[name] = count;
  return out;
}

bool is_host(std::string_view name) { return name.ends_with("_host"); }

void expect_step(const Row& row) {
  SCOPED_TRACE(row.name);
  const Schedule schedule = schedule_of(row);
  EXPECT_GT(schedule.report.contains(row.name) ? schedule.report.at(row.name) : 0, 0);
  for (const StepInfo& s : schedule.steps) {
    EXPECT_TRUE(schedule.report.contains(s.name)) << s.name;
    EXPECT_EQ(is_host(s.name), !s.kernel.starts_with("webgpu/")) << s.name << " runs as " << s.kernel;
    EXPECT_EQ(is_host(s.name), is_host(row.name)) << s.name;
  }
}

}  // namespace

using StepNamesOnWebGpu = WebGpu;

TEST_F(StepNamesOnWebGpu, AllOfTheSpecification) {
  for (const Row& row : kRows) expect_step(row);
}

// A kernel that somebody registers for the cpu replaces the GPU's: in a process of its own, which it changes for good.
TEST_F(StepNamesOnWebGpu, CustomOpsThatTheHostRuns) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto check = [] {
    register_custom_kernel("umap.knn", "cpu", [](const CustomCall&) {});
    expect_step({"umap_knn_host", [](Maker& m) { m.out(knn(m)); }});
    std::exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

}  // namespace rlx::test
