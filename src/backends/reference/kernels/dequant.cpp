#include "rlx/ops/dequant.h"

#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "core/convert.h"

namespace rlx::reference {

namespace {

const uint8_t* bytes_of(const View& view) { return reinterpret_cast<const uint8_t*>(view.data); }

double dot(const float* x, const float* w, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(w[i]);
  return sum;
}

// Column n of a side-tensor weight in double: code, zero point and scale are multiplied without rounding in between.
void decode_column(const Call& call, int64_t k, int64_t n_total, int64_t n, double* out) {
  const auto& attrs = call.attrs<ops::DequantMatmulAttrs>();
  const uint8_t* w = bytes_of(call.input(1));
  const bool is_fp8 = attrs.scheme == Scheme::kFp8E4m3 || attrs.scheme == Scheme::kFp8E5m2;
  for (int64_t i = 0; i < k; ++i) {
    double value = static_cast<double>(decode_code(attrs.scheme, w, i * n_total + n));
    if (is_fp8) {
      value *= static_cast<double>(call.input_as<float>(2)[call.input(2).elements() == 1 ? 0 : n]);
    } else if (attrs.scheme == Scheme::kNvfp4) {
      value *= f8e4m3_to_double(bytes_of(call.input(2))[i / 16 * n_total + n]) *
               static_cast<double>(call.input_as<float>(3)[0]);
    } else {
      const int64_t at = i / attrs.block * n_total + n;
      if (has_zero_point(attrs.scheme)) value -= static_cast<double>(call.input_as<float>(3)[at]);
      value *= static_cast<double>(call.input_as<float>(2)[at]);
    }
    out[i] = value;
  }
}

}  // namespace

void dequant_matmul(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantMatmulAttrs>().scheme;
  const int64_t k = call.input(0).dim(call.input(0).rank() - 1);
  const int64_t n = call.output(0).dim(call.output(0).rank() - 1), m = call.output(0).elements() / n;
  const float* x = call.input_as<float>(0);
  float* y = call.output_as<float>(0);
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<double> column(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j) {
    if (is_gguf(scheme)) {
      decode_blocks(scheme, bytes_of(call.input(1)) + j * weight_bytes(scheme, k, 1), k, row.data());
      for (int64_t i = 0; i < m; ++i) y[i * n + j] = static_cast<float>(dot(x + i * k, row.data(), k));
      continue;
    }
    decode_column(call, k, n, j, column.data());
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c) sum += static_cast<double>(x[i * k + c]) * column[static_cast<size_t>(c)];
      y[i * n + j] = static_cast<float>(sum);
    }
  }
}

void dequant_grouped_matmul(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantGroupedMatmulAttrs>().scheme;
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1), n = call.output(0).dim(1);
  const int64_t row_bytes = weight_bytes(scheme, k, 1), experts = call.input(1).elements() / (row_bytes * n);
  const float* x = call.input_as<float>(0);
  const IntReader expert = call.int_reader(2);
  float* y = call.output_as<float>(0);
  std::vector<float> row(static_cast<size_t>(k));
  for (int64_t i = 0; i < m; ++i) {
    const int64_t e = expert[i];
    if (e < 0 || e >= experts)
      fail(ErrorKind::kRuntime, str("Expert index (", e, ") is out of range for ", experts, " experts."));
    for (int64_t j = 0; j < n; ++j) {
      decode_blocks(scheme, bytes_of(call.input(1)) + (e * n + j) * row_bytes, k, row.data());
      y[i * n + j] = static_cast<float>(dot(x + i * k, row.data(), k));
    }
  }
}

void dequant_gather(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantGatherAttrs>().scheme;
  const int64_t k = call.output(0).dim(call.output(0).rank() - 1), count = call.input(1).elements();
  const int64_t row_bytes = weight_bytes(scheme, k, 1), rows = call.input(0).elements() / row_bytes;
  const IntReader index = call.int_reader(1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = index[i] < 0 ? index[i] + rows : index[i];
    if (row < 0 || row >= rows)
      fail(ErrorKind::kRuntime, str("Index (", index[i], ") is out of range for size ", rows, "."));
    decode_blocks(scheme, bytes_of(call.input(0)) + row * row_bytes, k, call.output_as<float>(0) + i * k);
  }
}

void dequant_moe_weights(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantMoeWeightsAttrs>().scheme;
  const int64_t experts = call.output(0).dim(0), k = call.output(0).dim(1), n = call.output(0).dim(2);
  const int64_t row_bytes = weight_bytes(scheme, k, 1);
  float* y = call.output_as<float>(0);
  std::vector<float> row(static_cast<size_t>(k));
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t j = 0; j < n; ++j) {
      decode_blocks(scheme, bytes_of(call.input(0)) + (e * n + j) * row_bytes, k, row.data());
      for (int64_t i = 0; i < k; ++i) y[(e * k + i) * n + j] = row[static_cast<size_t>(i)];
    }
}

}  // namespace rlx::reference
