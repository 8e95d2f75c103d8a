// Random calls of an Executable in any order, on every device beside the reference: weights, runs with all or some
// outputs, states, handles, feeds, active extents, clones, tensors that are written, sealed and kept, and calls that
// are wrong. All numbers are small whole ones, so that results are equal, not close.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/random.h"

namespace rlx::test {

namespace {

constexpr int64_t kRows = 8, kCols = 6;

struct Kind {
  bool symbol = false;  // a's and b's rows are one
  bool bucket = false;  // and were given at compile()
  bool loop = false;
  bool host = false;  // a step that no GPU has a kernel for
};

Graph make_graph(const Kind& kind) {
  Graph g;
  const Dim rows = kind.symbol ? Dim::symbol(symbols::kBatch) : Dim(kRows);
  const TensorType matrix{{rows, kCols}, DType::F32}, number{{}, DType::I32};
  const Value a = g.input("a", matrix), b = g.input("b", matrix), n = g.input("n", {{3}, DType::I32});
  const Value v = g.param("v", {{kCols, kCols}, DType::F32}), w = g.param("w", {{kCols}, DType::F32});
  const Value runs = g.state("runs", number);
  g.update(runs, runs + ops::reduce_sum(n, {.axes = {0}}));
  const Value limit = g.constant(Tensor::f32({}, {50}));
  Value q = ops::max(ops::min(ops::matmul(a, v) + w, limit), ops::neg(limit));
  if (!kind.symbol) {
    const Value s = g.state("s", matrix);
    g.update(s, q - s);
    q = q + s;
  }
  if (kind.loop) {
    auto cond = std::make_shared<Graph>("cond"), body = std::make_shared<Graph>("body");
    const Value i = cond->input("i", number);
    cond->input("x", matrix);
    cond->output(ops::lt(i, cond->constant(Tensor::i32({}, {3}))), "go");
    const Value j = body->input("i", number), x = body->input("x", matrix);
    body->output(j + body->constant(Tensor::i32({}, {1})), "i");
    body->output(x + body->param("w", {{kCols}, DType::F32}), "x");
    q = ops::while_(Values{g.constant(Tensor::i32({}, {0})), q}, {.cond = cond, .body = body}).result(1);
  }
  g.output(q, "q");
  g.output(ops::max(q, b), "r");
  g.output(a, "same");
  g.output(runs, "before");
  g.output(ops::transpose(w * v, {.perm = {1, 0}}), "scaled");
  if (kind.host) g.output(ops::det(v), "det");
  return g;
}

// The same calls of a device and of the reference.
class Calls {
 public:
  Calls(Rng& rng, CompileOptions options) : rng_(rng) {
    kind_.symbol = rng.chance(0.5);
    kind_.bucket = kind_.symbol && rng.chance(0.5);
    kind_.loop = rng.chance(0.3);
    kind_.host = rng.chance(0.3);
    const Graph g = make_graph(kind_);
    options.kept_programs = static_cast<int>(rng.integer(1, 3));
    options.verify_plan = true;
    options.poison = rng.chance(0.5);
    options.webgpu.min_loop_work = 0;
    if (rng.chance(0.3)) options.webgpu.max_buffer_bytes = options.webgpu.max_binding_bytes = 1024;
    if (kind_.bucket) options.dims.set(symbols::kBatch, kRows);
    CompileOptions reference{.device = "reference", .dims = options.dims};
    pairs_.push_back({compile(g, options), compile(g, reference)});
    for (const char* name : {"v", "w"}) set_param(pairs_[0], name);
  }

