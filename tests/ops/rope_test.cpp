#include <cmath>
#include <complex>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

using L = ops::AttentionLayout;
using S = ops::RopeStyle;

// Element by element: which token and entry an element is, then one complex product.
Tensor rope_by_element(const Tensors& in, const ops::RopeAttrs& a) {
  const auto& n = in[0].sizes();
  const auto rank = static_cast<int64_t>(n.size());
  const int64_t d = a.head_dim, rot = a.n_rot.value_or(d), half = rot / 2;
  std::vector<double> y;
  for (int64_t e = 0; e < in[0].num_elements(); ++e) {
    int64_t b = e, s = 0;  // unravel
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      const int64_t index = b % n[static_cast<size_t>(axis)];
      if (axis == (a.layout == L::kBshd ? 1 : rank - 2)) s = index;
      if (axis > 0) b /= n[static_cast<size_t>(axis)];
    }
    if (rank == 2) b = 0;
    const int64_t seq = a.layout == L::kBshd ? n[1] : n[static_cast<size_t>(rank - 2)];
    int64_t row = s;
    if (in[1].rank() == 3) row = in[1].sizes()[0] == 1 ? s : b * seq + s;
    if (in.size() == 4)
      row = static_cast<int64_t>(in[3].at(in[3].rank() == 1 || in[3].sizes()[0] == 1 ? s : b * seq + s));
    const int64_t i = e % d;
    if (i >= rot) {
      y.push_back(in[0].at(e));
      continue;
    }
    const int64_t pair = a.style == S::kNeox ? i % half : i / 2;
    const bool second = a.style == S::kNeox ? i >= half : i % 2 == 1;
    const int64_t other = a.style == S::kNeox ? half : 1;
    const std::complex<double> z(in[0].at(second ? e - other : e), in[0].at(second ? e : e + other));
    const std::complex<double> turned =
        z * std::complex<double>(in[1].at(row * (d / 2) + pair), in[2].at(row * (d / 2) + pair));
    y.push_back(second ? turned.imag() : turned.real());
  }
  return Tensor::from_doubles(in[0].dtype(), n, y);
}

struct RopeProblem {
  std::vector<int64_t> x, table;
  ops::RopeAttrs attrs;
  std::vector<int64_t> positions = {};  // sizes
};

std::vector<RopeProblem> problems() {
  return {
      {{2, 3, 5, 4}, {5, 2}, {.head_dim = 4}},
      {{2, 3, 5, 4}, {9, 2}, {.head_dim = 4, .style = S::kGptj}},
      {{2, 3, 3, 4}, {4, 2}, {.head_dim = 4, .layout = L::kBhsd}},  // S = heads
      {{2, 3, 3, 4}, {4, 2}, {.head_dim = 4, .layout = L::kBshd}},
      {{2, 5, 3, 6}, {5, 3}, {.head_dim = 6, .n_rot = 4, .layout = L::kBshd}},
      {{2, 5, 12}, {7, 3}, {.head_dim = 6, .n_rot = 2, .layout = L::kBsf}},
      {{2, 5, 12}, {7, 3}, {.head_dim = 6, .n_rot = 2, .layout = L::kBsf, .style = S::kGptj}},
      {{2, 5, 12}, {7, 3}, {.head_dim = 6, .n_rot = 0, .layout = L::kBsf}},
      {{4, 8}, {6, 2}, {.head_dim = 4, .layout = L::kBsf}},
      {{1, 2, 3, 5}, {3, 2}, {.head_dim = 5, .n_rot = 4}},  // odd head
      {{2, 5, 3, 4}, {9, 2}, {.head_dim = 4, .layout = L::kBshd}, {5}},
      {{2, 3, 5, 4}, {9, 2}, {.head_dim = 4, .layout = L::kBhsd}, {2, 5}},
      {{2, 5, 8}, {9, 2}, {.head_dim = 4, .layout = L::kBsf, .style = S::kGptj}, {1, 5}},
      {{2, 3, 5, 4}, {2, 5, 2}, {.head_dim = 4}},
      {{2, 5, 3, 4}, {2, 5, 2}, {.head_dim = 4, .layout = L::kBshd}},
      {{2, 5, 8}, {1, 5, 2}, {.head_dim = 4, .layout = L::kBsf}},
      {{2, 1, 3, 4}, {9, 2}, {.head_dim = 4, .layout = L::kBshd}, {2, 1}},  // decode
      {{2, 9, 3, 80}, {12, 40}, {.head_dim = 80, .layout = L::kBshd}},      // beyond a vector
      {{2, 9, 3, 80}, {12, 40}, {.head_dim = 80, .n_rot = 66, .layout = L::kBshd, .style = S::kGptj}, {2, 9}},
      {{1, 3, 9, 72}, {1, 9, 36}, {.head_dim = 72, .n_rot = 70}},
  };
}

Tensors operands(CaseBuilderBase& b, const RopeProblem& p, DType dtype, DType index = DType::I32) {
  Tensors in = {b.random(p.x, dtype), b.random(p.table, dtype), b.random(p.table, dtype)};
  if (!p.positions.empty()) in.push_back(b.integers(p.positions, 0, p.table[0] - 1, index));
  return in;
}

