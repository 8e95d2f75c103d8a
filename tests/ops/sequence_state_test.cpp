#include <cmath>
#include <cstring>

#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// Rows [from, to) along axis 1.
Tensor steps(const Tensor& t, int64_t from, int64_t to) {
  std::vector<int64_t> sizes = t.sizes();
  const int64_t seq = sizes[1], inner = product(std::span(sizes).subspan(2));
  sizes[1] = to - from;
  std::vector<double> values;
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t i = from * inner; i < to * inner; ++i) values.push_back(t.at(b * seq * inner + i));
  return Tensor::from_doubles(t.dtype(), sizes, values);
}

Tensor join(const Tensor& a, const Tensor& b) {
  std::vector<int64_t> sizes = a.sizes();
  sizes[1] += b.sizes()[1];
  std::vector<double> values;
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (const Tensor* t : {&a, &b}) {
      const int64_t n = t->num_elements() / sizes[0];
      for (int64_t e = i * n; e < (i + 1) * n; ++e) values.push_back(t->at(e));
    }
  return Tensor::from_doubles(a.dtype(), sizes, values);
}

Tolerance tolerance_of(DType dtype) {
  return dtype == DType::F16    ? kHalf
         : dtype == DType::BF16 ? kBFloat
         : dtype == DType::F64  ? Tolerance{.of_max = 1e-13}
                                : kAccumulation;
}

// The scan unrolled: y_t is a sum over earlier tokens, each decayed by the product of the steps in between.
Tensors scan_unrolled(const Tensors& in) {
  const auto& n = in[0].sizes();
  const int64_t batch = n[0], seq = n[1], channels = n[2], size = in[2].sizes()[1];
  std::vector<double> y, state;
  const auto value = [&](int64_t b, int64_t c, int64_t j, int64_t t) {  // S[j] after token t; -1: before the first
    double s = 0, total = 0;
    for (int64_t u = t; u >= 0; --u) {
      const double dt = in[1].at((b * seq + u) * channels + c);
      s += std::exp(total * in[2].at(c * size + j)) * dt * in[3].at((b * seq + u) * size + j) *
           in[0].at((b * seq + u) * channels + c);
      total += dt;
    }
    if (in.size() == 6) s += std::exp(total * in[2].at(c * size + j)) * in[5].at((b * channels + c) * size + j);
    return s;
  };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < seq; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < size; ++j) sum += in[4].at((b * seq + t) * size + j) * value(b, c, j, t);
        y.push_back(sum);
      }
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < size; ++j) state.push_back(value(b, c, j, seq - 1));
  const DType dtype = in[0].dtype();
  return {Tensor::from_doubles(dtype, n, y),
          Tensor::from_doubles(in.size() == 6 ? in[5].dtype() : dtype, {batch, channels, size}, state)};
}

using Matrix = std::vector<std::vector<double>>;

