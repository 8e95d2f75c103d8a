// q_matmul and q_conv2d: exact integer sums by byte dot products, requantised as the oracle does. The weight is packed
// once where it is one, else on every call.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/int8.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"
#include "rlx/ops/quantize.h"

namespace rlx::cpu {

namespace {

using quant::kColumns;

constexpr int64_t kRowBlock = 32;

// The groups of [K, N].
int64_t matmul_bytes(int64_t k, int64_t n) { return quant::groups_of(n) * quant::int8_group_bytes(k); }

void pack_matmul(ThreadPool& pool, const int8_t* w, int64_t k, int64_t n, uint8_t* out) {
  pool.parallel_for(0, quant::groups_of(n), std::max<int64_t>(1, kGrain / (k * kColumns + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t g = begin; g < end; ++g)
                        quant::pack_int8_group(w + g * kColumns, k, std::min(kColumns, n - g * kColumns), n, 1,
                                               out + g * quant::int8_group_bytes(k));
                    });
}

// The sizes of a convolution, one group at a time: `depth` products per result.
struct Window {
  int64_t n, c_in, height, width, c_out, c_group, kh, kw, out_h, out_w, groups;
  int64_t sh, sw, ph, pw, dh, dw;
  int64_t depth() const { return c_group * kh * kw; }
  int64_t columns() const { return c_out / groups; }
  int64_t positions() const { return out_h * out_w; }
  int64_t packed_group() const { return matmul_bytes(depth(), columns()); }
};

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t missing) {
  return i < list.size() ? list[i] : missing;
}

Window window_of(const ops::QConv2dAttrs& a, std::span<const int64_t> x, std::span<const int64_t> w,
                 std::span<const int64_t> y) {
  return {.n = x[0],
          .c_in = x[1],
          .height = x[2],
          .width = x[3],
          .c_out = w[0],
          .c_group = w[1],
          .kh = w[2],
          .kw = w[3],
          .out_h = y[2],
          .out_w = y[3],
          .groups = a.groups,
          .sh = entry(a.stride, 0, 1),
          .sw = entry(a.stride, 1, 1),
          .ph = entry(a.padding, 0, 0),
          .pw = entry(a.padding, 1, 0),
          .dh = entry(a.dilation, 0, 1),
          .dw = entry(a.dilation, 1, 1)};
}

Window window_of(const Signature& s) {
  return window_of(s.attrs.as<ops::QConv2dAttrs>(), s.input(0).shape.sizes(), s.input(1).shape.sizes(),
                   s.output(0).shape.sizes());
}
Window window_of(const Call& call) {
  return window_of(call.attrs<ops::QConv2dAttrs>(), call.input(0).sizes, call.input(1).sizes, call.output(0).sizes);
}

int64_t conv_bytes(const Window& w) { return w.groups * w.packed_group(); }

void pack_conv(ThreadPool& pool, const int8_t* weight, int64_t groups, int64_t columns, int64_t depth, uint8_t* out) {
  const int64_t parts = quant::groups_of(columns);
  pool.parallel_for(0, groups * parts, std::max<int64_t>(1, kGrain / (depth * kColumns + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t t = begin; t < end; ++t) {
                        const int64_t first = t % parts * kColumns;
                        quant::pack_int8_group(weight + (t / parts * columns + first) * depth, depth,
                                               std::min(kColumns, columns - first), 1, depth,
                                               out + t * quant::int8_group_bytes(depth));
                      }
                    });
}

// The window of output position `p` as a row; x_zp where it leaves the image, which then contributes 0.
void gather_window(const Window& w, const int8_t* x, int64_t p, int8_t x_zp, int8_t* row) {
  const int64_t h0 = p / w.out_w * w.sh - w.ph, v0 = p % w.out_w * w.sw - w.pw;
  for (int64_t c = 0; c < w.c_group; ++c)
    for (int64_t i = 0; i < w.kh; ++i) {
      const int64_t h = h0 + i * w.dh;
      const int8_t* line = x + (c * w.height + h) * w.width;
      if (h < 0 || h >= w.height) {
        std::memset(row, x_zp, static_cast<size_t>(w.kw));
        row += w.kw;
        continue;
      }
      for (int64_t j = 0; j < w.kw; ++j) {
        const int64_t v = v0 + j * w.dw;
        *row++ = v < 0 || v >= w.width ? x_zp : line[v];
      }
    }
}

int64_t tile_bytes(const Window& w) { return round_up(kRowBlock * w.depth(), 64); }

void q_matmul_with(const Call& call, const uint8_t* packed, int64_t* row_sums) {
  const auto& attrs = call.attrs<ops::QMatmulAttrs>();
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1), n = call.input(1).dim(1);
  const int8_t* x = call.input_as<int8_t>(0);
  const int32_t* bias = call.input_as<int32_t>(2);
  int8_t* y = call.output_as<int8_t>(0);
  const quant::Int8Product product{attrs.x_zp, attrs.w_zp, attrs.out_zp, attrs.mult};
  call.pool().parallel_for(0, m, std::max<int64_t>(1, 4 * kGrain / (k + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row_sums[i] = quant::int8_sum(x + i * k, k);
  });
  const int64_t groups = quant::groups_of(n), blocks = div_up(m, kRowBlock);
  const int64_t grain = std::max<int64_t>(1, kGrain / (k + 1));
  call.pool().parallel_for(0, blocks * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t g = t % groups, columns = std::min(kColumns, n - g * kColumns);
      const int64_t first = t / groups * kRowBlock, count = std::min(kRowBlock, m - first);
      const int8_t* rows[kRowBlock];
      int8_t codes[kRowBlock * kColumns];
      for (int64_t i = 0; i < count; ++i) rows[i] = x + (first + i) * k;
      quant::int8_group(product, packed + g * quant::int8_group_bytes(k), bias + g * kColumns, columns, k,
                        std::span(rows, static_cast<size_t>(count)), row_sums + first, codes);
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(y + (first + i) * n + g * kColumns, codes + i * kColumns, static_cast<size_t>(columns));
    }
  });
}

