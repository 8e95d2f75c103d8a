#include "rlx/ops/fft.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  require(x.dtype == DType::F32 || x.dtype == DType::F64 || x.dtype == DType::C64, "Operand dtype (", x.dtype,
          ") is not f32, f64 or c64.");
  require(x.rank() >= 1, "Operand has rank 0, and so no last axis.");
  const Dim& last = x.dim(x.rank() - 1);
  if (!last.is_static()) return x;
  require(last.value() >= 1, "Last axis (0) is empty.");
  require(is_complex(x.dtype) || last.value() % 2 == 0, "Last axis (", last,
          ") is odd; it holds N real parts, then N imaginary parts.");
  return x;
}

constinit const Op<FftAttrs> fft{
    {.name = "fft",
     .category = "FFT",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = [](const Attrs&, int64_t rank, int64_t axis) { return axis == rank - 1; },
     .traits = {.in_place = 0b1, .extent = ExtentRule::kFull},
     .doc = "Discrete Fourier transform along the last axis, of any length."}};

}  // namespace rlx::ops
