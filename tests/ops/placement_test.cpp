// The cases of every op wherever their bytes may lie: operands that begin in the middle of one input, one behind the
// other; and small buffers, bindings and grids (spec 40, 3).
#include <algorithm>
#include <map>

#include "device_cases.h"
#include "rlx/runtime.h"

namespace rlx::test {

namespace {

// Operands of a dtype lie behind each other in one input, with gaps, so that they begin anywhere and share a buffer.
struct Packed {
  Graph graph{"placed"};
  Tensors inputs;
};

Packed pack(const OpCase& c, Rng& rng) {
  struct Store {
    std::vector<std::byte> bytes;
    std::vector<int64_t> starts;  // of the operands of this dtype, in elements
  };
  std::map<DType, Store> stores;
  for (const Tensor& t : c.inputs) {
    Store& s = stores[t.dtype()];
    const size_t size = size_of(t.dtype());
    s.bytes.resize(s.bytes.size() + static_cast<size_t>(rng.integer(0, 5)) * size);
    s.starts.push_back(static_cast<int64_t>(s.bytes.size() / size));
    s.bytes.insert(s.bytes.end(), t.bytes().begin(), t.bytes().end());
  }
  Packed out;
  std::map<DType, Value> inputs;
  for (auto& [dtype, s] : stores) {
    s.bytes.resize(s.bytes.size() + size_of(dtype));  // none is empty, or ends with the input
    const auto n = static_cast<int64_t>(s.bytes.size() / size_of(dtype));
    out.inputs.push_back(Tensor::borrow(dtype, {n}, s.bytes).clone());
    inputs.emplace(dtype, out.graph.input(std::string(name(dtype)), out.inputs.back().type()));
  }
  std::map<DType, size_t> next;
  Values operands;
  for (const Tensor& t : c.inputs) {
    const int64_t start = stores[t.dtype()].starts[next[t.dtype()]++];
    const Value part = ops::narrow(inputs.at(t.dtype()), {.axis = 0, .start = start, .len = t.num_elements()});
    operands.push_back(ops::reshape(part, {.new_shape = std::vector<Dim>(t.sizes().begin(), t.sizes().end())}));
  }
  const Value first = out.graph.add(*c.op, operands, c.attrs);
  const auto results = static_cast<int64_t>(out.graph.node_of(first.id()).results.size());
  for (int64_t r = 0; r < results; ++r) out.graph.output(first.result(r), str("y", r));
  return out;
}

class PlacementTest : public testing::Test {
 public:
  explicit PlacementTest(const OpDef& op) : op_(op) {}

  void TestBody() override {
    const auto cases = small_cases(op_);
    const double share = share_on_gpu(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      const OpCase& c = *cases[i];
      std::string types;
      for (const Tensor& t : c.inputs) types += str(types.empty() ? "" : ", ", t.type());
      SCOPED_TRACE(str(op_.name, " case ", i, ": (", types, ")"));
      const Tensors expected = run_op(*c.op, c.inputs, c.attrs);
      in_one_input(c, expected, {.device = "cpu", .threads = 2, .verify_plan = true, .poison = true});
      if (!rng_.chance(share)) continue;
      CompileOptions gpu{.device = "webgpu", .verify_plan = true, .poison = true};
      gpu.webgpu.bounds_checks = true;
      gpu.webgpu.min_loop_work = 0;
      in_one_input(c, expected, gpu);
      in_small_buffers(c, expected, gpu);
    }
  }

 private:
  void expect_near(const CompileOptions& options, const OpCase& c, const Tensors& actual, const Tensors& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t r = 0; r < actual.size(); ++r)
      EXPECT_TRUE(near_on(options.device, c, c.inputs, actual[r], expected[r])) << "result " << r;
  }

  void in_one_input(const OpCase& c, const Tensors& expected, const CompileOptions& options) {
    if (c.inputs.empty()) return;
    const Packed packed = pack(c, rng_);
    SCOPED_TRACE(str("in one input, on ", options.device, "\n", print(packed.graph)));
    try {
      Executable exe = compile(packed.graph, options);
      const std::span<const Tensor> results = exe.run_slots(packed.inputs);
      expect_near(options, c, {results.begin(), results.end()}, expected);
    } catch (const Error& e) {
      EXPECT_TRUE(is_refused_by_gpu(options, e)) << e.what();
    }
  }

  // Buffers of a few KiB, bindings of no more, and grids whose rows wrap.
  void in_small_buffers(const OpCase& c, const Tensors& expected, CompileOptions options) {
    options.webgpu.max_binding_bytes = rng_.integer(1, 8) * 512;
    options.webgpu.max_buffer_bytes = options.webgpu.max_binding_bytes * rng_.integer(1, 3);
    options.webgpu.max_groups_per_row = rng_.integer(1, 9);
    const uint64_t params = rng_.bits();
    SCOPED_TRACE(str("bindings of ", options.webgpu.max_binding_bytes, " bytes, buffers of ",
                     options.webgpu.max_buffer_bytes, ", ", options.webgpu.max_groups_per_row,
                     " workgroups per row, weights ", params & 0xff));
    try {
      expect_near(options, c, run_op_on(options, *c.op, c.inputs, c.attrs, params), expected);
    } catch (const Error& e) {
      EXPECT_TRUE(is_refused_by_gpu(options, e)) << e.what();
    }
  }

  const OpDef& op_;
  Rng rng_{first_seed()};  // RLX_SEED=N: other choices
};

}  // namespace

testing::Test* make_placement_test(const OpDef& op) { return new PlacementTest(op); }

}  // namespace rlx::test
