// The row kernels of the webgpu backend: that they run there and not on the host, at sizes that reach each of their
// paths, on operands that are views and on computed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"
#include "support/tolerance.h"

namespace rlx::test {

namespace {

class WebGpuRows : public testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceInfo& d : devices())
      if (d.name == "webgpu" && !d.available) GTEST_SKIP() << d.why_not;
  }

  // Operand 0 begins one element into an input, so that nothing is aligned; or is computed, and may be overwritten.
  enum class From : uint8_t { kInput, kView, kComputed };

  template <class A>
  void expect_on_gpu(const Op<A>& op, const Tensors& inputs, A attrs = {}, From from = From::kInput,
                     bool first_alone = false) {
    std::string types;
    for (const Tensor& t : inputs) types += str(types.empty() ? "" : ", ", t.type());
    SCOPED_TRACE(str(op.name, " of (", types, "), ", static_cast<int>(from)));
    Graph graph("rows");
    Values operands;
    NamedTensors given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = str("x", i);
      given[name] = inputs[i];
      if (i > 0 || from == From::kInput) {
        operands.push_back(graph.input(name, inputs[i].type()));
      } else if (from == From::kView) {
        const int64_t n = inputs[0].num_elements();
        std::vector<double> values(1, 99.0);
        for (const double v : inputs[0].to_doubles()) values.push_back(v);
        given[name] = Tensor::from_doubles(inputs[0].dtype(), {n + 1}, values);
        const Value whole = graph.input(name, given[name].type());
        const std::vector<int64_t> sizes = inputs[0].sizes();
        operands.push_back(ops::reshape(ops::narrow(whole, {.axis = 0, .start = 1, .len = n}),
                                        {.new_shape = std::vector<Dim>(sizes.begin(), sizes.end())}));
      } else {
        operands.push_back(ops::neg(graph.input(name, inputs[0].type())));
        std::vector<double> values;
        for (const double v : inputs[0].to_doubles()) values.push_back(-v);
        given[name] = Tensor::from_doubles(inputs[0].dtype(), inputs[0].sizes(), values);
      }
    }
    const Value first = graph.add(op, operands, Attrs(attrs));
    const size_t results = first_alone ? 1 : graph.node_of(first.id()).results.size();
    for (size_t r = 0; r < results; ++r) graph.output(first.result(static_cast<int64_t>(r)), str("y", r));
    CompileOptions options{.device = "webgpu", .verify_plan = true, .poison = true};
    options.webgpu.bounds_checks = true;
    options.webgpu.read_once = read_once_;
    Executable exe = compile(std::move(graph), options);
    const NamedTensors out = exe.run(given);
    EXPECT_EQ(exe.stats().device.host_steps, 0);
    EXPECT_GT(exe.stats().device.dispatches, 0);
    const Tensors expected = run_op(op, inputs, Attrs(attrs));
    for (size_t r = 0; r < results; ++r)
      EXPECT_TRUE(near(out.at(str("y", r)), expected[r], tolerance_of(op, Attrs(attrs), inputs, expected[r])))
          << "result " << r;
  }

  template <class A>
  void from_everywhere(const Op<A>& op, const Tensors& inputs, A attrs = {}) {
    for (const From from : {From::kInput, From::kView, From::kComputed}) expect_on_gpu(op, inputs, attrs, from);
  }

  Tensor random(std::vector<int64_t> sizes, DType d = DType::F32) { return rng_.tensor(std::move(sizes), d); }
  Tensor integers(std::vector<int64_t> sizes, int64_t low, int64_t high, DType d = DType::I32) {
    return rng_.integers(std::move(sizes), low, high, d);
  }

  Rng rng_{4};
  std::optional<bool> read_once_;
};

}  // namespace

