// The oracle's kernels, one function per op: plain loops in double, no tricks, no threads. table.cpp has a row for
// each.
#pragma once

#include "backends/host/call.h"

namespace rlx::reference {

using host::Call;
using host::IntReader;
using host::IntWriter;
using host::Reader;
using host::split_at;
using host::View;
using host::Writer;

void abs(const Call& call);
void activation_backward(const Call& call);
void add(const Call& call);
void argmax(const Call& call);
void argmin(const Call& call);
void atan(const Call& call);
void batched_dense_solve(const Call& call);
void cast(const Call& call);
void complex_norm_sq(const Call& call);
void complex_norm_sq_backward(const Call& call);
void concat(const Call& call);
void conjugate(const Call& call);
void cos(const Call& call);
void cumsum(const Call& call);
void cumsum_backward(const Call& call);
void custom(const Call& call);
void dense_solve(const Call& call);
void dequant_gather(const Call& call);
void dequant_grouped_matmul(const Call& call);
void dequant_matmul(const Call& call);
void dequant_moe_weights(const Call& call);
void dequantize(const Call& call);
void div(const Call& call);
void eq(const Call& call);
void exp(const Call& call);
void expand(const Call& call);
void fake_quantize(const Call& call);
void fake_quantize_backward(const Call& call);
void fake_quantize_lsq(const Call& call);
void fake_quantize_lsq_backward(const Call& call);
void fft(const Call& call);
void gather(const Call& call);
void gather_backward(const Call& call);
void gaussian_splat_prepare(const Call& call);
void gaussian_splat_rasterize(const Call& call);
void gaussian_splat_render_backward(const Call& call);
void ge(const Call& call);
void gelu(const Call& call);
void gelu_approx(const Call& call);
void group_norm(const Call& call);
void group_norm_backward(const Call& call);
void grouped_matmul(const Call& call);
void gt(const Call& call);
void layer_norm(const Call& call);
void layer_norm2d(const Call& call);
void layer_norm_backward(const Call& call);
void le(const Call& call);
void log(const Call& call);
void log_mel(const Call& call);
void log_mel_backward(const Call& call);
void lt(const Call& call);
void matmul(const Call& call);
void max(const Call& call);
void min(const Call& call);
void mul(const Call& call);
void narrow(const Call& call);
void ne(const Call& call);
void neg(const Call& call);
void pow(const Call& call);
void q_conv2d(const Call& call);
void q_matmul(const Call& call);
void quantize(const Call& call);
void reduce_max(const Call& call);
void reduce_mean(const Call& call);
void reduce_min(const Call& call);
void reduce_prod(const Call& call);
void reduce_sum(const Call& call);
void relu(const Call& call);
void relu_backward(const Call& call);
void reshape(const Call& call);
void resize_nearest_2x(const Call& call);
void rms_norm(const Call& call);
void rms_norm_backward(const Call& call);
void round(const Call& call);
void rsqrt(const Call& call);
void sample(const Call& call);
void scatter_add(const Call& call);
void sigmoid(const Call& call);
void silu(const Call& call);
void sin(const Call& call);
void softmax(const Call& call);
void softmax_cross_entropy_backward(const Call& call);
void softmax_cross_entropy_with_logits(const Call& call);
void sqrt(const Call& call);
void sub(const Call& call);
void tan(const Call& call);
void tanh(const Call& call);
void topk(const Call& call);
void transpose(const Call& call);
void welch_peaks(const Call& call);
void where(const Call& call);

}  // namespace rlx::reference
