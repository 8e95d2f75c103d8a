#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

using ops::RecurrentDirection;
using Matrix = std::vector<std::vector<double>>;

Tolerance tolerance_of(DType dtype) {
  return dtype == DType::F16    ? kHalf
         : dtype == DType::BF16 ? kBFloat
         : dtype == DType::F64  ? Tolerance{.of_max = 1e-13}
                                : kAccumulation;
}

enum class Kind { kLstm, kGru, kRnn };

// The same layers as graphs of other ops are built: whole matrices of the batch, a list of steps per direction, gates
// cut out of products with transposed weights. Independent of the kernel's loops and offsets.
struct Stack {
  Kind kind;
  int64_t hidden, layers = 1;
  RecurrentDirection direction = RecurrentDirection::kForward;
  bool bias = true, carry = false, peephole = false, reset_after = true, relu = false;

  int64_t gates() const { return kind == Kind::kLstm ? 4 : kind == Kind::kGru ? 3 : 1; }
  int64_t directions() const { return direction == RecurrentDirection::kBidirectional ? 2 : 1; }
};

double sigmoid(double x) { return 0.5 * (1 + std::tanh(x / 2)); }

Matrix take(const Tensor& t, int64_t first, int64_t rows, int64_t cols) {
  Matrix m;
  for (int64_t r = 0; r < rows; ++r) {
    m.emplace_back();
    for (int64_t c = 0; c < cols; ++c) m.back().push_back(t.at(first + r * cols + c));
  }
  return m;
}

// x wᵀ + bias
Matrix linear(const Matrix& x, const Matrix& w, const std::vector<double>& bias) {
  Matrix y(x.size(), bias);
  for (size_t r = 0; r < x.size(); ++r)
    for (size_t o = 0; o < w.size(); ++o)
      for (size_t i = 0; i < w[o].size(); ++i) y[r][o] += x[r][i] * w[o][i];
  return y;
}

