#include <cmath>

#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

static ChainOperand in(int32_t i) { return {.is_step = false, .index = i}; }
static ChainOperand step(int32_t s) { return {.is_step = true, .index = s}; }
using ops::RegionPrologue;

// The ops of a chain applied one by one; results are those of the last.
static Tensor one_by_one(const Chain& chain, const Tensors& inputs) {
  Tensors steps;
  for (const ChainStep& s : chain) {
    Tensors operands;
    for (const ChainOperand& o : s.operands)
      operands.push_back(o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)]);
    steps.push_back(run_op(*s.op, operands, s.to ? Attrs(ops::CastAttrs{.to = *s.to}) : Attrs())[0]);
  }
  return steps.back();
}

OP_CASES(elementwise_region) {
  // D17: broadcasting in the middle is by strides, not by element counts.
  add({random({8, 1}), random({8, 4})},
      {.chain = {{&ops::add, {in(0), in(1)}}, {&ops::abs, {step(0)}}}, .num_inputs = 2})
      .check([](const Tensors& x, const Tensors& y) {
        ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{8, 4}));
        for (int64_t i = 0; i < 32; ++i) EXPECT_NEAR(y[0].at(i), std::fabs(x[0].at(i / 4) + x[1].at(i)), 1e-6);
      });
  add({random({2, 1, 3}), random({2, 4, 3}), random({4, 1})},
      {.chain = {{&ops::mul, {in(0), in(1)}}, {&ops::sub, {step(0), in(2)}}}, .num_inputs = 3})
      .check([](const Tensors& x, const Tensors& y) {
        ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{2, 4, 3}));
        for (int64_t i = 0; i < 24; ++i)
          EXPECT_NEAR(y[0].at(i), x[0].at(i / 12 * 3 + i % 3) * x[1].at(i) - x[2].at(i / 3 % 4), 1e-6);
      });
  // A comparison is 1 / 0 once it is cast; where takes it, or any number, as it is.
  const Chain clip = {{&ops::gt, {in(0), in(1)}},
                      {&ops::cast, {step(0)}, DType::F32},
                      {&ops::where, {step(0), in(1), in(0)}},
                      {&ops::where, {step(1), step(1), step(2)}}};
  add({Tensor::f32({4}, {-1, 2, 5, NAN}), Tensor::f32({}, {2})}, {.chain = clip, .num_inputs = 2})
      .expect({Tensor::f32({4}, {-1, 2, 1, NAN})}, kExact);
  // The result has the last step's dtype: Bool here, f16 with its rounding there.
  const std::vector<uint8_t> flags = {0, 1};
  add({Tensor::i64({2}, {int64_t{1} << 53, (int64_t{1} << 53) + 1}), Tensor::i64({}, {int64_t{1} << 53})},
      {.chain = {{&ops::neg, {in(0)}}, {&ops::neg, {step(0)}}, {&ops::gt, {step(1), in(1)}}}, .num_inputs = 2})
      .expect({Tensor::of<uint8_t>(DType::Bool, {2}, flags)}, kExact);
  add({Tensor::f32({2}, {1 + 0x1p-12f, 70000})}, {.chain = {{&ops::cast, {in(0)}, DType::F16}, {&ops::neg, {step(0)}}}})
      .expect({Tensor::from_doubles(DType::F16, {2}, std::vector<double>{-1, -INFINITY})}, kExact);
  add({Tensor::i32({2}, {2147483647, 5}), Tensor::i32({}, {2})},
      {.chain = {{&ops::add, {in(0), in(1)}}, {&ops::div, {step(0), in(1)}}}, .num_inputs = 2})
      .expect({Tensor::i32({2}, {-1073741823, 3})}, kExact);
  // The last step is the value, wherever the others are used; a step may be unused.
  add({Tensor::f32({2}, {4, 9})}, {.chain = {{&ops::exp, {in(0)}}, {&ops::sqrt, {in(0)}}}})
      .expect({Tensor::f32({2}, {2, 3})}, kExact);
  add({random({0, 3}), random({3})}, {.chain = {{&ops::add, {in(0), in(1)}}}, .num_inputs = 2})
      .expect({Tensor(DType::F32, {0, 3})});

  // Prologue: element (n, c, y, x) reads (n, c, y/2, x/2) of one input; the others are broadcast as ever.
  for (const int64_t resized : {0, 1})
    for (const DType d : {DType::F32, DType::F16}) {
      const Tensor small = random({2, 3, 2, 5}, d), bias = random({3, 1, 1}, d);
      add(resized == 0 ? Tensors{small, bias} : Tensors{bias, small},
          {.chain = {{&ops::add, {in(0), in(1)}}, {&ops::relu, {step(0)}}},
           .num_inputs = 2,
           .prologue = RegionPrologue::kResizeNearest2x,
           .prologue_input = resized})
          .check([resized, d](const Tensors& x, const Tensors& y) {
            ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{2, 3, 4, 10}));
            const Tensor &source = x[static_cast<size_t>(resized)], &b = x[static_cast<size_t>(1 - resized)];
            for (int64_t i = 0; i < 240; ++i) {
              const int64_t nc = i / 40, row = i / 10 % 4, col = i % 10;
              const double e = source.at((nc * 2 + row / 2) * 5 + col / 2) + b.at(nc % 3);
              EXPECT_NEAR(y[0].at(i), std::fmax(e, 0), d == DType::F32 ? 1e-6 : 2e-3 * (1 + std::fabs(e)));
            }
          });
    }

  // Several blocks, tails, and resized rows of odd lengths.
  for (const DType d : {DType::F32, DType::F16, DType::I8})
    add({random({3, 1300}, d), random({1300}, d), random({3, 1}, d), random({}, d)},
        {.chain = {{&ops::mul, {in(0), in(1)}},
                   {&ops::sub, {in(2), step(0)}},
                   {&ops::add, {step(1), in(3)}},
                   {&ops::relu, {step(2)}},
                   {&ops::sub, {step(3), step(1)}}},
         .num_inputs = 4});
  // Remainders, bits and tests, of narrow integers too: what a step leaves above a narrow dtype's bits is dropped.
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::I64})
    add({random({3, 1300}, d), integers({1300}, 1, 9, d)}, {.chain = {{&ops::bit_not, {in(0)}},
                                                                      {&ops::mod, {step(0), in(1)}},
                                                                      {&ops::shift_left, {step(0), step(1)}},
                                                                      {&ops::div, {step(2), in(1)}},
                                                                      {&ops::shift_right, {step(3), step(1)}},
                                                                      {&ops::fmod, {in(0), in(1)}},
                                                                      {&ops::bit_xor, {step(4), step(5)}},
                                                                      {&ops::sign, {step(6)}},
                                                                      {&ops::bit_or, {step(6), step(7)}}},
                                                            .num_inputs = 2});
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    add({random({5, 700}, -9, 9, d), random({700}, 1, 2, d)}, {.chain = {{&ops::mod, {in(0), in(1)}},
                                                                         {&ops::floor, {in(0)}},
                                                                         {&ops::is_nan, {in(0)}},
                                                                         {&ops::lt, {in(0), in(1)}},
                                                                         {&ops::bit_not, {step(3)}},
                                                                         {&ops::bit_or, {step(2), step(4)}},
                                                                         {&ops::where, {step(5), step(0), step(1)}},
                                                                         {&ops::erf, {step(6)}}},
                                                               .num_inputs = 2});
  add_error({integers({3}, 1, 9), integers({3}, 0, 0)},
            {.chain = {{&ops::neg, {in(0)}}, {&ops::mod, {step(0), in(1)}}}, .num_inputs = 2}, "divided by 0");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 19, 33}, {1, 2, 3, 700}, {2, 1, 40, 1}}) {
    const Tensor other = random({sizes[0], 1, 2 * sizes[2], 2 * sizes[3]});
    add({random(sizes), other}, {.chain = {{&ops::gelu, {in(0)}}, {&ops::add, {step(0), in(1)}}},
                                 .num_inputs = 2,
                                 .prologue = RegionPrologue::kResizeNearest2x});
    add({random({1, sizes[1], sizes[2], sizes[3]}, DType::BF16), random({sizes[0], 1, 1, 1}, DType::BF16)},
        {.chain = {{&ops::mul, {in(0), in(1)}}}, .num_inputs = 2, .prologue = RegionPrologue::kResizeNearest2x});
  }

  add_error({random({2})}, {}, "The chain has no steps.");
  const Chain relu = {{&ops::relu, {in(0)}}};
  add_error({random({2}), random({2})}, {.chain = relu}, "Number of operands (2) is not num_inputs (1).");
  add_error({random({2})}, {.chain = {{&ops::relu, {in(1)}}}}, "Step 0 of the chain reads input (1) of 1.");
  add_error({random({2})}, {.chain = {{&ops::relu, {in(-1)}}}}, "Step 0 of the chain reads input (-1) of 1.");
  add_error({random({2})}, {.chain = {{&ops::relu, {step(0)}}}},
            "Step 0 of the chain reads step (0), which does not stand before it.");
  add_error({random({2})}, {.chain = {{&ops::relu, {in(0)}}, {&ops::relu, {step(-1)}}}}, "reads step (-1)");
  add_error({random({2})}, {.chain = {{&ops::softmax, {in(0)}}}},
            "Step 0 of the chain is 'softmax', which is no element-wise step.");
  add_error({random({2})}, {.chain = {{&ops::elementwise_region, {in(0)}}}}, "which is no element-wise step");
  add_error({random({2})}, {.chain = {{nullptr, {in(0)}}}}, "Step 0 of the chain has no op.");
  add_error({random({2})}, {.chain = {{&ops::add, {in(0)}}}}, "Number of operands (1) is not 2.");
  add_error({random({2})}, {.chain = {{&ops::cast, {in(0)}}}}, "does not say which dtype it casts to");
  add_error({random({2})}, {.chain = {{&ops::relu, {in(0)}, DType::F16}}}, "is no cast but says");
  add_error({random({2}), random({2}, DType::F16)}, {.chain = {{&ops::add, {in(0), in(1)}}}, .num_inputs = 2},
            "Operand dtypes (f32, f16) differ");
  add_error({random({2}), random({2})},
            {.chain = {{&ops::lt, {in(0), in(1)}}, {&ops::mul, {step(0), step(0)}}}, .num_inputs = 2},
            "inferring step 1 of the chain");
  add_error({random({2}), random({3, 2})}, {.chain = relu, .num_inputs = 2},
            "Last step of the chain has shape [2], which an input of shape [3, 2] does not fit into.");
  add_error({random({2})}, {.chain = relu, .prologue_input = 1}, "Prologue input (1) is not one of the 1 inputs.");
  add_error({random({2})}, {.chain = relu, .prologue = RegionPrologue::kResizeNearest2x}, "rank (1) is not 4");
}

