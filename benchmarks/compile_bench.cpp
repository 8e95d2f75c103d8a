// How compile time grows with the graph: each pass of the pipeline, then compile() for a host device, on graphs of
// 5,000 to 20,000 nodes. The growth factor is time per node at the largest size over time per node at the smallest: 1
// is linear.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/reference/evaluate.h"
#include "passes/pipeline.h"
#include "rlx/ops.h"
#include "rlx/rlx.h"

using namespace rlx;

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

const TensorType kRows{{16, 8}, DType::F32};

// Pre-norm layers with attention, residuals and a gated MLP; about 40 nodes each, weights included.
Graph transformer_like(int64_t nodes) {
  Graph g("transformer_like");
  int64_t weights = 0;
  const auto weight = [&](Shape shape) { return g.param(str("w", weights++), {std::move(shape), DType::F32}); };
  const auto linear = [&](const Value& x, int64_t out) {
    const Value product = ops::matmul(x, weight({8, out}));
    return product + weight({out});
  };
  Value x = g.input("x", kRows);
  while (static_cast<int64_t>(g.nodes().size()) < nodes) {
    const Value h = ops::rms_norm(x, weight({8}));
    const Value q = linear(h, 8), k = linear(h, 8), v = linear(h, 8);
    const Value scores = ops::dot_general(q, k, {.lhs_contracting = {1}, .rhs_contracting = {1}});
    const Value scale = g.constant(Tensor::f32({}, {0.35f}));
    x = x + linear(ops::matmul(ops::softmax(scores * scale), v), 8);
    const Value m = ops::layer_norm(x, weight({8}), weight({8}));
    const Value up = ops::matmul(m, weight({8, 8})), gate = ops::silu(ops::matmul(m, weight({8, 8})));
    const Value flat = ops::reshape(ops::reshape(up * gate, {.new_shape = {-1}}), {.new_shape = {16, 8}});
    x = x + ops::gelu(linear(flat, 8));
  }
  g.output(x, "y");
  return g;
}

// One value after the other, each computed in place of the last: chains of owners, chains of views.
Graph long_chain(int64_t nodes) {
  Graph g("long_chain");
  Value x = g.input("x", kRows);
  for (int64_t i = 0; i < nodes; ++i) x = i % 2 == 0 ? ops::relu(x) : ops::tanh(x);
  g.output(x, "y");
  return g;
}

// Views of views, and one value that everybody reads.
Graph views_and_fan_out(int64_t nodes) {
  Graph g("views_and_fan_out");
  const Value x = g.input("x", kRows);
  Value v = x, sum = x;
  for (int64_t i = 0; static_cast<int64_t>(g.nodes().size()) < nodes; ++i) {
    v = i % 2 == 0 ? ops::reshape(v, {.new_shape = {8, 16}}) : ops::reshape(v, {.new_shape = {16, 8}});
    if (i % 2 == 1) sum = ops::max(sum, ops::sigmoid(x * v));
  }
  g.output(sum, "y");
  return g;
}

// Four strands that read each other.
Graph strands(int64_t nodes) {
  Graph g("strands");
  std::vector<Value> recent(4, g.input("x", kRows));
  for (int64_t i = 0; i < nodes; ++i) {
    const Value &a = recent[static_cast<size_t>((i + 3) % 4)], &b = recent[static_cast<size_t>((i + 1) % 4)];
    recent[static_cast<size_t>(i % 4)] = i % 3 == 0 ? ops::relu(b) : a + b;
  }
  g.output(recent[0], "y");
  return g;
}

// A forward half whose values the backward half reads in reverse: half of all values are alive at once.
Graph training_like(int64_t nodes) {
  Graph g("training_like");
  std::vector<Value> kept = {g.input("x", kRows)};
  while (static_cast<int64_t>(kept.size()) < nodes / 2) kept.push_back(ops::tanh(kept.back()));
  Value dy = kept.back();
  for (auto x = kept.rbegin(); x != kept.rend(); ++x) dy = ops::max(dy, *x);
  g.output(dy, "dx");
  return g;
}

struct Row {
  std::string what;
  std::vector<double> ms;  // by size
};

void print_rows(const std::string& name, const std::vector<int64_t>& sizes, const std::vector<Row>& rows) {
  std::printf("%-34s", name.c_str());
  for (const int64_t n : sizes) std::printf("%9lld", static_cast<long long>(n));
  std::printf("   growth\n");
  for (const Row& row : rows) {
    std::printf("  %-32s", row.what.c_str());
    for (const double ms : row.ms) std::printf("%6.1f ms", ms);
    const double per_node = static_cast<double>(sizes.front()) / static_cast<double>(sizes.back());
    if (row.ms.front() > 0.05) std::printf("   %6.2f", row.ms.back() / row.ms.front() * per_node);
    std::printf("\n");
  }
}

void measure(Graph (*make)(int64_t), const std::vector<int64_t>& sizes) {
  passes::PassContext context;
  context.claims = [](const passes::Signature&) { return true; };
  context.evaluate = [](const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
    return reference::evaluate_op(op, inputs, attrs);
  };
  std::vector<Row> rows;
  const auto put = [&](size_t row, const std::string& what, double ms) {
    if (row == rows.size()) rows.push_back({what, {}});
    rows[row].ms.push_back(ms);
  };
  std::string name;
  for (const int64_t n : sizes) {
    const Graph graph = make(n);
    name = graph.name();
    // The best of three: other work on the machine only ever adds.
    std::vector<double> best;
    std::vector<std::string> what;
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<double> ms;
      what.clear();
      auto start = Clock::now();
      passes::OptimizeResult result = passes::optimize(graph, context);
      const double all = ms_since(start);
      double verify_ms = 0;
      for (const passes::PassRun& run : result.runs) {
        ms.push_back(run.ms);
        what.push_back(std::string(run.pass));
        verify_ms += run.verify_ms;
      }
      ms.push_back(verify_ms);
      what.push_back("verify after changes");
      ms.push_back(all);
      what.push_back("pipeline");
      start = Clock::now();
      const Executable exe = compile(result.graph, {.device = "reference"});
      ms.push_back(ms_since(start));
      what.push_back("compile for reference");
      if (repeat == 0) best = ms;
      for (size_t i = 0; i < ms.size(); ++i) best[i] = std::min(best[i], ms[i]);
    }
    for (size_t i = 0; i < best.size(); ++i) put(i, what[i], best[i]);
  }
  print_rows(name, sizes, rows);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<int64_t> sizes;
    for (int i = 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
    if (sizes.empty()) sizes = {5000, 10000, 20000};
    if (*std::min_element(sizes.begin(), sizes.end()) < 1) {
      std::printf("usage: compile_bench [NODES …]\n");
      return 2;
    }
    for (const auto make : {transformer_like, long_chain, views_and_fan_out, strands, training_like})
      measure(make, sizes);
  } catch (const Error& e) {
    std::fprintf(stderr, "compile_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
