// The kernels of a float product: which one, and the steps it takes.
#include "backends/webgpu/lowering/matmul.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/memory.h"
#include "wgsl/expert_sort.h"
#include "wgsl/matmul_params.h"

namespace rlx::webgpu {

using MatmulParams = wgsl::matmul_params::Params;

namespace {

int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }

// ---- which kernel ----

constexpr int64_t kMaxGemvRows = 8;
constexpr int64_t kLongSum = 4096;  // numbers; longer ones are summed in parts
// Workgroups that keep a large GPU busy; WebGPU does not tell how many units there are.
constexpr int64_t kManyGroups = 256, kFewGroups = 96;

// What of a variant depends on the shape.
struct Tiling {
  int64_t tm, tn;
  int64_t step;  // a part of k is made of these; 0: k stays whole
  std::vector<std::pair<std::string, uint32_t>> constants;
};

// For rows of a grouped product in tiles: as for a batch of as many matrices.
const MatmulVariant* choose_sorted(const Matmul& mm) {
  const int64_t rows = mm.shape.matrices();
  if (!mm.index || mm.experts == 0) return nullptr;
  if (const MatmulVariant* forced = ForceMatmul::current().variant) return forced->tk == 0 ? nullptr : forced;
  if (rows < 32 || rows < 2 * mm.experts) return nullptr;  // few rows each: a GEMV streams what it needs
  MatmulShape each = mm.shape;
  each.m = std::max<int64_t>(ceil_div(rows, mm.experts), kMaxGemvRows + 1);
  each.batch = {{mm.experts, 0, 0}};
  return &choose_matmul_tile(each);
}

Tiling tiling_of(const MatmulVariant& v, const MatmulShape& shape, int64_t rhs_bytes) {
  if (v.tk == 0 && v.tm != 0) return {v.tm, v.tn, 0, {}};
  if (v.tm != 0) return {v.tm, v.tn, v.tk, {}};
  const auto rows = std::min(kMaxGemvRows, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shape.m))));
  // 128 bytes side by side at least; more where that leaves enough workgroups.
  uint32_t lanes = rhs_bytes >= 4 ? 8 : 16;
  if (shape.matrices() * ceil_div(shape.n, 128) >= kManyGroups) lanes = 32;
  return {rows, lanes * 4, 256 / lanes * 8, {{"ROWS", static_cast<uint32_t>(rows)}, {"LX", lanes}}};
}

// How much of k one workgroup sums: all of it, unless the grid is small and k long.
int64_t chunk_of(const MatmulShape& s, const Tiling& t, const MatmulChoice& choice) {
  if (s.k == 0 || s.matrices() != 1 || t.step == 0) return s.k;
  int64_t splits = choice.splits;
  if (splits == 0) {  // a GEMV
    const int64_t groups = ceil_div(s.m, t.tm) * ceil_div(s.n, t.tn);
    if (groups >= kFewGroups) return s.k;
    splits = std::min({ceil_div(kManyGroups, groups), s.k / 256, int64_t{64}});
  }
  if (splits < 2) return s.k;
  const int64_t chunk = ceil_div(ceil_div(s.k, splits), t.step) * t.step;
  return std::min(chunk, s.k);
}

// ---- one product ----

MatmulParams params_of(const MatmulShape& shape, int64_t tm, int64_t tn) {
  // Every element's index fits.
  int64_t lhs_end = checked_mul(shape.m, shape.k), rhs_end = checked_mul(shape.k, shape.n);
  for (const BatchAxis& axis : shape.batch) {
    lhs_end += checked_mul(axis.size - 1, axis.lhs_stride);
    rhs_end += checked_mul(axis.size - 1, axis.rhs_stride);
  }
  for (const int64_t end : {lhs_end, rhs_end, checked_mul(checked_mul(shape.matrices(), shape.m), shape.n)})
    to_u32(end);
  MatmulParams p{.m = to_u32(shape.m),
                 .n = to_u32(shape.n),
                 .k = to_u32(shape.k),
                 .batch = to_u32(shape.matrices()),
                 .tiles_m = to_u32(ceil_div(shape.m, tm)),
                 .tiles_n = to_u32(ceil_div(shape.n, tn)),
                 .chunk = to_u32(shape.k)};
  p.d1 = p.d2 = p.d3 = 1;
  uint32_t* lhs[] = {&p.lhs_s0, &p.lhs_s1, &p.lhs_s2, &p.lhs_s3};
  uint32_t* rhs[] = {&p.rhs_s0, &p.rhs_s1, &p.rhs_s2, &p.rhs_s3};
  uint32_t* sizes[] = {nullptr, &p.d1, &p.d2, &p.d3};
  RLX_ASSERT(shape.batch.size() <= kMaxBatchAxes);
  const size_t first = kMaxBatchAxes - shape.batch.size();
  for (size_t i = 0; i < shape.batch.size(); ++i) {
    *lhs[first + i] = to_u32(shape.batch[i].lhs_stride);
    *rhs[first + i] = to_u32(shape.batch[i].rhs_stride);
    if (first + i > 0) *sizes[first + i] = to_u32(shape.batch[i].size);
  }
  return p;
}

