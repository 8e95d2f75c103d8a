#include "rlx/ops/integer.h"

#include "backends/host/broadcast.h"
#include "backends/host/zero_points.h"
#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/window.h"

namespace rlx::reference {

// Exact sums, then the last 32 bits of them.
static int32_t wrapped(int64_t sum) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum))); }

void matmul_integer(const Call& call) {
  const View &a = call.input(0), &b = call.input(1), &y = call.output(0);
  const int64_t m = a.dim(a.rank() - 2), k = a.dim(a.rank() - 1), n = b.dim(b.rank() - 1);
  const auto batch = [](const View& v) { return v.sizes.first(v.sizes.size() - 2); };
  const IntReader av = call.int_reader(0), bv = call.int_reader(1);
  const host::ZeroPoints a_zero(call, 2, m), b_zero(call, 3, n);
  auto* out = call.output_as<int32_t>(0);
  host::BroadcastWalk<2> walk(batch(y), {batch(a), batch(b)});
  for (int64_t i = 0; i < product(batch(y)); ++i, walk.next()) {
    const int64_t am = walk.offset(0), bm = walk.offset(1);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t col = 0; col < n; ++col) {
        int64_t sum = 0;
        for (int64_t c = 0; c < k; ++c)
          sum += (av[(am * m + row) * k + c] - a_zero.of(am, row)) * (bv[(bm * k + c) * n + col] - b_zero.of(bm, col));
        out[(i * m + row) * n + col] = wrapped(sum);
      }
  }
}

void conv_integer(const Call& call) {
  const auto& attrs = call.attrs<ops::ConvAttrs>();
  const WindowWalk walk(ops::window_of(attrs), call.input(0).sizes, call.output(0).sizes);
  const int64_t batch = call.output(0).dim(0), cout = call.output(0).dim(1), cin = call.input(0).dim(1);
  const int64_t cin_group = cin / attrs.groups, cout_group = cout / attrs.groups;
  const int64_t plane = walk.in_plane(), windows = walk.windows(), taps = walk.taps();
  const IntReader x = call.int_reader(0), w = call.int_reader(1);
  const host::ZeroPoints x_zero(call, 2, 1), w_zero(call, 3, cout);
  auto* y = call.output_as<int32_t>(0);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t co = 0; co < cout; ++co)
      for (int64_t o = 0; o < windows; ++o) {
        int64_t sum = 0;
        for (int64_t ci = 0; ci < cin_group; ++ci) {
          const int64_t from = (n * cin + co / cout_group * cin_group + ci) * plane, row = (co * cin_group + ci) * taps;
          // In the padding x is its zero point, which adds nothing.
          walk.for_each_tap(o, [&](int64_t tap, int64_t at) {
            sum += (x[from + at] - x_zero.of(0, 0)) * (w[row + tap] - w_zero.of(0, co));
          });
        }
        y[(n * cout + co) * windows + o] = wrapped(sum);
      }
}

}  // namespace rlx::reference