TEST_F(WebGpuRows, Softmax) {
  from_everywhere(ops::softmax, {random({5, 64})});
  from_everywhere(ops::softmax, {random({3, 8}, DType::F16)});
  expect_on_gpu(ops::softmax, {random({3, 6000})});    // twice the usual registers
  from_everywhere(ops::softmax, {random({2, 9000})});  // chunks
  expect_on_gpu(ops::softmax, {random({2, 9001})});
  from_everywhere(ops::softmax, {random({1, 600, 40})}, {.axis = 1});  // two passes over columns
  from_everywhere(ops::softmax, {random({2, 1100, 7})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({3, 520, 132}, DType::F16)}, {.axis = 1});
  Tensor columns = random({600, 8});
  for (int64_t i = 0; i < 600; ++i) columns.mutable_values<float>()[static_cast<size_t>(8 * i + 3)] = -INFINITY;
  columns.mutable_values<float>()[8 * 300 + 5] = INFINITY;
  columns.mutable_values<float>()[8 * 599 + 6] = NAN;
  expect_on_gpu(ops::softmax, {columns}, {.axis = 0});
  // Many columns or long rows: one dispatch, whose threads keep all their places or some. 1,100 places are more than
  // one batch besides.
  from_everywhere(ops::softmax, {random({130, 600, 4})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({6, 521, 1428})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({129, 1100, 8})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({128, 1300, 12}, DType::F16)}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({2052, 15364})}, {.axis = 0});  // long rows and columns
  Tensor many = random({128, 1000, 4});
  const std::span<float> values = many.mutable_values<float>();
  for (size_t i = 0; i < 1000; ++i) values[4 * i + 1] = -INFINITY;
  values[4 * 100 + 2] = INFINITY;
  values[4 * 999 + 3] = NAN;
  for (size_t i = 0; i < 4000; ++i) values[4000 + i] = -3e38f;
  expect_on_gpu(ops::softmax, {many}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({3, 40, 70})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({40, 90, 132})}, {.axis = 1});  // kept
  expect_on_gpu(ops::softmax, {random({40, 1, 132})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({33, 1020, 36}, DType::F16)}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({16, 5000, 68})}, {.axis = 1});
  expect_on_gpu(ops::softmax, {random({3, 16380})});  // more threads, which keep the row
  for (const int64_t cols : {8195, 16388, 33001}) expect_on_gpu(ops::softmax, {random({128, cols})});
  expect_on_gpu(ops::softmax, {random({128, 33000}, DType::F16)});
  expect_on_gpu(ops::softmax, {random({300, 2, 5})}, {.axis = 1});
  Tensor infinite = random({2, 9000});
  for (int64_t i = 0; i < 9000; ++i) infinite.mutable_values<float>()[static_cast<size_t>(i)] = -INFINITY;
  expect_on_gpu(ops::softmax, {infinite});
}

