#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

template <class Build>
GraphPtr region(const std::string& name, const Build& build) {
  auto g = std::make_shared<Graph>(name);
  build(*g);
  return g;
}

const TensorType kScalar = {{}, DType::F64};
const TensorType kPair = {{2}, DType::F64};

Tensor f64(std::vector<int64_t> sizes, std::vector<double> values) {
  return Tensor::from_doubles(DType::F64, std::move(sizes), values);
}

// carried -> carried * 2 and 3 - carried
GraphPtr doubled() {
  return region("then", [](Graph& g) {
    const Value x = g.input("x", kPair);
    g.output(x + x, "y");
  });
}
GraphPtr three_minus() {
  return region("else", [](Graph& g) {
    const Value x = g.input("x", kPair);
    g.output(g.constant(f64({}, {3})) - x, "y");
  });
}

}  // namespace

OP_CASES(if_) {
  const ops::IfAttrs attrs{doubled(), three_minus()};
  const Tensor x = f64({2}, {1, 5});
  add({f64({}, {1}), x}, attrs).expect({f64({2}, {2, 10})}, kExact);
  add({f64({}, {0}), x}, attrs).expect({f64({2}, {2, -2})}, kExact);
  add({f64({1}, {-0.5}), x}, attrs).expect({f64({2}, {2, 10})}, kExact);  // any value but 0 is true
  add({Tensor(DType::Bool, {}), x}, attrs).expect({f64({2}, {2, -2})}, kExact);
  add_error({f64({2}, {1, 1}), x}, attrs, "is not one element");
  add_error({f64({}, {1}), x, x}, attrs, "Region 'then_branch' has 1 inputs, its op gives it 2");
  add_error({f64({}, {1}), f64({3}, {1, 2, 3})}, attrs, "Input 0 of region 'then_branch' is [2] f64");
  add_error({f64({}, {1}), x}, {doubled(), nullptr}, "Region 'else_branch' is missing");
  const GraphPtr other = region("other", [](Graph& g) {
    g.output(g.constant(f64({1}, {3})), "y");
    g.input("x", kPair);
  });
  add_error({f64({}, {1}), x}, {doubled(), other}, "Output 0 of region 'else_branch' is [1] f64, not [2] f64");
}

OP_CASES(while_) {
  // n, x: as long as n > 0: n - 1, x * x[…] by doubling. Carried values of different shapes (Q39).
  const GraphPtr cond = region("cond", [](Graph& g) {
    const Value n = g.input("n", kScalar);
    g.input("x", kPair);
    g.output(ops::gt(n, g.constant(f64({}, {0}))), "go");
  });
  const GraphPtr body = region("body", [](Graph& g) {
    const Value n = g.input("n", kScalar), x = g.input("x", kPair);
    g.output(n - g.constant(f64({}, {1})), "n");
    g.output(x + x, "x");
  });
  add({f64({}, {5}), f64({2}, {1, 3})}, {cond, body}).expect({f64({}, {0}), f64({2}, {32, 96})}, kExact);
  add({f64({}, {0}), f64({2}, {1, 3})}, {cond, body}).expect({f64({}, {0}), f64({2}, {1, 3})}, kExact);  // no iteration
  add({f64({}, {5}), f64({2}, {1, 3})}, {cond, body, 2}).expect({f64({}, {3}), f64({2}, {4, 12})}, kExact);
  add({f64({}, {5}), f64({2}, {1, 3})}, {cond, body, 0}).expect({f64({}, {5}), f64({2}, {1, 3})}, kExact);
  // A condition other than 0 and 1, and NaN, is simply true (D06).
  for (const double truth : {3.0, double(NAN), -1.0}) {
    const GraphPtr always = region("cond", [&](Graph& g) {
      g.input("n", kScalar);
      g.input("x", kPair);
      g.output(g.constant(f64({}, {truth})), "go");
    });
    add({f64({}, {9}), f64({2}, {1, 3})}, {always, body, 3}).expect({f64({}, {6}), f64({2}, {8, 24})}, kExact);
  }
  add_error({f64({}, {5}), f64({2}, {1, 3})}, {cond, body, -1}, "Number of iterations (-1) is negative");
  add_error({f64({}, {5})}, {cond, body}, "Region 'cond' has 2 inputs, its op gives it 1");
  add_error({f64({}, {5}), f64({2}, {1, 3})}, {body, body}, "Region 'cond' has 2 outputs, not 1");
}

namespace {

// carry' = carry * b + x; stacks carry' - x as well.
GraphPtr scan_body() {
  return region("body", [](Graph& g) {
    const Value carry = g.input("carry", kPair), b = g.input("b", kScalar), x = g.input("x", kPair);
    const Value next = carry * b + x;
    g.output(next, "carry");
    g.output(next - x, "product");
  });
}

}  // namespace

