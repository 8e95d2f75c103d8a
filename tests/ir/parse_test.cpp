// The text form: print, parse, print is the identity; a malformed text is an Error that names the place.
#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random_graph.h"

namespace rlx::test {

TEST(Parse, PrintParsePrintIsTheIdentityOnRandomGraphs) {
  for_random(300, [](Rng& rng) {
    const Graph graph = random_graph(rng, {.nodes = 20, .symbols = rng.chance(0.3)}).graph;
    const std::string text = print(graph);
    const Graph again = parse(text);
    EXPECT_EQ(print(again), text);
    EXPECT_EQ(again, graph);
    EXPECT_EQ(again.hash(), graph.hash());
  });
}

TEST(Parse, FilesAreReadAndTheirTextIsStable) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RLX_GRAPHS)) {
    SCOPED_TRACE(entry.path().string());
    const Graph graph = load(entry.path().string());
    EXPECT_EQ(print(parse(print(graph))), print(graph));
    ++files;
  }
  EXPECT_GE(files, 3);
  EXPECT_ERROR(load("no_such_file.rlx"), kUnavailable, "no_such_file.rlx");
  EXPECT_ERROR(load(RLX_GRAPHS), kInvalid, "directory");
}

TEST(Parse, TypesMayBeLeftOutAndCommentsStand) {
  const Graph g = parse(R"(
    # two lines of a model
    graph @m {
      %x = input() : [2, 3] f32
      %w = param() {name="layer.0/w"} : [3] f32   # a name of its own
      %0 = add(%x, %w)
      %1 = softmax(%0) {axis=0}
      return probs=%1, %0
    })");
  EXPECT_EQ(g.outputs()[0].name, "probs");
  EXPECT_EQ(g.outputs()[1].name, "2");
  EXPECT_EQ(str(g.type(g.outputs()[0].value)), "[2, 3] f32");
  EXPECT_NE(g.find_leaf(ops::param, "layer.0/w"), nullptr);
  EXPECT_EQ(print(g), print(parse(print(g))));
}

TEST(Parse, TheAnnotatedFormIsTheSameGraphWithComments) {
  Graph g("m");
  const Value x = g.input("x", {{256, 2}, DType::F32});
  g.output(ops::neg(ops::neg(x)), "y");
  EXPECT_EQ(print_annotated(g),
            "# 3 nodes, 1 outputs, 6.0 KB\n#   2 neg\n#   1 input\n"
            "graph @m {\n  %x = input() : [256, 2] f32  # [input \"x\"]\n  %1 = neg(%x) : [256, 2] f32\n"
            "  %2 = neg(%1) : [256, 2] f32  # -> output \"y\"\n  return y=%2\n}\n");
  for_random(50, [](Rng& rng) {
    const Graph graph = random_graph(rng).graph;
    EXPECT_EQ(parse(print_annotated(graph)), graph);
  });
}

TEST(Parse, ConstantsKeepEveryBit) {
  Graph g;
  Rng rng(7);
  for (const DType d : all_dtypes()) {
    g.output(g.constant(rng.tensor({3, 2}, d)), str("small_", name(d)));
    g.output(g.constant(rng.tensor({5, 7}, d)), str("large_", name(d)));
    g.output(g.constant(Tensor(d, {0, 2})), str("empty_", name(d)));
  }
  const uint32_t bits[] = {0x7fc00001u, 0xff800000u, 0x80000000u,
                           0x00000001u};  // NaN with payload, -inf, -0, subnormal
  g.output(g.constant(Tensor::borrow(DType::F32, {4}, std::as_bytes(std::span(bits)))), "bits");
  g.output(g.constant(Tensor::i64({2}, {INT64_MIN, INT64_MAX})), "wide");
  g.output(g.constant(Tensor::of<uint64_t>(DType::U64, {2}, std::vector<uint64_t>{UINT64_MAX, 0})), "wide_unsigned");
  const Graph again = parse(print(g));
  for (size_t i = 0; i < g.outputs().size(); ++i)
    EXPECT_EQ(again.node_of(again.outputs()[i].value).attrs.as<ops::ConstantAttrs>().value,
              g.node_of(g.outputs()[i].value).attrs.as<ops::ConstantAttrs>().value)
        << g.outputs()[i].name;
}

TEST(Parse, SymbolsConstraintsUpdatesAndRegionsSurvive) {
  Graph g("decode step");
  const Dim batch = g.symbols().named("batch size");
  const Value x = g.input("x", {{batch, Dim::symbol(symbols::kSeq, 12, -3)}, DType::F32});
  const Value b = g.constant(Tensor::f32({7, 1}, {1, 2, 3, 4, 5, 6, 7}), "odd name; \"quoted\"\n");
  const Value sum = x + b;  // batch must be 1 or 7
  const Value s = g.state("s", sum.type());
  g.update(s, sum);
  const Value flat = ops::reshape(sum, {.new_shape = {-1}});
  g.output(flat, "flat out");
  g.output(g.dim_value(batch), "rows");
  const std::string text = print(g);
  EXPECT_NE(text.find("require ?16 in {1, 7}"), std::string::npos) << text;
  EXPECT_NE(text.find("symbol ?16 = \"batch size\""), std::string::npos) << text;
  EXPECT_EQ(print(parse(text)), text);
}

struct BadText {
  const char* text;
  const char* says;
};