OP_CASES(batch_elementwise_region) {
  const Chain square_plus = {{&ops::mul, {in(0), in(0)}}, {&ops::add, {step(0), in(0)}}};
  for (const DType d : {DType::F32, DType::F16, DType::I32})
    add({integers({1, 2, 3}, -9, 9, d), integers({1, 2, 3}, -9, 9, d), integers({1, 2, 3}, -9, 9, d)},
        {.chain = square_plus, .num_batch_inputs = 3})
        .check([d](const Tensors& x, const Tensors& y) {
          ASSERT_EQ(y[0].type(), (TensorType{{3, 2, 3}, d}));
          for (int64_t i = 0; i < 18; ++i) {
            const double v = x[static_cast<size_t>(i / 6)].at(i % 6);
            EXPECT_EQ(y[0].at(i), v * v + v);
          }
        });
  add({random({1, 701}), random({1, 701}), random({1, 701})}, {.chain = square_plus, .num_batch_inputs = 3});
  add({random({1, 4})}, {.chain = square_plus}).check([&](const Tensors& x, const Tensors& y) {
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y[0].at(i), x[0].at(i) * (x[0].at(i) + 1), 1e-6);
  });
  add({Tensor::f32({1, 2}, {1.5, -0.5}), Tensor::f32({1, 2}, {2.5, 9})},
      {.chain = {{&ops::cast, {in(0)}, DType::I32}}, .num_batch_inputs = 2})
      .expect({Tensor::i32({2, 2}, {1, 0, 2, 9})}, kExact);
  add({random({1, 2, 1, 2}), random({1, 2, 1, 2})},
      {.chain = {{&ops::neg, {in(0)}}}, .num_batch_inputs = 2, .prologue = RegionPrologue::kResizeNearest2x})
      .check([](const Tensors& x, const Tensors& y) {
        ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{2, 2, 2, 4}));
        for (int64_t i = 0; i < 32; ++i)
          EXPECT_EQ(y[0].at(i), -x[static_cast<size_t>(i / 16)].at(i / 8 % 2 * 2 + i % 4 / 2));
      });
  const Chain relu = {{&ops::relu, {in(0)}}};
  add_error({random({1, 2}), random({1, 2})}, {.chain = relu}, "Number of operands (2) is not num_batch_inputs (1).");
  add_error({random({2, 2})}, {.chain = relu}, "Slice shape [2, 2] does not start with 1.");
  add_error({random({})}, {.chain = relu}, "Slice shape [] does not start with 1.");
  add_error({random({1, 2}), random({1, 3})}, {.chain = relu, .num_batch_inputs = 2},
            "Slice shape ([1, 3]) is not [1, 2].");
  add_error({random({1, 2}), random({1, 2}, DType::F16)}, {.chain = relu, .num_batch_inputs = 2},
            "Operand dtypes (f32, f16) differ");
  add_error({random({1, 2}), random({1, 2})}, {.chain = {{&ops::add, {in(0), in(1)}}}, .num_batch_inputs = 2},
            "Step 0 of the chain reads input (1) of 1.");
  add_error({random({1, 2})}, {.chain = relu, .prologue_input = 1}, "Prologue input (1) is not one of the 1 inputs.");
}