void q_conv2d_with(const Call& call, const uint8_t* packed, int8_t* tiles) {
  const auto& attrs = call.attrs<ops::QConv2dAttrs>();
  const Window w = window_of(call);
  const int64_t depth = w.depth(), positions = w.positions(), blocks = div_up(positions, kRowBlock);
  const int8_t* x = call.input_as<int8_t>(0);
  const int32_t* bias = call.input_as<int32_t>(2);
  int8_t* y = call.output_as<int8_t>(0);
  const quant::Int8Product product{attrs.x_zp, attrs.w_zp, attrs.out_zp, attrs.mult};
  call.pool().parallel_for(0, w.n * w.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    int8_t* tile = tiles + ThreadPool::this_thread() * tile_bytes(w);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t b = t / blocks / w.groups, group = t / blocks % w.groups, first = t % blocks * kRowBlock;
      const int64_t count = std::min(kRowBlock, positions - first);
      const int8_t* rows[kRowBlock];
      int64_t sums[kRowBlock];
      int8_t codes[kRowBlock * kColumns];
      for (int64_t i = 0; i < count; ++i) {
        gather_window(w, x + (b * w.c_in + group * w.c_group) * w.height * w.width, first + i,
                      static_cast<int8_t>(attrs.x_zp), tile + i * depth);
        rows[i] = tile + i * depth;
        sums[i] = quant::int8_sum(rows[i], depth);
      }
      for (int64_t g = 0; g < quant::groups_of(w.columns()); ++g) {
        const int64_t columns = std::min(kColumns, w.columns() - g * kColumns);
        const int64_t channel = group * w.columns() + g * kColumns;
        quant::int8_group(product, packed + group * w.packed_group() + g * quant::int8_group_bytes(depth),
                          bias + channel, columns, depth, std::span(rows, static_cast<size_t>(count)), sums, codes);
        for (int64_t c = 0; c < columns; ++c)
          for (int64_t i = 0; i < count; ++i)
            y[(b * w.c_out + channel + c) * positions + first + i] = codes[i * kColumns + c];
      }
    }
  });
}

}  // namespace

const host::Packing kQMatmulPacking{1,
                                    [](const Signature& s) {
                                      const std::vector<int64_t> w = s.input(1).shape.sizes();
                                      return matmul_bytes(w[0], w[1]);
                                    },
                                    [](const Call& call) {
                                      pack_matmul(call.pool(), call.input_as<int8_t>(0), call.input(0).dim(0),
                                                  call.input(0).dim(1),
                                                  reinterpret_cast<uint8_t*>(call.output(0).data));
                                    }};
const host::Packing kQConv2dPacking{1, [](const Signature& s) { return conv_bytes(window_of(s)); },
                                    [](const Call& call) {
                                      const host::View& w = call.input(0);
                                      const int64_t groups = call.attrs<ops::QConv2dAttrs>().groups;
                                      pack_conv(call.pool(), call.input_as<int8_t>(0), groups, w.dim(0) / groups,
                                                w.dim(1) * w.dim(2) * w.dim(3),
                                                reinterpret_cast<uint8_t*>(call.output(0).data));
                                    }};

bool static_weight_supports(const Signature& s) { return s.is_static(1) && s.input(1).shape.num_elements() > 0; }

int64_t q_matmul_packed_scratch(const Signature& s, int) { return s.input(0).shape.sizes()[0] * 8; }

void q_matmul_packed(const Call& call) {
  q_matmul_with(call, reinterpret_cast<const uint8_t*>(call.input(1).data), call.scratch_as<int64_t>());
}

int64_t q_matmul_scratch(const Signature& s, int) {
  const std::vector<int64_t> w = s.input(1).shape.sizes();
  return round_up(s.input(0).shape.sizes()[0] * 8, 64) + matmul_bytes(w[0], w[1]);
}

void q_matmul(const Call& call) {
  auto* packed = reinterpret_cast<uint8_t*>(call.scratch() + round_up(call.input(0).dim(0) * 8, 64));
  pack_matmul(call.pool(), call.input_as<int8_t>(1), call.input(1).dim(0), call.input(1).dim(1), packed);
  q_matmul_with(call, packed, call.scratch_as<int64_t>());
}

int64_t q_conv2d_packed_scratch(const Signature& s, int threads) { return threads * tile_bytes(window_of(s)); }

void q_conv2d_packed(const Call& call) {
  q_conv2d_with(call, reinterpret_cast<const uint8_t*>(call.input(1).data), call.scratch_as<int8_t>());
}

int64_t q_conv2d_scratch(const Signature& s, int threads) {
  return q_conv2d_packed_scratch(s, threads) + conv_bytes(window_of(s));
}

void q_conv2d(const Call& call) {
  const Window w = window_of(call);
  auto* packed = reinterpret_cast<uint8_t*>(call.scratch() + call.pool().threads() * tile_bytes(w));
  pack_conv(call.pool(), call.input_as<int8_t>(1), w.groups, w.columns(), w.depth(), packed);
  q_conv2d_with(call, packed, call.scratch_as<int8_t>());
}

}  // namespace rlx::cpu
