#include "backends/cpu/gemm/gemm.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/thread_pool.h"
#include "rlx/error.h"
#include "support/allocations.h"

namespace rlx::cpu::gemm {
namespace {

// Elements of any dtype at any stride, with everything between them filled with NaN: an operand that is read or written
// where it should not be shows.
struct TestMatrix {
  DType dtype = DType::F32;
  int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 1;
  std::vector<std::byte> bytes;

  TestMatrix(DType type, int64_t num_rows, int64_t num_cols, int layout) : dtype(type), rows(num_rows), cols(num_cols) {
    // 0 row-major, 1 with a gap between rows, 2 column-major, 3 column-major with a gap, 4 no two elements adjacent
    row_stride = layout < 2 ? cols + layout * 5 : layout == 4 ? 2 * cols + 3 : 1;
    col_stride = layout < 2 ? 1 : layout == 4 ? 2 : rows + (layout - 2) * 3;
    const int64_t elements = rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
    bytes.resize(static_cast<size_t>(elements) * size_of(dtype));
    for (int64_t i = 0; i < elements; ++i) store_fn(dtype)(bytes.data(), i, NAN);
  }
  int64_t index(int64_t i, int64_t j) const { return i * row_stride + j * col_stride; }
  double at(int64_t i, int64_t j) const { return load_fn(dtype)(bytes.data(), index(i, j)); }
  void set(int64_t i, int64_t j, double x) { store_fn(dtype)(bytes.data(), index(i, j), x); }
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) set(i, j, uniform(random));
  }
  Matrix view() const { return {bytes.data(), dtype, row_stride, col_stride}; }
  Result result() { return {bytes.data(), dtype, row_stride, col_stride}; }
};

struct AlignedBytes {
  explicit AlignedBytes(int64_t size) : storage(static_cast<size_t>(size) + 128, std::byte{0xFF}), bytes(size) {}
  std::byte* data() {
    void* p = storage.data();
    size_t space = storage.size();
    return static_cast<std::byte*>(std::align(64, static_cast<size_t>(bytes), p, space));
  }
  // Everything behind the bytes is as it was.
  bool intact() {
    for (std::byte* p = data() + bytes; p < storage.data() + storage.size(); ++p)
      if (*p != std::byte{0xFF}) return false;
    return true;
  }
  std::vector<std::byte> storage;
  int64_t bytes;
};

double apply(ops::ActivationKind kind, double x) {
  using K = ops::ActivationKind;
  switch (kind) {
    case K::kRelu: return std::max(x, 0.0);
    case K::kGelu: return 0.5 * x * std::erfc(-x * M_SQRT1_2);
    case K::kSilu: return x / (1 + std::exp(-x));
    case K::kTanh: return std::tanh(x);
    default: return x;
  }
}

struct Case {
  int64_t m, n, k;
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  int a_layout = 0, b_layout = 0, c_layout = 0;
  bool packed = false;
  int bias = 0;  // 1 per column, 2 per row
  ops::ActivationKind activation = ops::ActivationKind::kNone;
  bool residual = false;

  std::string text() const {
    return str("m ", m, " n ", n, " k ", k, " a ", a, "/", a_layout, " b ", b, "/", b_layout, " c ", c, "/", c_layout,
               packed ? " packed" : "", " bias ", bias, " activation ", static_cast<int>(activation),
               residual ? " residual" : "");
  }
};