// A random chain whose steps fit together: values are f32, i32, f16 or Bool and every op gets operands of one dtype.
// Exact ones have no transcendental function, so that every backend gets the same bits.
static Chain random_chain(Rng& rng, const Tensors& inputs, bool exact = false) {
  struct Operand {
    ChainOperand ref;
    DType dtype;
  };
  std::vector<Operand> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back({in(static_cast<int32_t>(i)), inputs[i].dtype()});
  Chain chain;
  const auto pick = [&](auto fits) -> const Operand* {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Operand& v = values[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(values.size()) - 1))];
      if (fits(v.dtype)) return &v;
    }
    return nullptr;
  };
  const auto push = [&](const OpDef& op, std::vector<ChainOperand> operands, DType dtype,
                        std::optional<DType> to = std::nullopt) {
    chain.push_back({&op, std::move(operands), to});
    values.push_back({step(static_cast<int32_t>(chain.size()) - 1), dtype});
  };
  const OpDef* const unary[] = {&ops::relu, &ops::neg, &ops::abs, &ops::tanh, &ops::gelu, &ops::sigmoid, &ops::sin};
  const OpDef* const binary[] = {&ops::add, &ops::sub, &ops::mul, &ops::max, &ops::min};
  for (const int64_t steps = rng.integer(3, 12); static_cast<int64_t>(chain.size()) < steps;) {
    const auto any = [](DType) { return true; };
    const auto number = [](DType d) { return d != DType::Bool; };
    switch (rng.integer(0, 4)) {
      case 0:
        if (const Operand* x = pick(number))
          push(*unary[rng.integer(0, exact || x->dtype == DType::I32 ? 2 : 6)], {x->ref}, x->dtype);
        break;
      case 1:
        if (const Operand* x = pick(any)) {
          const DType dtypes[] = {DType::F32, DType::I32, DType::F16, DType::Bool};
          const DType to = dtypes[rng.integer(0, 3)];
          push(ops::cast, {x->ref}, to, to);
        }
        break;
      case 2: {
        const Operand* a = pick(number);
        const Operand* b = a ? pick([&](DType d) { return d == a->dtype; }) : nullptr;
        if (b) push(*binary[rng.integer(0, 4)], {a->ref, b->ref}, a->dtype);
        break;
      }
      case 3: {
        const Operand* a = pick(number);
        const Operand* b = a ? pick([&](DType d) { return d == a->dtype; }) : nullptr;
        if (b) push(ops::compare_op(static_cast<ops::CompareKind>(rng.integer(0, 5))), {a->ref, b->ref}, DType::Bool);
        break;
      }
      default: {
        const Operand* c = pick(any);
        const Operand* a = pick(any);
        const Operand* b = a ? pick([&](DType d) { return d == a->dtype; }) : nullptr;
        if (c && b) push(ops::where, {c->ref, a->ref, b->ref}, a->dtype);
        break;
      }
    }
  }
  // Input 0 has the full shape: the last step takes it in, so that every input fits into the result.
  push(ops::cast, {values.back().ref}, DType::F32, DType::F32);
  push(ops::add, {values.back().ref, in(0)}, DType::F32);
  return chain;
}

