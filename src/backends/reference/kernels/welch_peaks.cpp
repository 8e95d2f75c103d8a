#include "rlx/ops/welch_peaks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void welch_peaks(const Call& call) {
  const auto& attrs = call.attrs<ops::WelchPeaksAttrs>();
  const int64_t batch = call.output(0).dim(0), n = call.input(0).dim(1) / 2, bins = n / 2 + 1;
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  std::vector<double> power(static_cast<size_t>(bins));
  std::vector<size_t> order(power.size());
  for (int64_t b = 0; b < batch; ++b) {
    power.assign(power.size(), 0);
    for (int64_t s = 0; s < attrs.n_segments; ++s)
      for (int64_t k = 0; k < bins; ++k) {
        const int64_t at = (b * attrs.n_segments + s) * 2 * n + k;
        const bool alone = k == 0 || 2 * k == n;  // no mirror image above N/2
        power[static_cast<size_t>(k)] += (alone ? 1 : 2) * (x[at] * x[at] + x[at + n] * x[at + n]);
      }
    std::iota(order.begin(), order.end(), size_t{0});
    // Stable, so ties keep the smaller bin first; NaN counts as the largest.
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
      return std::isnan(power[i]) ? !std::isnan(power[j]) : power[i] > power[j];
    });
    for (int64_t i = 0; i < attrs.k; ++i) {
      const size_t bin = order[static_cast<size_t>(i)];
      y.set((b * attrs.k + i) * 2, static_cast<double>(bin));
      y.set((b * attrs.k + i) * 2 + 1, power[bin] / static_cast<double>(attrs.n_segments));
    }
  }
}

}  // namespace rlx::reference
