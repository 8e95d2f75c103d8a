#include "rlx/signal.h"

#include <algorithm>

#include "rlx/ops/binary.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/fft.h"
#include "rlx/ops/gather.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/transpose.h"

namespace rlx::signal {

namespace {

// The op's names are not NumPy's.
ops::FftNorm op_norm(Norm norm) {
  switch (norm) {
    case Norm::kBackward: return ops::FftNorm::kForward;
    case Norm::kOrtho: return ops::FftNorm::kOrtho;
    case Norm::kForward: return ops::FftNorm::kForwardScaled;
  }
  fail(ErrorKind::kInvalid, "Unknown FFT norm.");
}

int64_t last_axis(const Value& x) { return x.shape().rank() - 1; }

void require_real(const Value& x, std::string_view what) {
  require(x.dtype() == DType::F32 || x.dtype() == DType::F64, what, " dtype (", x.dtype(), ") is not f32 or f64.");
  require(x.shape().rank() >= 1, what, " has rank 0.");
}

int64_t length(const Value& x) {
  const Dim& last = x.shape()[last_axis(x)];
  require(last.is_static(), "Last axis (", last, ") is not known.");
  return last.value();
}

Value scalar(const Value& like, double value) {
  return like.graph().constant(Tensor::from_doubles(like.dtype(), {}, std::vector<double>{value}));
}

Value list(const Value& like, const std::vector<double>& values) {
  return like.graph().constant(Tensor::from_doubles(like.dtype(), {static_cast<int64_t>(values.size())}, values));
}

// x followed by zeros, `total` elements along the last axis.
Value pad_end(const Value& x, int64_t total) {
  const int64_t have = length(x);
  if (have == total) return x;
  std::vector<Dim> shape = x.shape().dims();
  shape.back() = total - have;
  return ops::concat(Values{x, ops::expand(scalar(x, 0), {.target_shape = shape})}, {.axis = last_axis(x)});
}

Value part(const Value& x, int64_t start, int64_t len) {
  if (start == 0 && len == length(x)) return x;
  return ops::narrow(x, {.axis = last_axis(x), .start = start, .len = len});
}

Value join(Values parts) {
  const int64_t axis = last_axis(parts[0]);
  return parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = axis});
}

// The spectrum of real x in block layout: zeros are its imaginary parts.
Value real_fft(const Value& x, ops::FftNorm norm) {
  return ops::fft(pad_end(x, checked_mul(2, length(x))), {.norm = norm});
}

Value transform(Value x, std::vector<int64_t> axes, bool inverse, Norm norm) {
  for (int64_t& axis : axes) axis = normalize_axis(axis, x.shape().rank());
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  require(axes.size() <= 1 || is_complex(x.dtype()), "Operand dtype (", x.dtype(), ") is not c64; ", axes.size(),
          " axes are transformed.");
  for (const int64_t axis : axes) x = fft_axis(x, axis, inverse, norm);
  return x;
}

// [..., T] to [..., frames, frame_len]. Columns of `hop` samples are cut out of x by a reshape, one after the other.
Value frames_of(const Value& x, int64_t frames, int64_t frame_len, int64_t hop) {
  const int64_t columns = (frame_len + hop - 1) / hop, span = checked_mul(frames, hop);
  const Value padded = pad_end(x, std::max(length(x), checked_add(span, checked_mul(columns - 1, hop))));
  Values parts;
  for (int64_t c = 0; c < columns; ++c) {
    std::vector<Dim> shape = x.shape().dims();
    shape.back() = frames;
    shape.push_back(hop);
    const Value column = ops::reshape(part(padded, c * hop, span), {.new_shape = shape});
    parts.push_back(part(column, 0, std::min(hop, frame_len - c * hop)));
  }
  return join(std::move(parts));
}

// `pad` samples more on either side.
Value pad_sides(const Value& x, int64_t pad, Padding padding) {
  const int64_t n = length(x);
  if (padding == Padding::kZeros) {
    std::vector<Dim> shape = x.shape().dims();
    shape.back() = pad;
    const Value zeros = ops::expand(scalar(x, 0), {.target_shape = shape});
    return join({zeros, x, zeros});
  }
  require(pad < n, "Reflected padding (", pad, ") is not less than the samples (", n, ").");
  std::vector<int32_t> indices;
  for (int64_t i = -pad; i < n + pad; ++i) {
    const int64_t index = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    require(index <= INT32_MAX, "Number of samples (", n, ") does not fit 32 bits.");
    indices.push_back(static_cast<int32_t>(index));
  }
  const auto count = static_cast<int64_t>(indices.size());
  return ops::gather(x, x.graph().constant(Tensor::i32({count}, std::move(indices))), {.axis = last_axis(x)});
}

Value swap_last_two(const Value& x) {
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < x.shape().rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return ops::transpose(x, {.perm = perm});
}

}  // namespace