void check(const Case& t, std::mt19937& random) {
  SCOPED_TRACE(t.text());
  TestMatrix a(t.a, t.m, t.k, t.a_layout), b(t.b, t.k, t.n, t.b_layout), residual(t.c, t.m, t.n, 0);
  TestMatrix bias(t.b, t.bias == 2 ? t.m : 1, t.bias == 2 ? 1 : t.n, 0);
  for (TestMatrix* m : {&a, &b, &residual, &bias}) m->fill(random);

  Gemm g = {.m = t.m, .n = t.n, .k = t.k};
  g.a = a.view();
  g.b = b.view();
  if (t.bias != 0) g.epilogue.bias = {bias.bytes.data(), t.b, t.bias == 2 ? 1 : 0, t.bias == 2 ? 0 : 1};
  if (t.residual) g.epilogue.residual = residual.view();
  g.epilogue.activation = t.activation;
  AlignedBytes packed(t.packed ? packed_b_bytes(t.k, t.n, t.b) : 0);
  std::vector<std::vector<std::byte>> results;
  for (const int threads : {1, 8}) {
    ThreadPool pool(threads);
    if (t.packed) {
      pack_b(g.b, t.k, t.n, packed.data(), pool);
      g.packed_b = packed.data();
      ASSERT_TRUE(packed.intact());
    }
    TestMatrix c(t.c, t.m, t.n, t.c_layout);
    g.c = c.result();
    AlignedBytes scratch(scratch_bytes(g, threads));
    run(g, pool, scratch.data());
    ASSERT_TRUE(scratch.intact()) << "more scratch memory is used than was asked for";
    results.push_back(c.bytes);

    const int64_t step = t.m * t.n * t.k < 5'000'000 ? 1 : 7;  // of large ones some elements are checked
    std::vector<double> expected;
    double largest = 1e-3;
    for (int64_t i = 0; i < t.m; i += t.m < 8 ? 1 : step)
      for (int64_t j = 0; j < t.n; j += step) {
        double sum = 0;
        for (int64_t k = 0; k < t.k; ++k) sum += a.at(i, k) * b.at(k, j);
        if (t.bias != 0) sum += t.bias == 2 ? bias.at(i, 0) : bias.at(0, j);
        sum = apply(t.activation, sum) + (t.residual ? residual.at(i, j) : 0);
        expected.push_back(sum);
        largest = std::max(largest, std::fabs(sum));
      }
    const double bound = largest * (t.c == DType::F32 ? 1e-5 : t.c == DType::F16 ? 1e-3 : 8e-3);
    size_t next = 0;
    for (int64_t i = 0; i < t.m; i += t.m < 8 ? 1 : step)
      for (int64_t j = 0; j < t.n; j += step) ASSERT_NEAR(c.at(i, j), expected[next++], bound) << i << ", " << j;
    // Nothing was written between the elements.
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) c.set(i, j, NAN);
    TestMatrix untouched(t.c, t.m, t.n, t.c_layout);
    ASSERT_EQ(c.bytes, untouched.bytes);
  }
  // The same bits from 1 and from 8 threads.
  ASSERT_EQ(results[0], results[1]);
}

// Runs once per instruction set that this machine has.
class EveryTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

std::vector<int64_t> targets() {
  std::vector<int64_t> each;
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}})
    if (hwy::SupportedTargets() & target) each.push_back(target);
  each.push_back(HWY_EMU128 | HWY_SCALAR);  // the baseline, whichever of the two the compiler gets
  return each;
}

std::string target_name(const testing::TestParamInfo<int64_t>& info) {
  return info.param & HWY_SCALAR ? "Baseline" : hwy::TargetName(info.param);
}

constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16};

TEST_P(EveryTarget, RandomProducts) {
  std::mt19937 random(1);
  const auto pick = [&](auto... values) {
    const std::array all = {static_cast<int64_t>(values)...};
    return all[random() % all.size()];
  };
  for (int i = 0; i < 400; ++i) {
    Case t = {};
    t.m = pick(1, 1, 2, 3, 5, 8, 9, 13, 14, 15, 29, 57, 120);
    t.n = pick(1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 100, 129, 200);
    t.k = pick(0, 1, 3, 7, 8, 16, 17, 31, 64, 100, 250);
    t.a = t.b = t.c = kFloats[pick(0, 0, 1, 2)];
    if (i % 7 == 0) t.c = kFloats[random() % 3];
    t.a_layout = static_cast<int>(random() % 5);
    t.b_layout = static_cast<int>(random() % 5);
    t.c_layout = static_cast<int>(pick(0, 0, 0, 1, 2, 3, 4));
    t.packed = random() % 3 == 0;
    t.bias = static_cast<int>(random() % 3);
    t.residual = random() % 4 == 0;
    using K = ops::ActivationKind;
    t.activation = static_cast<K>(pick(K::kNone, K::kNone, K::kRelu, K::kGelu, K::kSilu, K::kTanh));
    check(t, random);
    if (HasFatalFailure()) return;
  }
}

