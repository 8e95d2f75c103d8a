#include "rlx/ops/rope.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// sign -1: the rotation back, which is the gradient.
void rotate(const Call& call, double sign) {
  const auto& attrs = call.attrs<ops::RopeAttrs>();
  const View &x = call.input(0), &table = call.input(1);
  const int64_t axis = attrs.layout == ops::AttentionLayout::kBshd ? 1 : x.rank() - 2;
  const auto [outer, rows, inner] = split_at(x.sizes, axis);
  const int64_t seq = rows;  // clang 14 cannot capture a structured binding
  const int64_t batch = axis == 0 ? 1 : x.dim(0), per_batch = outer / batch;
  const int64_t half = attrs.n_rot.value_or(attrs.head_dim) / 2, row = attrs.head_dim / 2;
  const bool neox = attrs.style == ops::RopeStyle::kNeox;
  const Reader in = call.reader(0), cos = call.reader(1), sin = call.reader(2);
  const Writer y = call.writer(0);

  const auto table_row = [&](int64_t b, int64_t s) {
    if (table.rank() == 3) return (table.dim(0) == 1 ? 0 : b) * seq + s;
    int64_t p = s;
    if (call.num_inputs() == 4) {
      const View& positions = call.input(3);
      const bool shared = positions.rank() == 1 || positions.dim(0) == 1;
      p = call.int_reader(3)[(shared ? 0 : b) * seq + s];
    }
    if (p < 0 || p >= table.dim(0))
      fail(ErrorKind::kRuntime, str("Position (", p, ") is outside the table's rows (", table.dim(0), ")."));
    return p;
  };
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t angles = table_row(o / per_batch, s) * row;
      for (int64_t head = 0; head < inner; head += attrs.head_dim) {
        const int64_t first = (o * seq + s) * inner + head;
        for (int64_t i = 0; i < half; ++i) {
          const int64_t a = first + (neox ? i : 2 * i), b = first + (neox ? half + i : 2 * i + 1);
          const double c = cos[angles + i], d = sign * sin[angles + i], xa = in[a], xb = in[b];
          y.set(a, xa * c - xb * d);
          y.set(b, xb * c + xa * d);
        }
        for (int64_t i = 2 * half; i < attrs.head_dim; ++i) y.set(first + i, in[first + i]);
      }
    }
}

}  // namespace

void rope(const Call& call) { rotate(call, 1); }
void rope_backward(const Call& call) { rotate(call, -1); }

void axial_rope2d(const Call& call) {
  const auto& attrs = call.attrs<ops::AxialRope2dAttrs>();
  const View& x = call.input(0);
  const int64_t batch = x.dim(0), seq = x.dim(1), width = x.dim(2), quarter = attrs.head_dim / 4;
  const Reader in = call.reader(0);
  const Writer y = call.writer(0);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < seq; ++t) {
      const int64_t p = attrs.repeat == ops::AxialRepeat::kTile ? t % (attrs.end_x * attrs.end_y)
                                                                : t / std::max<int64_t>(attrs.repeat_factor, 1);
      const double at[2] = {static_cast<double>(p % attrs.end_x), static_cast<double>(p / attrs.end_x)};
      for (int64_t head = 0; head < width; head += attrs.head_dim)
        for (int64_t side = 0; side < 2; ++side)
          for (int64_t c = 0; c < quarter; ++c) {
            const double exponent = -4.0 * static_cast<double>(c) / static_cast<double>(attrs.head_dim);
            const double angle = at[side] * std::pow(static_cast<double>(attrs.theta), exponent);
            const int64_t i = (b * seq + t) * width + head + 2 * (side * quarter + c);
            const double u = in[i], v = in[i + 1];
            y.set(i, u * std::cos(angle) - v * std::sin(angle));
            y.set(i + 1, u * std::sin(angle) + v * std::cos(angle));
          }
    }
}

}  // namespace rlx::reference