template <class Builder>
void add_errors(Builder& b) {
  const Tensor x = b.random({2, 3, 5, 4}), t = b.random({5, 2});
  b.add_error({x, t, t}, {.head_dim = 3, .n_rot = 2}, "Last dim (4) is not a whole number of heads of 3");
  b.add_error({x, t, t}, {.head_dim = 0}, "head_dim (0) is less than 1");
  b.add_error({x, t, t}, {.head_dim = 4, .n_rot = 3}, "n_rot (3) is not an even number up to head_dim (4)");
  b.add_error({x, t, t}, {.head_dim = 4, .n_rot = 6}, "n_rot (6)");
  b.add_error({x, t, b.random({4, 2})}, {.head_dim = 4}, "Sine table shape ([4, 2]) is not [5, 2]");
  b.add_error({x, b.random({5, 4}), b.random({5, 4})}, {.head_dim = 4},
              "Table width and head_dim / 2 (4 and 2) differ");
  b.add_error({x, b.random({4, 2}), b.random({4, 2})}, {.head_dim = 4},
              "Table rows (4) are fewer than the sequence (5)");
  b.add_error({x, b.random({3, 5, 2}), b.random({3, 5, 2})}, {.head_dim = 4}, "(3 and 2) differ");
  b.add_error({x, b.random({2, 4, 2}), b.random({2, 4, 2})}, {.head_dim = 4}, "(4 and 5) differ");
  b.add_error({x, b.random({2}), b.random({2})}, {.head_dim = 4}, "Table rank (1) is not 2 or 3");
  b.add_error({b.random({4}), t, t}, {.head_dim = 4}, "Operand rank (1) is less than 2");
  b.add_error({b.random({2, 3, 4}), t, t}, {.head_dim = 4, .layout = L::kBshd}, "Operand rank (3) is not 4");
  b.add_error({x, t, t, Tensor::i32({5}, {0, 1, 2, 3, 5})}, {.head_dim = 4},
              "Position (5) is outside the table's rows (5)");
  b.add_error({x, t, t, Tensor::i64({5}, {0, 1, 2, 3, -1})}, {.head_dim = 4}, "Position (-1) is outside");
  b.add_error({x, t, t, b.random({5})}, {.head_dim = 4}, "Position dtype (f32) is not i32 or i64");
  b.add_error({x, t, t, b.integers({4}, 0, 1)}, {.head_dim = 4}, "Positions and the sequence (4 and 5) differ");
  b.add_error({x, t, t, b.integers({3, 5}, 0, 1)}, {.head_dim = 4},
              "Batch sizes of positions and operand (3 and 2) differ");
  b.add_error({x, t, t, b.integers({2, 1, 5}, 0, 1)}, {.head_dim = 4}, "Position rank (3) is not 1 or 2");
  b.add_error({x, b.random({2, 5, 2}), b.random({2, 5, 2}), b.integers({5}, 0, 1)}, {.head_dim = 4},
              "leave nothing for positions");
  b.add_error({b.random({2, 3, 5, 4}, DType::I32), t, t}, {.head_dim = 4}, "not a float type");
  b.add_error({x, b.random({5, 2}, DType::I32), t}, {.head_dim = 4}, "Cosine table dtype (i32)");
}

}  // namespace

OP_CASES(rope) {
  // By hand: a quarter turn, and the identity.
  add({Tensor::f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), Tensor::f32({2, 2}, {0, 0, 1, 1}),
       Tensor::f32({2, 2}, {1, 1, 0, 0})},
      {.head_dim = 4, .layout = L::kBsf})
      .expect({Tensor::f32({1, 2, 4}, {-3, -4, 1, 2, 5, 6, 7, 8})}, kExact);
  add({Tensor::f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), Tensor::f32({2, 2}, {0, 0, 1, 1}),
       Tensor::f32({2, 2}, {1, 1, 0, 0})},
      {.head_dim = 4, .layout = L::kBsf, .style = S::kGptj})
      .expect({Tensor::f32({1, 2, 4}, {-2, 1, -4, 3, 5, 6, 7, 8})}, kExact);
  for (const RopeProblem& p : problems())
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
      add(operands(*this, p, dtype, dtype == DType::F64 ? DType::I64 : DType::I32), p.attrs)
          .check([p, dtype](const Tensors& in, const Tensors& out) {
            EXPECT_TRUE(near(out[0], rope_by_element(in, p.attrs),
                             dtype == DType::F16    ? kHalf
                             : dtype == DType::BF16 ? kBFloat
                                                    : kAccumulation));
          });
  // Tables may be wider than the operand.
  add({random({1, 3, 4}, DType::F16), random({3, 2}), random({3, 2})}, {.head_dim = 4, .layout = L::kBsf})
      .check([](const Tensors& in, const Tensors& out) {
        EXPECT_TRUE(near(out[0], rope_by_element(in, {.head_dim = 4, .layout = L::kBsf}), kHalf));
      });
  add({Tensor(DType::F32, {2, 0, 4}), random({3, 2}), random({3, 2})}, {.head_dim = 4, .layout = L::kBsf})
      .expect({Tensor(DType::F32, {2, 0, 4})});
  add_errors(*this);
}

