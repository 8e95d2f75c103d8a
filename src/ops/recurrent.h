// What type rule and kernels ask of lstm, gru and rnn alike.
#pragma once

#include "rlx/ops/recurrent.h"

namespace rlx::ops {

enum class Cell { kLstm, kGru, kRnn };

struct Recurrent {
  Cell cell;
  int64_t hidden, layers;
  RecurrentDirection direction;
  bool bias, carry;
  bool peephole = false, reset_after = true, relu = false;

  int64_t directions() const { return direction == RecurrentDirection::kBidirectional ? 2 : 1; }
  int64_t cells() const { return layers * directions(); }
  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
  int64_t rows() const { return gates() * hidden; }  // of a cell's weights
  int64_t states() const { return cell == Cell::kLstm ? 2 : 1; }
  // Does cell number `index` run from the last step to the first?
  bool backwards(int64_t index) const {
    return direction == RecurrentDirection::kReverse || (directions() == 2 && index % 2 == 1);
  }
  int64_t width(int64_t layer, int64_t in) const { return layer == 0 ? in : directions() * hidden; }
  // Where in w_input the weights of a cell begin.
  int64_t input_weights(int64_t index, int64_t in) const {
    const int64_t d = directions(), layer = index / d;
    return rows() * (layer == 0 ? index * in : d * in + (index - d) * d * hidden);
  }

  // Operands, -1 where it has none; h is operand state(), c the one behind it.
  int64_t bias_operand() const { return bias ? 3 : -1; }
  int64_t state_operand() const { return carry ? 3 + bias : -1; }
  int64_t peephole_operand() const { return peephole ? 3 + bias + (carry ? states() : 0) : -1; }
  int64_t operands() const { return 3 + bias + (carry ? states() : 0) + peephole; }
};

inline Recurrent recurrent_of(const LstmAttrs& a) {
  return {Cell::kLstm, a.hidden_size, a.num_layers, a.direction, a.bias, a.carry, a.peephole};
}
inline Recurrent recurrent_of(const GruAttrs& a) {
  return {Cell::kGru, a.hidden_size, a.num_layers, a.direction, a.bias, a.carry, false, a.reset_after};
}
inline Recurrent recurrent_of(const RnnAttrs& a) {
  return {Cell::kRnn, a.hidden_size, a.num_layers, a.direction, a.bias, a.carry, false, true, a.relu};
}

}  // namespace rlx::ops
