// How a transform of N points is carried out: a chain of small radices, or as a convolution where N has a large prime
// factor. Plans are made when a graph is compiled and kept for the life of the process: N alone decides, and twiddle
// factors take longer to compute than a transform.
#pragma once

#include <cstdint>
#include <vector>

namespace rlx::cpu::fourier {

// One pass of the Stockham algorithm: x is [radix][m][s], y is [m][radix][s].
struct Stage {
  int64_t radix, m;
  int64_t twiddles;  // where they begin: real parts [radix - 1][m], then imaginary ones
};

struct Plan {
  int64_t n = 0;
  std::vector<Stage> stages;
  std::vector<float> twiddles;
  // Bluestein: a convolution of length inner->n with a chirp.
  const Plan* inner = nullptr;
  std::vector<float> chirp;   // n real parts, n imaginary ones
  std::vector<float> kernel;  // the spectrum of the conjugate chirp, divided by the length

  int64_t width() const { return inner ? inner->n : n; }  // points that a transform works on
};

// Makes the plan if there is none yet; n >= 1.
const Plan& make_plan(int64_t n);
// One that was made: takes no lock and allocates nothing.
const Plan& find_plan(int64_t n);

}  // namespace rlx::cpu::fourier
