// Any bytes as an ONNX model: it is refused by rlx::Error, or opened and run on small random inputs, which gives values
// or rlx::Error; nothing else. What is right but long or large is not run: the limits below.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "import/onnx/elem_type.h"
#include "import/onnx/session.h"

namespace {

using namespace rlx;
using onnx::HostValue;

constexpr int64_t kMostElements = 10'000;  // of an input, and of any value in the graph
constexpr int64_t kMostGiven = 100'000;    // of all inputs
constexpr int64_t kMostIterations = 100;   // a loop with a constant beyond this is not run
constexpr double kMostWork = 3e7;          // elements times operands, summed over the graph

uint64_t next(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Small numbers, among them 0, negative ones and, in floats, a NaN and an infinity now and then.
Tensor random_tensor(const TensorType& type, uint64_t& state) {
  std::vector<int64_t> sizes;
  for (const Dim& d : type.shape) sizes.push_back(d.is_static() ? d.value() : static_cast<int64_t>(next(state) % 4));
  std::vector<double> values(static_cast<size_t>(Shape(sizes).num_elements()));
  for (double& v : values) {
    v = static_cast<double>(static_cast<int64_t>(next(state) % 17)) - 5;
    if (is_float(type.dtype)) {
      v *= 0.25;
      if (next(state) % 64 == 0) v = next(state) % 2 ? 0.0 / 0.0 : 1.0 / 0.0;
    }
  }
  return Tensor::from_doubles(type.dtype, sizes, values);
}

bool has_small_numbers(const onnx::ModelSource& model, const onnx::TensorProto& t) {
  if (t.elem != onnx::ElemType::kInt64 && t.elem != onnx::ElemType::kInt32) return true;
  try {
    const Tensor value = model.tensors.value(t).tensor;
    for (int64_t i = 0; i < std::min<int64_t>(value.num_elements(), 64); ++i)
      if (value.at(i) > kMostIterations) return false;
  } catch (const Error&) {  // it will be said again
  }
  return true;
}

// What a run of the model may depend on. Numbers of iterations and sizes come from constants or inputs, where inputs
// are small; a loop without a number ends by its condition or never.
struct Findings {
  const onnx::ModelSource& model;
  bool loops = false, large = false, endless = false;

  void look(const std::vector<onnx::NodeProto>& nodes) {
    for (const onnx::NodeProto& n : nodes) {
      if (n.op_type == "Loop") {
        loops = true;
        endless |= n.inputs.empty() || n.inputs[0].empty();
      }
      if (n.op_type == "Scan" || n.op_type == "SequenceMap") loops = true;
      for (const onnx::AttributeProto& a : n.attributes) {
        large |= a.i > kMostIterations;
        for (const onnx::TensorProto& t : a.tensors) large |= !has_small_numbers(model, t);
        for (const auto& g : a.graphs) look(*g);
      }
    }
  }
  void look(const onnx::GraphProto& g) {
    for (const onnx::TensorProto& t : g.initializers) large |= !has_small_numbers(model, t);
    look(g.nodes);
  }
};

Findings look_at(const onnx::ModelSource& model) {
  Findings f{model};
  f.look(*model.proto.graph);
  for (const onnx::FunctionProto& function : model.proto.functions) f.look(function.nodes);
  return f;
}

// Would a run of the graph take long? Sizes that are symbols are at most 3.
bool is_small(const Graph& graph) {
  double work = 0;
  for (const Node& node : graph.nodes()) {
    for (const GraphPtr& region : node.attrs.graphs())
      if (!region || !is_small(*region)) return false;
    double elements = 1;
    const auto count = [](const TensorType& type) {
      double n = 1;
      for (const Dim& d : type.shape)
        n *= static_cast<double>(d.is_static() ? d.value() : 3 * d.scale() + std::abs(static_cast<double>(d.offset())));
      return n;
    };
    for (const Result& r : node.results) {
      if (count(r.type) > kMostElements) return false;
      elements += count(r.type);
    }
    for (const ValueId id : node.inputs) elements *= node.op->traits.compute_heavy ? count(graph.type(id)) : 1;
    work += elements;
  }
  return work < kMostWork;
}

void check(const Error& e) {
  if (e.kind() == ErrorKind::kInternal) {
    std::fprintf(stderr, "an internal error: %s\n", e.what());
    std::abort();
  }
}

void fuzz(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  const auto source = onnx::parse_source(*owner, owner, "", "fuzz");
  const Findings findings = look_at(*source);
  if (findings.loops && (findings.large || findings.endless)) return;
  CompileOptions options;
  options.device = bytes.size() % 2 ? "cpu" : "reference";
  options.threads = 1;
  onnx::Session session(source, options, {});
  uint64_t state = bytes.size();
  std::map<std::string, HostValue> inputs;
  int64_t given = 0;
  for (const onnx::ModelPort& port : session.inputs()) {
    if (port.type.kind == onnx::TypeProto::Kind::kOptional) continue;
    TensorType type{Shape{2, 3}, DType::F32};  // of any rank, or no tensor: a sequence of two
    if (port.tensor) type = *port.tensor;
    for (const Dim& d : type.shape)
      if (d.is_static() && d.value() > kMostElements) return;
    const auto elements = type.shape.try_elements();
    if ((type.shape.is_static() && !elements) || type.shape.rank() > 6) return;
    given += elements.value_or(729);
    if (given > kMostGiven || elements.value_or(0) > kMostElements) return;
    const Tensor tensor = random_tensor(type, state);
    const onnx::ElemType elem = port.tensor ? port.type.elem : onnx::ElemType::kFloat;
    if (port.type.kind == onnx::TypeProto::Kind::kSequence)
      inputs[port.name] = HostValue(std::vector<HostValue>{{elem, tensor}, {elem, tensor}});
    else if (port.type.elem == onnx::ElemType::kString)
      inputs[port.name] = HostValue(onnx::Strings{{2}, {"a", "b c"}});
    else
      inputs[port.name] = {elem, tensor};
  }
  if (session.graph() ? !is_small(*session.graph()) : findings.large) return;
  session.run(inputs);
  session.run(inputs);  // what was kept of the first run
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    fuzz(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error& e) {
    check(e);
  }
  return 0;
}
