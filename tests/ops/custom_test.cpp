#include "rlx/custom_op.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <numeric>
#include <thread>

#include "backends/reference/evaluate.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

Bytes u32s(std::vector<uint32_t> words) {
  Bytes bytes;
  for (const uint32_t w : words)
    for (int i = 0; i < 4; ++i) bytes.data.push_back(static_cast<uint8_t>(w >> (8 * i)));
  return bytes;
}

Bytes gate(uint32_t n_group, uint32_t topk_group, uint32_t top_k, float scaling, uint32_t experts) {
  return u32s({n_group, topk_group, top_k, std::bit_cast<uint32_t>(scaling), experts});
}

const char* const kGate = "llada2.group_limited_gate";

// The gate by masking: groups by the sum of their top two, then repeated maxima over the kept groups.
void judge_gate(const Tensors& in, const Tensors& out, int64_t groups, int64_t keep, int64_t top_k, double scaling) {
  const int64_t tokens = in[0].sizes()[0], experts = in[0].sizes()[1], size = experts / groups;
  ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{tokens, 2 * top_k}));
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<float> scores;
    for (int64_t g = 0; g < groups; ++g) {
      std::vector<float> own;
      for (int64_t i = 0; i < size; ++i) own.push_back(static_cast<float>(in[1].at(t * experts + g * size + i)));
      std::sort(own.rbegin(), own.rend());
      scores.push_back(own[0] + (size > 1 ? own[1] : 0));
    }
    std::vector<double> masked(static_cast<size_t>(experts), -INFINITY);
    for (int64_t i = 0; i < keep; ++i) {
      const auto top = std::max_element(scores.begin(), scores.end());  // the first of equals
      const int64_t g = top - scores.begin();
      *top = -INFINITY;
      for (int64_t e = g * size; e < (g + 1) * size; ++e) masked[static_cast<size_t>(e)] = in[1].at(t * experts + e);
    }
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < top_k; ++i) {
      const auto top = std::max_element(masked.begin(), masked.end());
      chosen.push_back(top - masked.begin());
      *top = -1e30;  // below every score, above the masked
      if (i >= keep * size) FAIL() << "this judge covers gates with enough experts";
    }
    double sum = 1e-20;
    for (const int64_t e : chosen) sum += in[0].at(t * experts + e);
    for (int64_t i = 0; i < top_k; ++i) {
      const int64_t e = chosen[static_cast<size_t>(i)];
      EXPECT_EQ(out[0].at(t * 2 * top_k + i), static_cast<double>(e));
      EXPECT_NEAR(out[0].at(t * 2 * top_k + top_k + i), in[0].at(t * experts + e) * scaling / (top_k > 1 ? sum : 1),
                  1e-6);
    }
  }
}

}  // namespace