// The delta rule in matrix form: S <- (I - beta k k^T) exp(g) S + beta k v^T, o = S^T q / sqrt(n).
Tensors delta_net_by_matrices(const Tensors& in) {
  const auto& n = in[0].sizes();
  const auto size = static_cast<size_t>(n[3]);
  std::vector<double> y(static_cast<size_t>(in[0].num_elements())), states;
  for (int64_t b = 0; b < n[0]; ++b)
    for (int64_t h = 0; h < n[2]; ++h) {
      Matrix s(size, std::vector<double>(size, 0.0));
      int64_t at = (b * n[2] + h) * n[3] * n[3];
      if (in.size() == 6)
        for (auto& row : s)
          for (double& v : row) v = in[5].at(at++);
      for (int64_t t = 0; t < n[1]; ++t) {
        const int64_t head = (b * n[1] + t) * n[2] + h;
        const auto vec = [&](size_t operand, size_t i) {
          return in[operand].at(head * n[3] + static_cast<int64_t>(i));
        };
        const double g = std::exp(in[3].at(head)), beta = in[4].at(head);
        Matrix next(size, std::vector<double>(size, 0.0));
        for (size_t i = 0; i < size; ++i)
          for (size_t j = 0; j < size; ++j) {
            for (size_t m = 0; m < size; ++m) next[i][j] += ((i == m) - beta * vec(1, i) * vec(1, m)) * g * s[m][j];
            next[i][j] += beta * vec(1, i) * vec(2, j);
          }
        s = next;
        for (size_t j = 0; j < size; ++j) {
          double o = 0;
          for (size_t i = 0; i < size; ++i) o += s[i][j] * vec(0, i);
          y[static_cast<size_t>(head * n[3]) + j] = o / std::sqrt(static_cast<double>(size));
        }
      }
      for (const auto& row : s) states.insert(states.end(), row.begin(), row.end());
    }
  Tensors out = {Tensor::from_doubles(in[0].dtype(), n, y)};
  if (in.size() == 6) out.push_back(Tensor::from_doubles(in[5].dtype(), in[5].sizes(), states));
  return out;
}

}  // namespace

OP_CASES(selective_scan) {
  // By hand: A = 0 is a running sum; the state is used after the update.
  add({Tensor::f32({1, 3, 1}, {1, 2, 3}), Tensor::f32({1, 3, 1}, {1, 1, 0.5}), Tensor::f32({1, 1}, {0}),
       Tensor::f32({1, 3, 1}, {1, 1, 1}), Tensor::f32({1, 3, 1}, {1, 10, 100})},
      {.state_size = 1})
      .expect({Tensor::f32({1, 3, 1}, {1, 30, 450}), Tensor::f32({1, 1, 1}, {4.5})}, kExact);
  const auto operands = [&](int64_t b, int64_t s, int64_t h, int64_t n, DType dtype, bool state, DType state_dtype) {
    Tensors in = {random({b, s, h}, dtype), random({b, s, h}, 0.1, 1, dtype), random({h, n}, -1, -0.1, dtype),
                  random({b, s, n}, dtype), random({b, s, n}, dtype)};
    if (state) in.push_back(random({b, h, n}, state_dtype));
    return in;
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const bool state : {false, true})
      add(operands(2, 5, 3, 4, dtype, state, dtype == DType::F16 ? DType::F32 : dtype), {.state_size = 4})
          .check([dtype](const Tensors& in, const Tensors& out) {
            const Tensors expected = scan_unrolled(in);
            EXPECT_TRUE(near(out[0], expected[0], tolerance_of(dtype)));
            EXPECT_TRUE(near(out[1], expected[1], tolerance_of(dtype)));
          });
  add(operands(1, 2, 1, 300, DType::F32, true, DType::F32), {.state_size = 300})  // no cap on the state
      .check([](const Tensors& in, const Tensors& out) {
        EXPECT_TRUE(near(out[0], scan_unrolled(in)[0], kAccumulation));
      });
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})  // beyond a vector and a block of channels
    for (const int64_t channels : {19, 150}) {
      add(operands(2, 9, channels, 16, dtype, true, DType::F32), {.state_size = 16});
      add(operands(1, 9, channels, 5, dtype, false, dtype), {.state_size = 5});
    }
  // A sequence cut in two, the state carried, is the whole sequence.
  for (const int64_t cut : {0, 1, 4, 7})
    add(operands(2, 7, 3, 2, DType::F64, true, DType::F64), {.state_size = 2})
        .check([cut](const Tensors& in, const Tensors& out) {
          const auto part = [&](int64_t from, int64_t to, const Tensor& state) {
            return run(ops::selective_scan,
                       {steps(in[0], from, to), steps(in[1], from, to), in[2], steps(in[3], from, to),
                        steps(in[4], from, to), state},
                       {.state_size = 2});
          };
          const Tensors first = part(0, cut, in[5]), second = part(cut, 7, first[1]);
          EXPECT_TRUE(near(join(first[0], second[0]), out[0], kExact));
          EXPECT_TRUE(near(second[1], out[1], kExact));
        });
  add({Tensor(DType::F32, {1, 0, 2}), Tensor(DType::F32, {1, 0, 2}), random({2, 1}), Tensor(DType::F32, {1, 0, 1}),
       Tensor(DType::F32, {1, 0, 1})},
      {.state_size = 1})
      .expect({Tensor(DType::F32, {1, 0, 2}), Tensor(DType::F32, {1, 2, 1})}, kExact);  // no token: the state stays
  const Tensors in = operands(1, 2, 3, 4, DType::F32, true, DType::F32);
  const auto with = [&](size_t i, Tensor t) {
    Tensors changed = in;
    changed[i] = std::move(t);
    return changed;
  };
  add_error(in, {.state_size = 3}, "A shape ([3, 4]) is not [3, 3]");
  add_error(in, {.state_size = 0}, "state_size (0) is less than 1");
  add_error(with(1, random({1, 2, 2})), {.state_size = 4}, "Delta shape ([1, 2, 2]) is not [1, 2, 3]");
  add_error(with(3, random({1, 2, 3})), {.state_size = 4}, "B shape");
  add_error(with(4, random({1, 3, 4})), {.state_size = 4}, "C shape");
  add_error(with(5, random({1, 4, 3})), {.state_size = 4}, "State shape ([1, 4, 3]) is not [1, 3, 4]");
  add_error(with(5, random({1, 3, 4}, DType::I32)), {.state_size = 4}, "State dtype (i32)");
  add_error(with(2, random({3, 4}, DType::F16)), {.state_size = 4}, "differ; cast one");
  add_error(with(0, random({1, 2, 3}, DType::I32)), {.state_size = 4}, "not a float type");
  add_error(with(0, random({2, 3})), {.state_size = 4}, "Operand rank (2) is not 3");
}

