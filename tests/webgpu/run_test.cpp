// Compiling when sizes are known, and what a run takes and gives (spec 40, 4 and 5).
#include "as_oracle.h"
#include "support/expect_error.h"

namespace rlx::test {

namespace {

const Dim kBatch = Dim::symbol(symbols::kBatch), kSeq = Dim::symbol(symbols::kSeq);

Graph scaled_rows() {
  Maker m;
  const Value x = m.in({kBatch, 4}), w = m.weight({4});
  m.out(ops::softmax(x * w));
  return m.g;
}

}  // namespace

using RunOnWebGpu = WebGpu;

TEST_F(RunOnWebGpu, CompilesAtTheFirstRunAndAgainOnlyForNewSizes) {
  Executable exe = compile(scaled_rows(), webgpu_options()), oracle = compile(scaled_rows(), {.device = "reference"});
  Rng rng(1);
  const Tensor w = rng.tensor({4});
  // Before any size is known; a recompile takes it over.
  exe.set_param_bytes("w1", w.bytes());
  oracle.set_param("w1", w);
  EXPECT_EQ(exe.stats().compiles, 0);
  EXPECT_THROW(exe.set_param("v", w), Error);
  int64_t compiles = 0;
  for (const int64_t rows : {3, 3, 5, 5, 3}) {
    const Tensor x = rng.tensor({rows, 4});
    EXPECT_TRUE(near(exe.run({{"x0", x}}).at("y0"), oracle.run({{"x0", x}}).at("y0"), kTranscendental)) << rows;
    compiles = std::max(compiles, exe.stats().compiles);
  }
  EXPECT_EQ(exe.stats().runs, 5);
  EXPECT_LE(compiles, 3);
  EXPECT_GE(compiles, 2);
  const int64_t before = exe.stats().compiles;
  exe.run({{"x0", rng.tensor({3, 4})}});
  EXPECT_EQ(exe.stats().compiles, before);
}

TEST_F(RunOnWebGpu, BindingsCompileAtOnceAndMustBeComplete) {
  CompileOptions options = webgpu_options();
  options.dims = {{symbols::kBatch, 3}};
  Executable exe = compile(scaled_rows(), options);
  EXPECT_EQ(exe.stats().compiles, 1);
  EXPECT_EQ(exe.plan().steps.size(), 2u);
  Maker m;
  m.out(ops::tanh(m.in({kBatch, kSeq})));
  EXPECT_ERROR(compile(m.g, options), kInvalid, "have no size");
}

TEST_F(RunOnWebGpu, OutputsHaveTheirDeclaredDtypes) {
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8,
                        DType::U16, DType::U32, DType::Bool}) {
    SCOPED_TRACE(str(d));
    Maker m;
    const Value x = m.in({3, 5}, d);
    m.out(ops::transpose(x, {.perm = {1, 0}}));
    m.out(ops::cast(x, {.to = DType::F32}));
    EXPECT_EQ(expect_as_oracle(m.g, {.tolerance = kExact}).at("y0").dtype(), d);
  }
}

// A fed handle takes the rows in use alone.
TEST_F(RunOnWebGpu, FeedsMoveTheActiveRows) {
  Maker m;
  const Value h = m.in({kBatch, 2}), x = m.in({kBatch, 2});
  m.g.output(h + x, "next");
  Maker inner;  // rows that are not the outermost axis
  const Value g = inner.in({2, kBatch, 2}), y = inner.in({2, kBatch, 2});
  inner.g.output(g + y, "next");
  for (const char* device : {"webgpu", "cpu"}) {
    CompileOptions options = webgpu_options();
    options.device = device;
    options.dims = {{symbols::kBatch, 4}};
    Executable exe = compile(m.g, options);
    exe.bind_handle("x0", Tensor::f32({4, 2}, {1, 1, 1, 1, 1, 1, 1, 1}));
    exe.feed("next", "x0");
    EXPECT_TRUE(exe.has_handle("x0"));
    EXPECT_FALSE(exe.has_handle("x1"));
    const Tensor step = Tensor::f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    exe.set_active_extent(2, 4);
    exe.run({{"x1", step}}, {.outputs = {"next"}});
    exe.run({{"x1", step}}, {.outputs = {"next"}});
    EXPECT_EQ(exe.read_handle("x0"), Tensor::f32({4, 2}, {3, 5, 7, 9, 1, 1, 1, 1})) << device;
    Executable batched = compile(inner.g, options);
    batched.bind_handle("x0", Tensor::f32({2, 4, 2}, std::vector<float>(16, 1)));
    batched.feed("next", "x0");
    batched.set_active_extent(1, 4);
    batched.run({{"x1", Tensor::f32({2, 4, 2}, std::vector<float>(16, 2))}});
    EXPECT_EQ(batched.read_handle("x0"), Tensor::f32({2, 4, 2}, {3, 3, 1, 1, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1}))
        << device;
  }
}

TEST_F(RunOnWebGpu, UnknownNamesAndWrongLengthsAreErrors) {
  Executable exe = compile(scaled_rows(), webgpu_options());
  EXPECT_THROW(exe.set_param("w1", Tensor::f32({3}, {1, 2, 3})), Error);
  EXPECT_THROW(exe.set_param("nothing", Tensor::f32({4}, {1, 2, 3, 4})), Error);
  exe.set_param("w1", Tensor::f32({4}, {1, 1, 1, 1}));
  EXPECT_THROW(exe.run({{"x", Tensor(DType::F32, {1, 4})}}), Error);
  EXPECT_THROW(exe.run({{"x0", Tensor(DType::F32, {1, 3})}}), Error);
  EXPECT_THROW(exe.run({{"x0", Tensor(DType::F64, {1, 4})}}), Error);
  EXPECT_EQ(exe.run({{"x0", Tensor(DType::F32, {1, 4})}}).at("y0"), Tensor::f32({1, 4}, {0.25, 0.25, 0.25, 0.25}));
}

}  // namespace rlx::test
