// The runtime allocates nothing in a steady run. (Kernels of the oracle may use small temporaries: transpose does.)
#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/allocations.h"
#include "support/random.h"

namespace rlx::test {

TEST(SteadyRun, AllocatesNothing) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), 8}, DType::F32}), w = g.param("w", {{8}, DType::F32});
  const Value s = g.state("s", {{8}, DType::F32});
  const Value y = ops::softmax(ops::tanh(x * w) + s);
  g.update(s, s + w);
  g.output(ops::cast(y, {.to = DType::F16}), "y");
  g.output(ops::concat(y, x, {.axis = 1}), "z");
  Executable exe = compile(g, {.device = "reference"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const std::vector<Tensor> inputs = {rng.tensor({4, 8})};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

// Element-wise programs are built at every run, in place of nothing on the heap.
TEST(SteadyRun, AllocatesNothingInCpuElementwiseKernels) {
  const auto in = [](int32_t i) { return ChainOperand{.is_step = false, .index = i}; };
  const auto step = [](int32_t s) { return ChainOperand{.is_step = true, .index = s}; };
  Graph g;
  const Value x = g.input("x", {{70, 300}, DType::F32}), row = g.input("row", {{300}, DType::F16});
  const Chain chain = {{&ops::cast, {in(1)}, DType::F32},
                       {&ops::mul, {in(0), step(0)}},
                       {&ops::gelu, {step(1)}},
                       {&ops::gt, {step(2), in(0)}},
                       {&ops::where, {step(3), step(2), in(0)}}};
  const Value y = ops::elementwise_region(Values{x, row}, {.chain = chain, .num_inputs = 2});
  g.output(ops::fused_swiglu(ops::tanh(y) + x), "y");
  g.output(ops::cast(y, {.to = DType::I8}), "z");
  g.output(ops::is_inf(y), "inf");
  const Value n = ops::cast(y, {.to = DType::I32});
  g.output(ops::mod(ops::shift_left(n, n), g.constant(Tensor::i32({}, {7}))), "mod");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  Rng rng(1);
  const std::vector<Tensor> inputs = {rng.tensor({70, 300}), rng.tensor({300}, DType::F16)};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

// The row kernels of the cpu backend take their working memory from the plan, on one thread and on several.
TEST(SteadyRun, RowKernelsAllocateNothing) {
  for (const DType d : {DType::F32, DType::BF16})
    for (const int threads : {1, 3}) {
      Graph g;
      const Value x = g.input("x", {{40, 30, 70}, d}), gamma = g.input("gamma", {{70}, d});
      const Value rows = ops::reshape(x, {.new_shape = {1200, 70}});
      const Value labels = g.input("labels", {{1200}, DType::I32});
      const Value outputs[] = {
          ops::reduce_sum(x, {.axes = {2}}),
          ops::reduce_mean(x, {.axes = {0, 2}}),
          ops::reduce_max(x, {.axes = {0, 1, 2}}),
          ops::softmax(x),
          ops::softmax(x, {.axis = 1}),
          ops::layer_norm(x, gamma, gamma),
          ops::rms_norm(x, gamma),
          ops::fused_residual_ln(x, x, gamma, gamma),
          ops::layer_norm_backward(x, gamma, x),
          ops::softmax_cross_entropy_with_logits(rows, labels),
          ops::cumsum(x),
          ops::cumsum(x, {.axis = 0}),
          ops::argmax(x, {.axis = 1}),
          ops::topk(x, {.k = 5}),
          ops::sample(rows, {.top_p = 0.9f}),
      };
      int i = 0;
      for (const Value& y : outputs) g.output(y, str("y", i++));
      // The transpose that lower_reduce puts before axes 0 and 2 is the oracle's, and the kernel does not need it.
      Executable exe = compile(g, {.device = "cpu", .threads = threads, .skip_passes = {"lower_reduce"}});
      Rng rng(1);
      const std::vector<Tensor> inputs = {rng.tensor({40, 30, 70}, d), rng.tensor({70}, d), Tensor(DType::I32, {1200})};
      exe.run_slots(inputs);
      exe.run_slots(inputs);
      const auto before = allocations();
      for (int n = 0; n < 3; ++n) exe.run_slots(inputs);
      EXPECT_EQ(allocations(), before) << str(d, ", ", threads, " threads");
    }
}

// Kernels of the cpu backend that work in scratch memory take it from the plan.
TEST(SteadyRun, AllocatesNothingInCpuAttentionAndDataMovement) {
  Graph g;
  const Value x = g.input("x", {{2, 70, 4, 24}, DType::F16}), past = g.state("past", {{2, 300, 2, 24}, DType::F16});
  const Value len = g.input("len", {{2}, DType::I32}), table = g.param("table", {{300, 12}, DType::F32});
  const ops::AttentionLayout bshd = ops::AttentionLayout::kBshd;
  const Value q = ops::rope(x, table, table, {.head_dim = 24, .layout = bshd});
  const Value k = ops::kv_append(past, ops::narrow(x, {.axis = 2, .start = 1, .len = 2}), len);
  g.update(past, k);
  const auto attend = [&](const Value& queries) {
    return ops::attention(queries, k, k, {.num_heads = 4, .head_dim = 24, .layout = bshd});
  };
  const Value many = attend(q), few = attend(ops::narrow(q, {.axis = 1, .start = 3, .len = 1}));
  const Value y = ops::transpose(ops::concat(many, few, {.axis = 1}), {.perm = {0, 2, 3, 1}});
  g.output(y, "y");
  g.output(ops::scatter_add(ops::gather(y, len), len, {.rows = 9}), "z");
  g.output(ops::expand(ops::reshape(len, {.new_shape = {2, 1}}), {.target_shape = {2, 100}}), "e");
  g.output(ops::resize_nearest_2x(y), "r");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  Rng rng(1);
  exe.set_param("table", rng.tensor({300, 12}));
  const std::vector<Tensor> inputs = {rng.tensor({2, 70, 4, 24}, DType::F16), Tensor::i32({2}, {0, 1})};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

TEST(SteadyRun, MovesByPlaceAndResizesAllocateNothing) {
  for (const DType d : {DType::F32, DType::F16}) {
    Graph g;
    const Value x = g.input("x", {{2, 6, 20, 30}, d}), at = g.input("at", {{2, 6, 20, 30}, DType::I32});
    const Value grid = g.input("grid", {{2, 7, 9, 2}, DType::F32}), rois = g.input("rois", {{3, 4}, DType::F32});
    const std::vector<Dim> larger = {2, 6, 33, 47}, volume = {2, 9, 33, 47};
    const Value updates = ops::gather_elements(x, at, {.axis = 2});
    const Value places = ops::narrow(at, {.axis = 3, .start = 0, .len = 3});
    const Value outputs[] = {
        ops::pad(x, {.before = {0, 1, 2, 3}, .after = {1, 0, 0, -4}}),
        ops::pad(x, {.mode = ops::PadMode::kReflect, .before = {0, 1, 2, 3}, .after = {1, 0, 0, -4}}),
        ops::slice(x, {.start = {1, 0, 19, 1}, .step = {-1, 1, -2, 3}, .len = {2, 6, 10, 9}}),
        ops::gather_nd(x, places),
        ops::scatter_elements(x, at, updates, {.axis = 1}),
        ops::scatter_elements(x, at, updates, {.axis = 3, .reduction = ops::ScatterReduction::kAdd}),
        ops::scatter_nd(x, places, ops::gather_nd(x, places), {.reduction = ops::ScatterReduction::kAdd}),
        ops::resize(x, {.sizes = larger}),
        ops::resize(x, {.sizes = larger, .mode = ops::ResizeMode::kLinear}),
        ops::resize(x, {.sizes = volume, .mode = ops::ResizeMode::kCubic, .antialias = true}),
    };
    int i = 0;
    for (const Value& y : outputs) g.output(y, str("y", i++));
    if (d == DType::F32) {
      g.output(ops::grid_sample(x, grid), "sampled");
      g.output(ops::roi_align(x, rois, g.input("image", {{3}, DType::I64}), {.output_height = 4}), "aligned");
    }
    Executable exe = compile(g, {.device = "cpu", .threads = 2});
    Rng rng(1);
    std::vector<Tensor> inputs = {rng.tensor({2, 6, 20, 30}, d), rng.integers({2, 6, 20, 30}, -2, 1),
                                  rng.tensor({2, 7, 9, 2}), rng.uniform_tensor({3, 4}, 0, 20)};
    if (d == DType::F32) inputs.push_back(rng.integers({3}, 0, 1, DType::I64));
    exe.run_slots(inputs);
    exe.run_slots(inputs);
    const auto before = allocations();
    for (int n = 0; n < 3; ++n) exe.run_slots(inputs);
    EXPECT_EQ(allocations(), before) << str(d);
  }
}

TEST(SteadyRun, QuantisedMatmulsAllocateNothing) {
  Rng rng(2);
  const auto bytes = [&](int64_t n) {
    Tensor t(DType::U8, {n});
    for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
    return t;
  };
  const int64_t k = 256, n = 40, m = 5, experts = 3;
  const Scheme scheme = Scheme::kGgufQ4K;
  Graph g;
  const Value x = g.input("x", {{m, k}, DType::F32}), choice = g.input("choice", {{m}, DType::I32});
  const Tensor weight = bytes(weight_bytes(scheme, k, n)), slabs = bytes(experts * weight_bytes(scheme, k, n));
  const Value w = g.param("w", weight.type()), e = g.param("e", slabs.type()), raw = g.input("raw", weight.type());
  g.output(ops::dequant_matmul({x, w}, {.scheme = scheme}), "packed");
  g.output(ops::dequant_matmul({x, raw}, {.scheme = scheme}), "rows");
  g.output(ops::dequant_grouped_matmul(x, e, choice, {.scheme = scheme, .n = n}), "grouped");
  g.output(ops::dequant_gather(e, choice, {.scheme = scheme, .k = k}), "gathered");
  const Value q = ops::quantize(x, {.scales = {0.1f}});
  const Value w8 = g.param("w8", {{k, n}, DType::I8}), bias = g.param("bias", {{n}, DType::I32});
  g.output(ops::q_matmul(q, w8, bias, {.mult = 0.01f}), "q");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  exe.set_param("w", weight);
  exe.set_param("e", slabs);
  exe.set_param("w8", rng.integers({k, n}, -128, 127, DType::I8));
  exe.set_param("bias", rng.integers({n}, -9, 9, DType::I32));
  const std::vector<Tensor> inputs = {rng.tensor({m, k}), Tensor::i32({m}, {2, 0, 2, 1, 2}), weight};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

}  // namespace rlx::test
