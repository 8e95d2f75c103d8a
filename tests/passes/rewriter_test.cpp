#include "passes/rewriter.h"

#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/pass_context.h"

namespace rlx::test {

using passes::Pass;
using passes::PassRecord;
using passes::Rewriter;
using passes::UseInfo;

namespace {

// relu(a + b) becomes max(a + b, 0): something to rewrite with, two members, the sum absorbed when nobody else reads
// it.
void relu_of_sum(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op != &ops::relu || rw.producer(node.inputs[0]).op != &ops::add) return std::nullopt;
    if (!rw.uses().sole_use(node.inputs[0], node)) {
      rw.miss(node, "MultiConsumer", "The sum is read elsewhere too.");
      return std::nullopt;
    }
    const Node& sum = rw.producer(node.inputs[0]);
    const Value zero = rw.out().constant(Tensor(DType::F32, {}));
    return Values{ops::max(rw.in(sum.inputs[0]) + rw.in(sum.inputs[1]), zero)};
  });
}
constexpr Pass kReluOfSum = {.name = "relu_of_sum", .run = relu_of_sum};

const TensorType kType{{2, 3}, DType::F32};

struct SumGraph {
  Graph g{"g"};
  Value x = g.input("x", kType), y = g.input("y", kType);
  Value sum = x + y;
};

}  // namespace

TEST(Uses, OutputsAndUpdatesCount) {
  SumGraph s;
  const Value square = s.sum * s.sum;
  s.g.output(square, "square");
  {
    const UseInfo uses(s.g);
    EXPECT_EQ(uses.edges(s.sum.id()), 2);
    EXPECT_EQ(uses.consumers(s.sum.id()).size(), 1u);
    EXPECT_TRUE(uses.sole_use(s.sum.id(), s.g.node_of(square.id())));
    EXPECT_TRUE(uses.is_output(square.id()));
    EXPECT_EQ(uses.edges(square.id()), 1);
  }
  // D01: an absorbed value that is an output too has another reader.
  s.g.output(s.sum, "sum");
  const UseInfo uses(s.g);
  EXPECT_EQ(uses.edges(s.sum.id()), 3);
  EXPECT_FALSE(uses.sole_use(s.sum.id(), s.g.node_of(square.id())));

  Graph g("states");
  const Value state = g.state("s", kType);
  const Value next = ops::relu(state);
  const Value other = ops::tanh(next);
  g.output(other, "y");
  g.update(state, next);
  const UseInfo of_state(g);
  EXPECT_EQ(of_state.edges(next.id()), 2);
  EXPECT_FALSE(of_state.sole_use(next.id(), g.node_of(other.id())));
}

TEST(Rewriter, MembersVanishAndNamesOriginsAndIdsSurvive) {
  Graph g("g");
  const Value x = g.input("x", kType), y = g.input("y", kType);
  const Value sum = g.add(ops::add, {{x, y}}, {});
  const ValueId relu = g.add_node(ops::relu, {sum.id()}, {}, {kType}, "hidden", "block").id();
  const Value tail = ops::tanh(g.value(relu));
  const Value unused = ops::neg(x);
  g.output(tail, "out");
  PassRecord record;
  const auto after = passes::run_pass(g, kReluOfSum, pass_context(), record);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(print(*after), R"(graph @g {
  %x = input() : [2, 3] f32
  %y = input() : [2, 3] f32
  %2 = constant() {value=[0]} : [] f32
  %3 = add(%x, %y) : [2, 3] f32
  %hidden = max(%3, %2) : [2, 3] f32
  %5 = tanh(%hidden) : [2, 3] f32
  %6 = neg(%x) : [2, 3] f32
  return out=%5
}
)");
  EXPECT_EQ(after->nodes()[4].origin, "block/relu_of_sum");
  EXPECT_EQ(after->nodes()[3].origin, "block/relu_of_sum");
  EXPECT_EQ(record.run.stats.replaced, 1);

  // D02: callers keep ids and ask the remap.
  EXPECT_TRUE(after->contains(tail.id()) && after->contains(x.id()) && after->contains(unused.id()));
  EXPECT_EQ(record.remap.find(tail.id()).id, tail.id());
  EXPECT_EQ(record.remap.find(relu).id, after->nodes()[4].results[0].id);
  EXPECT_FALSE(record.remap.find(relu).absorbed);
  EXPECT_TRUE(record.remap.find(sum.id()).absorbed);
  EXPECT_EQ(record.remap.find(sum.id()).id, after->nodes()[4].results[0].id);
}

TEST(Rewriter, NothingToDoLeavesTheGraphAloneAndReportsNearMisses) {
  SumGraph s;
  s.g.output(ops::relu(s.sum), "y");
  s.g.output(s.sum, "sum");
  PassRecord record;
  EXPECT_FALSE(passes::run_pass(s.g, kReluOfSum, pass_context(), record).has_value());
  ASSERT_EQ(record.misses.size(), 1u);
  EXPECT_EQ(record.misses[0].guard, "MultiConsumer");
  EXPECT_EQ(record.misses[0].node, "%3");
  EXPECT_EQ(record.misses[0].pass, "relu_of_sum");
}