Tensors unrolled(const Stack& s, const Tensors& in) {
  const auto& sizes = in[0].sizes();
  const int64_t batch = sizes[0], seq = sizes[1], n = s.hidden, rows = s.gates() * n;
  const auto h_size = static_cast<size_t>(n);
  std::vector<Matrix> steps(static_cast<size_t>(seq));  // [batch, width] per step
  for (int64_t t = 0; t < seq; ++t)
    for (int64_t b = 0; b < batch; ++b)
      steps[static_cast<size_t>(t)].push_back(take(in[0], (b * seq + t) * sizes[2], 1, sizes[2])[0]);
  size_t next = 3;
  const Tensor* bias = s.bias ? &in[next++] : nullptr;
  const Tensor* h0 = s.carry ? &in[next++] : nullptr;
  const Tensor* c0 = s.carry && s.kind == Kind::kLstm ? &in[next++] : nullptr;
  const Tensor* peep = s.peephole ? &in[next++] : nullptr;
  std::vector<double> last_h, last_c;
  int64_t offset = 0, cell = 0;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Matrix> out(static_cast<size_t>(seq), Matrix(static_cast<size_t>(batch)));
    const int64_t width = layer == 0 ? sizes[2] : s.directions() * n;
    for (int64_t d = 0; d < s.directions(); ++d, ++cell) {
      const Matrix w = take(in[1], offset, rows, width), u = take(in[2], cell * rows * n, rows, n);
      offset += rows * width;
      const std::vector<double> none(static_cast<size_t>(rows), 0.0);
      const auto bw = bias ? take(*bias, cell * 2 * rows, 1, rows)[0] : none;
      const auto bu = bias ? take(*bias, (cell * 2 + 1) * rows, 1, rows)[0] : none;
      const Matrix p = peep ? take(*peep, cell * 3 * n, 3, n) : Matrix(3, std::vector<double>(h_size, 0.0));
      Matrix h = h0 ? take(*h0, cell * batch * n, batch, n)
                    : Matrix(static_cast<size_t>(batch), std::vector<double>(h_size, 0.0));
      Matrix c = c0 ? take(*c0, cell * batch * n, batch, n)
                    : Matrix(static_cast<size_t>(batch), std::vector<double>(h_size, 0.0));
      const bool reverse = s.direction == RecurrentDirection::kReverse || d == 1;
      for (int64_t step = 0; step < seq; ++step) {
        const auto t = static_cast<size_t>(reverse ? seq - 1 - step : step);
        const Matrix a = linear(steps[t], w, bw), b = linear(h, u, bu);
        Matrix reset = h;
        if (s.kind == Kind::kGru)
          for (size_t r = 0; r < h.size(); ++r)
            for (size_t i = 0; i < h_size; ++i) reset[r][i] *= sigmoid(a[r][i] + b[r][i]);
        const Matrix before = linear(reset, u, bu);
        for (size_t r = 0; r < h.size(); ++r)
          for (size_t i = 0; i < h_size; ++i) {
            const auto sum = [&](size_t gate) { return a[r][gate * h_size + i] + b[r][gate * h_size + i]; };
            if (s.kind == Kind::kRnn) {
              h[r][i] = s.relu ? std::fmax(sum(0), 0.0) : std::tanh(sum(0));
            } else if (s.kind == Kind::kLstm) {
              const double old = c[r][i];
              c[r][i] = sigmoid(sum(1) + p[1][i] * old) * old + sigmoid(sum(0) + p[0][i] * old) * std::tanh(sum(2));
              h[r][i] = sigmoid(sum(3) + p[2][i] * c[r][i]) * std::tanh(c[r][i]);
            } else {
              const double gate = sigmoid(sum(0)), z = sigmoid(sum(1)), x = a[r][2 * h_size + i];
              const double fresh =
                  std::tanh(s.reset_after ? x + gate * b[r][2 * h_size + i] : x + before[r][2 * h_size + i]);
              h[r][i] = fresh + z * (h[r][i] - fresh);
            }
          }
        for (size_t r = 0; r < h.size(); ++r) out[t][r].insert(out[t][r].end(), h[r].begin(), h[r].end());
      }
      for (const auto& row : h) last_h.insert(last_h.end(), row.begin(), row.end());
      for (const auto& row : c) last_c.insert(last_c.end(), row.begin(), row.end());
    }
    steps = out;
  }
  std::vector<double> y;
  for (size_t b = 0; b < static_cast<size_t>(batch); ++b)
    for (const Matrix& m : steps) y.insert(y.end(), m[b].begin(), m[b].end());
  const DType dtype = in[0].dtype();
  const std::vector<int64_t> state = {cell, batch, n};
  Tensors result = {Tensor::from_doubles(dtype, {batch, seq, s.directions() * n}, y),
                    Tensor::from_doubles(dtype, state, last_h)};
  if (s.kind == Kind::kLstm) result.push_back(Tensor::from_doubles(dtype, state, last_c));
  return result;
}

template <class Builder>
Tensors operands(Builder& b, const Stack& s, int64_t batch, int64_t seq, int64_t in, DType dtype) {
  const int64_t rows = s.gates() * s.hidden, d = s.directions(), cells = s.layers * d;
  const int64_t columns = d * in + (s.layers - 1) * d * d * s.hidden;
  const double scale = 1 / std::sqrt(static_cast<double>(s.hidden));
  Tensors t = {b.random({batch, seq, in}, dtype), b.random({rows * columns}, -scale, scale, dtype),
               b.random({cells, rows, s.hidden}, -scale, scale, dtype)};
  if (s.bias) t.push_back(b.random({cells, 2, rows}, -scale, scale, dtype));
  for (int64_t i = 0; s.carry && i < (s.kind == Kind::kLstm ? 2 : 1); ++i)
    t.push_back(b.random({cells, batch, s.hidden}, dtype));
  if (s.peephole) t.push_back(b.random({cells, 3, s.hidden}, -scale, scale, dtype));
  return t;
}