// Every number of rows of a tile, and columns around the panel's width.
TEST_P(EveryTarget, EveryTile) {
  std::mt19937 random(2);
  for (int64_t m = 1; m <= 30; ++m)
    for (const int64_t n : {1, 15, 16, 17, 32, 47, 129})
      for (const bool packed : {false, true}) {
        check({.m = m, .n = n, .k = 19, .packed = packed}, random);
        check({.m = m, .n = n, .k = 19, .b_layout = 2, .packed = packed}, random);
        if (HasFatalFailure()) return;
      }
}

// Deep and wide enough for several passes over k, and for more than one block of packed A and B.
TEST_P(EveryTarget, LargeProducts) {
  std::mt19937 random(3);
  check({.m = 70, .n = 70, .k = 1500, .packed = true}, random);
  check({.m = 70, .n = 70, .k = 1500, .a = DType::F16, .b = DType::F16, .c = DType::F16}, random);
  check({.m = 3, .n = 600, .k = 500, .bias = 1}, random);
  check({.m = 250, .n = 600, .k = 40, .c_layout = 4, .residual = true}, random);
  // Few rows of so large a B are streamed.
  check({.m = 3, .n = 2101, .k = 1003, .bias = 1}, random);
  check({.m = 2, .n = 2101, .k = 2005, .a = DType::BF16, .b = DType::BF16, .c = DType::BF16}, random);
  if (GetParam() & HWY_SCALAR) return;  // the scalar target needs minutes for the rest
  check({.m = 130, .n = 300, .k = 10000}, random);
  check({.m = 130, .n = 300, .k = 10000, .b_layout = 2, .bias = 2}, random);
}

// With equal layouts, a row's bits do not depend on how many other rows there are.
TEST_P(EveryTarget, ARowIsTheSameAloneAndAmongOthers) {
  std::mt19937 random(4);
  ThreadPool pool(2);
  TestMatrix a(DType::F32, 60, 700, 0), b(DType::F32, 700, 150, 0);
  a.fill(random);
  b.fill(random);
  AlignedBytes packed(packed_b_bytes(700, 150, DType::F32));
  pack_b(b.view(), 700, 150, packed.data(), pool);
  for (const bool use_packed : {false, true}) {
    TestMatrix all(DType::F32, 60, 150, 0);
    const auto product = [&](int64_t first, int64_t rows, TestMatrix& c) {
      Gemm g = {.m = rows, .n = 150, .k = 700};
      g.a = {reinterpret_cast<const float*>(a.bytes.data()) + first * 700, DType::F32, 700, 1};
      g.b = b.view();
      if (use_packed) g.packed_b = packed.data();
      g.c = c.result();
      AlignedBytes scratch(scratch_bytes(g, 2));
      run(g, pool, scratch.data());
    };
    product(0, 60, all);
    for (const int64_t rows : {1, 2, 3, 7, 9, 20}) {
      TestMatrix some(DType::F32, rows, 150, 0);
      product(11, rows, some);
      EXPECT_EQ(std::memcmp(some.bytes.data(), all.bytes.data() + 11 * 150 * sizeof(float), some.bytes.size()), 0)
          << rows << " rows";
    }
  }
}

TEST_P(EveryTarget, Batches) {
  std::mt19937 random(5);
  for (const auto& [outer, inner, m, n, k] : {std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>{2, 3, 5, 7, 9},
                                              {1, 3, 40, 50, 60},
                                              {16, 2, 1, 40, 20},
                                              {3, 1, 130, 1, 33}})
    for (const bool shared_b : {false, true})
      for (const bool packed : {false, true}) {
        SCOPED_TRACE(str(outer, "x", inner, " products of ", m, "x", n, "x", k));
        // A is shared by the inner batches; B is shared by the outer ones, or by all.
        TestMatrix a(DType::F32, outer * m, k, 0), b(DType::F32, inner * k, n, 0),
            r(DType::F32, outer * inner * m, n, 0);
        a.fill(random);
        b.fill(random);
        r.fill(random);
        ThreadPool pool(4);
        const int64_t matrix = packed_b_bytes(k, n, DType::F32);
        AlignedBytes packed_bytes(matrix * inner);
        for (int64_t i = 0; i < inner; ++i)
          pack_b({b.bytes.data() + i * k * n * 4, DType::F32, n, 1}, k, n, packed_bytes.data() + i * matrix, pool);
        const int64_t b_step = shared_b ? 0 : packed ? matrix : k * n;
        const BatchDim dims[] = {{outer, m * k, 0, inner * m * n, inner * m * n}, {inner, 0, b_step, m * n, m * n}};
        TestMatrix c(DType::F32, outer * inner * m, n, 0);
        Gemm g = {.m = m, .n = n, .k = k, .batch = dims};
        g.a = a.view();
        g.b = b.view();
        g.c = c.result();
        g.epilogue.residual = r.view();
        if (packed) g.packed_b = packed_bytes.data();
        AlignedBytes scratch(scratch_bytes(g, 4));
        run(g, pool, scratch.data());
        ASSERT_TRUE(scratch.intact());
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i)
            for (int64_t row = 0; row < m; ++row)
              for (int64_t col = 0; col < n; ++col) {
                const int64_t out_row = (o * inner + i) * m + row;
                double sum = r.at(out_row, col);
                for (int64_t x = 0; x < k; ++x) sum += a.at(o * m + row, x) * b.at((shared_b ? 0 : i) * k + x, col);
                ASSERT_NEAR(c.at(out_row, col), sum, 1e-4);
              }
      }
}

