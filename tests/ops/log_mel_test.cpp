#include <algorithm>
#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using ops::MaxOver;

// The definition, frame by frame, with the powers first.
static void judge(const Tensors& in, const Tensors& out, bool clip) {
  const int64_t n = in[0].sizes().back() / 2, bins = n / 2 + 1, mels = in[1].sizes()[0];
  const int64_t frames = in[0].num_elements() / (2 * n), group = clip ? in[0].sizes()[in[0].sizes().size() - 2] : 1;
  ASSERT_EQ(out[0].num_elements(), frames * mels);
  for (int64_t first = 0; first < frames; first += group) {
    std::vector<double> logs;
    for (int64_t t = first; t < first + group; ++t) {
      std::vector<double> power;
      for (int64_t k = 0; k < bins; ++k)
        power.push_back(std::pow(std::hypot(in[0].at(t * 2 * n + k), in[0].at(t * 2 * n + n + k)), 2));
      for (int64_t m = 0; m < mels; ++m) {
        double sum = 0;
        for (int64_t k = bins - 1; k >= 0; --k) sum += in[1].at(m * bins + k) * power[static_cast<size_t>(k)];
        logs.push_back(std::log10(std::max(sum, 1e-10)));
      }
    }
    const double top = *std::max_element(logs.begin(), logs.end());
    for (size_t i = 0; i < logs.size(); ++i)
      EXPECT_NEAR(out[0].at(first * mels + static_cast<int64_t>(i)), (std::max(logs[i], top - 8) + 4) / 4, 1e-6);
  }
}

OP_CASES(log_mel) {
  // N = 2, bins 0 and 1 with powers 25 and 100; the second filter sees nothing and sits at the floor.
  add({Tensor::f32({1, 4}, {3, 10, 4, 0}), Tensor::f32({2, 2}, {0, 1, 0, 0})})
      .expect({Tensor::f32({1, 2}, {1.5, -0.5})}, kTranscendental);
  // Silence: log10(1e-10) everywhere.
  add({Tensor(DType::F32, {2, 8}), random({3, 3}, 0, 1)}).check([](const Tensors&, const Tensors& out) {
    for (const double v : out[0].to_doubles()) EXPECT_NEAR(v, -1.5, 1e-6);
  });
  for (const bool clip : {false, true}) {
    const ops::LogMelAttrs attrs{.max_over = clip ? MaxOver::kClip : MaxOver::kFrame};
    for (const int64_t n : {8, 7, 1}) {
      Tensor spectrum = random({2, 3, 2 * n}, DType::F64);
      auto values = spectrum.mutable_values<double>();
      for (int64_t i = 0; i < 2 * n; ++i) values[static_cast<size_t>(i)] *= 1e-6;  // a frame far below the others
      const auto f = [clip](const Tensors& in, const Tensors& out) { judge(in, out, clip); };
      add({spectrum, random({5, n / 2 + 1}, 0, 1, DType::F64)}, attrs).check(f);
      add({spectrum.cast(DType::F32), random({5, n / 2 + 1}, 0, 1)}, attrs).check(f);
    }
  }
  add({Tensor::f32({2, 4}, {NAN, 1, 1, 1, 1, 1, 1, 1}), Tensor::f32({1, 2}, {1, 1})})
      .check([](const Tensors&, const Tensors& out) {
        EXPECT_TRUE(std::isnan(out[0].at(0)));
        EXPECT_FALSE(std::isnan(out[0].at(1)));
      });
  for (const bool clip : {false, true})  // more frames than a block, odd tails
    add({random({2, 67, 62}), random({37, 16}, 0, 1)}, {.max_over = clip ? MaxOver::kClip : MaxOver::kFrame})
        .check([clip](const Tensors& in, const Tensors& out) { judge(in, out, clip); });
  add({random({0, 4}), random({3, 2})}).expect({Tensor(DType::F32, {0, 3})});
  add_error({random({2, 5}), random({3, 2})}, {}, "Last axis (5) is not a positive even number");
  add_error({random({2, 8}), random({3, 4})}, {}, "Filter columns and spectrum bins (4 and 3) differ");
  add_error({random({8}), random({3, 3})}, {.max_over = MaxOver::kClip}, "no axis of frames");
  add_error({random({2, 8}, DType::F16), random({3, 3}, DType::F16)}, {}, "Spectrum dtype (f16)");
  add_error({random({2, 8}), random({3, 3}, DType::F64)}, {}, "Operand dtypes (f32, f64) differ");
  add_error({random({2, 8}), random({3})}, {}, "Filters rank (1) is not 2");
}

OP_CASES(log_mel_backward) {
  // Where no clamp is active, central differences. Maximum and floor are 8 decades apart, so it is a constant offset.
  for (const bool clip : {false, true})
    for (const int64_t n : {8, 5}) {
      const ops::LogMelAttrs attrs{.max_over = clip ? MaxOver::kClip : MaxOver::kFrame};
      add({random({2, 3, 2 * n}, DType::F64), random({4, n / 2 + 1}, 0.1, 1, DType::F64),
           random({2, 3, 4}, DType::F64)},
          attrs)
          .check([attrs](const Tensors& in, const Tensors& out) {
            EXPECT_TRUE(matches_finite_differences(
                [&](const Tensor& x) {
                  return run(ops::log_mel, {x, in[1]}, attrs)[0];
                },
                in[0], in[2], out[0], 1e-7));
          });
    }
  // A filter that sees nothing gets no gradient; bins above N/2 get none: powers 4 and 16 through [1, 0.5], N = 2.
  const double d = 0.25 / (12 * std::log(10.0));
  add({Tensor::f32({1, 4}, {2, 4, 0, 0}), Tensor::f32({2, 2}, {1, 0.5, 0, 0}), Tensor::f32({1, 2}, {1, 1000})})
      .expect({Tensor::f32({1, 4}, {static_cast<float>(4 * d), static_cast<float>(4 * d), 0, 0})}, kTranscendental);
  add({random({1, 8}), random({2, 3}, 0.1, 1), random({1, 2})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_NE(out[0].at(2), 0);
    EXPECT_EQ(out[0].at(3), 0);
    EXPECT_EQ(out[0].at(7), 0);
  });
  // Clamped to the clip's maximum: the quiet frame of a clip has no gradient, alone it has one.
  const Tensor quiet = Tensor::f32({2, 4}, {1e4, 1e4, 0, 0, 1e-3f, 1e-3f, 0, 0});
  for (const bool clip : {false, true})
    add({quiet, Tensor::f32({1, 2}, {1, 1}), Tensor::f32({2, 1}, {1, 1})},
        {.max_over = clip ? MaxOver::kClip : MaxOver::kFrame})
        .check([clip](const Tensors&, const Tensors& out) { EXPECT_EQ(out[0].at(4) == 0, clip); });
  add_error({random({2, 8}), random({3, 3}), random({2, 2})}, {}, "Gradient shape ([2, 2]) is not [2, 3]");
  add_error({random({2, 8}), random({3, 3}), random({2, 3}, DType::F64)}, {}, "differ");
}

}  // namespace rlx::test
