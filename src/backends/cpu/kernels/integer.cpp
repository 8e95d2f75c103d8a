// matmul_integer and conv_integer: exact byte products. A weight is packed once where it is one, else on every call.
#include "rlx/ops/integer.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/int32.h"
#include "backends/host/broadcast.h"
#include "backends/host/zero_points.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

using quant::in_fours;
using quant::kColumns;
using quant::kWindows;

using Sizes = std::span<const int64_t>;

constexpr int64_t kRowBlock = 32;

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t groups_of(int64_t columns) { return (columns + kColumns - 1) / kColumns; }
// What rows and columns are moved by: rows are signed codes, columns unsigned ones.
uint8_t row_flip(DType dtype) { return dtype == DType::U8 ? 128 : 0; }
uint8_t column_flip(DType dtype) { return dtype == DType::I8 ? 128 : 0; }
// The last 32 bits of sum - k * zero.
int32_t term_of(int32_t sum, int64_t k, int32_t zero) {
  return static_cast<int32_t>(static_cast<uint32_t>(sum) - static_cast<uint32_t>(k) * static_cast<uint32_t>(zero));
}

// ---- matmul_integer: rows of a, columns of b ----

// A group of columns: their sums, then the codes.
int64_t group_bytes(int64_t k) { return kColumns * 4 + in_fours(k) * kColumns; }

struct MatmulSizes {
  int64_t m, k, n;           // of one product
  int64_t a_count, b_count;  // matrices
  bool copies_a;             // rows are not codes in groups of 4 as they lie

  MatmulSizes(Sizes a, Sizes b, DType a_dtype)
      : m(a[a.size() - 2]),
        k(a[a.size() - 1]),
        n(b[b.size() - 1]),
        a_count(product(a.first(a.size() - 2))),
        b_count(product(b.first(b.size() - 2))),
        copies_a(a_dtype == DType::U8 || k % 4 != 0) {}

  int64_t matrix_bytes() const { return groups_of(n) * group_bytes(k); }
  int64_t packed_bytes() const { return b_count * matrix_bytes(); }
  int64_t row_bytes() const { return copies_a ? aligned(a_count * m * in_fours(k)) : 0; }
  int64_t int_bytes() const { return aligned(2 * a_count * m * 4) + aligned(b_count * n * 4 + kColumns * 4); }
};

void pack_b(ThreadPool& pool, DType dtype, const std::byte* b, const MatmulSizes& s, std::byte* packed) {
  const int64_t groups = groups_of(s.n);
  pool.parallel_for(
      0, s.b_count * groups, std::max<int64_t>(1, kGrain / (s.k * kColumns + 1)), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t first = t % groups * kColumns;
          std::byte* to = packed + t * group_bytes(s.k);
          quant::pack_columns(reinterpret_cast<const uint8_t*>(b) + t / groups * s.k * s.n + first, s.k, s.n,
                              std::min(kColumns, s.n - first), column_flip(dtype),
                              reinterpret_cast<uint8_t*>(to) + kColumns * 4, reinterpret_cast<int32_t*>(to));
        }
      });
}

