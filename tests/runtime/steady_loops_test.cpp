// Control flow that the host drives allocates nothing in a steady run, and gives what the evaluator does.
#include <gtest/gtest.h>

#include "backends/reference/evaluate.h"
#include "rlx/custom_op.h"
#include "support/allocations.h"
#include "support/expect_error.h"
#include "support/loop_graphs.h"
#include "support/random.h"

namespace rlx::test {

namespace {

// With two sets of inputs in turn.
void expect_no_allocation(const Graph& g, const std::vector<Tensor>& inputs, const std::vector<Tensor>& others,
                          const NamedTensors& params = {}) {
  const std::vector<Tensor> first = reference::evaluate(g, inputs, params);
  const std::vector<Tensor> second = reference::evaluate(g, others, params);
  for (const std::string device : {"cpu", "reference"}) {
    SCOPED_TRACE(device);
    Executable exe = compile(g, with_loops(device));
    for (const auto& [name, value] : params) exe.set_param(name, value);
    for (const auto* in : {&inputs, &others, &inputs, &others}) exe.run_slots(*in);
    const auto before = allocations();
    for (int i = 0; i < 10; ++i) exe.run_slots(i % 2 == 0 ? inputs : others);
    EXPECT_EQ(allocations(), before);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(exe.run_slots(inputs)[i], first[i]) << i;
      EXPECT_EQ(exe.run_slots(others)[i], second[i]) << i;
    }
  }
}

Tensor count(int32_t n) { return Tensor::i32({}, {n}); }

}  // namespace

TEST(SteadyRun, WhilesAllocateNothing) {
  Rng rng(1);
  for (const auto& [from, other] : {std::pair{0, 6}, {1, 9}})
    expect_no_allocation(while_graph(), {rng.tensor({64}), rng.tensor({64}), count(from), count(0)},
                         {rng.tensor({64}), rng.tensor({64}), count(other), count(-1)},
                         {{"table", rng.tensor({7, 64})}});
}

TEST(SteadyRun, IfsAllocateNothing) {
  Rng rng(2);
  for (const bool computed : {false, true})
    expect_no_allocation(if_graph(computed), {count(1), rng.tensor({64})}, {count(0), rng.tensor({64})});
}

TEST(SteadyRun, ScansAllocateNothing) {
  Rng rng(3);
  expect_no_allocation(scan_graph(), {rng.tensor({64}), rng.tensor({64}), rng.tensor({9, 64})},
                       {rng.tensor({64}), rng.tensor({64}), rng.tensor({9, 64})});
}

TEST(SteadyRun, ScansBackwardAllocateNothing) {
  const GraphPtr forward = region([](Graph& b) {
    const Value c = b.input("c", kLoopRow), x = b.input("x", kLoopRow);
    b.output(c * x, "c");
  });
  const GraphPtr vjp = region([](Graph& b) {
    const Value c = b.input("c", kLoopRow), x = b.input("x", kLoopRow), d = b.input("d", kLoopRow);
    b.output(d * x, "dc");
    b.output(d * c, "dx");
  });
  for (const int64_t checkpoints : {0, 1, 3})
    for (const bool save : {false, true}) {
      Graph g;
      const TensorType stack{{5, 64}, DType::F32};
      const TensorType kept{{checkpoints == 0 ? 5 : checkpoints, 64}, DType::F32};
      const Value init = g.input("init", kLoopRow), rows = g.input("kept", kept);
      const Value up = g.input("up", save ? stack : kLoopRow), xs = g.input("xs", stack);
      const Value r = ops::scan_backward(Values{init, rows, up, xs}, {.body_vjp = vjp,
                                                                      .forward_body = forward,
                                                                      .length = 5,
                                                                      .save_trajectory = save,
                                                                      .num_xs = 1,
                                                                      .num_checkpoints = checkpoints});
      g.output(r, "dinit");
      g.output(r.result(1), "dxs");
      Rng rng(4);
      const auto inputs = [&] {
        return std::vector<Tensor>{rng.tensor({64}), rng.tensor(kept.shape.sizes()),
                                   rng.tensor(save ? stack.shape.sizes() : std::vector<int64_t>{64}),
                                   rng.tensor({5, 64})};
      };
      const std::vector<Tensor> first = inputs(), second = inputs();
      expect_no_allocation(g, first, second);
    }
}

