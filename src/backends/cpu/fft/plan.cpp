#include "backends/cpu/fft/plan.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <memory>
#include <mutex>
#include <numbers>

#include "rlx/error.h"

namespace rlx::cpu::fourier {

namespace {

using Complex = std::complex<double>;

// e^(-2 pi i * numerator / denominator)
Complex unit(int64_t numerator, int64_t denominator) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

// Fours first: once the stride is a vector long all passes are vectorised, and they get there fastest.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> radices;
  for (const int64_t r : {4, 2, 5, 3, 7, 11, 13})
    for (; n % r == 0; n /= r) radices.push_back(r);
  if (n != 1) radices.clear();
  return radices;
}

void add_stages(Plan& plan, const std::vector<int64_t>& radices) {
  int64_t n = plan.n;
  for (const int64_t r : radices) {
    const int64_t m = n / r;
    plan.stages.push_back({r, m, static_cast<int64_t>(plan.twiddles.size())});
    std::vector<float> im;
    for (int64_t j = 1; j < r; ++j)
      for (int64_t p = 0; p < m; ++p) {
        const Complex w = unit(j * p, n);
        plan.twiddles.push_back(static_cast<float>(w.real()));
        im.push_back(static_cast<float>(w.imag()));
      }
    plan.twiddles.insert(plan.twiddles.end(), im.begin(), im.end());
    n = m;
  }
}

// In place, a power of two: only for the spectrum of the chirp.
void transform(std::vector<Complex>& x) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j |= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < n; half *= 2)
    for (size_t k = 0; k < half; ++k) {
      const Complex w = unit(static_cast<int64_t>(k), static_cast<int64_t>(2 * half));
      for (size_t first = k; first < n; first += 2 * half) {
        const Complex even = x[first], odd = x[first + half] * w;
        x[first] = even + odd;
        x[first + half] = even - odd;
      }
    }
}

// nk = (n^2 + k^2 - (k - n)^2) / 2
void add_chirp(Plan& plan) {
  const int64_t n = plan.n, length = plan.inner->n;
  std::vector<Complex> chirp, kernel(static_cast<size_t>(length));
  int64_t square = 0;  // k^2 mod 2n, exact
  for (int64_t k = 0; k < n; ++k) {
    chirp.push_back(unit(square, 2 * n));
    square = (square + 2 * k + 1) % (2 * n);
  }
  for (size_t k = 0; k < chirp.size(); ++k) {
    kernel[k] = std::conj(chirp[k]);
    if (k > 0) kernel[kernel.size() - k] = kernel[k];
  }
  transform(kernel);
  const auto split = [](const std::vector<Complex>& from, double scale) {
    std::vector<float> to;
    for (const Complex& c : from) to.push_back(static_cast<float>(c.real() * scale));
    for (const Complex& c : from) to.push_back(static_cast<float>(c.imag() * scale));
    return to;
  };
  plan.chirp = split(chirp, 1);
  plan.kernel = split(kernel, 1 / static_cast<double>(length));
}

// A list that only grows, so that readers need no lock.
struct Entry {
  Plan plan;
  Entry* next = nullptr;
};
std::atomic<Entry*> first_entry = nullptr;
std::mutex making;

const Plan* find(int64_t n) {
  for (const Entry* e = first_entry.load(std::memory_order_acquire); e != nullptr; e = e->next)
    if (e->plan.n == n) return &e->plan;
  return nullptr;
}

const Plan& make(int64_t n) {  // the lock is held
  if (const Plan* plan = find(n)) return *plan;
  auto entry = std::make_unique<Entry>();
  Plan& plan = entry->plan;
  plan.n = n;
  const std::vector<int64_t> radices = radices_of(n);
  if (n == 1 || !radices.empty()) {
    add_stages(plan, radices);
  } else {
    plan.inner = &make(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1))));
    add_chirp(plan);
  }
  entry->next = first_entry.load(std::memory_order_relaxed);
  first_entry.store(entry.get(), std::memory_order_release);
  return entry.release()->plan;
}

}  // namespace

const Plan& make_plan(int64_t n) {
  const std::lock_guard lock(making);
  return make(n);
}

const Plan& find_plan(int64_t n) {
  const Plan* plan = find(n);
  RLX_ASSERT(plan != nullptr);
  return *plan;
}

}  // namespace rlx::cpu::fourier