TEST_F(WebGpuRows, Norms) {
  for (const int64_t cols : {8, 63, 768, 5000, 9000, 9001}) {
    const Tensor x = random({3, cols}), g = random({cols}), b = random({cols});
    from_everywhere(ops::layer_norm, {x, g, b});
    expect_on_gpu(ops::rms_norm, {x, g});
    from_everywhere(ops::fused_residual_ln, {x, random({3, cols}), g, b});
    expect_on_gpu(ops::fused_residual_rms_norm, {x, random({3, cols}), b, g}, {.has_bias = true});
    // Without the sum, which has kernels of its own.
    for (const From from : {From::kInput, From::kView, From::kComputed}) {
      expect_on_gpu(ops::fused_residual_ln, {x, random({3, cols}), g, b}, {}, from, true);
      expect_on_gpu(ops::fused_residual_ln, {x, random({3, cols}), b, g, b}, {.has_bias = true}, from, true);
      expect_on_gpu(ops::fused_residual_rms_norm, {x, random({3, cols}), g}, {}, from, true);
      expect_on_gpu(ops::fused_residual_rms_norm, {x, random({3, cols}), b, g, b}, {.has_bias = true}, from, true);
    }
  }
  for (const DType d : {DType::F16, DType::BF16})
    for (const int64_t cols : {768, 9000, 9001}) {
      const Tensor x = random({2, cols}, d), r = random({2, cols}, d), g = random({cols}, d), b = random({cols}, d);
      expect_on_gpu(ops::layer_norm, {x, g, b});
      expect_on_gpu(ops::rms_norm, {x, g});
      expect_on_gpu(ops::fused_residual_ln, {x, r, g, b});
      expect_on_gpu(ops::fused_residual_rms_norm, {x, r, b, g}, {.has_bias = true}, From::kInput, true);
      expect_on_gpu(ops::layer_norm_backward, {x, g, r});
      expect_on_gpu(ops::rms_norm_backward, {x, g, r});
    }
  const Tensor c = random({40}), d = random({40});
  expect_on_gpu(ops::group_norm, {random({2, 40, 3, 5}), c, d}, {.num_groups = 4});
  from_everywhere(ops::group_norm, {random({2, 40, 4, 5}), c, d}, {.num_groups = 4});
  expect_on_gpu(ops::group_norm, {random({1, 40, 32, 32}), c, d}, {.num_groups = 2});
  expect_on_gpu(ops::group_norm, {random({1, 40, 31, 33}), c, d}, {.num_groups = 2});
  expect_on_gpu(ops::layer_norm2d, {random({2, 40, 7, 9}), c, d});
  expect_on_gpu(ops::layer_norm2d, {random({1, 600, 4, 10}), random({600}), random({600})});
}

// Kernels that only large tensors have.
TEST_F(WebGpuRows, LargeNorms) {
  const auto norms = [&](std::vector<int64_t> shape, DType dtype = DType::F32) {
    const Tensor x = random(shape, dtype), g = random({shape.back()}, dtype), b = random({shape.back()}, dtype);
    expect_on_gpu(ops::layer_norm, {x, g, b});
    expect_on_gpu(ops::rms_norm, {x, g});
  };
  norms({3, 2049});    // gammas before sums
  norms({3, 16380});   // more threads
  norms({128, 8195});  // read twice: by one element, and by four
  norms({129, 16388});
  norms({128, 17000}, DType::F16);
  norms({2, 33000});  // two dispatches
  // Squares overflow in one row; another has a NaN.
  Tensor large = random({128, 16500});
  const std::span<float> values = large.mutable_values<float>();
  for (size_t i = 0; i < 16500; ++i) values[i] *= 1e25f;
  values[3 * 16500 + 16499] = NAN;
  for (const bool centred : {true, false})
    centred ? expect_on_gpu(ops::layer_norm, {large, random({16500}), random({16500})})
            : expect_on_gpu(ops::rms_norm, {large, random({16500})});
  const auto groups = [&](std::vector<int64_t> shape, int64_t count, DType dtype = DType::F32) {
    const int64_t channels = shape[1];
    expect_on_gpu(ops::group_norm, {random(shape, dtype), random({channels}, dtype), random({channels}, dtype)},
                  {.num_groups = count});
  };
  groups({4, 12, 7, 9}, 4);
  groups({3, 8, 61, 71}, 2);   // one row per workgroup
  groups({43, 6, 75, 75}, 3);  // read twice, by one element
  groups({32, 8, 66, 70}, 4);
  groups({32, 12, 64, 70}, 4);   // by four
  groups({64, 4, 132, 132}, 2);  // longer rows
  groups({64, 4, 132, 132}, 2, DType::F16);
  groups({2, 4, 132, 132}, 2);  // two dispatches
  groups({1, 2097152, 2}, 2);   // more gammas than quotients of floats can tell apart
  const auto planes = [&](std::vector<int64_t> shape, DType dtype = DType::F32) {
    const int64_t channels = shape[1];
    expect_on_gpu(ops::layer_norm2d, {random(shape, dtype), random({channels}, dtype), random({channels}, dtype)});
  };
  for (const int64_t channels : {5, 90, 150, 300, 1000, 1300}) planes({9, channels, 22, 26});
  planes({9, 90, 22, 26}, DType::F16);
  planes({17, 700, 22, 26}, DType::F16);
  planes({9, 5000, 4, 120});
}

