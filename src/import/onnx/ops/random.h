// Random numbers of importers.
#pragma once

#include <cstdint>
#include <random>

namespace rlx::onnx {

// NumPy's RandomState, which ONNX's reference implementation draws from: a model that names a seed gets the numbers of
// the reference. The engine of the standard library is that generator, bit by bit.
constexpr int64_t kMaxDrawn = 1 << 24;  // numbers for one tensor: they are drawn when a model is imported

class NumPyRandom {
 public:
  explicit NumPyRandom(uint32_t seed) : engine_(seed) {}

  double uniform();  // [0, 1), 53 bits
  double normal();   // the polar method, two at a time

 private:
  std::mt19937 engine_;
  bool has_spare_ = false;
  double spare_ = 0;
};

}  // namespace rlx::onnx
