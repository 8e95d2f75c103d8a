#include "random.h"

#include <cmath>
#include <complex>
#include <new>
#include <numbers>

#include "ir/text.h"

namespace rlx::cli {

namespace {

class Splitmix64 {
 public:
  explicit Splitmix64(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1): its log is finite
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace

Tensor random_tensor(uint64_t seed, std::string_view name, DType dtype, std::vector<int64_t> sizes) {
  Splitmix64 random(seed + stable_hash(name));
  if (is_complex(dtype)) {
    Tensor t(dtype, std::move(sizes));
    for (auto& z : t.mutable_values<std::complex<float>>()) {
      const auto re = static_cast<float>(random.normal());
      z = {re, static_cast<float>(random.normal())};
    }
    return t;
  }
  std::vector<double> values;
  const int64_t bytes = checked_mul(product(sizes), 8);
  try {
    values.resize(static_cast<size_t>(bytes / 8));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kMemory, str("Random values for '", name, "' (", TensorType{Shape(sizes), dtype}, ") need ", bytes,
                                 " bytes of memory, which are not there."));
  }
  for (double& x : values) {
    if (is_float(dtype))
      x = random.normal();
    else
      x = static_cast<double>(random.bits() % (dtype == DType::Bool ? 2 : 10));
  }
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

}  // namespace rlx::cli
