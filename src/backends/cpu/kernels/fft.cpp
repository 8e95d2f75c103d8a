#include "rlx/ops/fft.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/fft/stages.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

// Transforms side by side fill vectors from the first pass on, but they must stay in the L2 cache together.
constexpr int64_t kLargestBatched = 2048;

int64_t points(DType dtype, int64_t last_axis) { return is_complex(dtype) ? last_axis : last_axis / 2; }

int64_t batch_of(const fourier::Plan& plan, int64_t rows) {
  const int64_t width = fourier::batch_width();
  return plan.width() <= kLargestBatched && 2 * rows >= width ? width : 1;
}

float scale_of(const ops::FftAttrs& attrs, int64_t n) {
  const auto size = static_cast<double>(n);
  const bool once = (attrs.norm == ops::FftNorm::kForward && attrs.inverse) ||
                    (attrs.norm == ops::FftNorm::kForwardScaled && !attrs.inverse);
  return static_cast<float>(attrs.norm == ops::FftNorm::kOrtho ? 1 / std::sqrt(size) : once ? 1 / size : 1.0);
}

// Four arrays of floats: two split complex ones, of plan.width() * batch each.
int64_t floats_per_thread(const fourier::Plan& plan, int64_t batch) { return round_up(4 * plan.width() * batch, 16); }

// The transform of what lies in x; a and b are working memory, x may be a. Where the result is.
fourier::Split transform(const fourier::Plan& plan, fourier::ConstSplit x, fourier::Split a, fourier::Split b,
                         int64_t batch) {
  if (!plan.inner) return fourier::run_stages(plan, x, a, b, batch);
  const int64_t n = plan.n, length = plan.inner->n;
  const fourier::ConstSplit chirp = {plan.chirp.data(), plan.chirp.data() + n};
  const fourier::ConstSplit kernel = {plan.kernel.data(), plan.kernel.data() + length};
  fourier::multiply(x, chirp, a, n, batch);
  std::fill(a.re + n * batch, a.re + length * batch, 0.0f);
  std::fill(a.im + n * batch, a.im + length * batch, 0.0f);
  fourier::Split spectrum = fourier::run_stages(*plan.inner, {a.re, a.im}, a, b, batch);
  fourier::multiply({spectrum.re, spectrum.im}, kernel, spectrum, length, batch);
  // Back: the inverse transform is the forward one with real and imaginary parts exchanged.
  const fourier::Split other = spectrum.re == a.re ? b : a;
  const fourier::Split back = fourier::run_stages(*plan.inner, {spectrum.im, spectrum.re}, {spectrum.im, spectrum.re},
                                                  {other.im, other.re}, batch);
  const fourier::Split result = {back.im, back.re};
  fourier::multiply({result.re, result.im}, chirp, result, n, batch);
  return result;
}

}  // namespace

bool fft_supports(const Signature& s) {
  const DType dtype = s.input(0).dtype;
  return dtype == DType::F32 || dtype == DType::C64;
}

int64_t fft_scratch(const Signature& s, int threads) {
  const auto sizes = s.input(0).shape.sizes();
  const fourier::Plan& plan = fourier::make_plan(points(s.input(0).dtype, sizes.back()));
  const int64_t rows = product(sizes) / sizes.back();
  return threads * floats_per_thread(plan, batch_of(plan, rows)) * static_cast<int64_t>(sizeof(float));
}

void fft(const Call& call) {
  const host::View& view = call.input(0);
  const auto& attrs = call.attrs<ops::FftAttrs>();
  const bool interleaved = is_complex(view.dtype);
  const int64_t n = points(view.dtype, view.dim(view.rank() - 1)),
                rows = product(view.sizes) / view.dim(view.rank() - 1);
  const fourier::Plan& plan = fourier::find_plan(n);
  const int64_t batch = batch_of(plan, rows), area = plan.width() * batch;
  const float scale = scale_of(attrs, n);
  const auto* x = reinterpret_cast<const float*>(view.data);
  auto* y = reinterpret_cast<float*>(call.output(0).data);
  const int64_t groups = div_up(rows, batch);
  const int64_t grain = std::max<int64_t>(1, kGrain / (area * 8));
  call.pool().parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
    float* own = call.scratch_as<float>() + ThreadPool::this_thread() * floats_per_thread(plan, batch);
    fourier::Split a = {own, own + area}, b = {own + 2 * area, own + 3 * area};
    if (batch > 1) std::fill(own, own + 2 * area, 0.0f);  // transforms beyond the last row
    // The inverse transform is the forward one with real and imaginary parts exchanged.
    const auto turned = [&](fourier::Split s) { return attrs.inverse ? fourier::Split{s.im, s.re} : s; };
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * batch, count = std::min(batch, rows - first);
      const float* from = x + first * 2 * n;
      float* to = y + first * 2 * n;
      const fourier::Split ta = turned(a), tb = turned(b);
      fourier::ConstSplit source = {ta.re, ta.im};
      if (batch > 1) {
        fourier::rows_to_columns(from, 2 * n, count, interleaved, a);
      } else if (interleaved) {
        fourier::split_row(from, n, a);
      } else {
        source = attrs.inverse ? fourier::ConstSplit{from + n, from} : fourier::ConstSplit{from, from + n};
      }
      fourier::Split result = transform(plan, source, ta, tb, batch);
      if (n == 1) result = {const_cast<float*>(source.re), const_cast<float*>(source.im)};  // no pass at all
      result = turned(result);
      if (batch > 1)
        fourier::columns_to_rows({result.re, result.im}, 2 * n, count, interleaved, scale, to);
      else
        fourier::store_row({result.re, result.im}, n, interleaved, scale, to);
    }
  });
}

}  // namespace rlx::cpu
