// Ops on packed weights. The bytes stay as they are in the file; kernels decode what they read (spec 30, 10 and 21.1).
#include "rlx/ops/dequant.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/dequant_gather.h"
#include "wgsl/dequant_gemm.h"
#include "wgsl/dequant_gemv.h"
#include "wgsl/dequant_gemv_columns.h"
#include "wgsl/dequant_gemv_one.h"
#include "wgsl/dequant_moe_weights.h"
#include "wgsl/expert_sort.h"
#include "wgsl/pack_bytes.h"

namespace rlx::webgpu {

namespace {

// The file with the decoder of a GGUF scheme.
std::string decoder_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kGgufQ4_0: return "decode_q4_0";
    case Scheme::kGgufQ4_1: return "decode_q4_1";
    case Scheme::kGgufQ5_0: return "decode_q5_0";
    case Scheme::kGgufQ5_1: return "decode_q5_1";
    case Scheme::kGgufQ8_0: return "decode_q8_0";
    case Scheme::kGgufQ8_1: return "decode_q8_1";
    case Scheme::kGgufQ2K: return "decode_q2_k";
    case Scheme::kGgufQ3K: return "decode_q3_k";
    case Scheme::kGgufQ4K: return "decode_q4_k";
    case Scheme::kGgufQ5K: return "decode_q5_k";
    case Scheme::kGgufQ6K: return "decode_q6_k";
    case Scheme::kGgufQ8K: return "decode_q8_k";
    case Scheme::kGgufIq4Nl: return "decode_iq4_nl";
    case Scheme::kGgufIq4Xs: return "decode_iq4_xs";
    case Scheme::kGgufF16: return "decode_f16";
    case Scheme::kGgufBf16: return "decode_bf16";
    default: fail(ErrorKind::kInternal, str("Scheme ", scheme, " has no decoder of blocks."));
  }
}

using Includes = std::vector<std::pair<std::string, std::string>>;

// Codes as bytes in words. Those that a step computes lie one per word and are packed first.
Operand read_codes(LowerCall& call, int64_t i) {
  namespace k = wgsl::pack_bytes;
  const Operand given = call.read_packed(i);
  if (call.storage(given) == Storage::kPacked) return given;
  const int64_t n = call.input_type(i).shape.num_elements();
  const Operand packed = call.temporary(Storage::kU32, {(n + 3) / 4});
  call.emit({.kernel = {"pack_bytes", {{"T", std::string(call.element(given))}}},
             .operands = {given, packed},
             .params = {k::Params{.n = to_u32(n)}},
             .grid = {.x = {.items = (n + 3) / 4, .per_group = 256}}},
            "pack_bytes");
  return LowerCall::reading(packed);
}

// Few rows of x share a decoded weight in registers, in kernels for 1, 2, 4 and 8 of them.
constexpr int64_t kFewRows = 8;
uint32_t at_least(int64_t m) { return m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : 8; }

std::string x_loader(const LowerCall& call, Operand x, int64_t k) {
  return k % 4 == 0 && call.starts_at_multiple_of(x, 16) ? "x_quads" : "x_scalars";
}

// Schemes with a kernel of their own for one row of x: what a lane does, and how its words are bound.
struct OneRow {
  const char* part = nullptr;
  bool quads = false;
  bool unrolled = false;
  int64_t chunk = 1024;  // elements that a team takes at a time
};
OneRow one_row_of(const LowerCall& call, Scheme scheme, Operand x, Operand w) {
  if (!call.starts_at_multiple_of(x, 16) || !call.starts_at_multiple_of(w, 16)) return {};
  switch (scheme) {
    case Scheme::kGgufQ4_0: return {.part = "part_q4_0", .unrolled = true};
    case Scheme::kGgufQ4_1: return {.part = "part_q4_1"};
    case Scheme::kGgufQ5_0: return {.part = "part_q5_0", .unrolled = true};
    case Scheme::kGgufQ5_1: return {.part = "part_q5_1"};
    case Scheme::kGgufQ8_0: return {.part = "part_q8_0", .unrolled = true, .chunk = 256};
    case Scheme::kGgufQ4K: return {.part = "part_q4_k", .quads = true};
    case Scheme::kGgufQ5K: return {.part = "part_q5_k", .quads = true};
    case Scheme::kGgufQ6K: return {.part = "part_q6_k", .unrolled = true};
    default: return {};
  }
}
// It reads W once for every row of x, yet is faster than a kernel for several up to so many (H200, 4096 x 4096).
constexpr int64_t kRowsOneByOne = 4;