// Cases that the three ops share. `attrs` makes an op's attributes.
template <class Builder, class Attrs>
void add_shared(Builder& b, Kind kind, const Attrs& attrs) {
  const auto judged = [&](Stack s, int64_t batch, int64_t seq, int64_t in, DType dtype) {
    s.kind = kind;
    b.add(operands(b, s, batch, seq, in, dtype), attrs(s)).check([s, dtype](const Tensors& x, const Tensors& out) {
      const Tensors expected = unrolled(s, x);
      ASSERT_EQ(out.size(), expected.size());
      for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(near(out[i], expected[i], tolerance_of(dtype))) << i;
    });
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    judged({.hidden = 3}, 2, 4, 5, dtype);
    judged({.hidden = 2, .layers = 3, .direction = RecurrentDirection::kBidirectional, .carry = true}, 2, 3, 4, dtype);
  }
  judged({.hidden = 4, .direction = RecurrentDirection::kReverse, .bias = false}, 3, 5, 2, DType::F64);
  judged({.hidden = 4, .layers = 2, .direction = RecurrentDirection::kReverse, .carry = true}, 1, 5, 2, DType::F64);
  judged({.hidden = 4, .carry = true}, 2, 0, 3, DType::F32);  // no step: the states stay
  judged({.hidden = 37}, 1, 9, 20, DType::F32);               // odd widths, one row
  judged({.hidden = 40, .layers = 2, .direction = RecurrentDirection::kBidirectional}, 5, 4, 19, DType::F32);
  judged({.hidden = 33, .carry = true}, 17, 3, 8, DType::BF16);
  // Wide enough that a backend may spread a step.
  judged({.hidden = 70, .layers = 2, .direction = RecurrentDirection::kBidirectional, .carry = true}, 2, 3, 5,
         DType::F32);
  b.add_error(operands(b, {.kind = kind, .hidden = 3}, 2, 4, 5, DType::F32), attrs({.kind = kind, .hidden = 4}),
              "Input weight shape");
  b.add_error(operands(b, {.kind = kind, .hidden = 3}, 2, 4, 5, DType::F32), attrs({.kind = kind, .hidden = 0}),
              "hidden_size (0) is less than 1");
  b.add_error(operands(b, {.kind = kind, .hidden = 3}, 2, 4, 5, DType::F32),
              attrs({.kind = kind, .hidden = 3, .layers = 0}), "num_layers (0) is less than 1");
  b.add_error(operands(b, {.kind = kind, .hidden = 3}, 2, 4, 5, DType::F32),
              attrs({.kind = kind, .hidden = 3, .bias = false}), "Operands (4) are not the 3");
  b.add_error(operands(b, {.kind = kind, .hidden = 3}, 2, 4, 5, DType::I32), attrs({.kind = kind, .hidden = 3}),
              "not a float type");
}

ops::LstmAttrs lstm_attrs(const Stack& s) { return {s.hidden, s.layers, s.direction, s.bias, s.carry, s.peephole}; }
ops::GruAttrs gru_attrs(const Stack& s) { return {s.hidden, s.layers, s.direction, s.bias, s.carry, s.reset_after}; }
ops::RnnAttrs rnn_attrs(const Stack& s) { return {s.hidden, s.layers, s.direction, s.bias, s.carry, s.relu}; }

}  // namespace