void run_matmul(const Call& call, const std::byte* packed, std::byte* scratch) {
  const host::View &a = call.input(0), &b = call.input(1), &y = call.output(0);
  const MatmulSizes s(a.sizes, b.sizes, a.dtype);
  const int64_t all_rows = s.a_count * s.m, step = s.copies_a ? in_fours(s.k) : s.k;
  auto* row_zeros = reinterpret_cast<int32_t*>(scratch);
  int32_t* row_terms = row_zeros + all_rows;
  auto* column_zeros = reinterpret_cast<int32_t*>(scratch + aligned(2 * all_rows * 4));
  const auto* rows = reinterpret_cast<const int8_t*>(a.data);
  if (s.copies_a) rows = reinterpret_cast<const int8_t*>(scratch + s.int_bytes());

  const host::ZeroPoints a_zero(call, 2, s.m), b_zero(call, 3, s.n);
  call.pool().parallel_for(0, all_rows, std::max<int64_t>(1, 4 * kGrain / (s.k + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int32_t sum = s.copies_a ? quant::copy_row(reinterpret_cast<const uint8_t*>(a.data) + i * s.k, s.k,
                                                       row_flip(a.dtype), const_cast<int8_t*>(rows) + i * step)
                                     : quant::sum_row(rows + i * step, s.k);
      row_zeros[i] = a_zero.of(i / s.m, i % s.m) - row_flip(a.dtype);
      row_terms[i] = term_of(sum, s.k, row_zeros[i]);
    }
  });
  for (int64_t i = 0; i < s.b_count * s.n; ++i) column_zeros[i] = b_zero.of(i / s.n, i % s.n) + column_flip(b.dtype);

  // Matrices that share b are one tall product.
  const Sizes batch = y.sizes.first(y.sizes.size() - 2);
  const bool tall = s.b_count == 1 && product(batch) == s.a_count;
  const int64_t products = tall ? 1 : product(batch), m = tall ? all_rows : s.m;
  const int64_t groups = groups_of(s.n), blocks = (m + kRowBlock - 1) / kRowBlock;
  host::BroadcastWalk<2> walk(batch, {a.sizes.first(a.sizes.size() - 2), b.sizes.first(b.sizes.size() - 2)});
  for (int64_t p = 0; p < products; ++p, walk.next()) {
    const int64_t first_row = walk.offset(0) * s.m, matrix = walk.offset(1);
    call.pool().parallel_for(
        0, blocks * groups, std::max<int64_t>(1, kGrain / (s.k + 1)), [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            const int64_t row = t / groups * kRowBlock, at = first_row + row;
            const int64_t column = t % groups * kColumns;
            const std::byte* group = packed + matrix * s.matrix_bytes() + t % groups * group_bytes(s.k);
            const quant::IntegerRows r = {rows + at * step, step, std::min(kRowBlock, m - row), row_zeros + at,
                                          row_terms + at};
            const quant::IntegerColumns c = {reinterpret_cast<const uint8_t*>(group) + kColumns * 4,
                                             column_zeros + matrix * s.n + column,
                                             reinterpret_cast<const int32_t*>(group), std::min(kColumns, s.n - column)};
            quant::integer_products(r, c, s.k, call.output_as<int32_t>(0) + (p * m + row) * s.n + column, s.n);
          }
        });
  }
}

MatmulSizes matmul_sizes(const Signature& s) {
  return MatmulSizes(s.input(0).shape.sizes(), s.input(1).shape.sizes(), s.input(0).dtype);
}

}  // namespace

const host::Packing matmul_integer_packing = {
    .operand = 1,
    .bytes = [](const Signature& s) { return matmul_sizes(s).packed_bytes(); },
    .pack =
        [](const Call& call) {
          const host::View& b = call.input(0);
          const int64_t no_rows[] = {0, b.dim(b.rank() - 2)};
          pack_b(call.pool(), b.dtype, b.data, MatmulSizes(no_rows, b.sizes, b.dtype), call.output(0).data);
        },
};

int64_t matmul_integer_packed_scratch(const Signature& s, int) {
  const MatmulSizes sizes = matmul_sizes(s);
  return sizes.int_bytes() + sizes.row_bytes();
}
int64_t matmul_integer_scratch(const Signature& s, int threads) {
  return matmul_integer_packed_scratch(s, threads) + matmul_sizes(s).packed_bytes();
}
void matmul_integer_packed(const Call& call) { run_matmul(call, call.input(1).data, call.scratch()); }
void matmul_integer(const Call& call) {
  const host::View &a = call.input(0), &b = call.input(1);
  const MatmulSizes s(a.sizes, b.sizes, a.dtype);
  std::byte* packed = call.scratch() + s.int_bytes() + s.row_bytes();
  pack_b(call.pool(), b.dtype, b.data, s, packed);
  run_matmul(call, packed, call.scratch());
}

// ---- conv_integer: rows are the weights of a channel, columns are windows ----

namespace {

struct ConvShape {
  WindowAxes axes;
  int64_t images, groups, c_in, c_out, depth;

  ConvShape(const ops::ConvAttrs& attrs, Sizes x, Sizes w, Sizes y)
      : axes(joined_where_pointwise(window_axes(attrs, x, y))),
        images(x[0]),
        groups(attrs.groups),
        c_in(x[1]),
        c_out(w[0]),
        depth(product(w.subspan(1))) {}

