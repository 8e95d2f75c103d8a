#include "rlx/ops/fft.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/fft.h"

namespace rlx::webgpu {

namespace {

using Complex = std::complex<double>;

constexpr int64_t kLongest = 2048;    // a row that fits the workgroup memory of every device
constexpr int64_t kPass = 512;        // one pass of a longer row: four of them lie side by side
constexpr int64_t kTile = 1024;       // elements of a workgroup, unless one transform has more
constexpr int64_t kMaxColumns = 128;  // transforms of a workgroup

// e^(2 pi i * numerator / denominator)
Complex unit(int64_t numerator, int64_t denominator) {
  return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator));
}

// 7, 5, 3 and 2 as often as they divide n; nothing when another prime does too.
std::vector<int64_t> small_primes(int64_t n) {
  std::vector<int64_t> primes;
  for (const int64_t prime : {7, 5, 3, 2})
    for (; n % prime == 0; n /= prime) primes.push_back(prime);
  return n == 1 ? primes : std::vector<int64_t>{};
}

// Lengths of the passes over a row of n.
std::vector<int64_t> passes_of(int64_t n) {
  if (n <= kLongest) return {n};
  for (size_t count = 2;; ++count) {
    std::vector<int64_t> lengths(count, 1);
    for (const int64_t prime : small_primes(n)) *std::min_element(lengths.begin(), lengths.end()) *= prime;
    if (*std::max_element(lengths.begin(), lengths.end()) <= kPass) return lengths;
  }
}

