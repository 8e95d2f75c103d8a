// An active extent on the cases of every op: whichever operands have the rows, a run that is cut to those in use gives
// what the op gives on them alone (spec 40, 5).
#include <algorithm>
#include <bit>
#include <optional>

#include "device_cases.h"
#include "rlx/runtime.h"

namespace rlx::test {

namespace {

const Dim kBatch = Dim::symbol(symbols::kBatch);

// Ops whose cases must be cut on every device: they are what buckets are for.
const OpDef* const kCut[] = {&ops::add,  &ops::attention,  &ops::conv,   &ops::dequant_matmul, &ops::gather,
                             &ops::gelu, &ops::layer_norm, &ops::matmul, &ops::reduce_sum,     &ops::rms_norm,
                             &ops::rope, &ops::sample,     &ops::softmax};

// The outermost axis of more than one; -1: none.
int64_t rows_axis(const Tensor& t) {
  const auto& sizes = t.sizes();
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; });
  return first == sizes.end() ? -1 : first - sizes.begin();
}

Tensor first_rows(const Tensor& t, int64_t axis, int64_t rows) {
  std::vector<int64_t> sizes = t.sizes();
  int64_t& size = sizes[static_cast<size_t>(axis)];
  const size_t bytes = t.bytes().size() / static_cast<size_t>(size) * static_cast<size_t>(rows);
  size = rows;
  return Tensor::borrow(t.dtype(), sizes, t.bytes().first(bytes)).clone();
}

// A case, the operands that have the rows (bit i), and how many there are of them.
struct CutCase {
  const OpCase& op_case;
  uint64_t carriers = 0;
  int64_t upper = 0, actual = 0;
  bool carries(size_t i) const { return (carriers >> i & 1) != 0; }
};

Tensors operands_in_use(const CutCase& c) {
  Tensors out = c.op_case.inputs;
  for (size_t i = 0; i < out.size(); ++i)
    if (c.carries(i)) out[i] = first_rows(out[i], rows_axis(out[i]), c.actual);
  return out;
}

// Every result is an output.
Graph graph_of(const CutCase& c) {
  Graph g;
  Values operands;
  for (size_t i = 0; i < c.op_case.inputs.size(); ++i) {
    const Tensor& t = c.op_case.inputs[i];
    TensorType type = t.type();
    if (c.carries(i)) type.shape[rows_axis(t)] = kBatch;
    operands.push_back(g.input(str("x", i), type));
  }
  const Value first = g.add(*c.op_case.op, operands, c.op_case.attrs);
  const auto results = static_cast<int64_t>(g.node_of(first.id()).results.size());
  for (int64_t r = 0; r < results; ++r) g.output(first.result(r), str("y", r));
  return g;
}

// Was the run cut to the rows in use? It may be refused where padded rows would enter a state.
bool runs_cut(const CutCase& c, const Graph& g, const Tensors& rows, const Tensors& expected, CompileOptions options) {
  SCOPED_TRACE(str(c.actual, " of ", c.upper, " rows on ", options.device, "\n", print(g)));
  options.dims = {{symbols::kBatch, c.upper}};
  options.bucket_symbol = symbols::kBatch;
  try {
    Executable exe = compile(g, options);
    exe.set_active_extent(c.actual, c.upper);
    const std::span<const Tensor> results = exe.run_slots(c.op_case.inputs);
    if (exe.stats().full_extent_runs > 0) return false;
    for (size_t r = 0; r < results.size(); ++r) {
      const size_t bytes = expected[r].bytes().size();
      if (results[r].bytes().size() < bytes) {
        ADD_FAILURE() << "result " << r << " is too small: " << str(results[r].type());
        continue;
      }
      const Tensor in_use =
          Tensor::borrow(expected[r].dtype(), expected[r].sizes(), results[r].bytes().first(bytes)).clone();
      // The largest element may lie beyond the rows in use.
      constexpr double kLooser = 2;
      EXPECT_TRUE(near_on(options.device, c.op_case, rows, in_use, expected[r], kLooser)) << "result " << r;
    }
    return true;
  } catch (const Error& e) {
    EXPECT_TRUE(is_refused_by_gpu(options, e) ||
                e.message().find("An active extent would let padded rows into the state") != std::string::npos)
        << e.what();
    return false;
  }
}

class ActiveExtentTest : public testing::Test {
 public:
  explicit ActiveExtentTest(const OpDef& op) : op_(op) {}

  void TestBody() override {
    const auto cases = small_cases(op_);
    share_on_gpu_ = share_on_gpu(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(str("case ", i));
      try_carriers(*cases[i], rng_.chance(share_on_gpu_));
    }
    if (std::find(std::begin(kCut), std::end(kCut), &op_) == std::end(kCut)) return;
    EXPECT_GT(cut_on_host_, 0);
    if (share_on_gpu_ == 0) return;
    // None of those that chance took to the GPU may be one that can be cut.
    for (size_t i = 0; i < cases.size() && cut_on_gpu_ == 0; ++i) try_carriers(*cases[i], true);
    EXPECT_GT(cut_on_gpu_, 0);
  }

 private:
  // All sets of operands with one size in front, up to a dozen; on a GPU the first and some of the others.
  void try_carriers(const OpCase& c, bool on_gpu) {
    if (c.inputs.size() > 8) return;
    std::vector<int64_t> rows;
    for (const Tensor& t : c.inputs)
      rows.push_back(rows_axis(t) < 0 ? 1 : t.sizes()[static_cast<size_t>(rows_axis(t))]);
    int tried = 0;
    for (uint64_t set = 1; set < uint64_t{1} << rows.size() && tried < 12; ++set) {
      const int64_t upper = rows[static_cast<size_t>(std::countr_zero(set))];
      bool fits = upper > 1;
      for (size_t i = 0; i < rows.size(); ++i) fits &= (set >> i & 1) == 0 || rows[i] == upper;
      if (!fits) continue;
      const bool some = rng_.chance(0.3);
      try_one({c, set, upper, rng_.integer(1, upper - 1)}, on_gpu && (tried++ == 0 || some));
    }
  }

  void try_one(const CutCase& c, bool on_gpu) {
    std::optional<Graph> graph;
    const Tensors rows = operands_in_use(c);
    Tensors expected;
    try {
      graph = graph_of(c);
      expected = run_op(*c.op_case.op, rows, c.op_case.attrs);
    } catch (const Error&) {
      return;  // the op wants a size that is known, two that are the same, or attributes that fit the one size alone
    }
    for (const char* device : {"reference", "cpu"})
      cut_on_host_ += runs_cut(c, *graph, rows, expected, {.device = device, .threads = 2, .poison = true});
    CompileOptions gpu{.device = "webgpu", .poison = rng_.chance(0.5)};
    gpu.webgpu.min_loop_work = 0;
    if (on_gpu) cut_on_gpu_ += runs_cut(c, *graph, rows, expected, gpu);
  }

  const OpDef& op_;
  Rng rng_{first_seed()};  // RLX_SEED=N: other choices
  double share_on_gpu_ = 0;
  int cut_on_host_ = 0, cut_on_gpu_ = 0;
};

}  // namespace

testing::Test* make_active_extent_test(const OpDef& op) { return new ActiveExtentTest(op); }

}  // namespace rlx::test