OP_CASES(scan) {
  const Tensor init = f64({2}, {1, -1}), b = f64({}, {2}), xs = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  const ops::ScanAttrs plain{.body = scan_body(), .length = 3, .num_bcast = 1, .num_xs = 1};
  // By hand: (1,-1) -> (3,0) -> (9,4) -> (23,14).
  add({init, b, xs}, plain).expect({f64({2}, {23, 14}), f64({3, 2}, {2, -2, 6, 0, 18, 8})}, kExact);
  ops::ScanAttrs kept = plain;
  kept.save_trajectory = true;
  add({init, b, xs}, kept)
      .expect({f64({2}, {23, 14}), f64({3, 2}, {2, -2, 6, 0, 18, 8}), f64({3, 2}, {3, 0, 9, 4, 23, 14})}, kExact);
  ops::ScanAttrs two = kept;
  two.num_checkpoints = 2;  // after steps ceil(3/2) - 1 = 1 and 2 (Q40)
  add({init, b, xs}, two)
      .expect({f64({2}, {23, 14}), f64({3, 2}, {2, -2, 6, 0, 18, 8}), f64({2, 2}, {9, 4, 23, 14})}, kExact);
  ops::ScanAttrs none = plain;
  none.length = 0;
  add({init, b, Tensor(DType::F64, {0, 2})}, none).expect({init, Tensor(DType::F64, {0, 2})}, kExact);
  add_error({init, b, f64({2, 2}, {1, 2, 3, 4})}, plain, "Rows of Operand xs and length (2 and 3) differ");
  add_error({init, b}, plain, "Number of operands (2) is not the sum");
  ops::ScanAttrs lost = plain;
  lost.num_checkpoints = 2;
  add_error({init, b, xs}, lost, "Checkpoints (2) need save_trajectory");
}

OP_CASES(scan_backward) {
  // forward: c' = tanh(c * x); vjp: dc = d * (1 - c'^2) * x, dx = d * (1 - c'^2) * c. Checked by central differences.
  const GraphPtr forward = region("forward", [](Graph& g) {
    const Value c = g.input("c", kPair), x = g.input("x", kPair);
    g.output(ops::tanh(c * x), "c");
  });
  const GraphPtr vjp = region("vjp", [](Graph& g) {
    const Value c = g.input("c", kPair), x = g.input("x", kPair), d = g.input("d", kPair);
    const Value y = ops::tanh(c * x);
    const Value e = d * (g.constant(f64({}, {1})) - y * y);
    g.output(e * x, "dc");
    g.output(e * c, "dx");
  });
  const int64_t length = 5;
  const auto run_forward = [=](const Tensor& init, const Tensor& xs, int64_t checkpoints) {
    return run(
        ops::scan, {init, xs},
        {.body = forward, .length = length, .num_xs = 1, .save_trajectory = true, .num_checkpoints = checkpoints});
  };
  for (const int64_t checkpoints : {0, 1, 2, 3, 4, 5, 9})
    for (const bool save : {false, true}) {
      const Tensor init = random({2}, DType::F64), xs = random({length, 2}, DType::F64);
      const Tensor upstream = save ? random({length, 2}, DType::F64) : random({2}, DType::F64);
      const Tensor trajectory = run_forward(init, xs, checkpoints)[1];
      add({init, trajectory, upstream, xs}, {.body_vjp = vjp,
                                             .forward_body = forward,
                                             .length = length,
                                             .save_trajectory = save,
                                             .num_xs = 1,
                                             .num_checkpoints = checkpoints})
          .check([=](const Tensors& in, const Tensors& out) {
            const auto value = [&](const Tensor& c, const Tensor& x) {
              return save ? run_forward(c, x, 0)[1] : run_forward(c, x, 0)[0];
            };
            EXPECT_TRUE(
                matches_finite_differences([&](const Tensor& c) { return value(c, in[3]); }, in[0], in[2], out[0]));
            EXPECT_TRUE(
                matches_finite_differences([&](const Tensor& x) { return value(in[0], x); }, in[3], in[2], out[1]));
          });
    }
  add_error({random({2}, DType::F64), random({2, 2}, DType::F64), random({2}, DType::F64), random({5, 2}, DType::F64)},
            {.body_vjp = vjp, .length = length, .num_xs = 1, .num_checkpoints = 2}, "Region 'forward_body' is missing");
}

OP_CASES(custom_fn) {
  const GraphPtr body = region("fwd", [](Graph& g) {
    const Value a = g.input("a", kPair), b = g.input("b", kPair);
    g.output(a * b, "product");
    g.output(a - b, "difference");
  });
  add({f64({2}, {2, 3}), f64({2}, {5, 7})}, {body}).expect({f64({2}, {10, 21}), f64({2}, {-3, -4})}, kExact);
  const GraphPtr vjp = region("vjp", [](Graph& g) {
    g.input("a", kPair);
    g.input("b", kPair);
    g.input("primal_output", kPair);
    const Value d = g.input("d_output", kPair);
    g.output(d, "da");
  });
  add_error({f64({2}, {2, 3}), f64({2}, {5, 7})}, {body, vjp}, "Region 'vjp_body' has 1 outputs for 2 operands");
  add_error({f64({2}, {2, 3})}, {body}, "Region 'fwd_body' has 2 inputs, its op gives it 1");
}

}  // namespace rlx::test