// Rows, or matrices and their rows, along x, which may wrap into y; columns along z.
Grid grid_of(const MatmulShape& shape, int64_t tm, int64_t tn) {
  const int64_t batch = shape.matrices();
  return {.x = batch == 1 ? Axis{.items = shape.m, .per_group = tm, .active = true}
                          : Axis{.items = batch * ceil_div(shape.m, tm), .active = true},
          .z = {.items = ceil_div(shape.n, tn)}};
}

// More tiles of columns than z has places lie along x, behind those of rows (FOLDED of matmul_params.wgsl).
void fold_columns(const LowerCall& call, const MatmulParams& params, Grid& grid, KernelKey& key) {
  if (grid.z.items <= limits_for(call.device(), call.options()).groups_per_row) return;
  grid = {.x = {.items = int64_t{params.tiles_m} * params.batch * params.tiles_n}};
  key.constants.emplace_back("FOLDED", 1);
}

std::string vector_of(std::string_view element) { return str("vec4<", element, ">"); }

class Emitter {
 public:
  Emitter(LowerCall& call, const Matmul& matmul)
      : call_(call),
        matmul_(matmul),
        shape_(matmul.shape),
        sorted_(choose_sorted(matmul)),
        choice_(sorted_        ? MatmulChoice{sorted_}
                : matmul.index ? MatmulChoice{&matmul_gemv(), ForceMatmul::current().splits}
                               : choose_matmul(shape_)),
        variant_(*choice_.variant),
        tiling_(tiling_of(variant_, shape_, matmul.rhs_is_bf16 ? 2 : element_bytes(call.element(matmul.rhs)))) {
    choose_vectors();
  }

  void run() {
    if (sorted_)
      run_sorted();
    else
      run_plain();
  }

 private:
  void run_plain() {
    const int64_t chunk = chunk_of(shape_, tiling_, choice_), splits = chunk == 0 ? 1 : ceil_div(shape_.k, chunk);
    params_ = params_of(shape_, tiling_.tm, tiling_.tn);
    params_.chunk = to_u32(chunk);
    params_.part = to_u32(splits > 1 ? shape_.m * shape_.n : 0);
    params_.experts = to_u32(matmul_.experts);
    to_u32(checked_mul(splits, shape_.m * shape_.n));  // every element's index fits
    // With one matrix the rows are what the active extent cuts; else the matrices, which lie outermost.
    const bool one = shape_.matrices() == 1;
    Grid grid = grid_of(shape_, tiling_.tm, tiling_.tn);
    grid.z.items *= splits;
    if (tiling_.step == 0)  // a thread, not a workgroup, per tile
      grid = {.x = {.items = shape_.matrices() * shape_.m * ceil_div(shape_.n, tiling_.tn),
                    .per_group = 64,
                    .active = true}};
    const bool extent_safe = !one || shape_.m > 1;
    const auto params = [&] { return Params(params_, {one ? &MatmulParams::m : &MatmulParams::batch}); };

    KernelKey key = start_key();
    std::vector<Operand> operands;
    read_lhs(key, operands, matmul_.lhs, lhs_vector_);
    read_rhs(key, operands);
    if (splits == 1) {
      fold_columns(call_, params_, grid, key);
      add_epilogue(key, operands);
      read_index(key, operands);
      call_.emit({.kernel = std::move(key),
                  .operands = std::move(operands),
                  .params = params(),
                  .grid = grid,
                  .extent_safe = extent_safe});
      return;
    }
    const Operand parts = call_.temporary(Storage::kF32, {splits, shape_.m, shape_.n});
    const bool vector = shape_.n % 4 == 0;
    write_to(key, operands, parts, vector);
    read_index(key, operands);
    call_.emit({.kernel = std::move(key),
                .operands = std::move(operands),
                .params = params(),
                .grid = grid,
                .extent_safe = extent_safe},
               str(call_.op().name, "_parts"));
    KernelKey combine{.kernel = "matmul_combine"};
    std::vector<Operand> combined;
    read_lhs(combine, combined, LowerCall::reading(parts), vector);
    add_epilogue(combine, combined);
    call_.emit({.kernel = std::move(combine),
                .operands = std::move(combined),
                .params = params(),
                .grid = {.x = {.items = shape_.m * ceil_div(shape_.n, 4), .per_group = 64, .active = true}},
                .extent_safe = extent_safe},
               str(call_.op().name, "_combine"));
  }

