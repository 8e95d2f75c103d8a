// The ops on packed weights that decode to f32 on the way: dequant_matmul and dequant_grouped_matmul of weights as they
// are, dequant_gather, dequant_moe_weights.
#include "rlx/ops/dequant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/expert_plan.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/decode.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

const uint8_t* bytes_of(const host::View& view) { return reinterpret_cast<const uint8_t*>(view.data); }

constexpr int64_t kRowsDecoded = 8;  // rows of a GGUF weight that a thread decodes at a time
constexpr int64_t kRowBlock = 64;    // rows of x whose pointers are set up at a time
// The tile of a side-tensor weight that a thread decodes at a time.
constexpr int64_t kTileRows = 64, kTileColumns = 64;

int64_t last_dim(const TensorType& t) { return t.shape.sizes().back(); }

// Weight rows [first, first + count) of `weight` times the chosen rows of x.
template <class RowNumber>
void decode_and_dot(Scheme scheme, const uint8_t* weight, int64_t first, int64_t count, const float* x, int64_t rows,
                    int64_t k, float* y, int64_t n, float* tile, const RowNumber& number) {
  const int64_t row_bytes = weight_bytes(scheme, k, 1);
  for (int64_t j = 0; j < count; ++j) quant::decode_row(scheme, weight + (first + j) * row_bytes, k, tile + j * k);
  const float* from[kRowBlock];
  float* to[kRowBlock];
  for (int64_t r = 0; r < rows; r += kRowBlock) {
    const int64_t block = std::min(kRowBlock, rows - r);
    for (int64_t i = 0; i < block; ++i) {
      from[i] = x + number(r + i) * k;
      to[i] = y + number(r + i) * n + first;
    }
    quant::dot_rows(from, block, tile, count, k, to);
  }
}

// Side-tensor schemes: at most kRowBlock rows of x times `count` columns, at most kTileColumns, from tiles of decoded
// weights. y is at the first row.
void multiply_tiles(const quant::SideWeight& weight, const float* x, int64_t rows, int64_t k, int64_t column,
                    int64_t count, float* y, float* scratch) {
  float *tile = scratch, *sums = tile + kTileRows * kTileColumns;
  const float* from[kRowBlock];
  float* to[kRowBlock];
  const int64_t width = round_up(count, 32);
  std::memset(sums, 0, static_cast<size_t>(rows * width) * sizeof(float));
  for (int64_t k0 = 0; k0 < k; k0 += kTileRows) {
    const int64_t depth = std::min(kTileRows, k - k0);
    for (int64_t c = 0; c < depth; ++c) {
      quant::decode_side(weight, k0 + c, column, count, tile + c * width);
      std::memset(tile + c * width + count, 0, static_cast<size_t>(width - count) * sizeof(float));
    }
    for (int64_t i = 0; i < rows; ++i) {
      from[i] = x + i * k + k0;
      to[i] = sums + i * width;
    }
    quant::multiply_tile(from, rows, tile, depth, width, to);
  }
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(y + i * weight.n + column, sums + i * width, static_cast<size_t>(count) * sizeof(float));
}

bool is_fp8(Scheme s) { return s == Scheme::kFp8E4m3 || s == Scheme::kFp8E5m2; }

// Sums of a few rows of x that stay in the first cache while fp8 codes are read row by row.
constexpr int64_t kStreamSums = 4096;
static_assert(kStreamSums <= kTileColumns * (kTileRows + kRowBlock));

// A few rows of x times `count` columns of an fp8 weight: at most kStreamSums products, count rounded up to 64.
void multiply_few(const quant::SideWeight& weight, const float* x, int64_t rows, int64_t k, int64_t column,
                  int64_t count, float* y, float* scratch) {
  const float* from[quant::kFewRows];
  float* sums[quant::kFewRows];
  for (int64_t i = 0; i < rows; ++i) from[i] = x + i * k, sums[i] = scratch + i * round_up(count, 64);
  const float factor = quant::multiply_fp8(weight.scheme == Scheme::kFp8E5m2, weight.codes + column, weight.n, k, count,
                                           from, rows, sums);
  bool finite = true;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < count; ++j) {
      const float v = sums[i][j] * factor * weight.scale[weight.scales == 1 ? 0 : column + j];
      finite &= std::isfinite(v);
      y[i * weight.n + column + j] = v;
    }
  if (finite) return;
  // The order of sum and scale shows.
  for (int64_t c = 0; c < count; c += kTileColumns)
    multiply_tiles(weight, x, rows, k, column + c, std::min(kTileColumns, count - c), y, scratch);
}

}  // namespace