OP_CASES(causal_conv) {
  // By hand: the last weight is that of the row itself; of the second sequence one row counts.
  const Tensor x = Tensor::f32({2, 2, 1}, {1, 2, 3, 4}), w = Tensor::f32({1, 3}, {100, 10, 1});
  const Tensor state = Tensor::f32({2, 2, 1}, {5, 6, 7, 8}), y = Tensor::f32({2, 2, 1}, {561, 612, 783, 834});
  add({x, w, state}).expect({y, Tensor::f32({2, 2, 1}, {1, 2, 3, 4})}, kExact);
  add({x, w, state, Tensor::i32({2}, {2, 1})}).expect({y, Tensor::f32({2, 2, 1}, {1, 2, 8, 3})}, kExact);
  add({x, w, state, Tensor::i32({2}, {0, 0})}).expect({y, state}, kExact);
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const auto& [b, s, c, k] : {std::tuple{1, 1, 3, 4}, std::tuple{2, 7, 70, 4}, std::tuple{3, 2, 130, 5}})
      add({random({b, s, c}, dtype), random({c, k}, dtype), random({b, k - 1, c}, dtype)})
          .check([=](const Tensors& in, const Tensors& out) {
            const Tensor all = join(in[2], in[0]);
            std::vector<double> sums(static_cast<size_t>(b * s * c), 0);
            for (int64_t j = 0; j < k; ++j)
              for (int64_t i = 0; i < b * s * c; ++i)
                sums[static_cast<size_t>(i)] += steps(all, j, j + s).at(i) * in[1].at(i % c * k + j);
            EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, {b, s, c}, sums), tolerance_of(dtype)));
            EXPECT_TRUE(near(out[1], steps(all, s, s + k - 1), kExact));
          });
  // A sequence cut in two, the state carried, is the whole sequence; so is one whose rows in use are fewer.
  add({random({2, 9, 5}), random({5, 4}), random({2, 3, 5})}).check([](const Tensors& in, const Tensors& out) {
    for (const int64_t cut : {1, 2, 4, 9}) {
      const auto used = static_cast<int32_t>(cut);
      const Tensors first = run(ops::causal_conv, {steps(in[0], 0, cut), in[1], in[2]});
      const Tensors padded = run(ops::causal_conv, {in[0], in[1], in[2], Tensor::i32({2}, {used, used})});
      EXPECT_TRUE(near(first[1], padded[1], kExact));
      if (cut == 9) continue;
      const Tensors second = run(ops::causal_conv, {steps(in[0], cut, 9), in[1], first[1]});
      EXPECT_TRUE(near(join(first[0], second[0]), out[0], kExact));
      EXPECT_TRUE(near(second[1], out[1], kExact));
    }
  });
  add({random({3, 40, 200}), random({200, 4}), random({3, 3, 200}), Tensor::i32({3}, {40, 1, 17})});
  add({Tensor(DType::F32, {1, 0, 2}), random({2, 3}), Tensor::f32({1, 2, 2}, {1, 2, 3, 4})})
      .expect({Tensor(DType::F32, {1, 0, 2}), Tensor::f32({1, 2, 2}, {1, 2, 3, 4})},
              kExact);  // no row: the state stays
  add_error({x, Tensor::f32({1, 1}, {1}), state}, {}, "Weight size (1) is not at least 2");
  add_error({x, random({2, 3}), state}, {}, "Channels of weight and operand");
  add_error({x, w, random({2, 3, 1})}, {}, "State shape ([2, 3, 1]) is not [2, 2, 1]");
  add_error({x, w, state, Tensor::i32({1}, {1})}, {}, "Rows in use shape ([1]) is not [2]");
  add_error({x, w, state, random({2})}, {}, "Rows in use dtype (f32)");
  add_error({x, w, state, Tensor::i32({2}, {1, 3})}, {}, "Rows in use (3) of batch 1 are not between 0 and 2");
  add_error({random({2, 1}), w, state}, {}, "Operand rank (2) is not 3");
}

