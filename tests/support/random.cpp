#include "support/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace rlx::test {

uint64_t Rng::bits() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Rng::uniform(double low, double high) {
  return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
}

double Rng::normal() {
  const double u = 1.0 - uniform(0, 1);  // (0, 1]
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * uniform(0, 1));
}

int64_t Rng::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
}

Tensor Rng::tensor(std::vector<int64_t> sizes, DType dtype) {
  if (dtype == DType::Bool) return integers(std::move(sizes), 0, 1, dtype);
  if (is_int(dtype))
    return is_signed(dtype) ? integers(std::move(sizes), -100, 100, dtype) : integers(std::move(sizes), 0, 200, dtype);
  Tensor t(dtype, std::move(sizes));
  if (dtype == DType::C64) {
    for (auto& c : t.mutable_values<std::complex<float>>())
      c = {static_cast<float>(normal()), static_cast<float>(normal())};
    return t;
  }
  std::vector<double> values(static_cast<size_t>(t.num_elements()));
  for (double& v : values) v = normal();
  return Tensor::from_doubles(dtype, t.sizes(), values);
}

Tensor Rng::uniform_tensor(std::vector<int64_t> sizes, double low, double high, DType dtype) {
  std::vector<double> values(static_cast<size_t>(product(sizes)));
  for (double& v : values) v = uniform(low, high);
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

Tensor Rng::integers(std::vector<int64_t> sizes, int64_t low, int64_t high, DType dtype) {
  std::vector<double> values(static_cast<size_t>(product(sizes)));
  for (double& v : values) v = static_cast<double>(integer(low, high));
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

std::vector<int64_t> Rng::shape(const ShapeOptions& options) {
  std::vector<int64_t> sizes(static_cast<size_t>(integer(options.min_rank, options.max_rank)));
  for (int64_t& size : sizes) size = integer(options.min_dim, options.max_dim);
  return sizes;
}

uint64_t first_seed() {
  const char* only = std::getenv("RLX_SEED");
  return only ? std::strtoull(only, nullptr, 10) : 1;
}

void for_random(int count, const std::function<bool()>& enough, const std::function<void(Rng&)>& body) {
  const uint64_t first = first_seed(), most = first + 10 * static_cast<uint64_t>(count);
  if (std::getenv("RLX_SEED")) count = 1;
  if (const char* many = std::getenv("RLX_SEEDS")) count = std::atoi(many);
  const uint64_t end = first + static_cast<uint64_t>(count);
  for (uint64_t seed = first; seed < end || (seed < most && !enough()); ++seed) {
    SCOPED_TRACE("repeat with RLX_SEED=" + std::to_string(seed));
    Rng rng(seed);
    body(rng);
    if (testing::Test::HasFailure()) return;
  }
}

void for_random(int count, const std::function<void(Rng&)>& body) {
  for_random(
      count, [] { return true; }, body);
}

}  // namespace rlx::test
