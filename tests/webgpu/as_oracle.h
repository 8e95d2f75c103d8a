// Runs a graph on the webgpu device and on the oracle.
#pragma once

#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

// A graph under construction whose ports need no names.
struct Maker {
  Graph g;
  int ports = 0, outputs = 0;

  Value in(Shape shape, DType dtype = DType::F32) { return g.input(str("x", ports++), {std::move(shape), dtype}); }
  Value weight(Shape shape, DType dtype = DType::F32) { return g.param(str("w", ports++), {std::move(shape), dtype}); }
  Value number(float value) { return g.constant(Tensor::f32({}, {value})); }
  void out(const Value& v) { g.output(v, str("y", outputs++)); }
  static const std::string& name(const Value& port) { return port.graph().node_of(port.id()).name; }
};

struct AsOracle {
  NamedTensors given = {};  // inputs and weights; the others are random
  Tolerance tolerance = kAccumulation;
  int64_t host_steps = 0;  // of a run
  CompileOptions options = webgpu_options(true);
  int runs = 2;  // the second finds what the first leaves behind
};

// Every output of both, which agree; the stats of the device if asked for.
inline NamedTensors expect_as_oracle(const Graph& graph, const AsOracle& how = {}, RunStats* stats = nullptr) {
  Executable device = compile(graph, how.options), oracle = compile(graph, {.device = "reference"});
  Rng rng(7);
  NamedTensors inputs, expected;
  const auto value = [&](const Port& p, double scale) {
    if (const auto it = how.given.find(p.name); it != how.given.end()) return it->second;
    return is_float(p.type.dtype) ? rng.uniform_tensor(p.type.shape.sizes(), -scale, scale, p.type.dtype)
                                  : rng.tensor(p.type.shape.sizes(), p.type.dtype);
  };
  for (const Port& p : oracle.params()) {
    const Tensor t = value(p, 0.5);
    device.set_param(p.name, t);
    oracle.set_param(p.name, t);
  }
  for (const Port& p : oracle.inputs()) inputs[p.name] = value(p, 2);
  for (const auto& [name, tensor] : how.given) {
    bool known = inputs.contains(name);
    for (const Port& p : oracle.params()) known |= p.name == name;
    EXPECT_TRUE(known) << name;
  }
  for (int run = 0; run < how.runs; ++run) {
    const NamedTensors actual = device.run(inputs);
    expected = oracle.run(inputs);
    for (const auto& [name, tensor] : expected)
      EXPECT_TRUE(near(actual.at(name), tensor, how.tolerance)) << name << ", run " << run << "\n" << print(graph);
  }
  EXPECT_EQ(device.stats().device.host_steps, how.host_steps * how.runs);
  if (stats != nullptr) *stats = device.stats();
  return expected;
}

}  // namespace rlx::test