OP_CASES(gated_delta_net) {
  // By hand, n = 1: write 2 with beta 1, halve, correct toward 4 by half of the difference.
  const float half = std::log(0.5f);
  add({Tensor::f32({1, 2, 1, 1}, {1, 3}), Tensor::f32({1, 2, 1, 1}, {1, 1}), Tensor::f32({1, 2, 1, 1}, {2, 4}),
       Tensor::f32({1, 2, 1}, {0, half}), Tensor::f32({1, 2, 1}, {1, 0.5})},
      {.state_size = 1})
      .expect({Tensor::f32({1, 2, 1, 1}, {2, 7.5})});
  const auto operands = [&](int64_t b, int64_t s, int64_t h, int64_t n, DType dtype, bool state, DType state_dtype) {
    Tensors in = {random({b, s, h, n}, dtype), random({b, s, h, n}, -0.7, 0.7, dtype), random({b, s, h, n}, dtype),
                  random({b, s, h}, -1, 0, dtype), random({b, s, h}, 0, 1, dtype)};
    if (state) in.push_back(random({b, h, n, n}, state_dtype));
    return in;
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const bool carry : {false, true})
      add(operands(2, 4, 3, 2, dtype, carry, dtype == DType::BF16 ? DType::F32 : dtype),
          {.state_size = 2, .carry_state = carry})
          .check([dtype](const Tensors& in, const Tensors& out) {
            const Tensors expected = delta_net_by_matrices(in);
            ASSERT_EQ(out.size(), expected.size());
            for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(near(out[i], expected[i], tolerance_of(dtype)));
          });
  add(operands(1, 3, 1, 5, DType::F64, true, DType::F64), {.state_size = 5, .carry_state = true})
      .check([](const Tensors& in, const Tensors& out) {
        EXPECT_TRUE(near(out[0], delta_net_by_matrices(in)[0], tolerance_of(DType::F64)));
      });
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})  // beyond a vector and a block of columns
    for (const int64_t n : {20, 33, 64, 100, 128, 130}) {
      // Small keys, as the caller's normalised ones: the rule is stable for |k| <= 1.
      Tensors in = operands(1, 3, 2, n, dtype, n != 33, DType::F32);
      in[1] = random({1, 3, 2, n}, -0.1, 0.1, dtype);
      add(in, {.state_size = n, .carry_state = n != 33});
    }
  for (const int64_t cut : {0, 1, 3, 6})
    add(operands(2, 6, 2, 3, DType::F64, true, DType::F64), {.state_size = 3, .carry_state = true})
        .check([cut](const Tensors& in, const Tensors& out) {
          const auto part = [&](int64_t from, int64_t to, const Tensor& state) {
            Tensors piece;
            for (size_t i = 0; i < 5; ++i) piece.push_back(steps(in[i], from, to));
            piece.push_back(state);
            return run(ops::gated_delta_net, piece, {.state_size = 3, .carry_state = true});
          };
          const Tensors first = part(0, cut, in[5]), second = part(cut, 6, first[1]);
          EXPECT_TRUE(near(join(first[0], second[0]), out[0], kExact));
          EXPECT_TRUE(near(second[1], out[1], kExact));
        });
  const Tensors in = operands(1, 2, 3, 4, DType::F32, true, DType::F32);
  const auto with = [&](size_t i, Tensor t) {
    Tensors changed = in;
    changed[i] = std::move(t);
    return changed;
  };
  const ops::GatedDeltaNetAttrs a = {.state_size = 4, .carry_state = true};
  add_error(in, {.state_size = 4}, "carry_state (false) does not fit 6 operands");
  add_error(Tensors(in.begin(), in.begin() + 5), a, "carry_state (true) does not fit 5 operands");
  add_error(in, {.state_size = 3, .carry_state = true}, "Width of the query and state_size (4 and 3) differ");
  add_error(in, {.state_size = 0, .carry_state = true}, "state_size (0)");
  add_error(with(1, random({1, 2, 2, 4})), a, "Key shape");
  add_error(with(2, random({1, 2, 3, 3})), a, "Value shape");
  add_error(with(3, random({1, 2, 4})), a, "g shape");
  add_error(with(4, random({1, 3, 3})), a, "beta shape");
  add_error(with(5, random({1, 3, 4, 3})), a, "State shape ([1, 3, 4, 3]) is not [1, 3, 4, 4]");
  add_error(with(5, random({1, 3, 4, 4}, DType::I32)), a, "State dtype (i32)");
  add_error(with(0, random({1, 2, 3})), a, "Query rank (3) is not 4");
  add_error(with(0, random({1, 2, 3, 4}, DType::I32)), a, "not a float type");
  add_error(with(1, random({1, 2, 3, 4}, DType::F16)), a, "differ; cast one");
}

