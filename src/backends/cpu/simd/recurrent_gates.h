// A step of recurrent cells behind the products, vectorised: n values of one row of the batch.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// gates: i, f, g, o of n each. peephole is null or [3][n]. c is updated, h written.
void lstm_gates(const float* gates, const float* peephole, int64_t n, float* c, float* h);
// x and hidden: the products with their biases, r, z, n of n each; h is updated.
void gru_gates(const float* x, const float* hidden, int64_t n, float* h);
// The reset that comes before the hidden product: to = sigmoid(x + hidden) * h, of the gate r.
void gru_reset(const float* x, const float* hidden, const float* h, int64_t n, float* to);
// What follows: x and hidden hold z; fresh is the sum for n.
void gru_blend(const float* x, const float* hidden, const float* fresh, int64_t n, float* h);
void rnn_gates(const float* sums, bool relu, int64_t n, float* h);

}  // namespace rlx::cpu