OP_CASES(rope_backward) {
  for (const RopeProblem& p : problems()) {
    add(operands(*this, p, DType::F64), p.attrs).check([p](const Tensors& in, const Tensors& out) {
      Rng other(3);
      const Tensor x = other.tensor(p.x, DType::F64);
      EXPECT_TRUE(matches_finite_differences(
          [&](const Tensor& at) {
            Tensors forward = in;
            forward[0] = at;
            return run(ops::rope, forward, p.attrs)[0];
          },
          x, in[0], out[0]));
    });
    // With true cosines and sines it undoes the rotation.
    Tensors in = operands(*this, p, DType::F64);
    std::vector<double> cos, sin;
    for (const double angle : in[1].to_doubles()) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    in[1] = Tensor::from_doubles(DType::F64, p.table, cos);
    in[2] = Tensor::from_doubles(DType::F64, p.table, sin);
    const Tensor x = in[0];
    in[0] = rope_by_element(in, p.attrs);
    add(in, p.attrs).expect({x}, {.of_max = 1e-14});
  }
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const RopeProblem& p : problems()) add(operands(*this, p, dtype), p.attrs);
  add_errors(*this);
}

OP_CASES(axial_rope2d) {
  // SAM 2's own formulation: a table of unit complex numbers per position, columns then rows, multiplied pair by pair.
  const auto judged = [&](ops::AxialRope2dAttrs a, DType dtype) {
    const int64_t repeat = a.repeat_factor < 1 ? 1 : a.repeat_factor, spatial = a.end_x * a.end_y;
    add({random({2, spatial * repeat, a.num_heads * a.head_dim}, dtype)}, a)
        .check([=](const Tensors& in, const Tensors& out) {
          const int64_t pairs = a.head_dim / 2;
          std::vector<std::complex<double>> cis;
          for (int64_t t = 0; t < spatial; ++t)
            for (int64_t c = 0; c < pairs; ++c) {
              const double frequency =
                  1 / std::pow(static_cast<double>(a.theta),
                               4.0 * static_cast<double>(c % (pairs / 2)) / static_cast<double>(a.head_dim));
              cis.push_back(
                  std::polar(1.0, static_cast<double>(c < pairs / 2 ? t % a.end_x : t / a.end_x) * frequency));
            }
          std::vector<double> y;
          for (int64_t e = 0; e < in[0].num_elements(); e += 2) {
            const int64_t t = e / (a.num_heads * a.head_dim) % (spatial * repeat);
            const int64_t p = a.repeat == ops::AxialRepeat::kTile ? t % spatial : t / repeat;
            const std::complex<double> z = std::complex<double>(in[0].at(e), in[0].at(e + 1)) *
                                           cis[static_cast<size_t>(p * pairs + e % a.head_dim / 2)];
            y.insert(y.end(), {z.real(), z.imag()});
          }
          EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, in[0].sizes(), y),
                           dtype == DType::F16    ? kHalf
                           : dtype == DType::BF16 ? kBFloat
                                                  : kAccumulation));
        });
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    judged({.end_x = 3, .end_y = 2, .head_dim = 8, .num_heads = 2}, dtype);
  judged({.end_x = 3, .end_y = 2, .head_dim = 4, .num_heads = 2, .theta = 100, .repeat_factor = 2}, DType::F32);
  judged({.end_x = 3,
          .end_y = 2,
          .head_dim = 4,
          .num_heads = 1,
          .theta = 100,
          .repeat_factor = 3,
          .repeat = ops::AxialRepeat::kConsecutive},
         DType::F32);
  judged({.end_x = 2, .end_y = 2, .head_dim = 4, .repeat_factor = 0}, DType::F32);
  add({Tensor(DType::F32, {2, 0, 4})}, {.end_x = 0, .end_y = 2, .head_dim = 4}).expect({Tensor(DType::F32, {2, 0, 4})});
  add_error({random({1, 6, 8})}, {.end_x = 3, .end_y = 2, .head_dim = 6}, "head_dim (6) is not a multiple of 4");
  add_error({random({1, 5, 8})}, {.end_x = 3, .end_y = 2, .head_dim = 8},
            "Sequence and tokens of the grid (5 and 6) differ");
  add_error({random({1, 6, 8})}, {.end_x = 3, .end_y = 2, .head_dim = 8, .num_heads = 2}, "(8 and 16) differ");
  add_error({random({1, 6, 8})}, {.end_x = 3, .end_y = 2, .head_dim = 8, .num_heads = 0}, "num_heads (0)");
  add_error({random({1, 6, 8})}, {.end_x = -3, .end_y = -2, .head_dim = 8}, "Grid (-3 by -2) has a negative size");
  add_error({random({6, 8})}, {.end_x = 3, .end_y = 2, .head_dim = 8}, "Operand rank (2) is not 3");
  add_error({random({1, 6, 8}, DType::I32)}, {.end_x = 3, .end_y = 2, .head_dim = 8}, "not a float type");
}

}  // namespace rlx::test
