// The builders of rlx/signal.h, run on the oracle, against the definitions written as sums.
#include "rlx/signal.h"

#include <cmath>
#include <numbers>

#include "backends/reference/evaluate.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

using signal::Norm;
using signal::Spectrum;

// Builds a graph of one or more inputs and evaluates its results.
template <class Build>
Tensors evaluate(const Tensors& inputs, const Build& build) {
  Graph graph;
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(graph.input(str("x", i), inputs[i].type()));
  int count = 0;
  for (const Value& y : build(values)) graph.output(y, str("y", count++));
  verify(graph);
  return reference::evaluate(graph, inputs);
}

// Bin k of the transform of n numbers; sign -1 forward.
std::complex<double> dft(const std::vector<std::complex<double>>& x, size_t k, double sign = -1) {
  std::complex<double> sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += x[i] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(i * k % x.size()) /
                                      static_cast<double>(x.size()));
  return sum;
}

std::vector<std::complex<double>> row(const Tensor& x, int64_t first, int64_t n) {
  std::vector<std::complex<double>> out;
  for (int64_t i = 0; i < n; ++i) out.emplace_back(x.at(first + i));
  return out;
}

TEST(Signal, RfftIsTheLowerHalfOfTheTransform) {
  Rng rng(1);
  for (const int64_t n : {1, 2, 5, 8, 12}) {
    const Tensor x = rng.tensor({3, n}, DType::F64);
    for (const Norm norm : {Norm::kBackward, Norm::kOrtho, Norm::kForward}) {
      const Tensors y = evaluate({x}, [&](const Values& v) {
        const Spectrum s = signal::rfft(v[0], norm);
        return Values{s.re, s.im};
      });
      ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{3, n / 2 + 1}));
      const auto size = static_cast<double>(n);
      const double scale = norm == Norm::kBackward ? 1 : norm == Norm::kOrtho ? 1 / std::sqrt(size) : 1 / size;
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t k = 0; k <= n / 2; ++k) {
          const auto expected = dft(row(x, r * n, n), static_cast<size_t>(k)) * scale;
          EXPECT_NEAR(y[0].at(r * (n / 2 + 1) + k), expected.real(), 1e-12);
          EXPECT_NEAR(y[1].at(r * (n / 2 + 1) + k), expected.imag(), 1e-12);
        }
    }
  }
}

TEST(Signal, IrfftUndoesRfftInEveryNorm) {
  Rng rng(2);
  for (const int64_t n : {1, 2, 5, 8, 9})
    for (const Norm norm : {Norm::kBackward, Norm::kOrtho, Norm::kForward}) {
      const Tensor x = rng.tensor({2, n}, DType::F64);
      const Tensor y =
          evaluate({x}, [&](const Values& v) { return Values{signal::irfft(signal::rfft(v[0], norm), n, norm)}; })[0];
      EXPECT_TRUE(near(y, x, {.abs = 1e-12}));
    }
}

// numpy.fft.irfft([1+9j, 2+3j, 4+7j], 4) and its odd sibling: the upper half is the conjugate of the lower one.
TEST(Signal, IrfftIgnoresImaginaryPartsThatCannotBe) {
  const Tensor re = Tensor::f32({3}, {1, 2, 4}), im = Tensor::f32({3}, {9, 3, 7});
  for (const int64_t n : {4, 5}) {
    const Tensor y = evaluate({re, im}, [&](const Values& v) { return Values{signal::irfft({v[0], v[1]}, n)}; })[0];
    std::vector<std::complex<double>> full = {1, {2, 3}, {4, n == 5 ? 7.0 : 0.0}};
    if (n == 5) full.emplace_back(4, -7);
    full.emplace_back(2, -3);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_NEAR(y.at(i), dft(full, static_cast<size_t>(i), 1).real() / static_cast<double>(n), 1e-6);
  }
}

TEST(Signal, FftnTransformsEachAxisOnce) {
  Rng rng(3);
  const Tensor x = rng.tensor({3, 4, 5}, DType::C64);
  const auto values = x.values<std::complex<float>>();
  const Tensors y = evaluate({x}, [&](const Values& v) {
    const Value forward = signal::fftn(v[0], {2, 0, -1});
    return Values{forward, signal::ifftn(forward, {0, 2}), signal::fft_axis(v[0], 1), signal::fftn(v[0], {})};
  });
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t b = 0; b < 5; ++b) {
        std::complex<double> sum = 0, one = 0;
        for (int64_t i = 0; i < 3; ++i)
          for (int64_t k = 0; k < 5; ++k)
            sum += std::complex<double>(values[static_cast<size_t>((i * 4 + j) * 5 + k)]) *
                   std::polar(
                       1.0, -2 * std::numbers::pi * (static_cast<double>(a * i) / 3 + static_cast<double>(b * k) / 5));
        for (int64_t k = 0; k < 4; ++k)
          one += std::complex<double>(values[static_cast<size_t>((a * 4 + k) * 5 + b)]) *
                 std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k) / 4);
        const auto at = static_cast<size_t>((a * 4 + j) * 5 + b);
        EXPECT_LT(std::abs(std::complex<double>(y[0].values<std::complex<float>>()[at]) - sum), 1e-5);
        EXPECT_LT(std::abs(std::complex<double>(y[2].values<std::complex<float>>()[at]) - one), 1e-5);
      }
  EXPECT_TRUE(near(y[1], x, {.abs = 1e-6}));
  EXPECT_EQ(y[3], x);
}

