#include "generate/sampling.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx::generate {

namespace {

constexpr float kNever = -1e30f;  // the score of a token that is not to be drawn

Tensor u32(std::vector<int64_t> sizes, std::vector<uint32_t> values) {
  return Tensor::of<uint32_t>(DType::U32, std::move(sizes), values);
}

}  // namespace

void check(const SamplingOptions& o) {
  require(std::isfinite(o.temperature) && o.temperature >= 0, "The temperature (", o.temperature, ") is negative.");
  require(o.top_k >= 0, "top-k (", o.top_k, ") is negative.");
  require(o.top_p >= 0 && o.top_p <= 1, "top-p (", o.top_p, ") is not between 0 and 1.");
  require(o.min_p >= 0 && o.min_p <= 1, "min-p (", o.min_p, ") is not between 0 and 1.");
  require(std::isfinite(o.repetition_penalty) && o.repetition_penalty > 0, "The repetition penalty (",
          o.repetition_penalty, ") is not positive.");
  require(std::isfinite(o.presence_penalty), "The presence penalty is not a finite number.");
  require(!o.has_penalties() || (o.penalty_window >= 1 && o.penalty_window <= 4096), "The penalty window (",
          o.penalty_window, ") is not between 1 and 4096.");
}

Value sample(Graph& g, Value scores, const SamplingOptions& o) {
  const Dim batch = scores.shape()[0];
  const auto number = [&](float v) { return g.constant(Tensor::f32({}, {v})); };
  const Value rng = g.state("rng", {{4}, DType::U32});
  std::optional<Value> recent;
  if (o.has_penalties()) {
    // Tokens that occur twice are scored twice, alike.
    recent = g.state("recent", {{batch, o.penalty_window}, DType::I32});
    const Value old = ops::gather_elements(scores, *recent, {.axis = 1});
    const Value divided =
        ops::where(ops::gt(old, number(0)), old / number(o.repetition_penalty), old * number(o.repetition_penalty));
    scores = ops::scatter_elements(scores, *recent, divided - number(o.presence_penalty), {.axis = 1});
  }
  Value token = scores;
  if (o.is_greedy()) {
    token = ops::argmax(scores, {.axis = 1});
  } else {
    if (o.min_p > 0) {
      const Value least =
          ops::reduce_max(scores, {.axes = {1}, .keep_dim = true}) + number(o.temperature * std::log(o.min_p));
      scores = ops::where(ops::ge(scores, least), scores, number(kNever));
    }
    token = ops::sample(scores, rng, {.top_k = o.top_k, .top_p = o.top_p, .temperature = o.temperature});
  }
  if (recent) {
    const Value step = ops::cast(ops::narrow(rng, {.axis = 0, .start = 2, .len = 1}), {.to = DType::I32});
    const Value slot = ops::mod(step, g.constant(Tensor::i32({1}, {static_cast<int32_t>(o.penalty_window)})));
    const Value slots = ops::expand(ops::reshape(slot, {.new_shape = {1, 1}}), {.target_shape = {batch, 1}});
    g.update(*recent,
             ops::scatter_elements(*recent, slots, ops::reshape(token, {.new_shape = {batch, 1}}), {.axis = 1}));
  }
  g.update(rng, rng + g.constant(u32({4}, {0, 0, 1, 0})));
  return token;
}

void begin_sampling(Executable& executable, const SamplingOptions& o, std::span<const std::span<const int32_t>> recent,
                    int64_t draws) {
  executable.set_state("rng", u32({4}, {static_cast<uint32_t>(o.seed), static_cast<uint32_t>(o.seed >> 32),
                                        static_cast<uint32_t>(draws), 0}));
  if (!o.has_penalties()) return;
  // Draw n takes slot n % window: the oldest. Where there are fewer tokens than slots, one stands in all that are over.
  const auto batch = static_cast<int64_t>(recent.size()), window = o.penalty_window;
  Tensor slots(DType::I32, {batch, window});
  for (int64_t s = 0; s < batch; ++s) {
    const std::span<const int32_t> tokens = recent[static_cast<size_t>(s)];
    const auto size = static_cast<int64_t>(tokens.size());
    for (int64_t i = 0; i < window && size > 0; ++i)
      slots.mutable_values<int32_t>()[static_cast<size_t>(s * window + (draws + i) % window)] =
          tokens[static_cast<size_t>(std::max(size - window + i, std::max<int64_t>(size - window, 0)))];
  }
  executable.set_state("recent", slots);
}

}  // namespace rlx::generate