OP_CASES(custom) {
  // Gate, by hand: groups {0,1} {2,3} with scores 5+1 and 4+3; the second wins, so expert 0 is masked.
  const Tensor sig = Tensor::f32({1, 4}, {0.1, 0.2, 0.3, 0.6}), route = Tensor::f32({1, 4}, {5, 1, 3, 4});
  add({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 2, 3, 4)})
      .expect({Tensor::f32({1, 4}, {3, 2, 2, 1})}, kRounding);
  add({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 1, 3, 4)})
      .expect({Tensor::f32({1, 2}, {3, 1.8})}, kRounding);  // one expert: not normalised
  add({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 4, 1.2f, 4)})
      .expect({Tensor::f32({1, 8}, {3, 2, 0, 1, 0.6, 0.3, 0.1, 0.2})}, kRounding);  // masked ones last, in id order
  add({Tensor::f32({1, 4}, {1, 1, 1, 1}), Tensor::f32({1, 4}, {2, 2, 2, 2})},
      {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 2, 1, 4)})
      .expect({Tensor::f32({1, 4}, {0, 1, 0.5, 0.5})}, kRounding);  // ties: the smaller index
  add({random({5, 256}, 0, 1), random({5, 256})}, {.name = kGate, .num_inputs = 2})
      .check([](const Tensors& in, const Tensors& out) { judge_gate(in, out, 8, 4, 8, 2.5); });
  add({random({7, 12}, 0, 1), random({7, 12})}, {.name = kGate, .num_inputs = 2, .attrs = gate(12, 5, 3, 1, 12)})
      .check([](const Tensors& in, const Tensors& out) { judge_gate(in, out, 12, 5, 3, 1); });

  // kNN, by hand: ties by column, NaN never, unfilled slots n and FLT_MAX.
  const Tensor distances = Tensor::f32({3, 3}, {0, 2, 1, 2, 0, 2, NAN, 3, 0});
  const ops::CustomAttrs two{.name = "umap.knn", .num_inputs = 1, .attrs = u32s({2})};
  add({distances}, two).expect({Tensor::f32({3, 4}, {2, 1, 1, 2, 0, 2, 2, 2, 1, 3, 3, FLT_MAX})}, kExact);
  add({random({20, 20}, 0, 1)}, {.name = "umap.knn", .num_inputs = 1, .attrs = u32s({5})})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 20; ++i) {
          std::vector<std::pair<double, int64_t>> row;
          for (int64_t j = 0; j < 20; ++j)
            if (j != i) row.emplace_back(in[0].at(i * 20 + j), j);
          std::sort(row.begin(), row.end());
          for (int64_t j = 0; j < 5; ++j) {
            EXPECT_EQ(out[0].at(i * 10 + j), static_cast<double>(row[static_cast<size_t>(j)].second));
            EXPECT_EQ(out[0].at(i * 10 + 5 + j), row[static_cast<size_t>(j)].first);
          }
        }
      });
  const ops::CustomAttrs backward{.name = "umap.knn_backward", .num_inputs = 2};
  add({distances, Tensor::f32({3, 2}, {1, 2, 4, 6, 9, 5})}, backward)
      .expect({Tensor::f32({3, 3}, {0, 1, 1, 2, 0, 3, 0, 3, 0})}, kExact);
  add({Tensor::f32({2, 2}, {0, 0, 0, 0}), Tensor::f32({2, 1}, {1, 2})}, backward)
      .expect({Tensor::f32({2, 2}, {0, 1e8, 2e8, 0})}, kRounding);  // a distance counts as 1e-8 at least

  // The packed form names the type of the result itself.
  add({distances},
      {.name = "umap.knn", .num_inputs = 1, .attrs = u32s({1}), .out_dtype = DType::F32, .out_shape = {3, 2}})
      .expect({Tensor::f32({3, 2}, {2, 1, 0, 2, 1, 3})}, kExact);

  add_error({sig}, {.name = "no.such_op", .num_inputs = 1}, "Custom op 'no.such_op' is not registered");
  add_error({sig}, {.name = kGate, .num_inputs = 1},
            "Number of operands (1) of custom op 'llada2.group_limited_gate' is not 2");
  add_error({sig, route}, {.name = kGate, .num_inputs = 1, .attrs = gate(2, 1, 2, 1, 4)}, "Attribute num_inputs (1)");
  add_error({sig, route}, {.name = kGate, .num_inputs = 2}, "(4 and 256) differ");
  add_error({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(3, 1, 2, 1, 4)},
            "not a multiple of n_group (3)");
  add_error({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 3, 2, 1, 4)}, "topk_group (3)");
  add_error({sig, route}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 5, 1, 4)}, "top_k (5)");
  add_error({sig, random({1, 3})}, {.name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 2, 1, 4)},
            "Operand route shape");
  add_error({distances}, {.name = "umap.knn", .num_inputs = 1}, "Attribute bytes (0) do not hold k");
  add_error({distances}, {.name = "umap.knn", .num_inputs = 1, .attrs = u32s({3})},
            "k (3) is not less than the points (3)");
  add_error({random({2, 3})}, two, "Sizes of operand pairwise (2 and 3) differ");
  add_error({distances, random({3, 3})}, backward, "k (3) is not less than the points (3)");
  add_error({distances, random({2, 2})}, backward, "Rows of pairwise and gradient");
  add_error({distances}, {.name = "umap.knn", .num_inputs = 1, .attrs = u32s({1}), .out_shape = {3, 2}},
            "without out_dtype");
  const ops::CustomAttrs scalar{
      .name = kGate, .num_inputs = 2, .attrs = gate(2, 1, 2, 1, 4), .out_dtype = DType::F32, .out_shape = {}};
  add_error({sig, route}, scalar, "The declared result ([] f32) of custom op 'llada2.group_limited_gate' is not [");
  add_error({random({3})},
            {.name = "umap.knn", .num_inputs = 1, .attrs = u32s({1}), .out_dtype = DType::F32, .out_shape = {3, 2}},
            "Operand pairwise");
}