struct RowsOfX {
  int64_t m, n, k;
  int64_t experts = 0;  // 0: one weight for all rows
  std::optional<Operand> choice;
};

// Every workgroup has one row of x.
void emit_one_row(LowerCall& call, const OneRow& one, const std::string& decoder, const RowsOfX& rows, Operand x,
                  Operand w, Operand y, int64_t row_bytes, bool safe, const char* name) {
  namespace g = wgsl::dequant_gemv_one;
  // Rows of W and teams of 32 lanes of a workgroup: many rows share what a lane has of x, but leave few workgroups.
  // What was fastest on an H200 for 4096 to 16384 rows and columns.
  const bool bytes = one.chunk == 256, large = rows.n * rows.k >= int64_t{1} << 26;
  const int64_t most = bytes ? 8 : one.unrolled || large ? 16 : 8;
  const int64_t per_group = rows.n >= 4096 ? most : rows.n >= 2048 ? 8 : 4;
  const auto chunks = static_cast<uint64_t>((rows.k + one.chunk - 1) / one.chunk);
  const int64_t teams = std::min<int64_t>(bytes ? 8 : 4, static_cast<int64_t>(std::bit_ceil(chunks)));
  Includes includes = {{"part_q4_0", one.part}, {"decode_q4_0", decoder}};
  if (one.quads) includes.emplace_back("words", "words_of_quads");
  if (rows.choice) includes.emplace_back("no_experts", "experts");
  std::vector<Operand> operands = {x, w, y};
  if (rows.choice) operands.push_back(*rows.choice);
  call.emit({.kernel = {"dequant_gemv_one",
                        {{"W", one.quads ? "vec4<u32>" : "u32"}},
                        {{"R", to_u32(per_group)}, {"TEAMS", to_u32(teams)}, {"UNROLLED", one.unrolled ? 1u : 0u}},
                        nullptr,
                        includes},
             .operands = operands,
             .params = {g::Params{.m = to_u32(rows.m),
                                  .n = to_u32(rows.n),
                                  .k = to_u32(rows.k),
                                  .row_bytes = to_u32(row_bytes),
                                  .experts = to_u32(rows.experts)},
                        {&g::Params::m}},
             .grid = {.x = {.items = rows.m * ((rows.n + per_group - 1) / per_group), .active = true}},
             .extent_safe = safe},
            name);
}

// Of so many rows per expert on, tiles of rows that share one take less than a product for each row: decoding a tile of
// W costs what it costs for all of 64 (H200, 4096 x 4096: 87 us per tile, 5.3 per row).
constexpr int64_t kSortedRows = 16;

// Rows sorted by expert, then tiles of rows that share one. How many there are is known on the GPU alone: each expert
// may have one that is not full.
void emit_sorted_rows(LowerCall& call, const RowsOfX& rows, Scheme scheme, Operand x, Operand w, Operand y,
                      int64_t row_bytes, const char* name) {
  namespace g = wgsl::dequant_gemm;
  namespace s = wgsl::expert_sort;
  constexpr int64_t kTile = 64;
  const int64_t most = std::min(rows.m, (rows.m + kTile - 1) / kTile + rows.experts);
  const Operand order = call.temporary(Storage::kU32, {rows.m}), tiles = call.temporary(Storage::kU32, {1 + 3 * most});
  call.emit({.kernel = {"expert_sort", {}, {{"TM", to_u32(kTile)}}},
             .operands = {*rows.choice, order, tiles},
             .params = {s::Params{.rows = to_u32(rows.m), .experts = to_u32(rows.experts)}, {&s::Params::rows}},
             .grid = {},
             .extent_safe = true},
            "expert_sort");
  call.emit({.kernel = {"dequant_gemm",
                        {},
                        {},
                        nullptr,
                        {{"x_quads", x_loader(call, x, rows.k)},
                         {"decode_q4_0", decoder_of(scheme)},
                         {"gemm_rows", "gemm_rows_sorted"}}},
             .operands = {x, w, y, LowerCall::reading(order), LowerCall::reading(tiles)},
             .params = {g::Params{.m = to_u32(rows.m),
                                  .n = to_u32(rows.n),
                                  .k = to_u32(rows.k),
                                  .row_bytes = to_u32(row_bytes),
                                  .experts = to_u32(rows.experts)},
                        {&g::Params::m}},
             .grid = {.x = {.items = most * ((rows.n + kTile - 1) / kTile)}},
             .extent_safe = true},
            name);
}