  // A grouped product: rows sorted by expert, then tiles of rows that share one. How many tiles there are is known on
  // the GPU alone: each expert may have one that is not full.
  void run_sorted() {
    namespace k = wgsl::expert_sort;
    const int64_t rows = shape_.matrices();
    const int64_t most = std::min(rows, ceil_div(rows, tiling_.tm) + matmul_.experts);
    order_ = call_.temporary(Storage::kU32, {rows});
    tiles_ = call_.temporary(Storage::kU32, {1 + 3 * most});
    call_.emit({.kernel = {"expert_sort", {}, {{"TM", to_u32(tiling_.tm)}}},
                .operands = {*matmul_.index, *order_, *tiles_},
                .params = {k::Params{.rows = to_u32(rows), .experts = to_u32(matmul_.experts)}, {&k::Params::rows}},
                .grid = {},
                .extent_safe = true},
               "expert_sort");
    const MatmulShape all{.m = rows, .n = shape_.n, .k = shape_.k};
    params_ = params_of(all, tiling_.tm, tiling_.tn);
    params_.tiles_m = to_u32(most);
    params_.experts = to_u32(matmul_.experts);
    KernelKey key = start_key();
    Grid grid = {.x = {.items = most}, .z = {.items = ceil_div(shape_.n, tiling_.tn)}};
    fold_columns(call_, params_, grid, key);
    std::vector<Operand> operands;
    read_lhs(key, operands, matmul_.lhs, lhs_vector_);
    read_rhs(key, operands);
    add_epilogue(key, operands);
    read_index(key, operands);
    call_.emit({.kernel = std::move(key),
                .operands = std::move(operands),
                .params = {params_, {&MatmulParams::m}},
                .grid = grid,
                .extent_safe = true});
  }

  // Called what the table's row is called, so that reports tell the rows apart.
  KernelKey start_key() const {
    return {.kernel = std::string(variant_.name),
            .constants = tiling_.constants,
            .source = std::make_shared<std::string>(variant_.file.empty()
                                                        ? matmul_tile_source(variant_, params_.chunk > kLongSum)
                                                        : str("// @include \"", variant_.file, ".wgsl\"\n"))};
  }

  // Rows that are made of fours are loaded and stored as vectors. Operands that lie in one root may share a binding,
  // and are then of one type.
  void choose_vectors() {
    const auto starts = [&](Operand o) { return call_.starts_at_multiple_of(o, 4 * element_bytes(call_.element(o))); };
    lhs_vector_ = shape_.k % 4 == 0 && starts(matmul_.lhs);
    rhs_vector_ = shape_.n % 4 == 0 && (matmul_.rhs_is_bf16 || starts(matmul_.rhs));
    if (call_.same_root(matmul_.lhs, matmul_.rhs) && lhs_vector_ != rhs_vector_) lhs_vector_ = rhs_vector_ = false;
    if (matmul_.bias && (call_.same_root(matmul_.lhs, *matmul_.bias) || call_.same_root(matmul_.rhs, *matmul_.bias)))
      lhs_vector_ = rhs_vector_ = false;
    int64_t start = 0;
    for (const MatmulPart& part : matmul_.results) {
      result_vector_ &= start % 4 == 0 && part.width % 4 == 0 && (!part.result || starts(*part.result));
      start += part.width;
    }
  }

  void read_lhs(KernelKey& key, std::vector<Operand>& operands, Operand lhs, bool vector) const {
    const std::string_view element = call_.element(lhs);
    if (vector) key.includes.emplace_back("matmul_lhs", "matmul_lhs_vec");
    key.types.emplace_back("L", vector ? vector_of(element) : std::string(element));
    operands.push_back(lhs);
  }

  void read_rhs(KernelKey& key, std::vector<Operand>& operands) const {
    operands.push_back(matmul_.rhs);
    if (matmul_.rhs_is_bf16) {
      key.includes.emplace_back("matmul_rhs", "matmul_rhs_bf16");
      return;
    }
    const std::string_view element = call_.element(matmul_.rhs);
    if (rhs_vector_) key.includes.emplace_back("matmul_rhs", "matmul_rhs_vec");
    key.types.emplace_back("R", rhs_vector_ ? vector_of(element) : std::string(element));
  }