// Rows are multiplied in steps of 32 elements: all but halves have blocks of so many.
static bool has_whole_steps(const Signature& s) { return last_dim(s.input(0)) % 32 == 0; }

bool dequant_rows_supports(const Signature& s) {
  return is_gguf(s.attrs.as<ops::DequantMatmulAttrs>().scheme) && has_whole_steps(s);
}
bool dequant_grouped_supports(const Signature& s) { return has_whole_steps(s); }

int64_t dequant_rows_scratch(const Signature& s, int threads) {
  return threads * kRowsDecoded * last_dim(s.input(0)) * static_cast<int64_t>(sizeof(float));
}

void dequant_matmul_rows(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantMatmulAttrs>().scheme;
  const int64_t k = call.input(0).dim(call.input(0).rank() - 1), n = call.output(0).dim(call.output(0).rank() - 1);
  const int64_t m = call.output(0).elements() / n, tiles = div_up(n, kRowsDecoded);
  const int64_t grain = std::max<int64_t>(1, kGrain / (kRowsDecoded * k));
  call.pool().parallel_for(0, tiles, grain, [&](int64_t begin, int64_t end) {
    float* tile = call.scratch_as<float>() + ThreadPool::this_thread() * kRowsDecoded * k;
    for (int64_t t = begin; t < end; ++t)
      decode_and_dot(scheme, bytes_of(call.input(1)), t * kRowsDecoded, std::min(kRowsDecoded, n - t * kRowsDecoded),
                     call.input_as<float>(0), m, k, call.output_as<float>(0), n, tile, [](int64_t i) { return i; });
  });
}

int64_t dequant_grouped_scratch(const Signature& s, int threads) {
  return round_up(dequant_rows_scratch(s, threads), 64) + ExpertPlan::bytes(s.input(0).shape.sizes()[0]);
}

void dequant_grouped_matmul(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantGroupedMatmulAttrs>().scheme;
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1), n = call.output(0).dim(1);
  const int64_t slab = weight_bytes(scheme, k, n), experts = call.input(1).elements() / slab;
  const int64_t tiles = div_up(n, kRowsDecoded);
  const int64_t tile_bytes =
      round_up(call.pool().threads() * kRowsDecoded * k * static_cast<int64_t>(sizeof(float)), 64);
  const ExpertPlan plan(call.int_reader(2), m, experts, reinterpret_cast<int64_t*>(call.scratch() + tile_bytes));
  const int64_t grain = std::max<int64_t>(1, kGrain / (kRowsDecoded * k));
  call.pool().parallel_for(0, plan.runs() * tiles, grain, [&](int64_t begin, int64_t end) {
    float* tile = call.scratch_as<float>() + ThreadPool::this_thread() * kRowsDecoded * k;
    for (int64_t t = begin; t < end; ++t) {
      const std::span<const int64_t> rows = plan.rows(t / tiles);
      const int64_t first = t % tiles * kRowsDecoded;
      decode_and_dot(scheme, bytes_of(call.input(1)) + plan.expert(t / tiles) * slab, first,
                     std::min(kRowsDecoded, n - first), call.input_as<float>(0), static_cast<int64_t>(rows.size()), k,
                     call.output_as<float>(0), n, tile, [&](int64_t i) { return rows[static_cast<size_t>(i)]; });
    }
  });
}

// Side-tensor schemes: a tile of decoded weights, and the columns of y that it adds to.
bool dequant_tiles_supports(const Signature& s) { return !is_gguf(s.attrs.as<ops::DequantMatmulAttrs>().scheme); }

int64_t dequant_tiles_scratch(const Signature&, int threads) {
  return threads * kTileColumns * (kTileRows + kRowBlock) * static_cast<int64_t>(sizeof(float));
}