class ParseBad : public testing::TestWithParam<BadText> {};
TEST_P(ParseBad, IsAnErrorThatNamesThePlace) {
  EXPECT_ERROR(parse(GetParam().text, "m.rlx"), kInvalid, GetParam().says) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    Texts, ParseBad,
    testing::Values(
        BadText{"", "m.rlx:1:1: Expected 'graph', found the end of the text"},
        BadText{"graph m { return }", "m.rlx:1:7: Expected '@', found 'm'"},
        BadText{"graph @m {\n  %x = input() : [2] f33\n return }", "m.rlx:2:"},
        BadText{"graph @m { %x = input() : [2] f33 return }", "'f33' is not a dtype"},
        BadText{"graph @m { %x = input() : [-2] f32 return }", "Size (-2) is negative"},
        BadText{"graph @m { %x = input() : [99999999999999999999] f32 return }", "does not fit a 64-bit integer"},
        BadText{"graph @m { %x = input() : [4611686018427387904, 4] f32 return %x }", "does not fit 64 bits"},
        BadText{"graph @m { %x = input() : [?4294967296] f32 return %x }", "does not fit a symbol's number"},
        BadText{"graph @m { %x = input() : [?1*0] f32 return %x }", "Scale (0) of symbol ?1 is not positive"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = frobnicate(%x) return %0 }", "There is no op 'frobnicate'"},
        BadText{"graph @m { %0 = add(%x, %x) return %0 }", "Value %x is not defined above"},
        BadText{"graph @m { %x = input() : [2] f32 %x = input() : [2] f32 return %x }", "Value %x is defined twice"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = add(%x) return %0 }", "Number of operands (1) is not 2"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = softmax(%x) {axs=1} return %0 }",
                "Op 'softmax' has no attribute 'axs'; it has: axis"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = softmax(%x) {axis=1, axis=0} return %0 }",
                "Attribute 'axis' is given twice"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = softmax(%x) {axis=x} return %0 }",
                "'x' is not a 64-bit integer"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = softmax(%x) {axis=5} return %0 }",
                "Axis (5) is out of range for rank (1)"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = softmax(%x) : [3] f32 return %0 }",
                "Declared type [3] f32 of result 0 is not the inferred [2] f32"},
        BadText{"graph @m { %x = input() : [2] f32 %0 = neg(%x) : [2] f32 return %0#1 }",
                "has 1 results, not a result 1"},
        BadText{"graph @m { %x = input() {name=\"a} : [2] f32 return %x }", "A string is not closed"},
        BadText{"graph @m { %x = input() {name=\"\\q\"} : [2] f32 return %x }", "Escape '\\q' is not known"},
        BadText{"graph @m { %0 = input() : [2] f32 return %0 }", "A leaf needs a name"},
        BadText{"graph @m { %x = input() : [2] f32 return %x } graph", "Text follows the end of the graph"},
        BadText{"graph @m { %x = input() : [2] f32 return %x, %x }", "Output name 'x' is used twice"},
        BadText{"graph @m { %x = input() : [2] f32",
                "Expected a node, symbol, require, update or return, found the end of the text"},
        BadText{"graph @m { %c = constant() {value=[1, 2]} : [3] f32 return %c }", "has 3 elements, 2 are given"},
        BadText{"graph @m { %c = constant() {value=[300]} : [1] u8 return %c }", "Number (300) does not fit u8"},
        BadText{"graph @m { %c = constant() {value=[65536]} : [1] u16 return %c }", "Number (65536) does not fit u16"},
        BadText{"graph @m { %c = constant() {value=[-1]} : [1] u64 return %c }", "'-1' is not an integer of u64"},
        BadText{"graph @m { %c = constant() {value=[18446744073709551616]} : [1] u64 return %c }", "does not fit"},
        BadText{"graph @m { %c = constant() {value=\"0g\"} : [1] u8 return %c }", "'g' is not a hexadecimal digit"},
        BadText{"graph @m { %c = constant() {value=\"000\"} : [1] u8 return %c }",
                "Number of hexadecimal digits (3) is odd"},
        BadText{"graph @m { %c = constant() : [1000000000000] f32 return %c }", "elements, 0 are given"},
        BadText{"graph @m { %c = constant() {value=[1]} return %c }", "A constant states one type"},
        BadText{"graph @m { symbol ?17 = ?18 * ?19 return }", "Symbol ?17 is defined by a later symbol (?18)"},
        BadText{"graph @m { %x = input() : [2] f32 %s = state() : [3] f32 update %s = %x return }",
                "is updated by %x of type [2] f32"},
        BadText{"graph @m { %x = input() : [2] f32 update %x = %x return }", "Update of %x, which is not a state"},
        BadText{"graph @m { %p = input() : [] f32 %0 = if(%p) {then_branch=graph @t { return }} return %0 }",
                "Region 'else_branch' is missing"}));

TEST(Parse, RegionsMayNotNestForever) {
  std::string text = "graph @m { %p = input() : [] f32 %0 = if(%p) {then_branch=";
  for (int i = 0; i < 100; ++i) text += "graph @m { %p = input() : [] f32 %0 = if(%p) {then_branch=";
  EXPECT_ERROR(parse(text), kInvalid, "nested more than 32 deep");
}

TEST(Parse, AnyCutOfAGoodTextIsAnErrorAndNothingElse) {
  Rng rng(3);
  const std::string text = print(random_graph(rng, {.nodes = 30}).graph);
  for (size_t n = 0; n + 2 < text.size(); ++n) EXPECT_THROW(parse(text.substr(0, n)), Error) << n;
}

}  // namespace rlx::test
