#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using Axes = std::vector<int64_t>;

// The contraction by its definition: every index of every axis of both operands, adding where the paired ones agree.
static std::vector<double> contract(const Tensor& a, const Tensor& b, const ops::DotGeneralAttrs& attrs, Axes& sizes) {
  const auto normal = [](Axes axes, const Tensor& t) {
    for (int64_t& x : axes) x = x < 0 ? x + t.rank() : x;
    return axes;
  };
  const Axes lb = normal(attrs.lhs_batch, a), rb = normal(attrs.rhs_batch, b);
  const Axes lc = normal(attrs.lhs_contracting, a), rc = normal(attrs.rhs_contracting, b);
  const auto is_free = [](int64_t axis, const Axes& p, const Axes& q) {
    return std::count(p.begin(), p.end(), axis) + std::count(q.begin(), q.end(), axis) == 0;
  };
  const auto unravel = [](int64_t flat, const Axes& shape) {
    Axes index(shape.size());
    for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
    return index;
  };
  sizes.clear();
  for (const int64_t x : lb) sizes.push_back(a.sizes()[static_cast<size_t>(x)]);
  for (int64_t x = 0; x < a.rank(); ++x)
    if (is_free(x, lb, lc)) sizes.push_back(a.sizes()[static_cast<size_t>(x)]);
  for (int64_t x = 0; x < b.rank(); ++x)
    if (is_free(x, rb, rc)) sizes.push_back(b.sizes()[static_cast<size_t>(x)]);
  std::vector<double> out(static_cast<size_t>(product(sizes)), 0.0);
  for (int64_t i = 0; i < a.num_elements(); ++i)
    for (int64_t j = 0; j < b.num_elements(); ++j) {
      const Axes ia = unravel(i, a.sizes()), ib = unravel(j, b.sizes());
      bool paired = true;
      for (size_t p = 0; p < lb.size(); ++p) paired &= ia[static_cast<size_t>(lb[p])] == ib[static_cast<size_t>(rb[p])];
      for (size_t p = 0; p < lc.size(); ++p) paired &= ia[static_cast<size_t>(lc[p])] == ib[static_cast<size_t>(rc[p])];
      if (!paired) continue;
      int64_t flat = 0;
      size_t d = 0;
      for (const int64_t x : lb) flat = flat * sizes[d++] + ia[static_cast<size_t>(x)];
      for (int64_t x = 0; x < a.rank(); ++x)
        if (is_free(x, lb, lc)) flat = flat * sizes[d++] + ia[static_cast<size_t>(x)];
      for (int64_t x = 0; x < b.rank(); ++x)
        if (is_free(x, rb, rc)) flat = flat * sizes[d++] + ib[static_cast<size_t>(x)];
      out[static_cast<size_t>(flat)] += a.at(i) * b.at(j);
    }
  return out;
}

OP_CASES(dot_general) {
  const auto judged = [&](Tensor a, Tensor b, const ops::DotGeneralAttrs& attrs) {
    add({std::move(a), std::move(b)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
      Axes sizes;
      const std::vector<double> expected = contract(in[0], in[1], attrs, sizes);
      ASSERT_EQ(out[0].sizes(), sizes);
      EXPECT_TRUE(near(out[0], Tensor::from_doubles(in[0].dtype(), sizes, expected),
                       in[0].dtype() == DType::F16 ? kHalf : kAccumulation));
    });
  };
  for (const DType d : {DType::F32, DType::F16, DType::F64, DType::I32}) {
    judged(random({3, 4}, d), random({4, 5}, d), {.lhs_contracting = {1}, .rhs_contracting = {0}});
    judged(random({4, 3}, d), random({5, 4}, d), {.lhs_contracting = {0}, .rhs_contracting = {1}});
    judged(random({2, 3, 4}, d), random({4, 5, 2}, d),
           {.lhs_contracting = {-1}, .rhs_contracting = {0}, .lhs_batch = {0}, .rhs_batch = {-1}});
  }
  // Several contracted axes in another order, several batch axes in another order, free axes on both sides.
  judged(random({2, 3, 4, 2}), random({4, 5, 3}), {.lhs_contracting = {1, 2}, .rhs_contracting = {2, 0}});
  judged(random({2, 3, 2, 4}), random({3, 4, 2, 3}),
         {.lhs_contracting = {3}, .rhs_contracting = {1}, .lhs_batch = {1, 0}, .rhs_batch = {0, 2}});
  judged(random({2, 3}), random({4}), {});                                                         // outer product
  judged(random({2, 3}), random({2, 3}), {.lhs_contracting = {0, 1}, .rhs_contracting = {0, 1}});  // a scalar
  judged(random({3}), random({3}), {.lhs_batch = {0}, .rhs_batch = {0}});  // element-wise product
  judged(random({}), random({2}), {});
  judged(random({2, 0}), random({0, 3}), {.lhs_contracting = {1}, .rhs_contracting = {0}});  // zeros
  judged(random({0, 2}), random({2, 3}), {.lhs_contracting = {1}, .rhs_contracting = {0}});
  add_error({random({2, 3}), random({3, 2})}, {.lhs_contracting = {1}}, "Contracting axes [1] and [] do not pair up.");
  add_error({random({2, 3}), random({3, 2})}, {.rhs_batch = {1}}, "Batch axes [] and [1] do not pair up.");
  add_error({random({2, 3}), random({4, 2})}, {.lhs_contracting = {1}, .rhs_contracting = {0}},
            "Contracted sizes (3 and 4) differ.");
  add_error({random({2, 3}), random({3, 2})}, {.lhs_batch = {0}, .rhs_batch = {0}}, "Batch sizes (2 and 3) differ.");
  add_error({random({2, 3}), random({3, 2})}, {.lhs_contracting = {2}, .rhs_contracting = {0}},
            "Axis (2) is out of range for rank (2)");
  add_error({random({2, 2}), random({2, 2})},
            {.lhs_contracting = {-1}, .rhs_contracting = {0}, .lhs_batch = {1}, .rhs_batch = {1}},
            "Axis (-1) of lhs is named twice.");
  add_error({random({2}), random({2}, DType::F64)}, {}, "Operand dtypes (f32, f64) differ");
  add_error({random({2}, DType::Bool), random({2}, DType::Bool)}, {}, "have no product");
}

TEST(DotGeneral, DecomposesWithSymbolicSizes) {
  Graph g;
  const Dim s = Dim::symbol(0), t = Dim::symbol(1);
  const Value a = g.input("a", {{s, t, 4}, DType::F32}), b = g.input("b", {{4, s, 3}, DType::F32});
  const Value y =
      ops::dot_general(a, b, {.lhs_contracting = {2}, .rhs_contracting = {0}, .lhs_batch = {0}, .rhs_batch = {1}});
  EXPECT_EQ(y.shape(), (Shape{s, t, 3}));
  g.output(y, "y");
  const Graph plain = decompose(g, [](const auto&...) { return true; });
  EXPECT_EQ(plain.type(plain.outputs()[0].value).shape, (Shape{s, t, 3}));
  verify(plain);
}

}  // namespace rlx::test