// The kernel's radices for a pass.
std::vector<uint32_t> radices_of(int64_t length) {
  std::vector<uint32_t> radices;
  int64_t twos = 0;
  for (const int64_t prime : small_primes(length)) {
    if (prime == 2)
      ++twos;
    else
      radices.push_back(static_cast<uint32_t>(prime));
  }
  for (; twos >= 5 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  return radices;
}

class RootTable {
 public:
  // Where the numbers start in the table.
  uint32_t add(std::span<const Complex> numbers) {
    const auto at = static_cast<uint32_t>(words_.size() / 2);
    for (const Complex& c : numbers) {
      words_.push_back(std::bit_cast<uint32_t>(static_cast<float>(c.real())));
      words_.push_back(std::bit_cast<uint32_t>(static_cast<float>(c.imag())));
    }
    return at;
  }
  // Powers 0, step, 2 * step, … of the n-th root of 1.
  uint32_t add_powers(int64_t n, int64_t step, int64_t count) {
    std::vector<Complex> powers;
    for (int64_t i = 0; i < count; ++i) powers.push_back(unit(i * step % n, n));
    return add(powers);
  }
  std::span<const uint32_t> words() const { return words_; }

 private:
  std::vector<uint32_t> words_;
};

// Transforms of n numbers, n a product of 2, 3, 5 and 7.
struct Transform {
  Operand in, out;
  int64_t rows = 0, n = 0;
  int64_t loaded = 0, stored = 0;  // lengths of the rows of `in` and `out`
  float sign = -1, scale = 1;
  std::span<const Complex> load_factors = {}, store_factors = {};
};

void emit_pass(LowerCall& call, const Transform& t, int64_t length, int64_t done, bool in_place) {
  namespace k = wgsl::fft;
  const int64_t m = t.n / length;
  const int64_t columns = std::clamp<int64_t>(kTile / length, 1, m == 1 ? kMaxColumns : 16);
  const auto threads = std::clamp<uint64_t>(std::bit_ceil(static_cast<uint64_t>((length * columns + 7) / 8)), 32, 256);
  RootTable table;
  table.add_powers(length, 1, length);
  k::Params params{.transforms = to_u32(t.rows * m),
                   .m = to_u32(m),
                   .done = to_u32(done),
                   .loaded = to_u32(t.loaded),
                   .stored = to_u32(t.stored),
                   .sign = t.sign,
                   .scale = t.scale};
  if (done > 1) {
    constexpr int64_t kLow = 1024;
    params.low = table.add_powers(t.n, 1, std::min(kLow, t.n));
    params.high = table.add_powers(t.n, kLow, (t.n + kLow - 1) / kLow);
  }
  params.load_factors = table.add(t.load_factors);
  params.store_factors = table.add(t.store_factors);
  const auto element = [&](Operand o) { return std::string(call.element(o)); };
  KernelKey key{.kernel = "fft",
                .types = {{"S", element(t.in)}, {"D", element(t.out)}},
                .constants = {{"LENGTH", to_u32(length)},
                              {"COLUMNS", to_u32(columns)},
                              {"WG", static_cast<uint32_t>(threads)},
                              {"WHOLE_ROWS", m == 1 ? 1u : 0u},
                              {"FIRST_PASS", done == 1 ? 1u : 0u},
                              {"LOAD_FACTORS", t.load_factors.empty() ? 0u : 1u},
                              {"STORE_FACTORS", t.store_factors.empty() ? 0u : 1u}}};
  std::vector<uint32_t> radices = radices_of(length);
  static constexpr std::array kRadices = {"RADIX0", "RADIX1", "RADIX2", "RADIX3", "RADIX4", "RADIX5", "RADIX6"};
  for (size_t i = 0; i < kRadices.size(); ++i)
    key.constants.emplace_back(kRadices[i], i < radices.size() ? radices[i] : 1u);
  if (call.storage(t.in) != Storage::kC64) key.includes.emplace_back("fft_load_pairs", "fft_load_blocks");
  if (call.storage(t.out) != Storage::kC64) key.includes.emplace_back("fft_store_pairs", "fft_store_blocks");
  call.emit({.kernel = std::move(key),
             .operands = {LowerCall::reading(t.in), call.table(table.words()), LowerCall::writing(t.out)},
             .params = params,
             .grid = {.x = {.items = t.rows * m, .per_group = columns}},
             .extent_safe = true,
             .in_place = in_place},
            "fft_gpu");
}

void emit_transform(LowerCall& call, const Transform& t, bool in_place) {
  const std::vector<int64_t> passes = passes_of(t.n);
  Operand between = t.in;
  int64_t done = 1;
  for (size_t i = 0; i < passes.size(); ++i) {
    Transform pass = t;
    pass.in = between;
    if (i > 0) {
      pass.loaded = t.n;
      pass.load_factors = {};
    }
    if (i + 1 < passes.size()) {
      pass.out = between = call.temporary(Storage::kC64, {t.rows * t.n});
      pass.stored = t.n;
      pass.store_factors = {};
      pass.scale = 1;
    }
    emit_pass(call, pass, passes[i], done, in_place && passes.size() == 1);
    done *= passes[i];
  }
}

// In place, of a power of two, with e^(-2 pi i / n).
void transform_on_host(std::vector<Complex>& x) {
  const size_t n = x.size();
  std::vector<Complex> powers, from = x;
  for (size_t i = 0; i < n / 2; ++i)
    powers.push_back(std::conj(unit(static_cast<int64_t>(i), static_cast<int64_t>(n))));
  for (size_t done = 1; done < n; done *= 2, from.swap(x))
    for (size_t j = 0; j < n / 2; ++j) {
      const size_t k = j % done, to = j / done * done * 2 + k;
      const Complex even = from[j], odd = from[j + n / 2] * powers[k * (n / 2 / done)];
      x[to] = even + odd;
      x[to + done] = even - odd;
    }
  x.swap(from);
}

// Any length as a convolution with a chirp (Bluestein): ik = (i^2 + k^2 - (k - i)^2) / 2.
void emit_any_length(LowerCall& call, const Transform& t) {
  const int64_t n = t.n;
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  std::vector<Complex> chirp, kernel(static_cast<size_t>(padded));
  for (int64_t k = 0, square = 0; k < n; ++k) {  // k^2 mod 2n, exact for every n
    const Complex c = unit(square, 2 * n);
    chirp.push_back(t.sign < 0 ? std::conj(c) : c);
    square = (square + 2 * k + 1) % (2 * n);
  }
  for (size_t k = 0; k < chirp.size(); ++k)
    kernel[k] = kernel[(kernel.size() - k) % kernel.size()] = std::conj(chirp[k]);
  transform_on_host(kernel);
  for (Complex& c : kernel) c /= static_cast<double>(padded);
  const Operand spectrum = call.temporary(Storage::kC64, {t.rows * padded});
  emit_transform(call,
                 {.in = t.in,
                  .out = spectrum,
                  .rows = t.rows,
                  .n = padded,
                  .loaded = n,
                  .stored = padded,
                  .load_factors = chirp,
                  .store_factors = kernel},
                 false);
  emit_transform(call,
                 {.in = spectrum,
                  .out = t.out,
                  .rows = t.rows,
                  .n = padded,
                  .loaded = padded,
                  .stored = n,
                  .sign = 1,
                  .scale = t.scale,
                  .store_factors = chirp},
                 false);
}

double scale_of(const ops::FftAttrs& attrs, int64_t n) {
  const auto size = static_cast<double>(n);
  switch (attrs.norm) {
    case ops::FftNorm::kBackward: return 1;
    case ops::FftNorm::kForward: return attrs.inverse ? 1 / size : 1;
    case ops::FftNorm::kOrtho: return 1 / std::sqrt(size);
    case ops::FftNorm::kForwardScaled: return attrs.inverse ? 1 : 1 / size;
  }
  fail(ErrorKind::kInternal, "Unknown FFT norm.");
}

}  // namespace

void lower_fft(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FftAttrs>();
  const TensorType& x = call.input_type(0);
  const int64_t last = x.dim(x.rank() - 1).value(), n = is_complex(x.dtype) ? last : last / 2;
  const Transform t{.in = call.read(0),
                    .out = call.write(0),
                    .rows = x.shape.num_elements() / last,
                    .n = n,
                    .loaded = n,
                    .stored = n,
                    .sign = attrs.inverse ? 1.0f : -1.0f,
                    .scale = static_cast<float>(scale_of(attrs, n))};
  if (n == 1 || !small_primes(n).empty())
    emit_transform(call, t, true);
  else
    emit_any_length(call, t);
}

}  // namespace rlx::webgpu