void lower_blocks(LowerCall& call, Scheme scheme, int64_t m, int64_t n, int64_t k, bool safe) {
  const Operand x = call.read(0), w = read_codes(call, 1), y = call.write(0);
  const Includes includes = {{"x_quads", x_loader(call, x, k)}, {"decode_q4_0", decoder_of(scheme)}};
  const uint32_t row_bytes = to_u32(weight_bytes(scheme, k, 1));
  to_u32(call.input_type(1).shape.num_elements());
  if (const OneRow one = one_row_of(call, scheme, x, w); m <= kRowsOneByOne && one.part) {
    emit_one_row(call, one, decoder_of(scheme), {.m = m, .n = n, .k = k}, x, w, y, row_bytes, safe,
                 "dequant_matmul_gguf");
    return;
  }
  if (m <= kFewRows) {
    namespace g = wgsl::dequant_gemv;
    constexpr int64_t kRows = 2;
    call.emit(
        {.kernel = {"dequant_gemv", {}, {{"M", at_least(m)}, {"ROWS", kRows}}, nullptr, includes},
         .operands = {x, w, y},
         .params = {g::Params{.m = to_u32(m), .n = to_u32(n), .k = to_u32(k), .row_bytes = row_bytes}, {&g::Params::m}},
         .grid = {.x = {.items = n, .per_group = 4 * kRows}},
         .extent_safe = safe},
        "dequant_matmul_gguf");
    return;
  }
  namespace g = wgsl::dequant_gemm;
  call.emit(
      {.kernel = {"dequant_gemm", {}, {}, nullptr, includes},
       .operands = {x, w, y},
       .params = {g::Params{.m = to_u32(m), .n = to_u32(n), .k = to_u32(k), .row_bytes = row_bytes}, {&g::Params::m}},
       .grid = {.x = {.items = (m + 63) / 64 * ((n + 63) / 64)}},
       .extent_safe = safe},
      "dequant_matmul_gguf");
}

