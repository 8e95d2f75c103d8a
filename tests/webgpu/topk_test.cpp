// The first k of long rows: which kernels take which k, and their results on random rows.
#include <algorithm>
#include <set>

#include "as_oracle.h"
#include "backends/webgpu/program.h"

namespace rlx::test {

using TopkOnWebGpu = WebGpu;

namespace {

std::set<std::string> kernels_of(const Graph& graph) {
  const auto device = webgpu::Device::open(webgpu_options().webgpu);
  std::set<std::string> kernels;
  for (const webgpu::Step& s : webgpu::lower(graph, manifest_of(graph), {}, *device, webgpu_options()).steps)
    if (const auto* d = std::get_if<webgpu::Dispatch>(&s.work)) kernels.insert(d->kernel.kernel);
  return kernels;
}

// Values of which many are equal, with what a sort may get wrong.
Tensor random_row(Rng& rng, std::vector<int64_t> sizes, DType dtype) {
  if (!is_float(dtype)) return rng.integers(std::move(sizes), is_signed(dtype) ? -90 : 0, 90, dtype);
  const int64_t few = rng.integer(1, 3000);
  Tensor t = rng.integers(std::move(sizes), -few, few, dtype);
  std::vector<double> values = t.to_doubles();
  const double special[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0};
  for (int i = 0; i < 40; ++i)
    values[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(values.size()) - 1))] =
        special[rng.integer(0, std::ssize(special) - 1)];
  return Tensor::from_doubles(dtype, t.sizes(), values);
}

}  // namespace

// A search per 1024 results would read the row again and again: 6 s for a quarter of a million on the software adapter.
TEST_F(TopkOnWebGpu, ManyResultsTakeOneSort) {
  const auto kernels = [](Shape shape, ops::TopkAttrs attrs) {
    Maker m;
    const Value y = ops::topk(m.in(std::move(shape)), attrs);
    m.out(y);
    m.out(y.result(1));
    return kernels_of(m.g);
  };
  const std::set<std::string> sort{"topk_entries", "sort_pairs", "topk_sorted"}, search{"topk_select"};
  EXPECT_EQ(kernels({262'144}, {.k = 262'144}), sort);
  EXPECT_EQ(kernels({3, 262'144}, {.k = 50'000}), sort);
  EXPECT_EQ(kernels({8192, 3}, {.k = 8192, .axis = 0, .largest = false}), sort);
  EXPECT_EQ(kernels({8, 128'256}, {.k = 50}), search);
  EXPECT_EQ(kernels({1, 262'144}, {.k = 1024}), search);
  EXPECT_EQ(kernels({2, 3000}, {.k = 3000}), search);
}

TEST_F(TopkOnWebGpu, SortsOfRandomRowsAreTheOracles) {
  const DType dtypes[] = {DType::F32, DType::F16, DType::BF16, DType::I32,
                          DType::U8,  DType::I16, DType::I64,  DType::U32};
  for_random(16, [&](Rng& rng) {
    const DType dtype = dtypes[rng.integer(0, std::ssize(dtypes) - 1)];
    const int64_t axis = rng.integer(0, 2), n = rng.chance(0.2)   ? 8192
                                                : rng.chance(0.5) ? rng.integer(6200, 8192)
                                                                  : rng.integer(13'000, 16'384);
    std::vector<int64_t> sizes{rng.integer(1, 3), rng.integer(1, 2), rng.integer(1, 2)};
    sizes[static_cast<size_t>(axis)] = n;
    const ops::TopkAttrs attrs{.k = rng.chance(0.5) ? n : n - rng.integer(0, 900),
                               .axis = axis,
                               .largest = rng.chance(0.5),
                               .index_dtype = rng.chance(0.5) ? DType::I32 : DType::I64};
    SCOPED_TRACE(str(TensorType{Shape(sizes), dtype}, ", k ", attrs.k, " along ", axis));
    Maker m;
    const Value x = m.in(Shape(sizes), dtype), y = ops::topk(x, attrs);
    const bool values = rng.chance(0.8);
    if (values) m.out(y);
    if (!values || rng.chance(0.8)) m.out(y.result(1));
    EXPECT_TRUE(kernels_of(m.g).contains("topk_sorted"));
    expect_as_oracle(m.g, {.given = {{"x0", random_row(rng, sizes, dtype)}}, .tolerance = kExact, .runs = 1});
  });
}

// As many rows at a time as a binding holds; one that none holds is searched.
TEST_F(TopkOnWebGpu, SortsFewRowsAtATimeWhereABindingIsSmall) {
  const auto dispatches = [](std::vector<int64_t> sizes, int64_t axis, int64_t bound) {
    Rng rng(3);
    Maker m;
    const Value y = ops::topk(m.in(Shape(sizes)), {.k = 7000, .axis = axis});
    m.out(y);
    m.out(y.result(1));
    CompileOptions options = webgpu_options(true);
    options.webgpu.max_binding_bytes = bound;
    RunStats stats;
    expect_as_oracle(
        m.g, {.given = {{"x0", random_row(rng, sizes, DType::F32)}}, .tolerance = kExact, .options = options}, &stats);
    return stats.device.dispatches;
  };
  const int64_t row = 8192 * 8;
  const int64_t once = dispatches({2, 7000, 4}, 1, 0);
  EXPECT_EQ(dispatches({2, 7000, 4}, 1, 4 * row), 3 * once);  // three at a time
  EXPECT_EQ(dispatches({7000}, 0, 0), once);
  EXPECT_EQ(dispatches({7000}, 0, 2 * row), once);
  EXPECT_LT(dispatches({7000}, 0, row), once);
}

}  // namespace rlx::test
