// dequant_matmul and dequant_grouped_matmul with weights packed for byte dot products (quant/packed.h).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/expert_plan.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/packed.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"
#include "rlx/ops/dequant.h"

namespace rlx::cpu {

namespace {

using quant::Activations;
using quant::kColumns;
using quant::kUnit;
using quant::Layout;
using quant::Side;

// Rows whose activations stay in L2 while the groups go by.
constexpr int64_t kRowBlock = 32;
// Packed bytes that are worth a thread of their own.
constexpr int64_t kGrainBytes = 1 << 16;

const uint8_t* bytes_of(const host::View& view) { return reinterpret_cast<const uint8_t*>(view.data); }

int64_t units_of(int64_t k) { return div_up(k, kUnit); }

// The rows of x as blocks of fixed-point numbers, and which of them are not finite.
struct Prepared {
  const float* x;
  int64_t k, units;
  Activations* blocks;
  bool* finite;

  const Activations* row(int64_t i) const { return blocks + i * units; }
  static int64_t bytes(int64_t m, int64_t k) {
    return m * units_of(k) * static_cast<int64_t>(sizeof(Activations)) + round_up(m, 64);
  }
};

Prepared prepare(const Call& call, const Layout& layout, int64_t m, int64_t k) {
  Prepared p{call.input_as<float>(0), k, units_of(k), call.scratch_as<Activations>(), nullptr};
  p.finite = reinterpret_cast<bool*>(p.blocks + m * p.units);
  call.pool().parallel_for(0, m, std::max<int64_t>(1, kGrain / k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      p.finite[i] = quant::prepare_row(layout, p.x + i * k, k, p.blocks + i * p.units);
  });
  return p;
}

bool all_finite(const float* y, int64_t n) {
  return std::all_of(y, y + n, [](float v) { return std::isfinite(v); });
}

// The columns of one group for at most kRowBlock rows of x, whose numbers are in `rows`.
void multiply_group(const Layout& layout, const int8_t* table, const uint8_t* group, const Side& side,
                    const Prepared& x, std::span<const int64_t> rows, float* y, int64_t stride) {
  const Activations* finite[kRowBlock];
  int64_t numbers[kRowBlock], count = 0;
  float sums[kRowBlock][kColumns];
  const auto write = [&](int64_t row, const float* from) {
    std::memcpy(y + row * stride, from, static_cast<size_t>(side.columns) * sizeof(float));
  };
  for (const int64_t i : rows) {
    if (x.finite[i]) {
      finite[count] = x.row(i);
      numbers[count++] = i;
      continue;
    }
    quant::dot_group_exactly(layout, table, group, side, x.k, x.x + i * x.k, sums[0]);
    write(i, sums[0]);
  }
  quant::dot_group(layout, table, group, side, x.k, std::span(finite, static_cast<size_t>(count)), sums);
  for (int64_t r = 0; r < count; ++r) {
    // An infinite scale, or an overflow on the way: then the order of the operations shows.
    if (!all_finite(sums[r], side.columns))
      quant::dot_group_exactly(layout, table, group, side, x.k, x.x + numbers[r] * x.k, sums[r]);
    write(numbers[r], sums[r]);
  }
}

Scheme scheme_of(const Attrs& attrs) { return attrs.as<ops::DequantMatmulAttrs>().scheme; }
Scheme grouped_scheme(const Attrs& attrs) { return attrs.as<ops::DequantGroupedMatmulAttrs>().scheme; }

int64_t last_dim(const TensorType& t) { return t.shape.sizes().back(); }

struct Sizes {
  int64_t m, k, n;
};
Sizes sizes_of(const Signature& s) {
  const int64_t k = last_dim(s.input(0)), n = last_dim(s.output(0));
  return {s.output(0).shape.num_elements() / n, k, n};
}

int64_t packed_bytes(const Signature& s) {
  const auto [m, k, n] = sizes_of(s);
  return quant::groups_of(n) * quant::layout_of(scheme_of(s.attrs))->group_bytes(k);
}

void pack(const Call& call) {
  const Scheme scheme = scheme_of(call.raw_attrs());
  const int64_t k = call.output(0).dim(0), n = call.output(0).dim(1);
  const int64_t bytes = quant::layout_of(scheme)->group_bytes(k);
  auto* out = reinterpret_cast<uint8_t*>(call.output(0).data);
  call.pool().parallel_for(0, quant::groups_of(n), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) quant::pack_group(scheme, bytes_of(call.input(0)), k, n, g, out + g * bytes);
  });
}

// N of an expert, K, and how many experts there are.
struct Experts {
  int64_t count, k, n;
};
Experts experts_of(const Signature& s) {
  const int64_t k = last_dim(s.input(0)), n = last_dim(s.output(0));
  return {s.input(1).shape.num_elements() / weight_bytes(grouped_scheme(s.attrs), k, n), k, n};
}

int64_t packed_expert_bytes(const Signature& s) {
  const auto [count, k, n] = experts_of(s);
  return count * quant::groups_of(n) * quant::layout_of(grouped_scheme(s.attrs))->group_bytes(k);
}

void pack_experts(const Call& call) {
  const Scheme scheme = grouped_scheme(call.raw_attrs());
  const int64_t count = call.output(0).dim(0), k = call.output(0).dim(1), n = call.output(0).dim(2);
  const int64_t groups = quant::groups_of(n), bytes = quant::layout_of(scheme)->group_bytes(k);
  auto* out = reinterpret_cast<uint8_t*>(call.output(0).data);
  call.pool().parallel_for(0, count * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g)
      quant::pack_group(scheme, bytes_of(call.input(0)) + g / groups * weight_bytes(scheme, k, n), k, n, g % groups,
                        out + g * bytes);
  });
}

}  // namespace