void lower_columns(LowerCall& call, const ops::DequantMatmulAttrs& attrs, int64_t m, int64_t n, int64_t k, bool safe) {
  const Scheme scheme = attrs.scheme;
  const bool fp8 = scheme == Scheme::kFp8E4m3 || scheme == Scheme::kFp8E5m2, fp4 = scheme == Scheme::kNvfp4;
  const Operand x = call.read(0), w = read_codes(call, 1), y = call.write(0);
  const Operand scale = fp4 ? read_codes(call, 2) : call.read(2);
  // Zero points that the scheme does not have are not bound either.
  const Operand zero = fp4 || has_zero_point(scheme) ? call.read(3) : scale;
  const std::vector<std::pair<std::string, std::string>> types = {{"S", fp4 ? "u32" : "f32"}};
  std::vector<std::pair<std::string, uint32_t>> constants = {{"SCHEME", static_cast<uint32_t>(scheme)},
                                                             {"BITS", static_cast<uint32_t>(info(scheme).code_bits)}};
  static_assert(static_cast<int>(Scheme::kInt8) == 0 && static_cast<int>(Scheme::kNvfp4) == 5);
  const uint32_t block = to_u32(fp8 ? 16 : fp4 ? 16 : std::min(attrs.block, std::max<int64_t>(k, 1)));
  const uint32_t scale_block = fp8 ? 0 : to_u32(n), scale_column = call.input_type(2).shape.num_elements() > 1 || !fp8;
  to_u32(k * n);
  if (m <= kFewRows) {
    namespace g = wgsl::dequant_gemv_columns;
    constants.emplace_back("M", at_least(m));
    call.emit({.kernel = {"dequant_gemv_columns", types, constants},
               .operands = {x, w, y, scale, zero},
               .params = {g::Params{.m = to_u32(m),
                                    .n = to_u32(n),
                                    .k = to_u32(k),
                                    .block = block,
                                    .scale_block = scale_block,
                                    .scale_column = scale_column},
                          {&g::Params::m}},
               .grid = {.x = {.items = n, .per_group = 64}},
               .extent_safe = safe});
    return;
  }
  namespace g = wgsl::dequant_gemm;
  call.emit({.kernel = {"dequant_gemm",
                        types,
                        constants,
                        nullptr,
                        {{"x_quads", x_loader(call, x, k)}, {"tile_rows", "tile_columns"}}},
             .operands = {x, w, y, scale, zero},
             .params = {g::Params{.m = to_u32(m),
                                  .n = to_u32(n),
                                  .k = to_u32(k),
                                  .block = block,
                                  .scale_block = scale_block,
                                  .scale_column = scale_column},
                        {&g::Params::m}},
             .grid = {.x = {.items = (m + 63) / 64 * ((n + 63) / 64)}},
             .extent_safe = safe});
}

// Threads decode eight elements at a time: only rows of halves may be of other lengths.
bool whole_runs(Scheme scheme, int64_t k) { return info(scheme).block_elems > 1 || k % 8 == 0; }
int64_t columns_of_x(const LowerSignature& s) { return s.input(0).shape.sizes().back(); }

}  // namespace

bool dequant_matmul_supports(const LowerSignature& s, const Device&) {
  const Scheme scheme = s.attrs.as<ops::DequantMatmulAttrs>().scheme;
  return !is_gguf(scheme) || whole_runs(scheme, columns_of_x(s));
}

bool dequant_grouped_matmul_supports(const LowerSignature& s, const Device&) {
  return whole_runs(s.attrs.as<ops::DequantGroupedMatmulAttrs>().scheme, columns_of_x(s));
}

bool dequant_gather_supports(const LowerSignature& s, const Device&) {
  return whole_runs(s.attrs.as<ops::DequantGatherAttrs>().scheme, s.output(0).shape.sizes().back());
}

bool dequant_moe_weights_supports(const LowerSignature& s, const Device&) {
  return whole_runs(s.attrs.as<ops::DequantMoeWeightsAttrs>().scheme, s.output(0).shape.sizes()[1]);
}

void lower_dequant_matmul(LowerCall& call) {
  const auto& attrs = call.attrs<ops::DequantMatmulAttrs>();
  const TensorType &x = call.input_type(0), &y = call.output_type(0);
  const int64_t k = x.dim(x.rank() - 1).value(), n = y.dim(y.rank() - 1).value();
  const int64_t m = y.shape.num_elements() / n;
  const bool safe = x.rank() > 1;  // else axis 0 is the one that is summed
  if (is_gguf(attrs.scheme))
    lower_blocks(call, attrs.scheme, m, n, k, safe);
  else
    lower_columns(call, attrs, m, n, k, safe);
}