OP_CASES(kv_append) {
  add({Tensor::i32({2, 3, 1}, {1, 2, 3, 4, 5, 6}), Tensor::i32({2, 1, 1}, {7, 8}), Tensor::i32({2}, {0, 2})})
      .expect({Tensor::i32({2, 3, 1}, {7, 2, 3, 4, 5, 8})}, kExact);
  // [B, H, cap, D]: the sequence is axis 2.
  for (const int64_t axis : {2, -2})
    add({Tensor::i32({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}), Tensor::i32({1, 2, 2, 1}, {7, 8, 9, 10}),
         Tensor::i32({1}, {1})},
        {.axis = axis})
        .expect({Tensor::i32({1, 2, 3, 1}, {1, 7, 8, 4, 9, 10})}, kExact);
  // Element by element, in any dtype.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::U8, DType::I64, DType::C64})
    for (const int64_t axis : {1, 2, 3})
      add({random({3, 5, 4, 6}, dtype), random({3, axis == 1 ? 2 : 5, axis == 2 ? 2 : 4, axis == 3 ? 2 : 6}, dtype),
           integers({3}, 0, 2)},
          {.axis = axis})
          .check([axis](const Tensors& in, const Tensors& out) {
            const size_t size = size_of(in[0].dtype());
            const auto& n = in[0].sizes();
            const auto& m = in[1].sizes();
            for (int64_t e = 0; e < in[0].num_elements(); ++e) {
              int64_t index[4] = {e / (n[1] * n[2] * n[3]), e / (n[2] * n[3]) % n[1], e / n[3] % n[2], e % n[3]};
              const int64_t row = index[axis] - static_cast<int64_t>(in[2].at(index[0]));
              const std::byte* from = in[0].bytes().data() + static_cast<size_t>(e) * size;
              if (row >= 0 && row < 2) {
                index[axis] = row;
                from = in[1].bytes().data() +
                       static_cast<size_t>(((index[0] * m[1] + index[1]) * m[2] + index[2]) * m[3] + index[3]) * size;
              }
              ASSERT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(e) * size, from, size), 0) << e;
            }
          });
  add({random({2, 3, 1}), Tensor(DType::F32, {2, 0, 1}), Tensor::i32({2}, {3, 0})})
      .check([](const Tensors& in, const Tensors& out) { EXPECT_EQ(out[0], in[0]); });  // nothing to append
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i32({2}, {1, 2})}, {},
            "Rows 2 … 4 of batch 1 do not fit the cache (3)");
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i32({2}, {-1, 1})}, {}, "Rows -1 … 1 of batch 0 do not fit");
  add_error({random({2, 3, 1}), Tensor(DType::F32, {2, 0, 1}), Tensor::i32({2}, {4, 0})}, {},
            "Rows 4 … 4 of batch 0 do not fit");
  add_error({random({2, 3, 1}), random({2, 4, 1}), Tensor::i32({2}, {0, 0})}, {},
            "Rows (4) are more than the cache holds (3)");
  add_error({random({2, 3, 1}), random({2, 2, 2}), Tensor::i32({2}, {0, 0})}, {}, "along axis 2 (1 and 2) differ");
  add_error({random({2, 3, 1}), random({2, 2}), Tensor::i32({2}, {0, 0})}, {}, "Row rank (2) is not 3");
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i32({3}, {0, 0, 0})}, {}, "Length shape ([3]) is not [2]");
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i64({2}, {0, 0})}, {}, "Length dtype (i64) is not i32");
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i32({2}, {0, 0})}, {.axis = 0},
            "Axis (0) is the batch axis");
  add_error({random({2, 3, 1}), random({2, 2, 1}), Tensor::i32({2}, {0, 0})}, {.axis = 3}, "Axis (3) is out of range");
  add_error({random({2, 3, 1}), random({2, 2, 1}, DType::F16), Tensor::i32({2}, {0, 0})}, {}, "differ; cast one");
  add_error({random({2}), random({2}), Tensor::i32({2}, {0, 0})}, {}, "Cache rank (1) is less than 2");
}

