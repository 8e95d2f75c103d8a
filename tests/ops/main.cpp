// Five tests per op of the catalogue ("Ops.softmax", "Cpu.softmax", "WebGpu.softmax", "ActiveExtent.softmax",
// "Placement.softmax"), made from its OP_CASES, and "Targets.softmax" where cpu has a kernel of its own,
// "NonFinite.softmax" and "WebGpuUniform.softmax" for some; an op without cases, judge or kernel fails. Every case's
// graph also survives the text form. With --write_graphs=FOLDER it is written there too, a seed for the fuzzer;
// --write_cases=FOLDER writes the operands as well (OP-N.npz), for rlx bench.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "backends/cpu/table.h"
#include "backends/reference/table.h"
#include "core/convert.h"
#include "core/npy.h"
#include "device_cases.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"
#include "support/tolerance.h"

namespace rlx::test {

static std::string write_graphs, write_cases;  // folders, or empty

class OpTest : public testing::Test {
 public:
  explicit OpTest(const OpDef* op) : op_(op) {}

  void TestBody() override {
    bool judged = false;
    int index = 0;  // over all files with cases of the op: what is written is called by it
    for (const RegisteredCases& registered : registered_cases()) {
      if (registered.op != op_) continue;
      for (const auto& c : registered.make()) {
        std::string types;
        for (const Tensor& t : c->inputs) types += str(types.empty() ? "" : ", ", t.type());
        SCOPED_TRACE(str(op_->name, " case ", index++, ": (", types, ")"));
        run_case(*c);
        if (c->error.empty()) check_text(*c, str(op_->name, "-", index));
        judged |= c->judged() && c->error.empty();
      }
    }
    EXPECT_TRUE(judged) << "op '" << op_->name << "' has no op case with a judge in tests/ops";
    EXPECT_TRUE(reference::find_kernel(*op_) || op_->decompose)
        << "op '" << op_->name << "' has neither a reference kernel nor a decomposition";
    EXPECT_FALSE(op_->doc.empty()) << "op '" << op_->name << "' has no doc line";
    EXPECT_FALSE(op_->category.empty()) << "op '" << op_->name << "' has no category";
  }