OP_CASES(lstm) {
  // By hand: open gates (sigmoid(100) = 1) make c a running sum of tanh(g).
  const float t = std::tanh(0.5f);
  add({Tensor::f32({1, 2, 1}, {0.5, 0.5}), Tensor::f32({4}, {0, 0, 1, 0}), Tensor::f32({1, 4, 1}, {0, 0, 0, 0}),
       Tensor::f32({1, 2, 4}, {100, 100, 0, 100, 0, 0, 0, 0})},
      {.hidden_size = 1})
      .expect({Tensor::f32({1, 2, 1}, {std::tanh(t), std::tanh(2 * t)}), Tensor::f32({1, 1, 1}, {std::tanh(2 * t)}),
               Tensor::f32({1, 1, 1}, {2 * t})},
              kTranscendental);
  // An infinite state is no NaN where no peephole looks at it.
  add({Tensor::f32({1, 1, 1}, {0}), Tensor::f32({4}, {0, 0, 0, 0}), Tensor::f32({1, 4, 1}, {0, 0, 0, 0}),
       Tensor::f32({1, 2, 4}, {0, 100, 0, 100, 0, 0, 0, 0}), Tensor::f32({1, 1, 1}, {0}),
       Tensor::f32({1, 1, 1}, {INFINITY})},
      {.hidden_size = 1, .carry = true})
      .expect({Tensor::f32({1, 1, 1}, {1}), Tensor::f32({1, 1, 1}, {1}), Tensor::f32({1, 1, 1}, {INFINITY})},
              kTranscendental);
  add_shared(*this, Kind::kLstm, lstm_attrs);
  for (const Stack& s : {Stack{.kind = Kind::kLstm, .hidden = 5, .peephole = true},
                         Stack{.kind = Kind::kLstm, .hidden = 21, .layers = 2, .carry = true, .peephole = true}})
    add(operands(*this, s, 2, 4, 3, DType::F32), lstm_attrs(s)).check([s](const Tensors& in, const Tensors& out) {
      const Tensors expected = unrolled(s, in);
      for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(near(out[i], expected[i], kAccumulation)) << i;
    });
}

OP_CASES(gru) {
  // By hand: z = 0 takes the new value alone, r = 0 hides the hidden product and its bias.
  add({Tensor::f32({1, 1, 1}, {0.5}), Tensor::f32({3}, {0, 0, 1}), Tensor::f32({1, 3, 1}, {0, 0, 7}),
       Tensor::f32({1, 2, 3}, {-100, -100, 0, 0, 0, 9}), Tensor::f32({1, 1, 1}, {3})},
      {.hidden_size = 1, .carry = true})
      .expect({Tensor::f32({1, 1, 1}, {std::tanh(0.5f)}), Tensor::f32({1, 1, 1}, {std::tanh(0.5f)})}, kTranscendental);
  add_shared(*this, Kind::kGru, gru_attrs);
  for (const int64_t hidden : {5, 21, 66})
    for (const DType dtype : {DType::F32, DType::F16}) {
      const Stack s = {.kind = Kind::kGru, .hidden = hidden, .layers = 2, .carry = true, .reset_after = false};
      add(operands(*this, s, 3, 4, 6, dtype), gru_attrs(s)).check([s, dtype](const Tensors& in, const Tensors& out) {
        const Tensors expected = unrolled(s, in);
        for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(near(out[i], expected[i], tolerance_of(dtype))) << i;
      });
    }
}

OP_CASES(rnn) {
  add({Tensor::f32({1, 3, 1}, {1, 2, -9}), Tensor::f32({1}, {1}), Tensor::f32({1, 1, 1}, {10})},
      {.hidden_size = 1, .bias = false, .relu = true})
      .expect({Tensor::f32({1, 3, 1}, {1, 12, 111}), Tensor::f32({1, 1, 1}, {111})}, kExact);
  add_shared(*this, Kind::kRnn, rnn_attrs);
  const Stack s = {.kind = Kind::kRnn, .hidden = 35, .relu = true};
  add(operands(*this, s, 2, 6, 3, DType::F32), rnn_attrs(s)).check([s](const Tensors& in, const Tensors& out) {
    EXPECT_TRUE(near(out[0], unrolled(s, in)[0], kAccumulation));
  });
}

}  // namespace rlx::test