void lower_dequant_grouped_matmul(LowerCall& call) {
  namespace g = wgsl::dequant_gemv;
  const auto& attrs = call.attrs<ops::DequantGroupedMatmulAttrs>();
  const int64_t m = call.input_type(0).dim(0).value(), k = call.input_type(0).dim(1).value();
  const int64_t n = call.output_type(0).dim(1).value(), row_bytes = weight_bytes(attrs.scheme, k, 1);
  const int64_t bytes = call.input_type(1).shape.num_elements(), experts = bytes / (row_bytes * n);
  to_u32(bytes);
  check_indices(call, 2, IndexRange{0, experts}, [](int64_t value, int64_t, int64_t end) {
    return str("Expert index (", value, ") is out of range for ", end, " experts.");
  });
  const Operand x = call.read(0), w = read_codes(call, 1), choice = call.read(2), y = call.write(0);
  constexpr const char* kName = "dequant_grouped_matmul_gguf";
  if (m >= std::max(kSortedRows, kSortedRows * experts)) {
    emit_sorted_rows(call, {.m = m, .n = n, .k = k, .experts = experts, .choice = choice}, attrs.scheme, x, w, y,
                     row_bytes, kName);
    return;
  }
  if (const OneRow one = one_row_of(call, attrs.scheme, x, w); one.part) {
    emit_one_row(call, one, decoder_of(attrs.scheme), {.m = m, .n = n, .k = k, .experts = experts, .choice = choice}, x,
                 w, y, row_bytes, true, kName);
    return;
  }
  constexpr int64_t kRows = 2;
  const Includes includes = {
      {"x_quads", x_loader(call, x, k)}, {"decode_q4_0", decoder_of(attrs.scheme)}, {"no_experts", "experts"}};
  call.emit({.kernel = {"dequant_gemv", {}, {{"M", 1}, {"ROWS", kRows}}, nullptr, includes},
             .operands = {x, w, y, choice},
             .params = {g::Params{.m = to_u32(m),
                                  .n = to_u32(n),
                                  .k = to_u32(k),
                                  .row_bytes = to_u32(row_bytes),
                                  .experts = to_u32(experts)},
                        {&g::Params::m}},
             .grid = {.x = {.items = m * ((n + 4 * kRows - 1) / (4 * kRows)), .active = true}},
             .extent_safe = true},
            kName);
}

void lower_dequant_gather(LowerCall& call) {
  namespace g = wgsl::dequant_gather;
  const Scheme scheme = call.attrs<ops::DequantGatherAttrs>().scheme;
  const TensorType& y = call.output_type(0);
  const int64_t k = y.dim(y.rank() - 1).value(), count = y.shape.num_elements() / k;
  const int64_t row_bytes = weight_bytes(scheme, k, 1), bytes = call.input_type(0).shape.num_elements();
  check_indices(call, 1, wrapping(bytes / row_bytes), [](int64_t value, int64_t, int64_t end) {
    return str("Index (", value, ") is out of range for size ", end, ".");
  });
  const Operand w = read_codes(call, 0), index = call.read(1), out = call.write(0);
  call.emit({.kernel = {"dequant_gather", {}, {}, nullptr, {{"decode_q4_0", decoder_of(scheme)}}},
             .operands = {w, index, out},
             .params = {g::Params{.count = to_u32(count),
                                  .k = to_u32(k),
                                  .rows = to_u32(bytes / row_bytes),
                                  .row_bytes = to_u32(row_bytes)},
                        {&g::Params::count}},
             .grid = {.x = {.items = count * (k / 8), .per_group = 64, .active = true}},
             .extent_safe = y.rank() > 1});
}

void lower_dequant_moe_weights(LowerCall& call) {
  namespace g = wgsl::dequant_moe_weights;
  const Scheme scheme = call.attrs<ops::DequantMoeWeightsAttrs>().scheme;
  const TensorType& y = call.output_type(0);
  const int64_t k = y.dim(1).value(), n = y.dim(2).value(), runs = y.shape.num_elements() / 8;
  to_u32(y.shape.num_elements());
  const Operand w = read_codes(call, 0), out = call.write(0);
  call.emit(
      {.kernel = {"dequant_moe_weights", {}, {}, nullptr, {{"decode_q4_0", decoder_of(scheme)}}},
       .operands = {w, out},
       .params = {g::Params{
           .runs = to_u32(runs), .n = to_u32(n), .k = to_u32(k), .row_bytes = to_u32(weight_bytes(scheme, k, 1))}},
       .grid = {.x = {.items = runs, .per_group = 64}}});
}

}  // namespace rlx::webgpu