TEST_P(EveryTarget, NanAndInfinityAreNotLost) {
  ThreadPool pool(1);
  for (const int64_t m : {1, 20})
    for (const int64_t n : {1, 5, 40})
      for (const int b_layout : {0, 2}) {
        TestMatrix a(DType::F32, m, 33, 0), b(DType::F32, 33, n, b_layout), c(DType::F32, m, n, 0);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t x = 0; x < 33; ++x) a.set(i, x, x == 32 ? 0 : 1);
        for (int64_t x = 0; x < 33; ++x)
          for (int64_t j = 0; j < n; ++j) b.set(x, j, x == 32 ? NAN : x == 3 ? INFINITY : 1);
        Gemm g = {.m = m, .n = n, .k = 33};
        g.a = a.view();
        g.b = b.view();
        g.c = c.result();
        AlignedBytes scratch(scratch_bytes(g, 1));
        run(g, pool, scratch.data());
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) ASSERT_TRUE(std::isnan(c.at(i, j)));
        for (int64_t j = 0; j < n; ++j) b.set(32, j, 0);
        run(g, pool, scratch.data());
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) ASSERT_EQ(c.at(i, j), INFINITY);
      }
}

INSTANTIATE_TEST_SUITE_P(Gemm, EveryTarget, testing::ValuesIn(targets()), target_name);

// A product that needs no scratch memory makes no address in it either: it may be null. From the last bytes of all on,
// any would overflow, which the undefined-behaviour sanitizer reports.
TEST_P(EveryTarget, ScratchOfNoBytesIsNotTouched) {
  std::mt19937 random(9);
  TestMatrix a(DType::F32, 40, 9, 0), b(DType::F32, 9, 64, 0), c(DType::F32, 40, 64, 0);
  a.fill(random);
  b.fill(random);
  const Gemm g = {.m = 40, .n = 64, .k = 9, .a = a.view(), .b = b.view(), .c = c.result()};
  ASSERT_EQ(scratch_bytes(g, 1), 0);
  ThreadPool pool(1);
  run(g, pool, reinterpret_cast<std::byte*>(UINTPTR_MAX - 63));
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < g.k; ++k) sum += a.at(i, k) * b.at(k, j);
      ASSERT_NEAR(c.at(i, j), sum, 1e-5) << i << ", " << j;
    }
}

TEST(Gemm, AllocatesNothing) {
  if (!test::allocations()) GTEST_SKIP() << "the sanitizer owns operator new";
  std::mt19937 random(6);
  ThreadPool pool(2);
  TestMatrix a(DType::BF16, 100, 80, 0), b(DType::BF16, 80, 90, 2), c(DType::F16, 100, 90, 0);
  a.fill(random);
  b.fill(random);
  Gemm g = {.m = 100, .n = 90, .k = 80};
  g.a = a.view();
  g.b = b.view();
  g.c = c.result();
  g.epilogue.activation = ops::ActivationKind::kGelu;
  AlignedBytes scratch(scratch_bytes(g, 2));
  run(g, pool, scratch.data());
  const auto before = *test::allocations();
  run(g, pool, scratch.data());
  EXPECT_EQ(*test::allocations() - before, 0);
}

}  // namespace
}  // namespace rlx::cpu::gemm