  void step() {
    Pair& p = pairs_[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(pairs_.size()) - 1))];
    switch (rng_.integer(0, 14)) {
      case 0: return set_param(p, rng_.chance(0.5) ? "v" : "w");
      case 1: return both(p, "set_state", [&, t = numbers({kRows, kCols})](Executable& e) { e.set_state("s", t); });
      case 2: return both(p, "reset_states", [](Executable& e) { e.reset_states(); });
      case 3: {
        const std::string input = any_input();
        return both(p, str("bind_handle ", input),
                    [&, t = input_tensor(input).clone()](Executable& e) { e.bind_handle(input, t); });
      }
      case 4: {
        const std::string output = rng_.chance(0.5) ? "q" : "r", input = any_input();
        return both(p, str("feed ", output, " to ", input), [&](Executable& e) { e.feed(output, input); });
      }
      case 5: {
        const int64_t upper = rng_.chance(0.9) ? kRows : 2, actual = rng_.integer(0, upper);
        return both(p, str("set_active_extent ", actual, " of ", upper), [&](Executable& e) {
          e.set_active_extent(actual, upper);
          p.actual = actual;
          p.upper = upper;
        });
      }
      case 6:
        if (pairs_.size() == 3) return;
        return pairs_.push_back({p.device.clone(), p.reference.clone(), p.actual, p.upper});
      case 7: return run_slots(p);
      case 8: {
        const NamedTensors inputs = {{"a", input_tensor("a")}, {"b", input_tensor("b")}, {"n", input_tensor("n")}};
        return both(p, "debug_first_nan_node", [&](Executable& e) {
          const auto bad = e.debug_first_nan_node(inputs);
          EXPECT_FALSE(bad) << bad->node << " " << bad->op << " " << bad->element << " " << bad->value << " "
                            << bad->count << "\n"
                            << done_;
        });
      }
      default: return run(p);
    }
  }

 private:
  struct Pair {
    Executable device, reference;
    int64_t actual = 0, upper = -1;  // rows in use
  };