void dequant_matmul_tiles(const Call& call) {
  const auto& attrs = call.attrs<ops::DequantMatmulAttrs>();
  const bool fp4 = attrs.scheme == Scheme::kNvfp4;
  const int64_t k = call.input(0).dim(call.input(0).rank() - 1), n = call.output(0).dim(call.output(0).rank() - 1);
  const int64_t m = call.output(0).elements() / n;
  const quant::SideWeight weight{.scheme = attrs.scheme,
                                 .codes = bytes_of(call.input(1)),
                                 .scale = fp4 ? nullptr : call.input_as<float>(2),
                                 .zero = has_zero_point(attrs.scheme) ? call.input_as<float>(3) : nullptr,
                                 .scale8 = fp4 ? bytes_of(call.input(2)) : nullptr,
                                 .global = fp4 ? call.input_as<float>(3)[0] : 1,
                                 .n = n,
                                 .block = fp4 ? 16 : attrs.block,
                                 .scales = call.input(2).elements()};
  const float* x = call.input_as<float>(0);
  float* y = call.output_as<float>(0);
  float* scratch = call.scratch_as<float>();
  const auto of_thread = [&] { return scratch + ThreadPool::this_thread() * kTileColumns * (kTileRows + kRowBlock); };
  if (is_fp8(attrs.scheme) && m <= quant::kFewRows) {
    // Long pieces of rows, as memory likes them; a column's sum does not depend on them.
    const int64_t width = std::clamp<int64_t>(round_up(div_up(n, call.pool().threads()), 64), 64,
                                              kStreamSums / std::max<int64_t>(1, m) / 64 * 64);
    call.pool().parallel_for(0, div_up(n, width), 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        multiply_few(weight, x, m, k, t * width, std::min(width, n - t * width), y, of_thread());
    });
    return;
  }
  const int64_t columns = div_up(n, kTileColumns), row_blocks = div_up(m, kRowBlock);
  call.pool().parallel_for(0, columns * row_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / columns * kRowBlock, column = t % columns * kTileColumns;
      multiply_tiles(weight, x + row * k, std::min(kRowBlock, m - row), k, column, std::min(kTileColumns, n - column),
                     y + row * n, of_thread());
    }
  });
}

void dequant_gather(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantGatherAttrs>().scheme;
  const int64_t k = call.output(0).dim(call.output(0).rank() - 1), count = call.input(1).elements();
  const int64_t row_bytes = weight_bytes(scheme, k, 1), rows = call.input(0).elements() / row_bytes;
  const host::IntReader index = call.int_reader(1);
  float* y = call.output_as<float>(0);
  call.pool().parallel_for(0, count, std::max<int64_t>(1, kGrain / k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = index[i] < 0 ? index[i] + rows : index[i];
      if (row < 0 || row >= rows)
        fail(ErrorKind::kRuntime, str("Index (", index[i], ") is out of range for size ", rows, "."));
      quant::decode_row(scheme, bytes_of(call.input(0)) + row * row_bytes, k, y + i * k);
    }
  });
}

// Rows of 16 columns are decoded and then written across, so that a cache line of the result is written at once.
static constexpr int64_t kTransposed = 16;

int64_t dequant_moe_weights_scratch(const Signature& s, int threads) {
  return threads * kTransposed * s.output(0).shape.sizes()[1] * static_cast<int64_t>(sizeof(float));
}

void dequant_moe_weights(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantMoeWeightsAttrs>().scheme;
  const int64_t experts = call.output(0).dim(0), k = call.output(0).dim(1), n = call.output(0).dim(2);
  const int64_t row_bytes = weight_bytes(scheme, k, 1), tiles = div_up(n, kTransposed);
  float* y = call.output_as<float>(0);
  const int64_t grain = std::max<int64_t>(1, kGrain / (kTransposed * k));
  call.pool().parallel_for(0, experts * tiles, grain, [&](int64_t begin, int64_t end) {
    float* rows = call.scratch_as<float>() + ThreadPool::this_thread() * kTransposed * k;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t e = t / tiles, column = t % tiles * kTransposed, count = std::min(kTransposed, n - column);
      for (int64_t j = 0; j < count; ++j)
        quant::decode_row(scheme, bytes_of(call.input(0)) + (e * n + column + j) * row_bytes, k, rows + j * k);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < count; ++j) y[(e * k + i) * n + column + j] = rows[j * k + i];
    }
  });
}

}  // namespace rlx::cpu