Value fft_axis(const Value& x, int64_t axis, bool inverse, Norm norm) {
  axis = normalize_axis(axis, x.shape().rank());
  const ops::FftAttrs attrs{.inverse = inverse, .norm = op_norm(norm)};
  if (axis == last_axis(x)) return ops::fft(x, attrs);
  std::vector<int64_t> perm;  // the axis and the last one change places; the same permutation undoes that
  for (int64_t i = 0; i <= last_axis(x); ++i) perm.push_back(i == axis ? last_axis(x) : i == last_axis(x) ? axis : i);
  return ops::transpose(ops::fft(ops::transpose(x, {.perm = perm}), attrs), {.perm = perm});
}

Value fftn(const Value& x, std::vector<int64_t> axes, Norm norm) { return transform(x, std::move(axes), false, norm); }
Value ifftn(const Value& x, std::vector<int64_t> axes, Norm norm) { return transform(x, std::move(axes), true, norm); }

Spectrum rfft(const Value& x, Norm norm) {
  require_real(x, "Operand");
  const int64_t n = length(x);
  const Value y = real_fft(x, op_norm(norm));
  return {part(y, 0, n / 2 + 1), part(y, n, n / 2 + 1)};
}

Value irfft(const Spectrum& bins, int64_t n, Norm norm) {
  require_real(bins.re, "Spectrum");
  require(bins.re.type() == bins.im.type(), "Real and imaginary parts differ in type (", bins.re.type(), " and ",
          bins.im.type(), ").");
  require(n >= 1 && length(bins.re) == n / 2 + 1, "Bins (", length(bins.re), ") are not those of ", n, " samples.");
  // Bin k and its mirror image contribute conjugate numbers: twice the real part of one of them. So the upper half
  // may stay zero when the lower one is doubled and only the real part of the result is kept.
  std::vector<double> weights(static_cast<size_t>(n / 2 + 1), 2);
  weights[0] = 1;
  if (n % 2 == 0) weights.back() = 1;
  const Value weight = list(bins.re, weights);
  const Value y = ops::fft(join({pad_end(bins.re * weight, n), pad_end(bins.im * weight, n)}),
                           {.inverse = true, .norm = op_norm(norm)});
  return part(y, 0, n);
}

Spectrum stft(const Value& x, const StftOptions& options) {
  require_real(x, "Operand");
  require(options.frame_len >= 1, "Frame length (", options.frame_len, ") is not positive.");
  require(options.hop >= 1, "Hop (", options.hop, ") is not positive.");
  const Value signal =
      options.center && options.frame_len > 1 ? pad_sides(x, options.frame_len / 2, options.padding) : x;
  require(length(signal) >= options.frame_len, "Samples (", length(signal), ") are fewer than a frame (",
          options.frame_len, ").");
  const int64_t frames = 1 + (length(signal) - options.frame_len) / options.hop;
  Value framed = frames_of(signal, frames, options.frame_len, options.hop);
  if (options.window) {
    require(options.window->type() == TensorType{{options.frame_len}, x.dtype()}, "Window type (",
            options.window->type(), ") is not [", options.frame_len, "] ", x.dtype(), ".");
    framed = framed * *options.window;
  }
  const Spectrum bins = rfft(framed);
  return {swap_last_two(bins.re), swap_last_two(bins.im)};
}

Value fft_conv1d(const Value& x, const Value& kernel) {
  require_real(x, "Operand");
  require_real(kernel, "Kernel");
  require(length(x) >= 1 && length(kernel) >= 1, "A signal to be convolved is empty.");
  const int64_t n = checked_add(length(x), length(kernel) - 1);
  const Value a = real_fft(pad_end(x, n), ops::FftNorm::kBackward);
  const Value b = real_fft(pad_end(kernel, n), ops::FftNorm::kBackward);
  const Value a_re = part(a, 0, n), a_im = part(a, n, n), b_re = part(b, 0, n), b_im = part(b, n, n);
  const Value product = join({a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re});
  return part(ops::fft(product, {.inverse = true, .norm = ops::FftNorm::kForward}), 0, n);
}

Value psd(const Spectrum& bins, double divisor) {
  return (bins.re * bins.re + bins.im * bins.im) / scalar(bins.re, divisor);
}

Tensor fftfreq(int64_t n) {
  require(n >= 1, "Number of bins (", n, ") is not positive.");
  std::vector<double> values;
  for (int64_t k = 0; k < n; ++k) values.push_back(static_cast<double>(2 * k < n ? k : k - n) / static_cast<double>(n));
  return Tensor::from_doubles(DType::F32, {n}, values);
}

Tensor rfftfreq(int64_t n) {
  require(n >= 1, "Number of samples (", n, ") is not positive.");
  std::vector<double> values;
  for (int64_t k = 0; k <= n / 2; ++k) values.push_back(static_cast<double>(k) / static_cast<double>(n));
  return Tensor::from_doubles(DType::F32, {n / 2 + 1}, values);
}

}  // namespace rlx::signal