// Decoding token by token through a cache equals attention over the whole prompt (spec 10, 3.8).
TEST(KvCache, DecodingStepByStepEqualsCausalAttention) {
  using L = ops::AttentionLayout;
  for (const L layout : {L::kBshd, L::kBhsd}) {
    Rng rng(5);
    const int64_t b = 2, h = 4, hkv = 2, s = 6, cap = 8, d = 3;
    const bool bshd = layout == L::kBshd;
    const auto sizes = [&](int64_t heads, int64_t seq) {
      return bshd ? std::vector<int64_t>{b, seq, heads, d} : std::vector<int64_t>{b, heads, seq, d};
    };
    // Row t along the sequence axis of [B, S, H, D] or [B, H, S, D].
    const auto token = [&](const Tensor& t, int64_t heads, int64_t at) {
      std::vector<double> values;
      for (int64_t i = 0; i < b; ++i)
        for (int64_t head = 0; head < heads; ++head)
          for (int64_t e = 0; e < d; ++e)
            values.push_back(t.at((bshd ? (i * s + at) * heads + head : (i * heads + head) * s + at) * d + e));
      return Tensor::from_doubles(DType::F64, sizes(heads, 1), values);
    };
    const Tensor q = rng.tensor(sizes(h, s), DType::F64), k = rng.tensor(sizes(hkv, s), DType::F64),
                 v = rng.tensor(sizes(hkv, s), DType::F64);
    const ops::AttentionAttrs causal = {
        .num_heads = h, .head_dim = d, .layout = layout, .mask_kind = ops::MaskKind::kCausal};
    const Tensor whole = run(ops::attention, {q, k, v}, causal)[0];
    Tensor kc = rng.tensor(sizes(hkv, cap), DType::F64),
           vc = rng.tensor(sizes(hkv, cap), DType::F64);  // garbage at first
    for (int64_t t = 0; t < s; ++t) {
      const auto now = static_cast<int32_t>(t);
      const Tensor len = Tensor::i32({b}, {now, now}), next = Tensor::i32({b}, {now + 1, now + 1});
      kc = run(ops::kv_append, {kc, token(k, hkv, t), len}, {.axis = bshd ? 1 : 2})[0];
      vc = run(ops::kv_append, {vc, token(v, hkv, t), len}, {.axis = bshd ? 1 : 2})[0];
      EXPECT_TRUE(
          near(run(ops::attention, {token(q, h, t), kc, vc, next}, causal)[0], token(whole, h, t), {.of_max = 1e-14}))
          << t;
    }
  }
}

