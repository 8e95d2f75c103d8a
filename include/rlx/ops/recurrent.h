// Recurrent layers over x [batch, seq, in] (spec 10, 4.21). A stack of `num_layers`, each in one or two directions;
// operands, with H = hidden_size, G gates, D directions, L layers:
//
//   x         [batch, seq, in]
//   w_input   [n]: all input weights in a row, layer by layer, in it direction by direction, each [G * H, width]; the
//             width is `in` for the first layer and D * H for the others
//   w_hidden  [L * D, G * H, H]
//   bias      [L * D, 2, G * H], with `bias`: of the input and of the hidden product
//   h         [L * D, batch, H], with `carry`: the states before the first step, else zeros; lstm also takes c
//   peephole  [L * D, 3, H], with `peephole`: what the gates i, f and o see of the cell
//
// Results: y [batch, seq, D * H], both directions side by side; the last h and, of lstm, the last c, as the operands.
// Orders of gates are PyTorch's; ONNX's (i, o, f, c and z, r, h) are a permutation of the weights' rows.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

enum class RecurrentDirection : int32_t { kForward, kReverse, kBidirectional };
constexpr auto names_of(RecurrentDirection) {
  return std::array<std::string_view, 3>{"forward", "reverse", "bidirectional"};
}

struct LstmAttrs {
  int64_t hidden_size = 0, num_layers = 1;
  RecurrentDirection direction = RecurrentDirection::kForward;
  bool bias = true, carry = false;
  bool peephole = false;
  static constexpr auto fields = std::tuple{field("hidden_size", &LstmAttrs::hidden_size),
                                            field("num_layers", &LstmAttrs::num_layers),
                                            field("direction", &LstmAttrs::direction),
                                            field("bias", &LstmAttrs::bias),
                                            field("carry", &LstmAttrs::carry),
                                            field("peephole", &LstmAttrs::peephole)};
};
// Gates i, f, g, o: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').
extern const Op<LstmAttrs> lstm;

struct GruAttrs {
  int64_t hidden_size = 0, num_layers = 1;
  RecurrentDirection direction = RecurrentDirection::kForward;
  bool bias = true, carry = false;
  bool reset_after = true;  // r scales the hidden product with its bias (PyTorch), not the state before it
  static constexpr auto fields = std::tuple{field("hidden_size", &GruAttrs::hidden_size),
                                            field("num_layers", &GruAttrs::num_layers),
                                            field("direction", &GruAttrs::direction),
                                            field("bias", &GruAttrs::bias),
                                            field("carry", &GruAttrs::carry),
                                            field("reset_after", &GruAttrs::reset_after)};
};
// Gates r, z, n: h' = (1 - sigmoid(z)) tanh(n) + sigmoid(z) h.
extern const Op<GruAttrs> gru;

struct RnnAttrs {
  int64_t hidden_size = 0, num_layers = 1;
  RecurrentDirection direction = RecurrentDirection::kForward;
  bool bias = true, carry = false;
  bool relu = false;  // instead of tanh
  static constexpr auto fields = std::tuple{field("hidden_size", &RnnAttrs::hidden_size),
                                            field("num_layers", &RnnAttrs::num_layers),
                                            field("direction", &RnnAttrs::direction),
                                            field("bias", &RnnAttrs::bias),
                                            field("carry", &RnnAttrs::carry),
                                            field("relu", &RnnAttrs::relu)};
};
// h' = tanh(w_input x + w_hidden h + bias)
extern const Op<RnnAttrs> rnn;

}  // namespace rlx::ops