TEST(Signal, StftIsTheTransformOfEveryFrame) {
  Rng rng(4);
  const int64_t samples = 23;
  const Tensor x = rng.tensor({2, samples}, DType::F64);
  for (const int64_t frame : {1, 4, 6, 23})
    for (const int64_t hop : {1, 3, 4, 7})
      for (const int mode : {0, 1, 2}) {  // as it is, centred with reflection, centred with zeros
        const Tensor window = rng.uniform_tensor({frame}, 0.5, 1, DType::F64);
        const Tensors y = evaluate({x, window}, [&](const Values& v) {
          const Spectrum s =
              signal::stft(v[0], {.frame_len = frame,
                                  .hop = hop,
                                  .window = v[1],
                                  .center = mode > 0,
                                  .padding = mode == 1 ? signal::Padding::kReflect : signal::Padding::kZeros});
          return Values{s.re, s.im};
        });
        const int64_t pad = mode > 0 ? frame / 2 : 0, frames = 1 + (samples + 2 * pad - frame) / hop;
        ASSERT_EQ(y[0].sizes(), (std::vector<int64_t>{2, frame / 2 + 1, frames}));
        for (int64_t r = 0; r < 2; ++r)
          for (int64_t t = 0; t < frames; ++t) {
            std::vector<std::complex<double>> cut;
            for (int64_t i = 0; i < frame; ++i) {
              int64_t at = t * hop + i - pad;
              const bool outside = at < 0 || at >= samples;
              if (mode == 1) at = std::abs(at), at = at >= samples ? 2 * samples - 2 - at : at;
              cut.emplace_back(outside && mode == 2 ? 0 : x.at(r * samples + at) * window.at(i));
            }
            for (int64_t k = 0; k <= frame / 2; ++k) {
              const auto expected = dft(cut, static_cast<size_t>(k));
              ASSERT_NEAR(y[0].at((r * (frame / 2 + 1) + k) * frames + t), expected.real(), 1e-11);
              ASSERT_NEAR(y[1].at((r * (frame / 2 + 1) + k) * frames + t), expected.imag(), 1e-11);
            }
          }
      }
}

TEST(Signal, ConvolutionIsTheSumOfShiftedProducts) {
  Rng rng(5);
  for (const int64_t m : {1, 3, 10}) {
    const Tensor x = rng.tensor({2, 7}, DType::F64), kernel = rng.tensor({m}, DType::F64);
    const Tensor y = evaluate({x, kernel}, [](const Values& v) { return Values{signal::fft_conv1d(v[0], v[1])}; })[0];
    ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 6 + m}));
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t i = 0; i < 6 + m; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < m; ++j)
          if (i - j >= 0 && i - j < 7) sum += x.at(r * 7 + i - j) * kernel.at(j);
        EXPECT_NEAR(y.at(r * (6 + m) + i), sum, 1e-12);
      }
  }
}

TEST(Signal, PowerAndFrequencies) {
  const Tensors y = evaluate({Tensor::f32({2}, {3, 1}), Tensor::f32({2}, {4, 0})}, [](const Values& v) {
    return Values{signal::psd({v[0], v[1]}, 10)};
  });
  EXPECT_TRUE(near(y[0], Tensor::f32({2}, {2.5, 0.1}), kRounding));
  EXPECT_EQ(signal::fftfreq(8), Tensor::f32({8}, {0, 0.125, 0.25, 0.375, -0.5, -0.375, -0.25, -0.125}));
  EXPECT_EQ(signal::fftfreq(5), Tensor::f32({5}, {0, 0.2f, 0.4f, -0.4f, -0.2f}));
  EXPECT_EQ(signal::rfftfreq(4), Tensor::f32({3}, {0, 0.25, 0.5}));
  EXPECT_EQ(signal::rfftfreq(5), Tensor::f32({3}, {0, 0.2f, 0.4f}));
}

TEST(Signal, MistakesAreErrors) {
  Graph graph;
  const Value x = graph.input("x", {{2, 8}, DType::F32}), z = graph.input("z", {{2, 8}, DType::C64});
  const Value open = graph.input("open", {{2, Dim::symbol(20)}, DType::F32});
  EXPECT_THROW(signal::fftn(x, {0, 1}), Error);  // two axes need c64
  EXPECT_THROW(signal::fftn(z, {2}), Error);
  EXPECT_THROW(signal::rfft(z), Error);
  EXPECT_THROW(signal::rfft(open), Error);
  EXPECT_THROW(signal::irfft({x, x}, 8), Error);  // 8 samples have 5 bins
  EXPECT_THROW(signal::irfft({x, open}, 14), Error);
  EXPECT_THROW(signal::stft(x, {.frame_len = 9, .hop = 1}), Error);
  EXPECT_THROW(signal::stft(x, {.frame_len = 4, .hop = 0}), Error);
  EXPECT_THROW(signal::stft(x, {.frame_len = 0, .hop = 1}), Error);
  EXPECT_THROW(signal::stft(x, {.frame_len = 4, .hop = 1, .window = x}), Error);
  EXPECT_THROW(signal::stft(x, {.frame_len = 16, .hop = 1, .center = true}), Error);  // reflects 8 of 8 samples
  EXPECT_THROW(signal::fftfreq(0), Error);
}

}  // namespace

}  // namespace rlx::test
