// All norms are one loop over rows; what a row is, and which gamma an element has, is a NormRows.
#include "rlx/ops/norm.h"

#include <cmath>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

struct NormRows {
  int64_t rows = 0;       // parts that are normalised on their own
  int64_t count = 0;      // elements in each
  int64_t stride = 1;     // from one element of a row to the next
  int64_t groups = 1;     // rows follow each other in groups that have their own gammas
  int64_t per_gamma = 1;  // consecutive elements that share one

  int64_t at(int64_t row, int64_t i) const { return row / stride * count * stride + row % stride + i * stride; }
  int64_t gamma(int64_t row, int64_t i) const { return row % groups * (count / per_gamma) + i / per_gamma; }
};

NormRows trailing_rows(const View& x, int64_t axis) {
  const auto a = static_cast<size_t>(normalize_axis(axis, x.rank()));
  return {.rows = product(x.sizes.first(a)), .count = product(x.sizes.subspan(a))};
}

NormRows pixel_rows(const View& x) {
  const int64_t pixels = x.dim(2) * x.dim(3);
  return {.rows = x.dim(0) * pixels, .count = x.dim(1), .stride = pixels};
}

NormRows group_rows(const View& x, int64_t groups) {
  const int64_t spatial = product(x.sizes.subspan(2));
  return {.rows = x.dim(0) * groups, .count = x.dim(1) / groups * spatial, .groups = groups, .per_gamma = spatial};
}

struct Moments {
  double mean = 0, r = 0;  // r = 1 / sqrt(variance + eps)
};

// Two passes: the mean first, then the squares around it. An rms norm has no mean.
Moments moments(const Reader& x, const NormRows& rows, int64_t row, bool centred, double eps) {
  Moments m;
  const auto n = static_cast<double>(rows.count);
  for (int64_t i = 0; centred && i < rows.count; ++i) m.mean += x[rows.at(row, i)] / n;
  double squares = 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    const double d = x[rows.at(row, i)] - m.mean;
    squares += d * d;
  }
  m.r = 1 / std::sqrt(squares / n + eps);
  return m;
}

void forward(const Call& call, const NormRows& rows, bool centred, double eps) {
  const Reader x = call.reader(0), gamma = call.reader(1);
  const bool has_beta = call.num_inputs() > 2;
  const Reader beta = call.reader(has_beta ? 2 : 1);
  const Writer y = call.writer(0);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const Moments m = moments(x, rows, row, centred, eps);
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t at = rows.at(row, i), g = rows.gamma(row, i);
      y.set(at, (x[at] - m.mean) * m.r * gamma[g] + (has_beta ? beta[g] : 0));
    }
  }
}

// With h = dy * gamma and n = the normalised x: dx = r (h - mean(h) - n mean(h n)), without mean(h) for an rms norm;
// dgamma = sum of dy n, dbeta = sum of dy.
void backward(const Call& call, const NormRows& rows, bool centred, double eps) {
  const Reader x = call.reader(0), gamma = call.reader(1), dy = call.reader(call.num_inputs() - 1);
  const bool wants_dx = call.wants(0);
  const Writer dx = call.writer(0);
  std::vector<double> dgamma(static_cast<size_t>(call.input(1).elements()), 0.0), dbeta = dgamma;
  const auto n = static_cast<double>(rows.count);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const Moments m = moments(x, rows, row, centred, eps);
    double mean_h = 0, mean_hn = 0;
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t at = rows.at(row, i), g = rows.gamma(row, i);
      const double normal = (x[at] - m.mean) * m.r, h = dy[at] * gamma[g];
      if (centred) mean_h += h / n;
      mean_hn += h * normal / n;
      dgamma[static_cast<size_t>(g)] += dy[at] * normal;
      dbeta[static_cast<size_t>(g)] += dy[at];
    }
    for (int64_t i = 0; wants_dx && i < rows.count; ++i) {
      const int64_t at = rows.at(row, i), g = rows.gamma(row, i);
      dx.set(at, m.r * (dy[at] * gamma[g] - mean_h - (x[at] - m.mean) * m.r * mean_hn));
    }
  }
  for (const int64_t result : {1, 2}) {
    if (!call.wants(result)) continue;
    const Writer out = call.writer(result);
    const std::vector<double>& sums = result == 1 ? dgamma : dbeta;
    for (size_t i = 0; i < sums.size(); ++i) out.set(static_cast<int64_t>(i), sums[i]);
  }
}

}  // namespace

void group_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::GroupNormAttrs>();
  forward(call, group_rows(call.input(0), attrs.num_groups), true, attrs.eps);
}

void group_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::GroupNormAttrs>();
  backward(call, group_rows(call.input(0), attrs.num_groups), true, attrs.eps);
}

void layer_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::LayerNormAttrs>();
  forward(call, trailing_rows(call.input(0), attrs.axis), true, attrs.eps);
}

void layer_norm2d(const Call& call) {
  forward(call, pixel_rows(call.input(0)), true, call.attrs<ops::LayerNorm2dAttrs>().eps);
}

void layer_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::LayerNormAttrs>();
  backward(call, trailing_rows(call.input(0), attrs.axis), true, attrs.eps);
}

void rms_norm(const Call& call) {
  const auto& attrs = call.attrs<ops::RmsNormAttrs>();
  forward(call, trailing_rows(call.input(0), attrs.axis), false, attrs.eps);
}

void rms_norm_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::RmsNormAttrs>();
  backward(call, trailing_rows(call.input(0), attrs.axis), false, attrs.eps);
}

}  // namespace rlx::reference