  // The sums of the rows, then the rows.
  int64_t sum_bytes() const { return aligned(c_out * 4); }
  int64_t packed_bytes() const { return sum_bytes() + aligned(c_out * in_fours(depth)); }
  int64_t zero_bytes() const { return aligned(2 * c_out * 4); }
  int64_t tile_bytes() const { return aligned(kWindows * in_fours(depth)); }
};

void pack_rows(const host::View& w, int64_t depth, std::byte* packed) {
  auto* sums = reinterpret_cast<int32_t*>(packed);
  auto* rows = reinterpret_cast<int8_t*>(packed + aligned(w.dim(0) * 4));
  for (int64_t c = 0; c < w.dim(0); ++c)
    sums[c] = quant::copy_row(reinterpret_cast<const uint8_t*>(w.data) + c * depth, depth, row_flip(w.dtype),
                              rows + c * in_fours(depth));
}

void run_conv(const Call& call, const ConvShape& s, const std::byte* packed, std::byte* scratch) {
  const host::View &x = call.input(0), &w = call.input(1);
  const int64_t windows = windows_of(s.axes), blocks = (windows + kWindows - 1) / kWindows, step = in_fours(s.depth);
  const int64_t rows = s.c_out / s.groups, channels = s.c_in / s.groups;
  const host::ZeroPoints x_zero(call, 2, 1), w_zero(call, 3, s.c_out);
  const auto* sums = reinterpret_cast<const int32_t*>(packed);
  const auto* codes = reinterpret_cast<const int8_t*>(packed + s.sum_bytes());
  auto* row_zeros = reinterpret_cast<int32_t*>(scratch);
  int32_t* row_terms = row_zeros + s.c_out;
  for (int64_t c = 0; c < s.c_out; ++c) {
    row_zeros[c] = w_zero.of(0, c) - row_flip(w.dtype);
    row_terms[c] = term_of(sums[c], s.depth, row_zeros[c]);
  }
  int32_t column_zeros[kColumns];
  std::fill(column_zeros, column_zeros + kColumns, x_zero.of(0, 0) + column_flip(x.dtype));
  call.pool().parallel_for(0, s.images * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    auto* tile = reinterpret_cast<uint8_t*>(scratch + s.zero_bytes() + ThreadPool::this_thread() * s.tile_bytes());
    for (int64_t t = begin; t < end; ++t) {
      const int64_t outer = t / blocks, group = outer % s.groups, first = t % blocks * kWindows;
      const quant::ByteWindows gathered = {.axes = s.axes,
                                           .all = reinterpret_cast<const uint8_t*>(x.data),
                                           .elements = x.elements(),
                                           .first = outer * channels * plane_of(s.axes),
                                           .channels = channels,
                                           .padding = static_cast<uint8_t>(x_zero.of(0, 0)),
                                           .flip = column_flip(x.dtype)};
      int32_t column_sums[kWindows];
      const int64_t n = std::min(kWindows, windows - first);
      quant::gather_windows(gathered, first, n, tile, column_sums);
      for (int64_t c = 0; c < n; c += kColumns) {
        const int64_t channel = group * rows;
        quant::integer_products({codes + channel * step, step, rows, row_zeros + channel, row_terms + channel},
                                {tile + c * step, column_zeros, column_sums + c, std::min(kColumns, n - c)}, s.depth,
                                call.output_as<int32_t>(0) + outer * rows * windows + first + c, windows);
      }
    }
  });
}

ConvShape conv_shape(const Signature& s) {
  return ConvShape(s.attrs.as<ops::ConvAttrs>(), s.input(0).shape.sizes(), s.input(1).shape.sizes(),
                   s.output(0).shape.sizes());
}
ConvShape conv_shape(const Call& call) {
  return ConvShape(call.attrs<ops::ConvAttrs>(), call.input(0).sizes, call.input(1).sizes, call.output(0).sizes);
}

}  // namespace

const host::Packing conv_integer_packing = {
    .operand = 1,
    .bytes = [](const Signature& s) { return conv_shape(s).packed_bytes(); },
    .pack =
        [](const Call& call) {
          const host::View& w = call.input(0);
          pack_rows(w, product(w.sizes.subspan(1)), call.output(0).data);
        },
};

int64_t conv_integer_packed_scratch(const Signature& s, int threads) {
  const ConvShape shape = conv_shape(s);
  return shape.zero_bytes() + threads * shape.tile_bytes();
}
int64_t conv_integer_scratch(const Signature& s, int threads) {
  return conv_shape(s).packed_bytes() + conv_integer_packed_scratch(s, threads);
}
void conv_integer_packed(const Call& call) { run_conv(call, conv_shape(call), call.input(1).data, call.scratch()); }
void conv_integer(const Call& call) {
  const ConvShape s = conv_shape(call);
  pack_rows(call.input(1), s.depth, call.scratch());
  run_conv(call, s, call.scratch(), call.scratch() + s.packed_bytes());
}

}  // namespace rlx::cpu