  Tensor numbers(std::vector<int64_t> sizes, DType dtype = DType::F32) {
    return rng_.integers(std::move(sizes), -4, 4).cast(dtype);
  }
  std::string any_input() { return std::string(1, "abn"[rng_.integer(0, 2)]); }
  // One that was given before, perhaps written since; sometimes one that does not fit.
  Tensor input_tensor(const std::string& name) {
    std::vector<Tensor>& old = old_[name];
    if (!old.empty() && rng_.chance(0.5)) {
      Tensor t = old[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(old.size()) - 1))];
      if (t.is_owned() && t.fixed_id() == 0 && rng_.chance(0.3) && t.num_elements() > 0) {
        const Tensor other = numbers(t.sizes(), t.dtype());
        std::ranges::copy(other.bytes(), t.mutable_bytes().begin());
      }
      return t;
    }
    const bool wrong = rng_.chance(0.03);
    const int64_t rows = kind_.symbol && !kind_.bucket ? common_rows_ : wrong ? kRows + 1 : kRows;
    Tensor t = name == "n" ? numbers({wrong ? 4 : 3}, DType::I32) : numbers({rows, kCols});
    if (rng_.chance(0.3)) t.mutable_bytes();
    if (rng_.chance(0.2)) t.seal();
    old.push_back(t);
    return t;
  }

  // Both do, or both say why not.
  void both(Pair& p, const std::string& what, const std::function<void(Executable&)>& call) {
    std::string device, reference;
    const auto say = [&](Executable& e, std::string& why) {
      try {
        call(e);
      } catch (const Error& error) {
        why = error.message();
      }
    };
    say(p.device, device);
    say(p.reference, reference);
    done_ += str(&p - pairs_.data(), ": ", what, reference.empty() ? "" : ": ", reference, "\n");
    EXPECT_EQ(device.empty(), reference.empty()) << what << ": " << device << reference << "\n" << done_;
    for (const Port& state : p.device.states())
      expect_same(p, p.device.read_state(state.name), p.reference.read_state(state.name), what + ": " + state.name);
    for (const char* input : {"a", "b", "n"}) {
      EXPECT_EQ(p.device.has_handle(input), p.reference.has_handle(input)) << what;
      if (p.device.has_handle(input)) expect_same(p, p.device.read_handle(input), p.reference.read_handle(input), what);
    }
  }

  // Rows that are not in use hold anything.
  void expect_same(const Pair& p, const Tensor& actual, const Tensor& expected, const std::string& what) {
    ASSERT_EQ(str(actual.type()), str(expected.type())) << what << "\n" << done_;
    const bool cut = actual.rank() == 2 && actual.sizes()[0] == p.upper;
    const int64_t elements = cut ? p.actual * kCols : actual.num_elements();
    for (int64_t i = 0; i < elements; ++i)
      ASSERT_EQ(actual.at(i), expected.at(i)) << what << ", element " << i << "\n" << done_;
  }

  void set_param(Pair& p, const std::string& name) {
    const Tensor t = name == "v" ? numbers({kCols, kCols}) : numbers({rng_.chance(0.05) ? kCols + 1 : kCols});
    both(p, "set_param " + name, [&](Executable& e) { e.set_param(name, t); });
  }

  void run(Pair& p) {
    common_rows_ = rng_.integer(0, 5);
    NamedTensors inputs;
    for (const char* name : {"a", "b", "n"})
      if (!p.device.has_handle(name) ? rng_.chance(0.98) : rng_.chance(0.3)) inputs[name] = input_tensor(name);
    if (rng_.chance(0.02)) inputs["nobody"] = numbers({1});
    if (rng_.chance(0.02)) inputs["n"] = numbers({3});  // another dtype
    RunOptions options;
    if (rng_.chance(0.3)) options.outputs = {"r", "before"};
    if (rng_.chance(0.02)) options.outputs = {"nobody"};
    std::vector<StepTrace> trace;
    if (rng_.chance(0.1)) options.trace = &trace;
    std::string what = "run";
    for (const auto& [name, t] : inputs) what += str(" ", name, "=", t.type());
    for (const std::string& name : options.outputs) what += " -> " + name;
    NamedTensors actual, expected;
    both(p, what, [&](Executable& e) { (&e == &p.device ? actual : expected) = e.run(inputs, options); });
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, t] : expected) expect_same(p, actual.at(name), t, name);
  }

  // Results are the executable's until the next run; one that is sealed stays as it is.
  void run_slots(Pair& p) {
    common_rows_ = rng_.integer(0, 5);
    const std::vector<Tensor> inputs = {input_tensor("a"), input_tensor("b"), input_tensor("n")};
    std::vector<size_t> outputs;
    for (size_t i = 0; i < p.device.outputs().size(); ++i)
      if (rng_.chance(0.6)) outputs.push_back(i);
    std::vector<Tensor> actual, expected;
    both(p, str("run_slots of ", outputs.size(), " outputs"), [&](Executable& e) {
      const std::span<const Tensor> results = e.run_slots(inputs, outputs);
      (&e == &p.device ? actual : expected).assign(results.begin(), results.end());
    });
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) expect_same(p, actual[i], expected[i], "a slot");
    for (const auto& [kept, copy] : kept_) EXPECT_EQ(kept, copy);
    if (actual.empty() || !rng_.chance(0.3)) return;
    actual[0].seal();
    if (p.device.device() == "webgpu")
      kept_.emplace_back(actual[0], actual[0].clone());  // elsewhere it is in the arena
  }

  Rng& rng_;
  std::string done_;  // for what a failure says
  Kind kind_;
  std::vector<Pair> pairs_;
  std::map<std::string, std::vector<Tensor>> old_;
  std::vector<std::pair<Tensor, Tensor>> kept_;
  int64_t common_rows_ = 1;
};

void make_calls(const CompileOptions& options) {
  for_random(60, [&](Rng& rng) {
    Calls calls(rng, options);
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) calls.step();
  });
}

}  // namespace

TEST(RandomCalls, OnTheCpu) { make_calls({.device = "cpu"}); }

TEST(RandomCalls, OnAGpu) {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && !d.available) GTEST_SKIP() << d.why_not;
  make_calls({.device = "webgpu"});
}

}  // namespace rlx::test