TEST(ElementwiseRegion, EqualsItsStepsOneByOne) {
  for_random(200, [](Rng& rng) {
    const std::vector<int64_t> full = rng.shape({.min_rank = 1, .max_rank = 4, .min_dim = 1, .max_dim = 5});
    Tensors inputs = {rng.tensor(full)};
    for (int64_t n = rng.integer(0, 3); n > 0; --n) {
      std::vector<int64_t> sizes(full.begin() + rng.integer(0, static_cast<int64_t>(full.size())), full.end());
      for (int64_t& size : sizes)
        if (rng.chance(0.4)) size = 1;
      const DType dtypes[] = {DType::F32, DType::I32, DType::Bool};
      inputs.push_back(rng.tensor(sizes, dtypes[rng.integer(0, 2)]));
    }
    const Chain chain = random_chain(rng, inputs);
    const Tensor y =
        run(ops::elementwise_region, inputs, {.chain = chain, .num_inputs = static_cast<int64_t>(inputs.size())})[0];
    EXPECT_TRUE(near(y, one_by_one(chain, inputs), kExact));
    EXPECT_EQ(y.sizes(), full);
  });
}

// Blocks, broadcasts, conversions and roundings of the cpu kernel, with several threads.
TEST(ElementwiseRegion, OnCpuHasTheBitsOfTheOracleWhereAllStepsAreExact) {
  for_random(300, [](Rng& rng) {
    const std::vector<int64_t> full = rng.shape({.min_rank = 1, .max_rank = 4, .min_dim = 1, .max_dim = 40});
    if (product(full) > 60'000) return;
    Tensors inputs = {rng.tensor(full)};
    for (int64_t n = rng.integer(0, 4); n > 0; --n) {
      std::vector<int64_t> sizes(full.begin() + rng.integer(0, static_cast<int64_t>(full.size())), full.end());
      for (int64_t& size : sizes)
        if (rng.chance(0.4)) size = 1;
      const DType dtypes[] = {DType::F32, DType::I32, DType::Bool, DType::F16, DType::BF16, DType::I64, DType::I8};
      inputs.push_back(rng.tensor(sizes, dtypes[rng.integer(0, 6)]));
    }
    const ops::ElementwiseRegionAttrs attrs{.chain = random_chain(rng, inputs, true),
                                            .num_inputs = static_cast<int64_t>(inputs.size())};
    const Tensor y = run_op_on({.device = "cpu", .threads = 3}, ops::elementwise_region, inputs, Attrs(attrs), 0)[0];
    EXPECT_TRUE(near(y, run(ops::elementwise_region, inputs, attrs)[0], kExact));
  });
}

// Every pair of steps that the cpu kernel does in one pass, with and without a relu behind it; a step that is read
// twice has to stay.
TEST(ElementwiseRegion, OnCpuPairsOfStepsHaveTheBitsOfTheSteps) {
  Rng rng(9);
  const Tensors inputs = {rng.tensor({1301}), rng.tensor({1301}), rng.tensor({1301})};
  const OpDef* const pairable[] = {&ops::add, &ops::sub, &ops::mul, &ops::max};
  for (const OpDef* first : pairable)
    for (const OpDef* second : pairable)
      for (const bool swapped : {false, true})
        for (const int tail : {0, 1, 2, 3}) {
          Chain chain = {{first, {in(0), in(1)}}, {second, {step(0), in(2)}}};
          if (swapped) std::swap(chain[1].operands[0], chain[1].operands[1]);
          if (tail == 1) chain.push_back({&ops::relu, {step(1)}});
          if (tail == 2) chain.push_back({&ops::mul, {step(0), step(1)}});
          if (tail == 3) chain[1] = {second, {step(0), step(0)}};
          chain.push_back({&ops::add, {step(static_cast<int32_t>(chain.size()) - 1), in(2)}});
          const ops::ElementwiseRegionAttrs attrs{.chain = chain, .num_inputs = 3};
          EXPECT_TRUE(near(run_op_on({.device = "cpu"}, ops::elementwise_region, inputs, Attrs(attrs), 0)[0],
                           run(ops::elementwise_region, inputs, attrs)[0], kExact))
              << first->name << ", " << second->name << ", swapped " << swapped << ", tail " << tail;
        }
}

// Results that are larger than the caches are written past them: whole, converted, and at odd row lengths.
TEST(ElementwiseRegion, OnCpuStreamsLargeResults) {
  Rng rng(5);
  const Chain chain = {{&ops::mul, {in(0), in(1)}}, {&ops::sub, {step(0), in(0)}}};
  const CompileOptions cpu = {.device = "cpu", .threads = 3};
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2'200'003}, {1003, 2201}}) {
    const Tensors inputs = {rng.tensor(sizes), rng.tensor({sizes.back()})};
    const ops::ElementwiseRegionAttrs attrs{.chain = chain, .num_inputs = 2};
    EXPECT_TRUE(near(run_op_on(cpu, ops::elementwise_region, inputs, Attrs(attrs), 0)[0],
                     run(ops::elementwise_region, inputs, attrs)[0], kExact));
  }
  const Tensors halves = {rng.tensor({4'400'001}, DType::F16)};
  EXPECT_TRUE(near(run_op_on(cpu, ops::neg, halves, Attrs(), 0)[0], run(ops::neg, halves)[0], kExact));
}