 private:
  // Every attribute of the case survives print and parse.
  static void check_text(const OpCase& c, const std::string& name) {
    Graph graph("case");
    Values operands;
    for (size_t i = 0; i < c.inputs.size(); ++i) operands.push_back(graph.input(str("x", i), c.inputs[i].type()));
    graph.output(graph.add(*c.op, operands, c.attrs), "y");
    const std::string text = print(graph);
    try {
      EXPECT_EQ(print(parse(text)), text);
      EXPECT_EQ(parse(text).nodes().back().attrs, c.attrs);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
    for (const std::string& folder : {write_graphs, write_cases})
      if (!folder.empty()) std::ofstream(folder + "/" + name + ".rlx") << text;
    if (write_cases.empty()) return;
    NamedTensors operands_by_name;
    for (size_t i = 0; i < c.inputs.size(); ++i) operands_by_name[str("x", i)] = c.inputs[i];
    write_npz(write_cases + "/" + name + ".npz", operands_by_name);
  }

  const OpDef* op_;
};

// Integers have 32 bits on a GPU: larger results wrap there, or are the largest where floats are cast (spec 10, 1.5);
// they are right where the host computed them.
static testing::AssertionResult same_in_32_bits(const Tensor& actual, const Tensor& expected, bool saturates) {
  if (actual.type() != expected.type())
    return testing::AssertionFailure() << "type " << str(actual.type()) << " is not " << str(expected.type());
  const auto compare = [&]<class Narrow>(auto a, auto e, Narrow) {
    using Wide = typename decltype(e)::value_type;
    using Ends = std::numeric_limits<Narrow>;
    for (size_t i = 0; i < a.size(); ++i) {
      const Wide narrow = saturates ? std::clamp<Wide>(e[i], Ends::min(), Ends::max()) : static_cast<Narrow>(e[i]);
      if (a[i] != e[i] && a[i] != narrow)
        return testing::AssertionFailure() << "element " << i << " is " << a[i] << ", expected " << e[i];
    }
    return testing::AssertionSuccess();
  };
  return expected.dtype() == DType::I64 ? compare(actual.values<int64_t>(), expected.values<int64_t>(), int32_t{})
                                        : compare(actual.values<uint64_t>(), expected.values<uint64_t>(), uint32_t{});
}

testing::AssertionResult near_on(std::string_view device, const OpCase& c, std::span<const Tensor> inputs,
                                 const Tensor& actual, const Tensor& expected, double looser) {
  const bool wide = expected.dtype() == DType::I64 || expected.dtype() == DType::U64;
  if (device == "webgpu" && wide)
    return same_in_32_bits(actual, expected, c.op == &ops::cast && !is_int(inputs[0].dtype()));
  Tolerance tolerance = tolerance_of(*c.op, c.attrs, inputs, expected);
  tolerance.of_max *= looser;
  return near(actual, expected, tolerance);
}

bool is_refused_by_gpu(const CompileOptions& options, const Error& e) {
  return options.device == "webgpu" && e.kind() == ErrorKind::kUnsupported &&
         (e.message().find("does not fit the 32 bits") != std::string::npos ||
          e.message().find("f32_uniform") != std::string::npos);
}

std::vector<std::unique_ptr<OpCase>> small_cases(const OpDef& op) {
  std::vector<std::unique_ptr<OpCase>> out;
  for (const RegisteredCases& registered : registered_cases()) {
    if (registered.op != &op) continue;
    for (auto& c : registered.make()) {
      int64_t elements = 0;
      for (const Tensor& t : c->inputs) elements += t.num_elements();
      if (c->error.empty() && elements <= 30'000) out.push_back(std::move(c));
    }
  }
  return out;
}

double share_on_gpu(size_t cases) {
  constexpr double kOnSoftware = 12;
  for (const DeviceInfo& d : devices()) {
    if (d.name != "webgpu" || !d.available || d.adapters.empty()) continue;
    return d.adapters.front().type == "software" ? kOnSoftware / static_cast<double>(cases) : 1;
  }
  return 0;
}

// On another device and on the oracle (spec 30, 23).
static void compare(const OpCase& c, const CompileOptions& options, uint64_t params) {
  SCOPED_TRACE(str(options.threads, " threads", params == 0 ? "" : ", operands are weights"));
  Tensors actual, expected;
  try {
    actual = run_op_on(options, *c.op, c.inputs, c.attrs, params);
    if (c.error.empty()) expected = run_op(*c.op, c.inputs, c.attrs);
  } catch (const Error& e) {
    if (is_refused_by_gpu(options, e)) return;
    EXPECT_FALSE(c.error.empty()) << e.what();
    EXPECT_NE(std::string(e.what()).find(c.error), std::string::npos)
        << "the Error says: " << e.what() << "; expected: " << c.error;
    return;
  }
  // A kernel on a GPU cannot throw: an index out of range reads or writes nothing outside its tensor (spec 10, Q16),
  // and is an error where indices are checked. Other faults of the data have no error there.
  constexpr std::string_view kOtherFaults[] = {"divided by 0", "has no bins that can be sampled",
                                               "A region has bins of"};
  const bool is_checked = options.webgpu.check_indices &&
                          std::none_of(std::begin(kOtherFaults), std::end(kOtherFaults),
                                       [&](auto fault) { return c.error.find(fault) != std::string::npos; });
  if (!c.error.empty() && options.device == "webgpu" && !is_checked) return;
  EXPECT_TRUE(c.error.empty()) << "no Error; expected one that says: " << c.error;
  ASSERT_EQ(actual.size(), expected.size());
  if (options.device == "webgpu" && options.webgpu.f32_uniform)
    for (const Tensor& t : expected)
      for (int64_t i = 0; i < t.num_elements(); ++i)
        if (is_int(t.dtype()) && std::abs(t.at(i)) > 0x1p24) return;
  for (size_t r = 0; r < actual.size(); ++r)
    EXPECT_TRUE(near_on(options.device, c, c.inputs, actual[r], expected[r])) << "result " << r;
}

// The case with zeros of both signs here and there, for ops whose results are exact; they are bits, not numbers, to ops
// that move them. Nullopt: the op is another, or none of its operands has floats.
static std::optional<OpCase> with_signed_zeros(const OpCase& c) {
  if (!c.error.empty() || !is_exact(*c.op)) return std::nullopt;
  OpCase out = c;
  bool any = false;
  for (Tensor& t : out.inputs) {
    if (!is_float(t.dtype()) || t.num_elements() == 0) continue;
    t = t.clone();
    const StoreFn store = store_fn(t.dtype());
    for (int64_t i = 0; i < t.num_elements(); i += 3) store(t.mutable_bytes().data(), i, i % 2 == 0 ? -0.0 : 0.0);
    any = true;
  }
  return any ? std::optional(std::move(out)) : std::nullopt;
}

// Operands that change and operands that are weights, one thread and several.
void compare_cpu_cases(const OpDef& op) {
  for (const RegisteredCases& registered : registered_cases()) {
    if (registered.op != &op) continue;
    int index = 0;
    for (const auto& c : registered.make()) {
      std::string types;
      for (const Tensor& t : c->inputs) types += str(types.empty() ? "" : ", ", t.type());
      SCOPED_TRACE(str(op.name, " case ", index++, ": (", types, ")"));
      compare(*c, {.device = "cpu", .threads = 1, .verify_plan = true, .poison = true}, 0);
      if (c->inputs.size() > 1) compare(*c, {.device = "cpu", .threads = 3}, ~uint64_t{1});
      if (const auto zeros = with_signed_zeros(*c)) compare(*zeros, {.device = "cpu", .threads = 1}, 0);
    }
  }
}

class CpuTest : public testing::Test {
 public:
  explicit CpuTest(const OpDef& op) : op_(op) {}
  void TestBody() override { compare_cpu_cases(op_); }

 private:
  const OpDef& op_;
};

// The same on the GPU, or the software adapter where there is none: bounds and indices checked and poisoned, without
// subgroups, and as users run it; once per list of dtypes with nothing but weights, which share buffers with what is
// computed of them.
class WebGpuTest : public testing::Test {
 public:
  explicit WebGpuTest(const OpDef& op, bool uniform = false) : op_(op), uniform_(uniform) {}
  void TestBody() override {
    for (const DeviceInfo& d : devices())
      if (d.name == "webgpu" && !d.available) GTEST_SKIP() << d.why_not;
    std::set<std::string> seen;
    for (const RegisteredCases& registered : registered_cases()) {
      if (registered.op != &op_) continue;
      int index = 0;
      for (const auto& c : registered.make()) {
        std::string types, dtypes;
        for (const Tensor& t : c->inputs) {
          types += str(types.empty() ? "" : ", ", t.type());
          dtypes += str(name(t.dtype()), " ");
        }
        SCOPED_TRACE(str("webgpu, ", op_.name, " case ", index++, ": (", types, ")"));
        CompileOptions checked{.device = "webgpu", .verify_plan = true, .poison = true};
        checked.webgpu.bounds_checks = checked.webgpu.check_indices = true;
        checked.webgpu.subgroups = false;
        checked.webgpu.min_loop_work = 0;
        checked.webgpu.f32_uniform = uniform_;
        compare(*c, checked, 0);
        if (uniform_) continue;
        CompileOptions trusted{.device = "webgpu"};
        trusted.webgpu.bounds_checks = trusted.webgpu.check_indices = false;
        if (c->inputs.size() > 1) compare(*c, trusted, ~uint64_t{1});
        if (c->error.empty() && seen.insert(dtypes).second) compare(*c, trusted, ~uint64_t{0});
        if (const auto zeros = with_signed_zeros(*c)) compare(*zeros, trusted, 0);
      }
    }
  }

 private:
  const OpDef& op_;
  bool uniform_;
};

// With all values as f32 (spec 10, 1.5): ops that read or write integers, Bool, F16 or BF16.
const OpDef* const kUniform[] = {&ops::add,
                                 &ops::argmax,
                                 &ops::bit_and,
                                 &ops::bitcast,
                                 &ops::cast,
                                 &ops::concat,
                                 &ops::cumsum,
                                 &ops::dequant_gather,
                                 &ops::eq,
                                 &ops::expand,
                                 &ops::gather,
                                 &ops::gather_nd,
                                 &ops::grouped_matmul,
                                 &ops::is_nan,
                                 &ops::kv_append,
                                 &ops::layer_norm,
                                 &ops::pad,
                                 &ops::quantize_linear,
                                 &ops::rope,
                                 &ops::scan,
                                 &ops::scatter_elements,
                                 &ops::slice,
                                 &ops::softmax,
                                 &ops::softmax_cross_entropy_with_logits,
                                 &ops::reduce_sum,
                                 &ops::topk,
                                 &ops::transpose,
                                 &ops::where,
                                 &ops::while_};

}  // namespace rlx::test

int main(int argc, char** argv) {
  using namespace rlx;
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kWrite = "--write_graphs=";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(kWrite)) test::write_graphs = argv[i] + kWrite.size();
  constexpr std::string_view kWriteCases = "--write_cases=";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(kWriteCases)) test::write_cases = argv[i] + kWriteCases.size();
  for (const OpDef* op : all_ops()) {
    if (op->traits.leaf) continue;  // leaves hold values; graph tests cover them
    testing::RegisterTest("Ops", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op]() -> testing::Test* { return new test::OpTest(op); });
    testing::RegisterTest("Cpu", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op]() -> testing::Test* { return new test::CpuTest(*op); });
    testing::RegisterTest("WebGpu", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op]() -> testing::Test* { return new test::WebGpuTest(*op); });
    testing::RegisterTest("ActiveExtent", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op] { return test::make_active_extent_test(*op); });
    testing::RegisterTest("Placement", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op] { return test::make_placement_test(*op); });
    if (test::has_same_numbers(*op))
      testing::RegisterTest("NonFinite", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [op] { return test::make_non_finite_test(*op); });
    if (std::find(std::begin(test::kUniform), std::end(test::kUniform), op) != std::end(test::kUniform))
      testing::RegisterTest("WebGpuUniform", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [op]() -> testing::Test* { return new test::WebGpuTest(*op, true); });
    const auto rows = cpu::kernel_table();
    if (std::any_of(rows.begin(), rows.end(), [op](const host::KernelRow& row) { return row.op == op; }))
      testing::RegisterTest("Targets", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [op] { return test::make_targets_test(*op); });
  }
  return RUN_ALL_TESTS();
}