// Where a mean, or what a chunk or a thread knows of it, loses more by its rounding than results may be off by.
TEST_F(WebGpuRows, NormsFarFromZero) {
  const auto far = [&](std::vector<int64_t> shape) {
    Tensor x = random(std::move(shape));
    for (float& v : x.mutable_values<float>()) v += 1e6f;
    return x;
  };
  for (const auto& [rows, cols] : {std::pair{9, 60}, {300, 5}, {3, 16380}, {2, 33000}, {128, 16500}}) {
    const Tensor x = far({rows, cols}), g = random({cols});
    expect_on_gpu(ops::layer_norm, {x, g, random({cols})});
    expect_on_gpu(ops::layer_norm_backward, {x, g, random({rows, cols})});
  }
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{43, 6, 75, 75}, {2, 4, 132, 132}, {3, 12, 6, 8}}) {
    const Tensor x = far(shape), g = random({shape[1]});
    expect_on_gpu(ops::group_norm, {x, g, random({shape[1]})}, {.num_groups = 2});
    expect_on_gpu(ops::group_norm_backward, {x, g, random(shape)}, {.num_groups = 2});
  }
  for (const int64_t channels : {90, 1300})
    expect_on_gpu(ops::layer_norm2d, {far({9, channels, 22, 26}), random({channels}), random({channels})});
  // So large that the root of a sum of squares is no f32.
  Tensor large = random({2, 33000});
  for (float& v : large.mutable_values<float>()) v *= 1e37f;
  for (const bool read_once : {false, true}) {
    read_once_ = read_once;
    expect_on_gpu(ops::rms_norm, {large, random({33000})});
  }
  for (const auto& [rows, cols] : {std::pair{7, 16500}, {300, 8200}})
    expect_on_gpu(ops::layer_norm, {far({rows, cols}), random({cols}), random({cols})});
}

// States that lose little in a step, and so remember many.
TEST_F(WebGpuRows, LongMemories) {
  constexpr int64_t kSeq = 2000, kWidth = 16;
  const auto uniform = [&](std::vector<int64_t> shape, double low, double high) {
    return rng_.uniform_tensor(std::move(shape), low, high, DType::F32);
  };
  expect_on_gpu(ops::selective_scan,
                {random({1, kSeq, 4}), uniform({1, kSeq, 4}, 1e-4, 2e-4), uniform({4, kWidth}, -2, -0.5),
                 random({1, kSeq, kWidth}), random({1, kSeq, kWidth})},
                {.state_size = kWidth});
  Tensor keys = random({1, kSeq, 1, kWidth}), gates(DType::F32, {1, kSeq, 1}), strengths(DType::F32, {1, kSeq, 1});
  for (float& v : keys.mutable_values<float>()) v *= 0.25f;
  for (float& v : gates.mutable_values<float>()) v = -1e-4f;
  for (float& v : strengths.mutable_values<float>()) v = 1e-4f;
  expect_on_gpu(ops::gated_delta_net,
                {random({1, kSeq, 1, kWidth}), keys, random({1, kSeq, 1, kWidth}), gates, strengths},
                {.state_size = kWidth});
}