TEST(Rewriter, ALeafThatComesLaterIsMovedToItsFirstReader) {
  Graph g("g");
  const Value x = g.input("x", kType);
  const Value a = ops::relu(x);
  const Value w = g.param("w", kType);
  const Value b = ops::tanh(a) * w;
  g.output(b, "y");
  constexpr Pass pass = {.name = "add_w", .run = [](Rewriter& rw) {
                           const ValueId late = rw.graph().find_leaf(ops::param, "w")->results[0].id;
                           rw.for_each([&](const Node& node) -> std::optional<Values> {
                             if (node.op != &ops::relu) return std::nullopt;
                             EXPECT_TRUE(rw.can_have(late));
                             EXPECT_FALSE(rw.can_have(node.results[0].id));
                             return Values{rw.in(node.inputs[0]) + rw.in(late)};
                           });
                         }};
  PassRecord record;
  const auto after = passes::run_pass(g, pass, pass_context(), record);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(print(*after), R"(graph @g {
  %x = input() : [2, 3] f32
  %w = param() : [2, 3] f32
  %2 = add(%x, %w) : [2, 3] f32
  %3 = tanh(%2) : [2, 3] f32
  %4 = mul(%3, %w) : [2, 3] f32
  return y=%4
}
)");
}

TEST(Rewriter, ReadingWhatComesLaterIsAnErrorThatNamesThePass) {
  SumGraph s;
  const Value y = ops::tanh(ops::relu(s.sum));
  s.g.output(y, "y");
  static ValueId later;
  later = y.id();
  constexpr Pass pass = {.name = "looks_ahead", .run = [](Rewriter& rw) {
                           rw.for_each([&](const Node& node) -> std::optional<Values> {
                             if (node.op != &ops::relu) return std::nullopt;
                             return Values{rw.in(later)};
                           });
                         }};
  PassRecord record;
  EXPECT_ERROR(passes::run_pass(s.g, pass, pass_context(), record), kInternal,
               "Pass 'looks_ahead' reads a value before");
}

TEST(Rewriter, AnotherTypeIsAnErrorThatNamesThePass) {
  SumGraph s;
  s.g.output(s.sum, "y");
  constexpr Pass pass = {.name = "changes_types", .run = [](Rewriter& rw) {
                           rw.for_each([&](const Node& node) -> std::optional<Values> {
                             if (node.op != &ops::add) return std::nullopt;
                             return Values{ops::cast(rw.in(node.inputs[0]), {.to = DType::F16})};
                           });
                         }};
  PassRecord record;
  EXPECT_ERROR(passes::run_pass(s.g, pass, pass_context(), record), kInternal,
               "Pass 'changes_types' replaces %2 (add)");
}

TEST(Driver, APassThatBreaksTheGraphIsNamed) {
  SumGraph s;
  s.g.output(s.sum, "y");
  constexpr Pass pass = {.name = "breaks", .run = [](Rewriter& rw) {
                           rw.for_each([&](const Node& node) -> std::optional<Values> {
                             if (node.op != &ops::add) return std::nullopt;
                             return Values{rw.out().add_node(ops::relu, {}, {}, {kType})};
                           });
                         }};
  PassRecord record;
  EXPECT_ERROR(passes::run_pass(s.g, pass, pass_context(), record), kInternal, "Pass 'breaks' breaks the graph.");
}

TEST(Driver, APassThatNeverEndsIsNamed) {
  SumGraph s;
  s.g.output(s.sum, "y");
  constexpr Pass pass = {.name = "again",
                         .run =
                             [](Rewriter& rw) {
                               rw.for_each([&](const Node& node) -> std::optional<Values> {
                                 if (node.op != &ops::add) return std::nullopt;
                                 return Values{rw.in(node.inputs[1]) + rw.in(node.inputs[0])};
                               });
                             },
                         .repeat = true};
  PassRecord record;
  EXPECT_ERROR(passes::run_pass(s.g, pass, pass_context(), record), kInternal, "Pass 'again' still finds something");
}

TEST(Driver, SkipsByNameAndRejectsUnknownNames) {
  Graph g("g");
  const Value x = g.input("x", kType);
  g.output(ops::relu(ops::cast(x, {.to = DType::F32})), "y");
  passes::PassContext context = pass_context();
  EXPECT_EQ(passes::optimize(g, context).graph.nodes().size(), 2u);
  context.options.skip = {"simplify", "mark_elementwise_regions"};
  EXPECT_EQ(passes::optimize(g, context).graph.nodes().size(), 3u);
  context.options.skip = {"simplfy"};
  EXPECT_ERROR(passes::optimize(g, context), kInvalid, "There is no pass 'simplfy' to skip.");
}

TEST(Driver, DumpsEachChangeAndReportsCountsAndRemap) {
  Graph g("g");
  const Value x = g.input("x", kType);
  const Value c = ops::cast(x, {.to = DType::F32});
  g.output(ops::relu(c), "y");
  g.output(ops::relu(x), "z");
  passes::PassContext context = pass_context();
  std::vector<std::string> dumps;
  context.dump = [&](std::string_view pass, const Graph& graph) {
    dumps.push_back(str(pass, " ", graph.nodes().size()));
  };
  const passes::OptimizeResult result = passes::optimize(g, context);
  EXPECT_EQ(dumps, (std::vector<std::string>{"simplify 3", "eliminate_common_subexpressions 2"}));
  EXPECT_EQ(result.report.before.at("relu"), 2);
  EXPECT_EQ(result.report.after.at("relu"), 1);
  EXPECT_EQ(result.remap.find(c.id()).id, x.id());
  EXPECT_EQ(result.graph.outputs()[0].value, result.graph.outputs()[1].value);
  EXPECT_TRUE(result.report.before.contains("relu"));
}

}  // namespace rlx::test