// A cache is written where it is, by the new rows alone: no step copies it.
TEST(KvAppend, LeavesTheCacheInItsPlaceOnTheGpu) {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && !d.available) GTEST_SKIP() << d.why_not;
  for (const DType dtype : {DType::F32, DType::F16}) {
    Graph g("cache");
    const Value rows = g.input("rows", {{2, 1, 3}, dtype}), len = g.input("len", {{2}, DType::I32});
    const Value cache = g.state("cache", {{2, 5, 3}, dtype});
    const Value next = ops::kv_append(cache, rows, len, {.axis = 1});
    g.update(cache, next);
    g.output(ops::neg(rows), "y");
    Executable exe = compile(std::move(g), {.device = "webgpu", .webgpu = {.check_indices = false}});
    int64_t appends = 0;
    for (const StepInfo& step : exe.plan().steps) {
      EXPECT_NE(step.kernel, "webgpu/copy");
      appends += step.kernel == "webgpu/kv_append" ? 1 : 0;
    }
    EXPECT_EQ(appends, 1);
    std::vector<double> expected(30, 0);
    for (int64_t t = 0; t < 3; ++t) {
      std::vector<double> values;
      for (int64_t i = 0; i < 6; ++i) values.push_back(static_cast<double>(10 * t + i + 1));
      const int32_t at[] = {static_cast<int32_t>(t), static_cast<int32_t>(t == 2 ? 7 : t + 1)};  // 7 is beyond: skipped
      exe.run({{"rows", Tensor::from_doubles(dtype, {2, 1, 3}, values)}, {"len", Tensor::i32({2}, {at[0], at[1]})}});
      for (int64_t i = 0; i < 6; ++i)
        if (at[i / 3] < 5)
          expected[static_cast<size_t>((i / 3 * 5 + at[i / 3]) * 3 + i % 3)] = values[static_cast<size_t>(i)];
      EXPECT_EQ(exe.read_state("cache").to_doubles(), expected);
    }
  }
}

}  // namespace rlx::test
