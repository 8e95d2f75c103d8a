// States and fed inputs stay on the device (spec 10, 3.8; 40, 5).
#include "rlx/ops.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using StatesOnWebGpu = WebGpu;

TEST_F(StatesOnWebGpu, AreUpdatedWithoutAReadback) {
  Graph g;
  const Value x = g.input("x", {{5}, DType::F32}), s = g.state("s", {{5}, DType::F32});
  g.update(s, s * s + x);
  g.output(ops::neg(x), "y");
  Executable exe = compile(g, webgpu_options());
  float expected = 0;
  for (int i = 0; i < 4; ++i) {
    exe.run({{"x", Tensor::f32({5}, {1, 0, 0, 0, 0.5})}});
    expected = expected * expected + 0.5f;
  }
  EXPECT_EQ(exe.stats().device.submits, 4);
  EXPECT_EQ(exe.stats().device.bytes_down, 4 * 20);  // y alone
  EXPECT_EQ(exe.read_state("s"), Tensor::f32({5}, {26, 0, 0, 0, expected}));
}

TEST_F(StatesOnWebGpu, TakeEffectTogether) {
  // They change places; a third takes what the first was, as a view.
  Graph g;
  const Value a = g.state("a", {{2, 3}, DType::F32}), b = g.state("b", {{2, 3}, DType::F32});
  const Value c = g.state("c", {{3}, DType::F32}), x = g.input("x", {{2, 3}, DType::F32});
  g.update(a, b);
  g.update(b, a);
  g.update(c, ops::reshape(ops::narrow(a, {.axis = 0, .start = 1, .len = 1}), {.new_shape = {3}}));
  g.output(a + x, "y");
  g.output(b + x, "z");
  Executable exe = compile(g, webgpu_options(true));
  exe.set_state("a", Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  exe.set_state("b", Tensor::f32({2, 3}, {10, 20, 30, 40, 50, 60}));
  const Tensor zero(DType::F32, {2, 3});
  EXPECT_EQ(exe.run({{"x", zero}}).at("y"), Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(exe.read_state("c"), Tensor::f32({3}, {4, 5, 6}));
  EXPECT_EQ(exe.run({{"x", zero}}).at("y"), Tensor::f32({2, 3}, {10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(exe.read_state("a"), Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(exe.read_state("c"), Tensor::f32({3}, {40, 50, 60}));
}

TEST_F(StatesOnWebGpu, OfEveryDTypeTakeInputsWeightsAndViews) {
  Rng rng(3);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8, DType::U8, DType::I16,
                        DType::U16, DType::Bool, DType::C64}) {
    SCOPED_TRACE(str(d));
    Graph g;
    const Value x = g.input("x", {{3, 3}, d}), w = g.param("w", {{3, 3}, d});
    const Value s = g.state("s", {{3, 3}, d}), t = g.state("t", {{3}, d}), u = g.state("u", {{3, 3}, d});
    const Value v = g.state("v", {{3}, d});
    g.update(s, x);  // packed bytes of a narrow integer
    g.update(u, w);
    // Three elements from the third on: of halves they start in the middle of a word.
    const auto row = [](const Value& of) {
      return ops::reshape(ops::narrow(of, {.axis = 0, .start = 1, .len = 1}), {.new_shape = {3}});
    };
    g.update(t, row(x));
    g.update(v, row(s));
    const Value one = g.input("one", {{3, 3}, DType::F32});
    g.output(ops::cast(d == DType::C64 ? one : ops::cast(s, {.to = DType::F32}), {.to = DType::F32}) + one, "y");
    Executable exe = compile(g, webgpu_options(true));
    const auto values = [&] {
      if (d == DType::C64) {
        Tensor c(d, {3, 3});
        for (auto& z : c.mutable_values<std::complex<float>>())
          z = {static_cast<float>(rng.normal()), static_cast<float>(rng.normal())};
        return c;
      }
      return rng.tensor({3, 3}, d);
    };
    const Tensor first = values(), second = values(), weight = values();
    exe.set_param("w", weight);
    const Tensor ones(DType::F32, {3, 3});
    exe.run({{"x", first}, {"one", ones}});
    EXPECT_EQ(exe.read_state("s"), first);
    EXPECT_EQ(exe.read_state("u"), weight);
    const size_t part = first.bytes().size() / 3;
    EXPECT_EQ(exe.read_state("t"), Tensor::borrow(d, {3}, first.bytes().subspan(part, part)));
    exe.run({{"x", second}, {"one", ones}});
    EXPECT_EQ(exe.read_state("s"), second);
    EXPECT_EQ(exe.read_state("v"), Tensor::borrow(d, {3}, first.bytes().subspan(part, part)));
  }
}

TEST_F(StatesOnWebGpu, FeedsStayOnTheDevice) {
  Graph g;
  const Value h = g.input("h", {{4}, DType::F32}), x = g.input("x", {{4}, DType::F32});
  g.output(h + x, "next");
  g.output(ops::neg(h), "y");
  Executable exe = compile(g, webgpu_options());
  exe.bind_handle("h", Tensor::f32({4}, {0, 0, 0, 0}));
  exe.feed("next", "h");
  for (int i = 0; i < 3; ++i) exe.run({{"x", Tensor::f32({4}, {1, 2, 3, 4})}}, {.outputs = {"y"}});
  EXPECT_EQ(exe.stats().device.bytes_down, 3 * 16);
  EXPECT_EQ(exe.stats().device.submits, 3);
  EXPECT_EQ(exe.stats().device.bytes_up, 32);  // h once; x did not change
  EXPECT_EQ(exe.read_handle("h"), Tensor::f32({4}, {3, 6, 9, 12}));
  EXPECT_EQ(exe.run({{"x", Tensor::f32({4}, {1, 2, 3, 4})}}).at("y"), Tensor::f32({4}, {-3, -6, -9, -12}));
  exe.bind_handle("h", Tensor::f32({4}, {1, 1, 1, 1}));
  EXPECT_EQ(exe.run({{"x", Tensor::f32({4}, {0, 0, 0, 0})}}).at("y"), Tensor::f32({4}, {-1, -1, -1, -1}));
}

TEST_F(StatesOnWebGpu, FeedsOfEveryStorage) {
  // A fed handle of bytes is packed, the output that feeds it is not; another one is only seen by the host (f64); one
  // is not used at all.
  Graph g;
  const Value bytes = g.input("bytes", {{5}, DType::U8}), wide = g.input("wide", {{2}, DType::F64});
  g.input("unused", {{5}, DType::U8});
  const Value next = ops::bit_xor(bytes, g.constant(Tensor::of<uint8_t>(DType::U8, {}, std::vector<uint8_t>{3})));
  g.output(next, "next");
  g.output(wide + wide, "doubled");
  Executable exe = compile(g, webgpu_options());
  exe.bind_handle("bytes", Tensor::of<uint8_t>(DType::U8, {5}, std::vector<uint8_t>{1, 2, 3, 4, 5}));
  exe.bind_handle("unused", Tensor(DType::U8, {5}));
  exe.bind_handle("wide", Tensor::of<double>(DType::F64, {2}, std::vector<double>{1, 0.1}));
  exe.feed("next", "bytes");
  exe.feed("doubled", "wide");
  exe.feed("next", "unused");
  for (int i = 0; i < 3; ++i) exe.run({});
  const Tensor flipped = Tensor::of<uint8_t>(DType::U8, {5}, std::vector<uint8_t>{2, 1, 0, 7, 6});
  EXPECT_EQ(exe.read_handle("bytes"), flipped);
  EXPECT_EQ(exe.read_handle("unused"), flipped);
  EXPECT_EQ(exe.read_handle("wide"), Tensor::of<double>(DType::F64, {2}, std::vector<double>{8, 0.8}));
}

TEST_F(StatesOnWebGpu, OfWordsKeepAllBitsUnderF32Uniform) {
  Graph g;
  const Value words = g.state("words", {{2}, DType::U32});
  g.update(words, ops::bit_not(words));
  g.output(ops::bit_xor(words, words), "none");
  CompileOptions options = webgpu_options();
  options.webgpu.f32_uniform = true;
  Executable exe = compile(g, options);
  const std::vector<uint32_t> start = {2843678918u, 16777217u};
  exe.set_state("words", Tensor::of<uint32_t>(DType::U32, {2}, start));
  exe.run({});
  EXPECT_EQ(exe.read_state("words").values<uint32_t>()[0], ~start[0]);
  EXPECT_EQ(exe.read_state("words").values<uint32_t>()[1], ~start[1]);
}

}  // namespace rlx::test