// Sums of many like numbers, which all lose the same where the sum is large beside them.
TEST_F(WebGpuRows, LongSums) {
  const auto full = [](std::vector<int64_t> shape, float value) {
    Tensor t(DType::F32, std::move(shape));
    std::ranges::fill(t.mutable_values<float>(), value);
    return t;
  };
  for (const float value : {0.1f, 0.7f}) {
    expect_on_gpu(ops::welch_peaks, {full({30000, 8}, value)}, {.k = 1, .n_segments = 30000});
    expect_on_gpu(ops::pool_mean, {full({1, 1, 512, 512}, value)}, {.kernel_size = {512, 512}});
    expect_on_gpu(ops::matmul, {full({2, 16, 20000}, value), full({2, 20000, 64}, 0.3f)});
    expect_on_gpu(ops::conv2d_backward_weight, {full({4, 3, 256, 256}, 0.3f), full({4, 8, 256, 256}, value)},
                  {.kernel_size = {1, 1}, .weight_shape = {8, 3, 1, 1}});
    Tensor w(DType::U8, {weight_bytes(Scheme::kGgufQ8_0, 20000, 8)});
    for (size_t i = 0; i < w.bytes().size(); ++i)
      w.mutable_values<uint8_t>()[i] = i % 34 == 0 ? 0xCD : i % 34 == 1 ? 0x34 : 1;
    expect_on_gpu(ops::dequant_matmul, {full({9, 20000}, value), w}, {.scheme = Scheme::kGgufQ8_0});
  }
}

// By workgroups that wait for each other, where the device lets them: otherwise the same in three dispatches. Some rows
// are more than those that a workgroup finishes together, and some tiles are not full.
TEST_F(WebGpuRows, NormsReadOnce) {
  read_once_ = true;
  for (const auto& [rows, cols] : {std::pair{7, 16500}, {2, 33000}, {1, 70000}, {300, 8200}})
    for (const DType dtype : {DType::F32, DType::F16}) {
      const Tensor x = random({rows, cols}, dtype), g = random({cols}, dtype), b = random({cols}, dtype);
      from_everywhere(ops::layer_norm, {x, g, b});
      expect_on_gpu(ops::rms_norm, {x, g});
      expect_on_gpu(ops::fused_residual_ln, {x, x, g, b});
    }
  for (const int64_t groups : {1, 2, 12})
    from_everywhere(ops::group_norm, {random({5, 12, 132, 132}), random({12}), random({12})}, {.num_groups = groups});
  // A row's squares overflow, one is far from 0, one has a NaN.
  Tensor odd = random({9, 20000});
  const std::span<float> values = odd.mutable_values<float>();
  for (size_t i = 0; i < 20000; ++i) values[i] *= 1e25f, values[20000 + i] += 1000;
  values[3 * 20000 + 19999] = NAN;
  expect_on_gpu(ops::layer_norm, {odd, random({20000}), random({20000})});
  expect_on_gpu(ops::rms_norm, {odd, random({20000})});
  // Twice with other values: nothing is left of the first run's sums.
  Graph graph("twice");
  const Value in = graph.input("x", odd.type());
  graph.output(ops::rms_norm(in, graph.input("g", {{20000}, DType::F32})), "y");
  CompileOptions options{.device = "webgpu"};
  options.webgpu.read_once = true;
  Executable exe = compile(std::move(graph), options);
  for (int i = 0; i < 2; ++i) {
    const Tensors inputs = {random({9, 20000}), random({20000})};
    const Tensors expected = run_op(ops::rms_norm, inputs, Attrs(ops::RmsNormAttrs{}));
    const Tensor y = exe.run({{"x", inputs[0]}, {"g", inputs[1]}}).at("y");
    EXPECT_TRUE(near(y, expected[0], tolerance_of(ops::rms_norm, Attrs(ops::RmsNormAttrs{}), inputs, expected[0])));
  }
}

