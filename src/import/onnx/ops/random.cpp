// Random numbers. They are drawn while a model is imported, by the seed that the node names (0 when it names none), and
// are constants from then on: every run sees the same ones.
#include "import/onnx/ops/random.h"

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "rlx/log.h"

namespace rlx::onnx {

double NumPyRandom::uniform() {
  const uint32_t high = engine_() >> 5, low = engine_() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double NumPyRandom::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double x = 0, y = 0, r = 0;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    r = x * x + y * y;
  } while (r >= 1 || r == 0);
  const double f = std::sqrt(-2 * std::log(r) / r);
  spare_ = f * x;
  has_spare_ = true;
  return f * y;
}

namespace {

NumPyRandom generator(OnnxNode& n) {
  log(LogLevel::kInfo, str("Random numbers of ", n.label(), " are drawn once: every run sees the same ones."));
  return NumPyRandom(
      static_cast<uint32_t>(saturate_to_int(n.attr("seed", 0.0f), 0, std::numeric_limits<uint32_t>::max())));
}

template <class F>
Value drawn(OnnxNode& n, const std::vector<int64_t>& sizes, DType dtype, F draw) {
  for (const int64_t s : sizes) require(s >= 0, "The shape ", sizes, " has a negative size.");
  const int64_t count = product(sizes);
  require(count <= kMaxDrawn, "A tensor of ", count, " random numbers is too large.");
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = draw();
  return n.constant(Tensor::from_doubles(dtype, sizes, values));
}

ElemType elem_of_like(OnnxNode& n) { return static_cast<ElemType>(n.attr("dtype", static_cast<int64_t>(n.elem(0)))); }

Item uniform_of(OnnxNode& n, const std::vector<int64_t>& sizes, ElemType elem) {
  const double low = n.attr("low", 0.0f), high = n.attr("high", 1.0f);
  NumPyRandom random = generator(n);
  return n.result(drawn(n, sizes, storage_of(elem), [&] { return low + (high - low) * random.uniform(); }), elem);
}

Item normal_of(OnnxNode& n, const std::vector<int64_t>& sizes, ElemType elem) {
  const double mean = n.attr("mean", 0.0f), scale = n.attr("scale", 1.0f);
  NumPyRandom random = generator(n);
  return n.result(drawn(n, sizes, storage_of(elem), [&] { return mean + scale * random.normal(); }), elem);
}

template <Item (*of)(OnnxNode&, const std::vector<int64_t>&, ElemType)>
Built shaped(OnnxNode& n) {
  return of(n, n.required_ints("shape"), static_cast<ElemType>(n.attr("dtype", 1)));
}

template <Item (*of)(OnnxNode&, const std::vector<int64_t>&, ElemType)>
Built like(OnnxNode& n) {
  return of(n, n.input(0).shape().sizes(), elem_of_like(n));
}

// 1 with the probability that the operand gives.
Built bernoulli(OnnxNode& n) {
  const Value p = n.input(0);
  const ElemType to = elem_of_like(n);
  NumPyRandom random = generator(n);
  const Value u = drawn(n, p.shape().sizes(), DType::F64, [&] { return random.uniform(); });
  return n.result(cast_to(ops::lt(u, cast_to(p, DType::F64)), storage_of(to)), to);
}

// Log probabilities, not normalised: the class whose running sum of probabilities first exceeds the number drawn.
Built multinomial(OnnxNode& n) {
  const Value logits = n.input(0);
  require(logits.shape().rank() == 2, "A matrix is expected, not a tensor of rank ", logits.shape().rank(), ".");
  const int64_t batch = logits.shape()[0].value(), classes = logits.shape()[1].value();
  const int64_t count = n.attr("sample_size", 1);
  const auto to = static_cast<ElemType>(n.attr("dtype", 6));
  NumPyRandom random = generator(n);
  const Value u = drawn(n, {batch, count, 1}, DType::F32, [&] { return random.uniform(); });
  const Value p = ops::softmax(cast_to(logits, DType::F32), {.axis = 1});
  const Value sums = unsqueeze(ops::cumsum(p, {.axis = 1}), {1});
  const Value passed = cast_to(ops::le(sums, u), DType::I64);
  const Value at = ops::reduce_sum(passed, {.axes = {2}, .keep_dim = false});
  const Value last = n.scalar(static_cast<double>(classes - 1), DType::I64);  // sums may end a little below 1
  return n.result(cast_to(ops::min(at, last), storage_of(to)), to);
}

}  // namespace

Rows random_rows() {
  return {
      {"Bernoulli", 15, bernoulli},
      {"Multinomial", 7, multinomial},
      {"RandomNormal", 1, shaped<normal_of>},
      {"RandomNormalLike", 1, like<normal_of>},
      {"RandomUniform", 1, shaped<uniform_of>},
      {"RandomUniformLike", 1, like<uniform_of>},
  };
}

}  // namespace rlx::onnx