// The planner lets a result take its operand's bytes, also of another dtype of the same size.
TEST(ElementwiseRegion, OnCpuMayOverwriteItsOperands) {
  Graph g;
  const Value x = g.input("x", {{3, 20'001}, DType::F32}), row = g.input("row", {{20'001}, DType::F32});
  const Value t = ops::matmul(g.input("a", {{3, 2}, DType::F32}), g.input("b", {{2, 20'001}, DType::F32}));
  const Chain chain = {{&ops::mul, {in(0), in(0)}},
                       {&ops::sub, {in(2), step(0)}},
                       {&ops::abs, {step(1)}},
                       {&ops::add, {step(2), in(0)}},
                       {&ops::max, {step(3), in(1)}}};
  const Value y = ops::elementwise_region(Values{t, x, row}, {.chain = chain, .num_inputs = 3});
  g.output(ops::cast(ops::cast(y * row, {.to = DType::I32}), {.to = DType::F32}), "y");
  Rng rng(3);
  const NamedTensors inputs = {{"x", rng.tensor({3, 20'001})},
                               {"row", rng.tensor({20'001})},
                               {"a", rng.integers({3, 2}, -9, 9, DType::F32)},
                               {"b", rng.integers({2, 20'001}, -9, 9, DType::F32)}};
  Executable cpu = compile(g, {.device = "cpu", .threads = 3, .skip_passes = {"mark_elementwise_regions"}});
  EXPECT_GE(cpu.plan().in_place_results, 3);
  for (const StepInfo& s : cpu.plan().steps)
    EXPECT_TRUE(s.op == "matmul" || s.kernel == "cpu/blocks") << s.op << " by " << s.kernel;
  EXPECT_TRUE(near(cpu.run(inputs).at("y"), compile(g, {.device = "reference"}).run(inputs).at("y"), kExact));
}

TEST(BatchElementwiseRegion, IsTheConcatOfItsSlices) {
  for_random(50, [](Rng& rng) {
    std::vector<int64_t> sizes = rng.shape({.min_rank = 0, .max_rank = 3, .min_dim = 1, .max_dim = 4});
    sizes.insert(sizes.begin(), 1);
    Tensors slices, regions;
    for (int64_t n = rng.integer(1, 4); n > 0; --n) slices.push_back(rng.tensor(sizes));
    const Chain chain = random_chain(rng, {slices[0]});
    for (const Tensor& s : slices) regions.push_back(one_by_one(chain, {s}));
    const Tensor y = run(ops::batch_elementwise_region, slices,
                         {.chain = chain, .num_batch_inputs = static_cast<int64_t>(slices.size())})[0];
    EXPECT_TRUE(near(y, run(ops::concat, regions, {.axis = 0})[0], kExact));
  });
}

TEST(ElementwiseRegion, InfersSymbolicSizes) {
  Graph g;
  const Dim s = Dim::symbol(0);
  const Value x = g.input("x", {{s, 3, 8, 8}, DType::F32}), b = g.input("b", {{3, 1, 1}, DType::F32});
  const Chain chain = {{&ops::add, {in(0), in(1)}}, {&ops::gt, {step(0), in(1)}}};
  const Value y =
      ops::elementwise_region(x, b, {.chain = chain, .num_inputs = 2, .prologue = RegionPrologue::kResizeNearest2x});
  EXPECT_EQ(y.type(), (TensorType{{s, 3, 16, 16}, DType::Bool}));
}

TEST(ElementwiseRegion, SurvivesTheTextForm) {
  Graph g;
  const Value x = g.input("x", {{1, 3, 8, 8}, DType::F32}), b = g.input("b", {{3, 1, 1}, DType::F32});
  const Chain two = {{&ops::add, {in(1), in(0)}}, {&ops::cast, {step(0)}, DType::F16}, {&ops::neg, {step(1)}}};
  const Chain one = {{&ops::gt, {in(0), in(0)}}, {&ops::where, {step(0), in(0), in(0)}}};
  const Value y = ops::elementwise_region(
      b, x, {.chain = two, .num_inputs = 2, .prologue = RegionPrologue::kResizeNearest2x, .prologue_input = 1});
  g.output(ops::batch_elementwise_region(Values{y, y}, {.chain = one, .num_batch_inputs = 2}), "y");
  const Graph again = parse(print(g));
  EXPECT_EQ(print(again), print(g));
  verify(again);
  EXPECT_EQ(again.nodes()[2].attrs, g.nodes()[2].attrs);
  EXPECT_EQ(again.nodes()[2].attrs.as<ops::ElementwiseRegionAttrs>().chain, two);
}

}  // namespace rlx::test