// Weights that are large enough for workgroups with more rows of them, of which the last has not all.
TEST_F(WebGpuRows, LargePackedProducts) {
  // As many elements as the forms with the most rows per workgroup take; rows and columns that no workgroup fills.
  constexpr int64_t kCols = 5376;
  for (const auto& [scheme, rows] : {std::pair{Scheme::kGgufQ4_0, 6242},
                                     {Scheme::kGgufQ5_1, 6242},
                                     {Scheme::kGgufQ8_0, 6242},
                                     {Scheme::kGgufQ4K, 12490},
                                     {Scheme::kGgufQ6K, 6242}}) {
    Tensor w(DType::U8, {weight_bytes(scheme, kCols, rows)});
    for (uint8_t& b : w.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng_.bits() & 0xBF);  // no scale is inf
    expect_on_gpu(ops::dequant_matmul, {random({1, kCols}), w}, {.scheme = scheme});
  }
}

TEST_F(WebGpuRows, NormGradients) {
  for (const int64_t cols : {12, 65, 9000}) {
    const Tensor x = random({7, cols}), g = random({cols}), dy = random({7, cols});
    from_everywhere(ops::layer_norm_backward, {x, g, dy});
    expect_on_gpu(ops::rms_norm_backward, {x, g, dy});
    expect_on_gpu(ops::rms_norm_backward, {x, g, g, dy});
  }
  expect_on_gpu(ops::layer_norm_backward, {random({900, 5}), random({5}), random({900, 5})});
  for (const int64_t width : {5, 8})
    expect_on_gpu(ops::group_norm_backward, {random({3, 12, 6, width}), random({12}), random({3, 12, 6, width})},
                  {.num_groups = 3});
}

TEST_F(WebGpuRows, Reductions) {
  for (const auto* op : {&ops::reduce_sum, &ops::reduce_mean, &ops::reduce_max, &ops::reduce_min}) {
    from_everywhere(*op, {random({6, 400})}, {.axes = {1}});
    expect_on_gpu(*op, {random({200001})}, {.axes = {0}});
    expect_on_gpu(*op, {random({700, 33})}, {.axes = {0}});
    from_everywhere(*op, {random({700, 36})}, {.axes = {0}});  // four columns at once
    expect_on_gpu(*op, {random({3, 20, 8}, DType::F16)}, {.axes = {1}});
    expect_on_gpu(*op, {random({3, 50, 7})}, {.axes = {1}});
    for (const DType d : {DType::I32, DType::U8, DType::I16, DType::F16, DType::BF16})
      expect_on_gpu(*op, {integers({9, 1000}, 0, 100, d)}, {.axes = {1}});
  }
  expect_on_gpu(ops::reduce_mean, {integers({2, 3000}, 2147480000, 2147483647)}, {.axes = {1}});
  expect_on_gpu(ops::reduce_mean, {integers({2, 3000}, -2147483647, -2147480000)}, {.axes = {1}});
  expect_on_gpu(ops::reduce_prod, {rng_.uniform_tensor({3, 600}, -4, 4, DType::F32)}, {.axes = {1}});
}

TEST_F(WebGpuRows, Scans) {
  for (const bool reverse : {false, true})
    for (const bool exclusive : {false, true}) {
      const ops::CumsumAttrs last{.axis = -1, .exclusive = exclusive, .reverse = reverse};
      const ops::CumsumAttrs first{.axis = 0, .exclusive = exclusive, .reverse = reverse};
      expect_on_gpu(ops::cumsum, {random({300, 3})}, last);
      expect_on_gpu(ops::cumsum, {random({2, 20001})}, last);
      expect_on_gpu(ops::cumsum, {integers({3000, 5}, -9, 9)}, first);
      expect_on_gpu(ops::cumsum, {random({300, 36})}, last);  // rows in registers
      expect_on_gpu(ops::cumsum, {integers({3, 4096}, -9, 9)}, last);
      for (const int64_t n : {8000, 9000, 16384}) expect_on_gpu(ops::cumsum, {random({2, n})}, last);
      expect_on_gpu(ops::cumsum, {random({2, 20004})}, last);  // chunks of such
      expect_on_gpu(ops::cumsum_backward, {random({2, 7000})}, last);
      expect_on_gpu(ops::cumprod, {rng_.uniform_tensor({2, 900}, 0.9, 1.1, DType::F32)}, last);
    }
  from_everywhere(ops::cumsum, {random({4, 1030}, DType::F16)});
  from_everywhere(ops::cumsum, {random({4, 1032}, DType::F16)});
  for (const From from : {From::kInput, From::kView})  // u8 has no negative numbers to compute it from
    expect_on_gpu(ops::cumsum, {integers({5, 40}, 0, 200, DType::U8)}, {}, from);
}

