#include <algorithm>
#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(welch_peaks) {
  // N = 4, bins 0, 1, 2 with powers 9, 2 * (4 + 1), 16: no doubling for bins 0 and N/2.
  add({Tensor::f32({1, 8}, {3, 2, 4, 99, 0, 1, 0, 99})}, {.k = 3})
      .expect({Tensor::f32({1, 6}, {2, 16, 1, 10, 0, 9})}, kExact);
  // N = 3: the last bin has a mirror image and is doubled.
  add({Tensor::f32({1, 6}, {1, 1, 9, 0, 0, 9})}, {.k = 2}).expect({Tensor::f32({1, 4}, {1, 2, 0, 1})}, kExact);
  // Ties: the smaller bin first. Segments: the mean. NaN counts as the largest.
  add({Tensor::f32({2, 4}, {1, 2, 0, 0, 3, 2, 0, 0})}, {.k = 2, .n_segments = 2})
      .expect({Tensor::f32({1, 4}, {0, 5, 1, 4})}, kExact);
  add({Tensor::f32({1, 4}, {2, 2, 0, 0})}, {.k = 2}).expect({Tensor::f32({1, 4}, {0, 4, 1, 4})}, kExact);
  add({Tensor::f32({1, 4}, {2, NAN, 0, 0})}, {.k = 1}).expect({Tensor::f32({1, 2}, {1, NAN})}, kExact);
  // Against picking the largest remaining bin again and again.
  for (const int64_t n : {1, 2, 7, 16})
    add({random({6, 2 * n}, DType::F64)}, {.k = n / 2 + 1, .n_segments = 3})
        .check([n](const Tensors& in, const Tensors& out) {
          const int64_t bins = n / 2 + 1;
          ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 2 * bins}));
          for (int64_t b = 0; b < 2; ++b) {
            std::vector<double> power(static_cast<size_t>(bins));
            for (int64_t k = 0; k < bins; ++k)
              for (int64_t s = 0; s < 3; ++s) {
                const int64_t at = (b * 3 + s) * 2 * n + k;
                const bool mirrored = k > 0 && k != n - k;
                power[static_cast<size_t>(k)] +=
                    (mirrored ? 2 : 1) * std::pow(std::hypot(in[0].at(at), in[0].at(at + n)), 2) / 3;
              }
            for (int64_t i = 0; i < bins; ++i) {
              const auto top = std::max_element(power.begin(), power.end());
              EXPECT_EQ(out[0].at((b * bins + i) * 2), static_cast<double>(top - power.begin()));
              EXPECT_NEAR(out[0].at((b * bins + i) * 2 + 1), *top, 1e-12);
              *top = -1;
            }
          }
        });
  add({random({0, 4})}, {.k = 2, .n_segments = 3}).expect({Tensor(DType::F32, {0, 4})});
  add_error({random({2, 8})}, {.k = 4}, "Attribute k (4) is more than the bins (3)");
  add_error({random({2, 8})}, {.k = 0}, "Attribute k (0) is not positive");
  add_error({random({2, 8})}, {.n_segments = 0}, "Attribute n_segments (0) is not positive");
  add_error({random({3, 8})}, {.n_segments = 2}, "Rows (3) are not a multiple of n_segments (2)");
  add_error({random({2, 7})}, {}, "Last axis (7) is not a positive even number");
  add_error({random({8})}, {}, "Spectrum rank (1) is not 2");
  add_error({random({2, 8}, DType::BF16)}, {}, "Spectrum dtype (bf16)");
}

}  // namespace rlx::test
