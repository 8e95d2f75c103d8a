#include "rlx/ops/sequence_state.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_scan(const InferCall& call) {
  const int64_t n = call.attrs<SelectiveScanAttrs>().state_size;
  require(n >= 1, "state_size (", n, ") is less than 1.");
  const TensorType& x = call.input(0);
  require_float(x);
  require_rank(x, 3, "Operand");
  const Dim &b = x.dim(0), &s = x.dim(1), &h = x.dim(2);
  for (int64_t i = 1; i < 5; ++i) require_same_dtype(x, call.input(i));
  require_shape(call.input(1), {b, s, h}, "Delta");
  require_shape(call.input(2), {h, n}, "A");
  require_shape(call.input(3), {b, s, n}, "B");
  require_shape(call.input(4), {b, s, n}, "C");
  TensorType state{{b, h, n}, x.dtype};
  if (call.num_inputs() == 6) {
    require_float(call.input(5), "State");
    require_shape(call.input(5), state.shape, "State");
    state = call.input(5);  // a State is updated by a value of its own type
  }
  return {x, state};
}

static Types infer_delta_net(const InferCall& call) {
  const auto& a = call.attrs<GatedDeltaNetAttrs>();
  const int64_t n = a.state_size;
  require(n >= 1, "state_size (", n, ") is less than 1.");
  const TensorType& q = call.input(0);
  require_float(q);
  require_rank(q, 4, "Query");
  require_same_dim(q.dim(3), n, "Width of the query and state_size");
  for (int64_t i = 1; i < 5; ++i) require_same_dtype(q, call.input(i));
  require_shape(call.input(1), q.shape, "Key");
  require_shape(call.input(2), q.shape, "Value");
  require_shape(call.input(3), {q.dim(0), q.dim(1), q.dim(2)}, "g");
  require_shape(call.input(4), {q.dim(0), q.dim(1), q.dim(2)}, "beta");
  require(a.carry_state == (call.num_inputs() == 6), "carry_state (", a.carry_state, ") does not fit ",
          call.num_inputs(), " operands.");
  if (!a.carry_state) return q;
  require_float(call.input(5), "State");
  require_shape(call.input(5), {q.dim(0), q.dim(2), n, n}, "State");
  return {q, call.input(5)};
}

static Types infer_conv(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1), &state = call.input(2);
  require_float(x);
  require_rank(x, 3, "Operand");
  require_same_dtype(x, w);
  require_same_dtype(x, state);
  require_rank(w, 2, "Weight");
  require_same_dim(w.dim(0), x.dim(2), "Channels of weight and operand");
  require(w.dim(1).is_static() && w.dim(1).value() >= 2, "Weight size (", w.dim(1), ") is not at least 2.");
  require_shape(state, {x.dim(0), w.dim(1).value() - 1, x.dim(2)}, "State");
  if (call.num_inputs() == 4) {
    require_dtype(call.input(3), DType::I32, "Rows in use");
    require_shape(call.input(3), {x.dim(0)}, "Rows in use");
  }
  return {x, state};
}

static Types infer_append(const InferCall& call) {
  const TensorType &cache = call.input(0), &rows = call.input(1), &len = call.input(2);
  require(cache.rank() >= 2, "Cache rank (", cache.rank(), ") is less than 2.");
  require_same_dtype(cache, rows);
  require_rank(rows, cache.rank(), "Row");
  const int64_t axis = normalize_axis(call.attrs<KvAppendAttrs>().axis, cache.rank());
  require(axis >= 1, "Axis (", axis, ") is the batch axis.");
  for (int64_t i = 0; i < cache.rank(); ++i)
    if (i != axis) require_same_dim(cache.dim(i), rows.dim(i), str("Sizes of cache and rows along axis ", i));
  if (cache.dim(axis).is_static() && rows.dim(axis).is_static())
    require(rows.dim(axis).value() <= cache.dim(axis).value(), "Rows (", rows.dim(axis),
            ") are more than the cache holds (", cache.dim(axis), ").");
  require_dtype(len, DType::I32, "Length");
  require_shape(len, {cache.dim(0)}, "Length");
  return cache;
}

static bool mixes_sequence(const Attrs&, int64_t, int64_t axis) { return axis == 1; }

constinit const Op<SelectiveScanAttrs> selective_scan{
    {.name = "selective_scan",
     .category = "Sequence state",
     .min_inputs = 5,
     .max_inputs = 6,
     .infer = infer_scan,
     .mixes_axis = mixes_sequence,
     .traits = {.state_operand = 5, .state_result = 1, .extent = ExtentRule::kOwnBound},
     .doc = "The state-space recurrence S = exp(delta A) S + delta B x, y = C S along a sequence; y and the last S."}};

constinit const Op<GatedDeltaNetAttrs> gated_delta_net{
    {.name = "gated_delta_net",
     .category = "Sequence state",
     .min_inputs = 5,
     .max_inputs = 6,
     .infer = infer_delta_net,
     .mixes_axis = mixes_sequence,
     .traits = {.state_operand = 5, .state_result = 1, .extent = ExtentRule::kOwnBound},
     .doc = "The gated delta rule S = exp(g) S, S += k (v - S^T k)^T beta, o = S^T q / sqrt(n) along a sequence."}};

constinit const Op<NoAttrs> causal_conv{
    {.name = "causal_conv",
     .category = "Sequence state",
     .min_inputs = 3,
     .max_inputs = 4,
     .infer = infer_conv,
     .mixes_axis = mixes_sequence,
     .traits = {.state_operand = 2, .state_result = 1, .extent = ExtentRule::kOwnBound},
     .doc = "A convolution along a sequence, channel by channel, that sees rows before only; the last rows are its "
            "state."}};

constinit const Op<KvAppendAttrs> kv_append{
    {.name = "kv_append",
     .category = "Sequence state",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_append,
     .traits = {.state_operand = 0, .state_result = 0, .extent = ExtentRule::kOwnBound},
     .doc = "The cache with new rows written at each batch's length along one axis."}};

}  // namespace rlx::ops
