#include "ops/recurrent.h"

#include "ops/infer.h"

namespace rlx::ops {

template <class A>
static Types infer(const InferCall& call) {
  const Recurrent r = recurrent_of(call.attrs<A>());
  require(r.hidden >= 1, "hidden_size (", r.hidden, ") is less than 1.");
  require(r.layers >= 1, "num_layers (", r.layers, ") is less than 1.");
  require(call.num_inputs() == r.operands(), "Operands (", call.num_inputs(), ") are not the ", r.operands(),
          " that bias, carry and peephole ask for.");
  const TensorType& x = call.input(0);
  require_float(x);
  require_rank(x, 3, "Operand");
  for (int64_t i = 1; i < call.num_inputs(); ++i) require_same_dtype(x, call.input(i));
  SymbolTable& symbols = call.symbols;
  const int64_t d = r.directions(), deeper = checked_mul(checked_mul(r.layers - 1, d), checked_mul(d, r.hidden));
  const Dim columns = symbols.add(symbols.mul(x.dim(2), d), deeper);
  require_shape(call.input(1), {symbols.mul(columns, r.rows())}, "Input weight");
  require_shape(call.input(2), {r.cells(), r.rows(), r.hidden}, "Hidden weight");
  const TensorType state{{r.cells(), x.dim(0), r.hidden}, x.dtype};
  if (r.bias) require_shape(call.input(r.bias_operand()), {r.cells(), 2, r.rows()}, "Bias");
  if (r.carry)
    for (int64_t i = 0; i < r.states(); ++i) require_shape(call.input(r.state_operand() + i), state.shape, "State");
  if (r.peephole) require_shape(call.input(r.peephole_operand()), {r.cells(), 3, r.hidden}, "Peephole weight");
  Types types = {TensorType{{x.dim(0), x.dim(1), d * r.hidden}, x.dtype}};
  for (int64_t i = 0; i < r.states(); ++i) types.push_back(state);
  return types;
}

static bool mixes_all_but_batch(const Attrs&, int64_t, int64_t axis) { return axis >= 1; }

template <class A>
static constexpr OpDef definition(std::string_view name, int max_inputs, std::string_view doc) {
  return {.name = name,
          .category = "Sequence state",
          .min_inputs = 3,
          .max_inputs = max_inputs,
          .infer = infer<A>,
          .mixes_axis = mixes_all_but_batch,
          // The batch is not the outermost axis of the states.
          .traits = {.compute_heavy = true, .fusion_boundary = true, .extent = ExtentRule::kNever},
          .doc = doc};
}

constinit const Op<GruAttrs> gru{definition<GruAttrs>(
    "gru", 5,
    "Gated recurrent units over x [batch, seq, in], gates r, z, n; layers and directions packed; y and the last h.")};

constinit const Op<LstmAttrs> lstm{definition<LstmAttrs>(
    "lstm", 7,
    "Long short-term memory over x [batch, seq, in], gates i, f, g, o; layers and directions packed; y, the last h and "
    "c.")};

constinit const Op<RnnAttrs> rnn{definition<RnnAttrs>(
    "rnn", 5,
    "h = tanh(Wx + Rh + b), or relu, over x [batch, seq, in]; layers and directions packed; y and the last h.")};

}  // namespace rlx::ops