// A loop in a loop, in a branch; a carry without elements.
TEST(SteadyRun, NestedLoopsAllocateNothing) {
  const TensorType none{{0, 3}, DType::F16};
  const GraphPtr cond = region([&](Graph& c) {
    c.output(ops::lt(c.input("n", kLoopCount), c.constant(Tensor::i32({}, {3}))), "go");
    c.input("x", kLoopRow);
    c.input("e", none);
  });
  const GraphPtr inner = region([&](Graph& b) {
    const Value n = b.input("n", kLoopCount), x = b.input("x", kLoopRow), e = b.input("e", none);
    b.output(n + b.constant(Tensor::i32({}, {1})), "n");
    b.output(x + x, "x");
    b.output(e, "e");
  });
  const GraphPtr outer = region([&](Graph& b) {
    const Value n = b.input("n", kLoopCount), x = b.input("x", kLoopRow), e = b.input("e", none);
    const Value w = ops::while_(Values{b.constant(Tensor::i32({}, {0})), x, e}, {.cond = cond, .body = inner});
    b.output(n + b.constant(Tensor::i32({}, {1})), "n");
    b.output(w.result(1) - x, "x");
    b.output(w.result(2), "e");
  });
  const GraphPtr then = region([&](Graph& b) {
    const Value n = b.input("n", kLoopCount), x = b.input("x", kLoopRow), e = b.input("e", none);
    const Value w = ops::while_(Values{n, x, e}, {.cond = cond, .body = outer});
    b.output(w.result(1), "x");
    b.output(w.result(2), "e");
  });
  const GraphPtr otherwise = region([&](Graph& b) {
    b.input("n", kLoopCount);
    b.output(b.input("x", kLoopRow), "x");
    b.output(b.input("e", none), "e");
  });
  Graph g;
  const Value n = g.input("n", kLoopCount), x = g.input("x", kLoopRow), e = g.input("e", none);
  const Value r = ops::if_(Values{ops::lt(n, g.constant(Tensor::i32({}, {2}))), n, x, e},
                           {.then_branch = then, .else_branch = otherwise});
  g.output(r, "x");
  g.output(r.result(1), "e");
  Rng rng(5);
  const Tensor empty(DType::F16, {0, 3});
  expect_no_allocation(g, {count(0), rng.tensor({64}), empty}, {count(1), rng.tensor({64}), empty});
  expect_no_allocation(g, {count(1), rng.tensor({64}), empty}, {count(2), rng.tensor({64}), empty});
}

TEST(SteadyRun, SolversAllocateNothing) {
  Graph g;
  const Value a = g.input("a", {{3, 5, 5}, DType::F32}), b = g.input("b", {{3, 5}, DType::F32});
  const Value one = ops::reshape(ops::narrow(a, {.axis = 0, .start = 1, .len = 1}), {.new_shape = {5, 5}});
  g.output(ops::det(a), "det");
  g.output(ops::batched_dense_solve(a, b), "x");
  g.output(ops::dense_solve(one, one), "unit");
  Rng rng(6);
  expect_no_allocation(g, {rng.tensor({3, 5, 5}), rng.tensor({3, 5})}, {rng.tensor({3, 5, 5}), rng.tensor({3, 5})});
}

TEST(SteadyRun, CustomOpsAllocateNothing) {
  register_custom_op({"test.a_name_that_is_long", 2, [](const InferCall& call, auto) { return Types{call.input(0)}; }});
  const double a = 1, b = 2, c = 3;  // more than a function object has inside
  register_custom_kernel("test.a_name_that_is_long", "reference", [a, b, c](const CustomCall& call) {
    const auto x = call.inputs[0].values<const float>(), y = call.inputs[1].values<const float>();
    for (size_t i = 0; i < x.size(); ++i)
      call.outputs[0].values<float>()[i] =
          static_cast<float>(a * static_cast<double>(x[i]) + b * static_cast<double>(y[i]) + c);
  });
  Graph g;
  const Value x = g.input("x", kLoopRow), y = g.input("y", kLoopRow);
  g.output(custom_op("test.a_name_that_is_long", {{x, x + y}}), "z");
  Rng rng(6);
  expect_no_allocation(g, {rng.tensor({64}), rng.tensor({64})}, {rng.tensor({64}), rng.tensor({64})});
}

TEST(SteadyRun, AnErrorInALoopLeavesTheExecutableUsable) {
  Rng rng(7);
  const Tensor table = rng.tensor({7, 64});
  const std::vector<Tensor> good = {rng.tensor({64}), rng.tensor({64}), count(0), count(0)};
  std::vector<Tensor> bad = good;
  bad[3] = count(3);  // after four iterations there is no row
  const std::vector<Tensor> expected = reference::evaluate(while_graph(), good, {{"table", table}});
  for (const std::string device : {"cpu", "reference"}) {
    Executable exe = compile(while_graph(), with_loops(device));
    exe.set_param("table", table);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(throws_error([&] { exe.run_slots(bad); }, ErrorKind::kRuntime, "out of range"));
      for (size_t o = 0; o < expected.size(); ++o) EXPECT_EQ(exe.run_slots(good)[o], expected[o]) << o;
    }
    const auto before = allocations();
    exe.run_slots(good);
    EXPECT_EQ(allocations(), before);
  }
}

}  // namespace rlx::test
