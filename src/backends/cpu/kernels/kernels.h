// Every kernel of the cpu backend, with what its row in table.cpp says about it.
#pragma once

#include "backends/host/call.h"

namespace rlx::cpu {

using host::Call;
using host::Signature;

// Elements that are worth a thread of their own in a loop that does a few operations per element.
inline constexpr int64_t kGrain = 16384;

// The floats that kernels compute in f32.
inline bool is_small_float(DType t) { return t == DType::F32 || t == DType::F16 || t == DType::BF16; }

// supports: these operands are F32, F16 or BF16.
template <int... kOperands>
bool floats(const Signature& s) {
  return (is_small_float(s.input(kOperands).dtype) && ...);
}

// Products: B packed once where it is a weight ("packed"), else as it is.
extern const host::Packing kMatmulPacking;
bool matmul_supports(const Signature& s);
bool matmul_packed_supports(const Signature& s);
int64_t matmul_scratch(const Signature& s, int threads);
int64_t matmul_packed_scratch(const Signature& s, int threads);
void matmul(const Call& call);
void matmul_packed(const Call& call);
void fused_matmul_bias_act(const Call& call);
void fused_matmul_bias_act_packed(const Call& call);
extern const host::Packing kMatmulSplitPacking;
bool fused_matmul_split_supports(const Signature& s);
bool fused_matmul_split_packed_supports(const Signature& s);
int64_t fused_matmul_split_scratch(const Signature& s, int threads);
int64_t fused_matmul_split_packed_scratch(const Signature& s, int threads);
void fused_matmul_split(const Call& call);
void fused_matmul_split_packed(const Call& call);
int64_t grouped_matmul_scratch(const Signature& s, int threads);
int64_t grouped_matmul_packed_scratch(const Signature& s, int threads);
void grouped_matmul(const Call& call);
void grouped_matmul_packed(const Call& call);

// Element-wise ops run as programs over blocks: elementwise.cpp. One row serves them all, by op.
bool elementwise_op_supports(const OpDef& op, const Signature& s);
int64_t elementwise_op_scratch(const OpDef& op, const Signature& s, int threads);
void elementwise_op(const OpDef& op, const Call& call);
template <const auto& kOp>
constexpr host::KernelRow elementwise_row() {
  return {&kOp, [](const Call& call) { elementwise_op(kOp, call); },
          [](const Signature& s) { return elementwise_op_supports(kOp, s); }, "blocks",
          [](const Signature& s, int threads) { return elementwise_op_scratch(kOp, s, threads); }};
}

bool activation_backward_supports(const Signature& s);
int64_t activation_backward_scratch(const Signature& s, int threads);
void activation_backward(const Call& call);
bool batch_elementwise_region_supports(const Signature& s);
int64_t batch_elementwise_region_scratch(const Signature& s, int threads);
void batch_elementwise_region(const Call& call);
bool elementwise_region_supports(const Signature& s);
int64_t elementwise_region_scratch(const Signature& s, int threads);
void elementwise_region(const Call& call);
bool fused_swiglu_supports(const Signature& s);
int64_t fused_swiglu_scratch(const Signature& s, int threads);
void fused_swiglu(const Call& call);
bool is_inf_supports(const Signature& s);
int64_t is_inf_scratch(const Signature& s, int threads);
void is_inf(const Call& call);
bool relu_backward_supports(const Signature& s);
int64_t relu_backward_scratch(const Signature& s, int threads);
void relu_backward(const Call& call);

// Reductions, norms and selections, by rows.
int64_t argmax_scratch(const Signature& s, int threads);
void argmax(const Call& call);
void argmin(const Call& call);
bool cumsum_supports(const Signature& s);
int64_t cumsum_scratch(const Signature& s, int threads);
void cumsum(const Call& call);
void cumsum_backward(const Call& call);
int64_t group_norm_scratch(const Signature& s, int threads);
void group_norm(const Call& call);
int64_t group_norm_backward_scratch(const Signature& s, int threads);
void group_norm_backward(const Call& call);
bool fused_residual_norm_supports(const Signature& s);
int64_t fused_residual_norm_scratch(const Signature& s, int threads);
void fused_residual_ln(const Call& call);
void fused_residual_rms_norm(const Call& call);
int64_t layer_norm_scratch(const Signature& s, int threads);
void layer_norm(const Call& call);
int64_t layer_norm2d_scratch(const Signature& s, int threads);
void layer_norm2d(const Call& call);
int64_t layer_norm_backward_scratch(const Signature& s, int threads);
void layer_norm_backward(const Call& call);
bool reduce_supports(const Signature& s);
bool reduce_mean_supports(const Signature& s);
int64_t reduce_scratch(const Signature& s, int threads);
void reduce_max(const Call& call);
void reduce_mean(const Call& call);
void reduce_min(const Call& call);
void reduce_prod(const Call& call);
void reduce_sum(const Call& call);
int64_t rms_norm_scratch(const Signature& s, int threads);
void rms_norm(const Call& call);
int64_t rms_norm_backward_scratch(const Signature& s, int threads);
void rms_norm_backward(const Call& call);
int64_t sample_scratch(const Signature& s, int threads);
void sample(const Call& call);
int64_t softmax_cross_entropy_scratch(const Signature& s, int threads);
void softmax_cross_entropy_backward(const Call& call);
void softmax_cross_entropy_with_logits(const Call& call);

// Packed weights, decoded in the inner loop.
int64_t dequant_grouped_packed_scratch(const Signature& s, int threads);
int64_t dequant_grouped_scratch(const Signature& s, int threads);
int64_t dequant_moe_weights_scratch(const Signature& s, int threads);
int64_t dequant_packed_scratch(const Signature& s, int threads);
int64_t dequant_rows_scratch(const Signature& s, int threads);
int64_t dequant_tiles_scratch(const Signature& s, int threads);
bool dequant_grouped_packed_supports(const Signature& s);
bool dequant_grouped_supports(const Signature& s);
bool dequant_packed_supports(const Signature& s);
bool dequant_rows_supports(const Signature& s);
bool dequant_tiles_supports(const Signature& s);
extern const host::Packing kDequantGroupedPacking, kDequantPacking;
void dequant_gather(const Call& call);
void dequant_grouped_matmul(const Call& call);
void dequant_grouped_matmul_packed(const Call& call);
void dequant_matmul_packed(const Call& call);
void dequant_matmul_rows(const Call& call);
void dequant_matmul_tiles(const Call& call);
void dequant_moe_weights(const Call& call);
void dequantize(const Call& call);

extern const host::Packing kQConv2dPacking, kQMatmulPacking;
bool static_weight_supports(const Signature& s);
int64_t q_conv2d_packed_scratch(const Signature& s, int threads);
int64_t q_conv2d_scratch(const Signature& s, int threads);
int64_t q_matmul_packed_scratch(const Signature& s, int threads);
int64_t q_matmul_scratch(const Signature& s, int threads);
void q_conv2d(const Call& call);
extern const host::Packing matmul_integer_packing;
int64_t matmul_integer_packed_scratch(const Signature& s, int threads);
void matmul_integer_packed(const Call& call);
int64_t matmul_integer_scratch(const Signature& s, int threads);
void matmul_integer(const Call& call);
extern const host::Packing conv_integer_packing;
int64_t conv_integer_packed_scratch(const Signature& s, int threads);
void conv_integer_packed(const Call& call);
int64_t conv_integer_scratch(const Signature& s, int threads);
void conv_integer(const Call& call);
bool quantize_linear_supports(const Signature& s);
void quantize_linear(const Call& call);
void dequantize_linear(const Call& call);
void q_conv2d_packed(const Call& call);
void q_matmul(const Call& call);
void q_matmul_packed(const Call& call);
void quantize(const Call& call);

int64_t softmax_scratch(const Signature& s, int threads);
void softmax(const Call& call);
int64_t topk_scratch(const Signature& s, int threads);
void topk(const Call& call);

bool attention_supports(const Signature& s);
int64_t attention_scratch(const Signature& s, int threads);
void attention(const Call& call);
bool paged_attention_supports(const Signature& s);
int64_t paged_attention_scratch(const Signature& s, int threads);
void paged_attention(const Call& call);
bool paged_kv_append_supports(const Signature& s);
int64_t paged_kv_append_scratch(const Signature& s, int threads);
void paged_kv_append(const Call& call);

int64_t axial_rope2d_scratch(const Signature& s, int threads);
void axial_rope2d(const Call& call);
int64_t rope_scratch(const Signature& s, int threads);
void rope(const Call& call);
void rope_backward(const Call& call);

// Kernels that somebody registered for "cpu"; those for "reference" run on the reference's row.
bool custom_supports(const Signature& s);
void custom(const Call& call);

// supports: no more axes than a copy handles.
bool few_axes(const Signature& s);
void concat(const Call& call);
void expand(const Call& call);
void kv_append(const Call& call);
void narrow(const Call& call);
void pad(const Call& call);
bool resize_supports(const Signature& s);
int64_t resize_scratch(const Signature& s, int threads);
void resize(const Call& call);
bool resize_nearest_supports(const Signature& s);
int64_t resize_nearest_scratch(const Signature& s, int threads);
void resize_nearest(const Call& call);
void resize_nearest_2x(const Call& call);
void slice(const Call& call);
void transpose(const Call& call);

bool scatter_supports(const Signature& s);
void gather(const Call& call);
int64_t gather_backward_scratch(const Signature& s, int threads);
void gather_backward(const Call& call);
void gather_elements(const Call& call);
void gather_nd(const Call& call);
int64_t scatter_add_scratch(const Signature& s, int threads);
void scatter_add(const Call& call);
bool scatter_elements_supports(const Signature& s);
bool scatter_nd_supports(const Signature& s);
int64_t scatter_updates_scratch(const Signature& s, int threads);
void scatter_elements(const Call& call);
void scatter_nd(const Call& call);

// Convolutions: the weight packed once where it is known when compiled ("packed").
bool conv_packed_supports(const Signature& s);
extern const host::Packing conv_packing;
int64_t conv_packed_scratch(const Signature& s, int threads);
void conv_packed(const Call& call);
int64_t conv_scratch(const Signature& s, int threads);
void conv(const Call& call);
bool conv_depthwise_supports(const Signature& s);
int64_t conv_depthwise_scratch(const Signature& s, int threads);
void conv_depthwise(const Call& call);
extern const host::Packing fused_conv_packing;
int64_t fused_conv_bias_act_packed_scratch(const Signature& s, int threads);
void fused_conv_bias_act_packed(const Call& call);
int64_t fused_conv_bias_act_scratch(const Signature& s, int threads);
void fused_conv_bias_act(const Call& call);
bool fused_conv_bias_act_depthwise_supports(const Signature& s);
int64_t fused_conv_bias_act_depthwise_scratch(const Signature& s, int threads);
void fused_conv_bias_act_depthwise(const Call& call);
int64_t conv2d_backward_input_scratch(const Signature& s, int threads);
void conv2d_backward_input(const Call& call);
extern const host::Packing conv_transpose_packing;
int64_t conv_transpose_packed_scratch(const Signature& s, int threads);
void conv_transpose_packed(const Call& call);
int64_t conv_transpose_scratch(const Signature& s, int threads);
void conv_transpose(const Call& call);

bool grid_sample_supports(const Signature& s);
void grid_sample(const Call& call);
bool roi_align_supports(const Signature& s);
void roi_align(const Call& call);

bool grid_sample_supports(const Signature& s);
void grid_sample(const Call& call);
bool roi_align_supports(const Signature& s);
void roi_align(const Call& call);

bool pool_order_supports(const Signature& s);
int64_t pool_scratch(const Signature& s, int threads);
void pool_max(const Call& call);
void pool_mean(const Call& call);
void pool_min(const Call& call);
void pool_prod(const Call& call);
void pool_sum(const Call& call);

bool log_mel_supports(const Signature& s);
int64_t log_mel_scratch(const Signature& s, int threads);
void log_mel(const Call& call);
bool fft_supports(const Signature& s);
int64_t fft_scratch(const Signature& s, int threads);
void fft(const Call& call);

bool sequence_state_supports(const Signature& s);
int64_t gated_delta_net_scratch(const Signature& s, int threads);
void gated_delta_net(const Call& call);
bool causal_conv_supports(const Signature& s);
int64_t causal_conv_scratch(const Signature& s, int threads);
void causal_conv(const Call& call);
int64_t selective_scan_scratch(const Signature& s, int threads);
void selective_scan(const Call& call);

// lstm, gru and rnn: the hidden weights packed once where they are known when compiled ("packed").
bool recurrent_supports(const Signature& s);
bool recurrent_packed_supports(const Signature& s);
extern const host::Packing gru_packing;
int64_t gru_packed_scratch(const Signature& s, int threads);
int64_t gru_scratch(const Signature& s, int threads);
void gru_packed(const Call& call);
void gru(const Call& call);
extern const host::Packing lstm_packing;
int64_t lstm_packed_scratch(const Signature& s, int threads);
int64_t lstm_scratch(const Signature& s, int threads);
void lstm_packed(const Call& call);
void lstm(const Call& call);
extern const host::Packing rnn_packing;
int64_t rnn_packed_scratch(const Signature& s, int threads);
int64_t rnn_scratch(const Signature& s, int threads);
void rnn_packed(const Call& call);
void rnn(const Call& call);

}  // namespace rlx::cpu