TEST(CustomOps, AreBuiltByNameAndRunTheRegisteredKernel) {
  register_custom_op({"test.scale", 1, [](const InferCall& call, std::span<const uint8_t> attrs) {
                        require(attrs.size() == 1, "One byte of attributes is expected.");
                        return Types{call.input(0), TensorType{{}, DType::I32}};
                      }});
  const uint8_t factor[] = {3};
  Graph graph;
  const Value x = graph.input("x", {{2, Dim::symbol(20)}, DType::F32});
  const Value y = custom_op("test.scale", {{x}}, factor);
  EXPECT_EQ(y.type(), x.type());
  graph.output(y, "y");
  graph.output(y.result(1), "count");
  EXPECT_EQ(print(parse(print(graph))), print(graph));

  const Graph bound = bind(graph, DimBinding{{20, 2}});
  const Tensor in = Tensor::f32({2, 2}, {1, 2, 3, 4});
  EXPECT_THROW(reference::evaluate(bound, {{in}}), Error);  // no kernel yet

  const auto multiply = [](float by) {
    return [by](const CustomCall& call) {
      const auto values = call.inputs[0].values<const float>();
      const auto out = call.outputs[0].values<float>();
      for (size_t i = 0; i < values.size(); ++i) out[i] = values[i] * static_cast<float>(call.attrs[0]) * by;
      call.outputs[1].values<int32_t>()[0] = static_cast<int32_t>(values.size());
    };
  };
  register_custom_kernel("test.scale", "reference", multiply(1));
  EXPECT_EQ(reference::evaluate(bound, {{in}})[0], Tensor::f32({2, 2}, {3, 6, 9, 12}));
  EXPECT_EQ(reference::evaluate(bound, {{in}})[1], Tensor::i32({}, {4}));
  register_custom_kernel("test.scale", "reference", multiply(10));  // replaces
  EXPECT_EQ(reference::evaluate(bound, {{in}})[0], Tensor::f32({2, 2}, {30, 60, 90, 120}));
  EXPECT_FALSE(find_custom_kernel("test.scale", "cpu"));
  const auto on_cpu = [&] { return compile(graph, {.device = "cpu"}).run({{"x", in}}).at("y"); };
  EXPECT_EQ(on_cpu(), Tensor::f32({2, 2}, {30, 60, 90, 120}));  // where the cpu has none of its own
  register_custom_kernel("test.scale", "cpu", multiply(100));
  EXPECT_EQ(on_cpu(), Tensor::f32({2, 2}, {300, 600, 900, 1200}));
  EXPECT_EQ(reference::evaluate(bound, {{in}})[0], Tensor::f32({2, 2}, {30, 60, 90, 120}));

  EXPECT_THROW(custom_op("test.scale", {{x, x}}, factor), Error);
  EXPECT_THROW(custom_op("test.scale", {{x}}), Error);  // the type rule refuses
  EXPECT_THROW(custom_op("test.unknown", {{x}}), Error);
  EXPECT_THROW(custom_op("test.scale", {}), Error);
  EXPECT_EQ(custom_op("test.scale", {{x}}, {}, {{5}, DType::I8}).type(), (TensorType{{5}, DType::I8}));
  EXPECT_THROW(register_custom_op({"", 1, nullptr}), Error);
  EXPECT_THROW(register_custom_op({"test.no_rule", 1, nullptr}), Error);
  EXPECT_THROW(register_custom_op({"test.no_operand", 0, [](const InferCall&, auto) { return Types{}; }}), Error);
  EXPECT_THROW(register_custom_kernel("test.scale", "reference", nullptr), Error);
}

TEST(CustomOps, RegistryTakesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        register_custom_op(
            {str("test.thread", t), 1, [](const InferCall& call, auto) { return Types{call.input(0)}; }});
        register_custom_kernel("test.shared", "reference", [](const CustomCall&) {});
        EXPECT_TRUE(find_custom_op(str("test.thread", t)) != nullptr);
        EXPECT_TRUE(find_custom_kernel("test.shared", "reference"));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rlx::test
