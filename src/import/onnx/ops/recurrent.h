// What the two ways of building LSTM, GRU and RNN share.
#pragma once

#include "import/onnx/node.h"
#include "rlx/ops.h"

namespace rlx::onnx {

enum class Cell { kRnn, kGru, kLstm };

// An activation.
struct Function {
  std::string name;  // lower case
  float alpha = 0, beta = 0;
};

struct Layer {
  Cell cell;
  int64_t gates;       // blocks of rows in the weights
  int64_t directions;  // 1 or 2
  ops::RecurrentDirection direction;
  int64_t hidden;
  std::vector<Function> functions;  // those of the first direction, then those of the second
  int64_t functions_each;
  float clip;  // 0: none
  bool batch_first, linear_before_reset, input_forget;
};

Value swap_first_two(const Value& x);
// Input i as [directions, batch, hidden], or zeros.
Value state_of(OnnxNode& n, const Layer& l, int64_t i, const Dim& batch, DType dtype);

// Step by step with `scan`: Y, Y_h and, of an LSTM, Y_c.
Values by_steps(OnnxNode& n, const Layer& l);

}  // namespace rlx::onnx