  void write_to(KernelKey& key, std::vector<Operand>& operands, Operand result, bool vector) const {
    const std::string_view element = call_.element(result);
    if (vector) key.includes.emplace_back("matmul_store", "matmul_store_vec");
    key.types.emplace_back("T", vector ? vector_of(element) : std::string(element));
    operands.push_back(result);
  }

  // Which matrix each row is multiplied with.
  void read_index(KernelKey& key, std::vector<Operand>& operands) const {
    if (order_) {
      key.includes.emplace_back("matmul_batch", "matmul_sorted");
      operands.push_back(LowerCall::reading(*order_));
      operands.push_back(LowerCall::reading(*tiles_));
      return;
    }
    if (!matmul_.index) return;
    key.includes.emplace_back("matmul_batch", "matmul_experts");
    operands.push_back(*matmul_.index);
  }

  // Bias and activation, and the results.
  void add_epilogue(KernelKey& key, std::vector<Operand>& operands) {
    if (matmul_.bias) {
      key.includes.emplace_back("matmul_epilogue", "matmul_epilogue_bias");
      key.types.emplace_back("BiasT", std::string(call_.element(*matmul_.bias)));
      key.constants.emplace_back("ACTIVATION", static_cast<uint32_t>(matmul_.activation));
      operands.push_back(*matmul_.bias);
    } else {
      RLX_ASSERT(matmul_.activation == ops::ActivationKind::kNone);
    }
    if (matmul_.results.size() == 1) {
      write_to(key, operands, *matmul_.results[0].result, result_vector_);
      return;
    }
    RLX_ASSERT(matmul_.results.size() <= 4);
    Operand some;
    for (const MatmulPart& part : matmul_.results)
      if (part.result) some = *part.result;
    key.includes.emplace_back("matmul_store", result_vector_ ? "matmul_store_split_vec" : "matmul_store_split");
    const std::string_view element = call_.element(some);
    key.types.emplace_back("T", result_vector_ ? vector_of(element) : std::string(element));
    uint32_t* starts[] = {&params_.start1, &params_.start2, &params_.start3};
    int64_t start = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool given = i < matmul_.results.size();
      // In place of a part that is not there, or not read, something is bound that is not written.
      const bool written = given && matmul_.results[i].result.has_value();
      operands.push_back(written ? *matmul_.results[i].result : call_.temporary(call_.storage(some), {4}));
      if (!written) params_.skip |= 1u << i;
      if (given) start += matmul_.results[i].width;
      if (i < 3) *starts[i] = to_u32(start);
    }
  }

  LowerCall& call_;
  const Matmul& matmul_;
  const MatmulShape& shape_;
  const MatmulVariant* sorted_;  // of a grouped product whose rows are sorted
  MatmulChoice choice_;
  const MatmulVariant& variant_;
  Tiling tiling_;
  MatmulParams params_;
  std::optional<Operand> order_, tiles_;  // of a sorted product
  bool lhs_vector_ = false, rhs_vector_ = false, result_vector_ = true;
};

}  // namespace

void emit_matmul(LowerCall& call, const Matmul& matmul) { Emitter(call, matmul).run(); }

void emit_matmul_int(LowerCall& call, const MatmulShape& shape, Operand lhs, Operand rhs, Operand result,
                     std::optional<Operand> index, int64_t experts) {
  constexpr int64_t kTile = 16;
  const size_t bytes = size_of(call.output_type(0).dtype);
  KernelKey key{.kernel = "matmul_int",
                .types = {{"T", std::string(call.element(result))}},
                .constants = {{"SHIFT", bytes >= 4 ? 0 : static_cast<uint32_t>(32 - 8 * bytes)}}};
  std::vector<Operand> operands{lhs, rhs, result};
  if (index) {
    key.includes.emplace_back("matmul_batch", "matmul_experts");
    operands.push_back(*index);
  }
  MatmulParams params = params_of(shape, kTile, kTile);
  params.experts = to_u32(experts);
  const bool one = shape.matrices() == 1;
  Grid grid = grid_of(shape, kTile, kTile);
  fold_columns(call, params, grid, key);
  call.emit({.kernel = std::move(key),
             .operands = std::move(operands),
             .params = {params, {one ? &MatmulParams::m : &MatmulParams::batch}},
             .grid = grid,
             .extent_safe = !one || shape.m > 1});
}

}  // namespace rlx::webgpu
