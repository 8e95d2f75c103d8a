#include "rlx/ops/fake_quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/reference/kernels/channels.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

constexpr double kMinScale = 1e-12;

double q_max(int64_t bits) { return static_cast<double>((int64_t{1} << (bits - 1)) - 1); }

double at_least(double value, double low) { return value < low ? low : value; }  // NaN stays NaN

// The scale of each channel from the largest magnitude in it; NaN wins. It is an f32 (of f64 an f64), so that every
// device has the same one: half of the largest element, say, is a tie of 4 bits but for its rounding.
std::vector<double> batch_scales(const Call& call, const Channels& channels, int64_t bits) {
  const Reader x = call.reader(0);
  const bool wide = call.input(0).dtype == DType::F64;
  std::vector<double> scales(static_cast<size_t>(channels.count()), 0);
  for (int64_t i = 0; i < call.input(0).elements(); ++i) {
    double& top = scales[static_cast<size_t>(channels.of(i))];
    const double magnitude = std::fabs(x[i]);
    if (!std::isnan(top) && !(magnitude <= top)) top = magnitude;
  }
  for (double& s : scales) {
    s /= q_max(bits);
    if (!wide) s = static_cast<double>(static_cast<float>(s));
    s = at_least(s, kMinScale);
  }
  return scales;
}

std::vector<double> given_scales(const Reader& scale, int64_t channels) {
  std::vector<double> scales(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) scales[static_cast<size_t>(c)] = at_least(scale[c], kMinScale);
  return scales;
}

void round_to_grid(const Call& call, const Channels& channels, const std::vector<double>& scales, int64_t bits) {
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  const double top = q_max(bits);
  for (int64_t i = 0; i < call.input(0).elements(); ++i) {
    const double s = scales[static_cast<size_t>(channels.of(i))], q = std::nearbyint(x[i] / s);
    y.set(i, (q < -top ? -top : q > top ? top : q) * s);
  }
}

}  // namespace

void fake_quantize(const Call& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  std::vector<double> scales;
  if (attrs.scale_mode == ops::ScaleMode::kFixed) {
    scales = given_scales(call.reader(1), channels.count());
  } else {
    scales = batch_scales(call, channels, attrs.bits);
  }
  if (attrs.scale_mode == ops::ScaleMode::kEma) {
    const Reader state = call.reader(1);
    const auto decay = static_cast<double>(attrs.decay);
    for (int64_t c = 0; c < channels.count(); ++c) {
      double& s = scales[static_cast<size_t>(c)];
      if (!(state[c] <= 0)) s = decay * state[c] + (1 - decay) * s;
      if (call.wants(1)) call.writer(1).set(c, s);
    }
  }
  round_to_grid(call, channels, scales, attrs.bits);
}

void fake_quantize_lsq(const Call& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeLsqAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  round_to_grid(call, channels, given_scales(call.reader(1), channels.count()), attrs.bits);
}

void fake_quantize_lsq_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeLsqAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  const std::vector<double> scales = given_scales(call.reader(1), channels.count());
  const Reader x = call.reader(0), dy = call.reader(2);
  const double top = q_max(attrs.bits);
  std::vector<double> dscale(scales.size(), 0);
  for (int64_t i = 0; i < call.input(0).elements(); ++i) {
    const auto c = static_cast<size_t>(channels.of(i));
    const double z = x[i] / scales[c];
    const bool inside = std::fabs(z) <= top;
    if (call.wants(0)) call.writer(0).set(i, inside ? dy[i] : 0);
    dscale[c] += dy[i] * (inside || std::isnan(z) ? std::nearbyint(z) - z : std::copysign(top, z));
  }
  if (!call.wants(1)) return;
  for (size_t c = 0; c < dscale.size(); ++c) call.writer(1).set(static_cast<int64_t>(c), dscale[c]);
}

void fake_quantize_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeBackwardAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  const Reader x = call.reader(0), dy = call.reader(1);
  const Writer dx = call.writer(0);
  const int64_t n = call.input(0).elements();
  const std::vector<double> scales = batch_scales(call, channels, attrs.bits);
  const double top = q_max(attrs.bits);
  for (int64_t i = 0; i < n; ++i) {
    const double s = scales[static_cast<size_t>(channels.of(i))];
    double slope = 1;
    switch (attrs.ste) {
      case ops::Ste::kIdentity: break;
      // top * s is the largest magnitude itself; rounding must not push that element out.
      case ops::Ste::kClippedIdentity: slope = std::fabs(x[i]) <= top * s * (1 + 1e-6) ? 1 : 0; break;
      case ops::Ste::kTanh: slope = 1 - std::tanh(x[i] / s) * std::tanh(x[i] / s); break;
      case ops::Ste::kHardTanh: slope = std::max(0.0, 1 - std::fabs(x[i] / (top * s))); break;
    }
    dx.set(i, slope * dy[i]);
  }
}

}  // namespace rlx::reference