TEST_F(WebGpuRows, Selection) {
  for (const auto* op : {&ops::argmax, &ops::argmin}) {
    expect_on_gpu(*op, {random({40, 30})});
    from_everywhere(*op, {integers({1, 100000}, 0, 50)});
    expect_on_gpu(*op, {random({3000, 40})}, {.axis = 0});
  }
  for (const bool largest : {true, false}) {
    from_everywhere(ops::topk, {random({3, 100})}, {.k = 7, .largest = largest});
    expect_on_gpu(ops::topk, {random({2, 2048})}, {.k = 2048, .largest = largest});
    expect_on_gpu(ops::topk, {integers({2, 5000}, -3, 3)}, {.k = 2500, .largest = largest});
    expect_on_gpu(ops::topk, {random({3000, 3})}, {.k = 5, .axis = 0, .largest = largest});
    expect_on_gpu(ops::topk, {random({1, 3000}, DType::F16)}, {.k = 3000, .largest = largest});
  }
  expect_on_gpu(ops::topk, {random({66000, 2})}, {.k = 1});  // more workgroups than one axis of a grid has
}

TEST_F(WebGpuRows, Sample) {
  const Tensor rng = Tensor::of<uint32_t>(DType::U32, {4}, std::vector<uint32_t>{42, 7, 3, 1});
  const Tensor logits = rng_.uniform_tensor({20, 1000}, -6, 6, DType::F32),
               ties = integers({20, 300}, 0, 3).cast(DType::F32);
  for (const ops::SampleAttrs& attrs : {ops::SampleAttrs{.seed = 5},
                                        {.top_k = 40, .seed = 6},
                                        {.top_p = 0.9f, .temperature = 0.7f, .seed = 7},
                                        {.top_k = 50, .top_p = 0.3f, .seed = 8},
                                        {.temperature = 0},
                                        {.top_k = 1},
                                        {.top_p = 0, .seed = 9}}) {
    expect_on_gpu(ops::sample, {logits}, attrs);
    expect_on_gpu(ops::sample, {logits, rng}, attrs);
    expect_on_gpu(ops::sample, {ties}, attrs);
  }
  from_everywhere(ops::sample, {random({3, 5001})}, {.top_k = 100, .top_p = 0.95f});
}

TEST_F(WebGpuRows, CrossEntropy) {
  for (const int64_t classes : {3, 400, 9000, 9001}) {
    const Tensor logits = rng_.uniform_tensor({5, classes}, -9, 9, DType::F32), labels = integers({5}, 0, classes - 1);
    from_everywhere(ops::softmax_cross_entropy_with_logits, {logits, labels});
    from_everywhere(ops::softmax_cross_entropy_backward, {logits, labels, random({5})});
    // Sure of the label, and of another class.
    for (const float more : {12.0f, 25.0f, -25.0f}) {
      Tensor sure = rng_.uniform_tensor({5, classes}, -1, 1, DType::F32);
      for (int64_t i = 0; i < 5; ++i)
        sure.mutable_values<float>()[static_cast<size_t>(i * classes) + static_cast<size_t>(labels.at(i))] += more;
      expect_on_gpu(ops::softmax_cross_entropy_with_logits, {sure, labels});
      expect_on_gpu(ops::softmax_cross_entropy_backward, {sure, labels, random({5})});
    }
  }
}

}  // namespace rlx::test