const host::Packing kDequantPacking{1, packed_bytes, pack, [](const Signature& s) {
                                      const auto [m, k, n] = sizes_of(s);
                                      return std::vector{k, n};
                                    }};
const host::Packing kDequantGroupedPacking{1, packed_expert_bytes, pack_experts, [](const Signature& s) {
                                             const auto [count, k, n] = experts_of(s);
                                             return std::vector{count, k, n};
                                           }};

bool dequant_packed_supports(const Signature& s) {
  if (!quant::has_byte_dot() || !s.is_static(1)) return false;
  const auto& attrs = s.attrs.as<ops::DequantMatmulAttrs>();
  const Layout* layout = quant::layout_of(attrs.scheme);
  if (layout == nullptr) return false;
  const bool blocks_of_units = layout->scales != quant::Scales::kSide && layout->scales != quant::Scales::kSideZero;
  return last_dim(s.input(0)) > 0 && (blocks_of_units || attrs.block % kUnit == 0);
}

bool dequant_grouped_packed_supports(const Signature& s) {
  return quant::has_byte_dot() && s.is_static(1) && quant::layout_of(grouped_scheme(s.attrs)) != nullptr;
}

int64_t dequant_packed_scratch(const Signature& s, int) {
  const auto [m, k, n] = sizes_of(s);
  return Prepared::bytes(m, k);
}

void dequant_matmul_packed(const Call& call) {
  const auto& attrs = call.attrs<ops::DequantMatmulAttrs>();
  const Layout& layout = *quant::layout_of(attrs.scheme);
  const int64_t k = call.input(0).dim(call.input(0).rank() - 1), n = call.output(0).dim(call.output(0).rank() - 1);
  const int64_t m = call.output(0).elements() / n, groups = quant::groups_of(n), bytes = layout.group_bytes(k);
  const Prepared x = prepare(call, layout, m, k);
  const int8_t* table = quant::code_table(attrs.scheme);
  float* y = call.output_as<float>(0);
  const auto side_at = [&](int64_t column) {
    Side side{.stride = n, .columns = std::min(kColumns, n - column), .block = attrs.block};
    if (attrs.scheme == Scheme::kNvfp4) {
      side.scale8 = bytes_of(call.input(2)) + column;
      side.scale_rows = call.input(2).dim(0);
      side.global = call.input_as<float>(3)[0];
    } else if (!is_gguf(attrs.scheme)) {
      side.scale = call.input_as<float>(2) + column;
      if (has_zero_point(attrs.scheme)) side.zero = call.input_as<float>(3) + column;
    }
    return side;
  };
  const auto multiply = [&](int64_t g, int64_t row, int64_t count) {
    int64_t rows[kRowBlock];
    for (int64_t i = 0; i < count; ++i) rows[i] = row + i;
    multiply_group(layout, table, bytes_of(call.input(1)) + g * bytes, side_at(g * kColumns), x,
                   std::span(rows, static_cast<size_t>(count)), y + g * kColumns, n);
  };
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / bytes);
  if (m == 1 && x.finite[0]) {
    constexpr int64_t kFour = quant::kGroupsAtOnce;
    call.pool().parallel_for(0, div_up(groups, kFour), div_up(grain, kFour), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t g = t * kFour;
        float sums[kFour][kColumns];
        const bool whole = (g + kFour) * kColumns <= n;
        if (whole)
          quant::dot_four_groups(layout, table, bytes_of(call.input(1)) + g * bytes, side_at(g * kColumns), k, x.row(0),
                                 sums);
        if (whole && all_finite(sums[0], kFour * kColumns))
          std::memcpy(y + g * kColumns, sums, sizeof sums);
        else
          for (int64_t i = g; i < std::min(g + kFour, groups); ++i) multiply(i, 0, 1);
      }
    });
    return;
  }
  const int64_t row_blocks = div_up(m, kRowBlock);
  call.pool().parallel_for(0, row_blocks * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / groups * kRowBlock;
      multiply(t % groups, row, std::min(kRowBlock, m - row));
    }
  });
}

int64_t dequant_grouped_packed_scratch(const Signature& s, int) {
  const int64_t m = s.input(0).shape.sizes()[0], k = last_dim(s.input(0));
  return Prepared::bytes(m, k) + ExpertPlan::bytes(m);
}

void dequant_grouped_matmul_packed(const Call& call) {
  const Scheme scheme = call.attrs<ops::DequantGroupedMatmulAttrs>().scheme;
  const Layout& layout = *quant::layout_of(scheme);
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1), n = call.output(0).dim(1);
  const int64_t experts = call.input(1).elements() / weight_bytes(scheme, k, n);
  const int64_t groups = quant::groups_of(n), bytes = layout.group_bytes(k);
  const ExpertPlan plan(call.int_reader(2), m, experts,
                        reinterpret_cast<int64_t*>(call.scratch() + Prepared::bytes(m, k)));
  const Prepared x = prepare(call, layout, m, k);
  const int8_t* table = quant::code_table(scheme);
  float* y = call.output_as<float>(0);
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / bytes);
  call.pool().parallel_for(0, plan.runs() * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t g = t % groups, column = g * kColumns;
      const Side side{.stride = n, .columns = std::min(kColumns, n - column)};
      const std::span<const int64_t> rows = plan.rows(t / groups);
      const uint8_t* group = bytes_of(call.input(1)) + (plan.expert(t / groups) * groups + g) * bytes;
      for (size_t first = 0; first < rows.size(); first += kRowBlock)
        multiply_group(layout, table, group, side, x,
                       rows.subspan(first, std::min<size_t>(kRowBlock, rows.size() - first)), y + column, n);
    }
  });
}

}  // namespace rlx::cpu
