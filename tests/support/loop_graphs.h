// Graphs whose control flow the host drives, for tests of runs that allocate nothing.
#pragma once

#include <functional>
#include <memory>

#include "rlx/custom_op.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx::test {

// Nothing is inlined.
inline CompileOptions with_loops(const std::string& device) {
  return {.device = device, .threads = 2, .skip_passes = {"lower_control_flow"}};
}

inline GraphPtr region(const std::function<void(Graph&)>& build) {
  auto g = std::make_shared<Graph>("region");
  build(*g);
  return g;
}

inline const TensorType kLoopRow{{64}, DType::F32}, kLoopCount{{}, DType::I32};

// Until n reaches 7: (a, b) = (b, table[n + shift] * a), ++n. The table has 7 rows. What becomes of b is not used.
inline Graph while_graph() {
  Graph g;
  const Value a = g.input("a", kLoopRow), b = g.input("b", kLoopRow);
  const Value n = g.input("n", kLoopCount), shift = g.input("shift", kLoopCount);
  const GraphPtr cond = region([](Graph& c) {
    c.input("a", kLoopRow);
    c.input("b", kLoopRow);
    c.output(ops::lt(c.input("n", kLoopCount), c.constant(Tensor::i32({}, {7}))), "go");
    c.input("shift", kLoopCount);
  });
  const GraphPtr body = region([](Graph& r) {
    const Value x = r.input("a", kLoopRow), y = r.input("b", kLoopRow);
    const Value i = r.input("n", kLoopCount), by = r.input("shift", kLoopCount);
    r.output(y, "a");
    r.output(ops::gather(r.param("table", {{7, 64}, DType::F32}), i + by, {.axis = 0}) * x, "b");
    r.output(i + r.constant(Tensor::i32({}, {1})), "n");
    r.output(by, "shift");
  });
  const Value w = ops::while_(Values{a + b, b, n, shift}, {.cond = cond, .body = body});
  g.output(ops::neg(w), "a");
  g.output(w.result(2), "n");
  return g;
}

// p: (x + x, x), else (x * x, sevens).
inline Graph if_graph(bool predicate_is_computed = false) {
  Graph g;
  Value p = g.input("p", {{}, DType::I32});
  const Value x = g.input("x", kLoopRow);
  if (predicate_is_computed) p = ops::gt(p + p, g.constant(Tensor::i32({}, {0})));
  const auto branch = [](bool first) {
    return region([&](Graph& b) {
      const Value v = b.input("x", kLoopRow);
      b.output(first ? v + v : v * v, "y");
      b.output(first ? v : b.constant(Tensor::f32({64}, std::vector<float>(64, 7))), "z");
    });
  };
  const Value r = ops::if_(Values{p, ops::relu(x)}, {.then_branch = branch(true), .else_branch = branch(false)});
  g.output(r, "y");
  g.output(r.result(1) + x, "z");
  return g;
}

// A scan of nine steps with carries that change places, a broadcast value, stacks and a trajectory of four rows.
inline Graph scan_graph() {
  const GraphPtr body = region([](Graph& b) {
    const Value c = b.input("c", kLoopRow), d = b.input("d", kLoopRow), k = b.input("k", kLoopRow);
    const Value x = b.input("x", kLoopRow);
    b.output(d, "c");
    b.output(c * k + x, "d");
    b.output(c - x, "y");
  });
  Graph g;
  const Value c = g.input("c", kLoopRow), k = g.input("k", kLoopRow), xs = g.input("xs", {{9, 64}, DType::F32});
  const Value r = ops::scan(Values{c, c + k, k, xs}, {.body = body,
                                                      .length = 9,
                                                      .num_carries = 2,
                                                      .num_bcast = 1,
                                                      .num_xs = 1,
                                                      .save_trajectory = true,
                                                      .num_checkpoints = 4});
  g.output(r, "c");
  g.output(r.result(1), "d");
  g.output(r.result(2), "ys");
  g.output(r.result(3), "kept");
  return g;
}

}  // namespace rlx::test
