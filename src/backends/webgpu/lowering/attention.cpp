#include "backends/webgpu/lowering/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "rlx/ops/paged_kv.h"
#include "wgsl/attention_merge.h"

namespace rlx::webgpu {

namespace {

constexpr uint32_t kNegInf = 0xff800000u;
constexpr int32_t kNoWindow = 1 << 30;
constexpr int64_t kMostParts = 512;  // of the keys: MOST of attention_merge.wgsl

struct Strides {
  int64_t batch, head, seq;
};
Strides strides_of(ops::AttentionLayout layout, int64_t heads, int64_t seq, int64_t width) {
  if (layout == ops::AttentionLayout::kBhsd) return {heads * seq * width, seq * width, width};
  return {seq * heads * width, width, heads * width};
}

struct Heads {
  Operand operand;
  Strides strides;
};
// Operand i, whose heads lie at `dense` strides, or where the moves in front of it found it.
Heads read_heads(LowerCall& call, int64_t i, ops::AttentionLayout layout, int64_t width, Strides dense, bool strided) {
  if (strided)
    if (const auto found = call.read_strided(i); found && found->strides.back() == 1) {
      const auto& s = found->strides;
      if (layout == ops::AttentionLayout::kBhsd) return {found->operand, {s[0], s[1], s[2]}};
      return {found->operand, {s[0], layout == ops::AttentionLayout::kBshd ? s[2] : width, s[1]}};
    }
  return {call.read(i), dense};
}

}  // namespace

// Are the mask's rows in use those of queries or keys? An axis of its own may be broadcast at one row, and not at two.
static bool mask_follows(const LowerCall& call, int64_t mask, int64_t seq_axis) {
  const int64_t axis = call.bucket_axis(mask), rank = call.input_type(mask).rank();
  if (axis == rank - 1) return call.bucket_axis(1) == seq_axis;
  if (axis == 0) return call.bucket_axis(0) == 0;
  return axis < 0 || (axis == rank - 2 && call.bucket_axis(0) == seq_axis);
}

AttentionProblem::AttentionProblem(LowerCall& call, int64_t next, bool has_kv_len, bool strided) {
  const auto& attrs = call.attrs<ops::AttentionAttrs>();
  const TensorType &qt = call.input_type(0), &kt = call.input_type(1);
  const bool bhsd = attrs.layout == ops::AttentionLayout::kBhsd;
  const auto size = [](const TensorType& t, int64_t axis) { return t.dim(axis).value(); };
  const int64_t width = attrs.head_dim, heads = attrs.num_heads;
  const int64_t seq_q = size(qt, bhsd ? 2 : 1), seq_k = size(kt, bhsd ? 2 : 1);
  const int64_t kv_heads = bhsd                                          ? size(kt, 1)
                           : attrs.layout == ops::AttentionLayout::kBshd ? size(kt, 2)
                                                                         : size(kt, 2) / width;
  const Strides qs = strides_of(attrs.layout, heads, seq_q, width),
                ks = strides_of(attrs.layout, kv_heads, seq_k, width);
  to_u32(qt.shape.num_elements());
  to_u32(kt.shape.num_elements());
  params = {.batch = to_u32(size(qt, 0)),
            .heads = to_u32(heads),
            .kv_heads = to_u32(kv_heads),
            .group = to_u32(heads / kv_heads),
            .seq_q = to_u32(seq_q),
            .seq_k = to_u32(seq_k),
            .head_dim = to_u32(width),
            .lse_seq = to_u32(seq_q),
            .y_batch = to_u32(qs.batch),
            .y_head = to_u32(qs.head),
            .y_seq = to_u32(qs.seq)};
  set_scores(attrs);
  set_active(call, bhsd ? 2 : 1, true);
  const auto heads_of = [&](int64_t i, const Strides& dense) {
    return read_heads(call, i, attrs.layout, width, dense, strided);
  };
  const Heads q_heads = heads_of(0, qs);
  const Heads k_heads = seq_k > 0 ? heads_of(1, ks) : q_heads;  // what is empty has no bytes to bind
  const Heads v_heads = seq_k > 0 ? heads_of(2, ks) : q_heads;
  q = q_heads.operand;
  k = k_heads.operand;
  v = v_heads.operand;
  params.q_batch = to_u32(q_heads.strides.batch);
  params.q_head = to_u32(q_heads.strides.head);
  params.q_seq = to_u32(q_heads.strides.seq);
  params.k_batch = to_u32(k_heads.strides.batch);
  params.k_head = to_u32(k_heads.strides.head);
  params.k_seq = to_u32(k_heads.strides.seq);
  params.v_batch = to_u32(v_heads.strides.batch);
  params.v_head = to_u32(v_heads.strides.head);
  params.v_seq = to_u32(v_heads.strides.seq);
  type = call.element(q);
  key_type = call.element(k);
  const uint32_t unused[] = {0};
  mask = lengths = call.table(unused);
  mask_type = "i32";  // that of the lengths: where the node is of weights alone, both share a binding
  if (ops::has_mask_operand(attrs.mask_kind)) {
    mask_use = attrs.mask_kind == ops::MaskKind::kCustom ? 1 : 2;
    const TensorType& t = call.input_type(next);
    extent_safe &= mask_follows(call, next, bhsd ? 2 : 1);
    if (t.shape.num_elements() > 0) {
      mask = call.read(next);
      mask_type = call.element(mask);
    }
    ++next;
    int64_t stride = 1, axis = t.rank();
    const auto dim = [&](bool present) -> uint32_t {
      if (!present) return 0;
      const int64_t n = size(t, --axis), own = n == 1 ? 0 : stride;
      stride *= n;
      return to_u32(own);
    };
    params.mask_key = dim(true);
    params.mask_seq = dim(t.rank() >= 3);
    params.mask_head = dim(t.rank() == 4);
    params.mask_batch = dim(true);
    to_u32(t.shape.num_elements());
  }
  params.has_lengths = has_kv_len;
  if (!has_kv_len) return;
  check_indices(call, next, IndexRange{0, seq_k + 1}, [](int64_t value, int64_t b, int64_t end) {
    return str("kv_len (", value, ") of batch ", b, " is outside 0 … ", end - 1, ".");
  });
  lengths = call.read(next);
}

void AttentionProblem::set_scores(const ops::AttentionAttrs& attrs) {
  const bool windowed = attrs.mask_kind == ops::MaskKind::kSlidingWindow;
  params.scale =
      attrs.score_scale ? *attrs.score_scale : static_cast<float>(1 / std::sqrt(static_cast<double>(attrs.head_dim)));
  params.softcap = std::max(attrs.attn_logit_softcap.value_or(0), 0.0f);
  params.causal = windowed || attrs.mask_kind == ops::MaskKind::kCausal;
  params.window = windowed ? static_cast<int32_t>(std::min<int64_t>(attrs.window, kNoWindow)) : kNoWindow;
  params.neg_inf = kNegInf;
}

// Which counts the active extent cuts: batches, queries, and keys where they are a sequence of the graph's.
void AttentionProblem::set_active(LowerCall& call, int64_t seq_axis, bool keys_too) {
  const int64_t q_axis = call.bucket_axis(0), k_axis = call.bucket_axis(1);
  const auto cut = [&](uint32_t wgsl::attention_params::Params::*field) {
    active.push_back(static_cast<uint32_t>(&(params.*field) - &params.batch));
  };
  if (q_axis == 0) cut(&wgsl::attention_params::Params::batch);
  if (q_axis == seq_axis) cut(&wgsl::attention_params::Params::seq_q);
  if (keys_too && k_axis == seq_axis) cut(&wgsl::attention_params::Params::seq_k);
  extent_safe = (q_axis <= 0 || q_axis == seq_axis) && (keys_too ? k_axis <= 0 || k_axis == seq_axis : k_axis < 0);
}

AttentionProblem AttentionProblem::paged(LowerCall& call) {
  const auto& attrs = call.attrs<ops::PagedAttentionAttrs>();
  const TensorType &qt = call.input_type(0), &pool = call.input_type(1), &table = call.input_type(3);
  const auto size = [](const TensorType& t, int64_t axis) { return t.dim(axis).value(); };
  const int64_t kv_heads = size(pool, 2), row = size(pool, 3);
  const Strides qs = strides_of(ops::AttentionLayout::kBshd, attrs.num_heads, size(qt, 1), attrs.head_dim);
  const Strides ks = strides_of(ops::AttentionLayout::kBshd, kv_heads, size(pool, 1), row);  // of a page, in its format
  to_u32(qt.shape.num_elements());
  to_u32(pool.shape.num_elements());
  AttentionProblem p;
  p.params = {.batch = to_u32(size(qt, 0)),
              .heads = to_u32(attrs.num_heads),
              .kv_heads = to_u32(kv_heads),
              .group = to_u32(attrs.num_heads / kv_heads),
              .seq_q = to_u32(size(qt, 1)),
              .seq_k = to_u32(checked_mul(size(table, 1), size(pool, 1))),
              .head_dim = to_u32(attrs.head_dim),
              .has_lengths = true,
              .lse_seq = to_u32(size(qt, 1)),
              .q_batch = to_u32(qs.batch),
              .q_head = to_u32(qs.head),
              .q_seq = to_u32(qs.seq),
              .y_batch = to_u32(qs.batch),
              .y_head = to_u32(qs.head),
              .y_seq = to_u32(qs.seq),
              .k_batch = to_u32(ks.batch),
              .k_head = to_u32(ks.head),
              .k_seq = to_u32(ks.seq),
              .v_batch = to_u32(ks.batch),
              .v_head = to_u32(ks.head),
              .v_seq = to_u32(ks.seq),
              .pages = to_u32(size(pool, 0)),
              .page_keys = to_u32(size(pool, 1)),
              .mask_batch = to_u32(size(table, 1))};
  p.set_scores(attrs.dense());
  p.set_active(call, 1, false);
  p.q = call.read(0);
  p.k = call.read(1);
  p.v = call.read(2);
  p.mask = call.read(3);
  p.lengths = call.read(4);
  p.type = call.element(p.q);
  p.key_type = call.element(p.k);
  p.mask_type = call.element(p.mask);
  p.in_pages = true;
  p.is_q8 = attrs.format == ops::KvFormat::kQ8;
  return p;
}

Params AttentionProblem::with_extent(const wgsl::attention_params::Params& own) const {
  Params all(own);
  all.active = active;
  return all;
}

int64_t AttentionProblem::rows() const { return int64_t{params.seq_q} * params.group; }
int64_t AttentionProblem::queries() const { return int64_t{params.batch} * params.heads * params.seq_q; }

bool AttentionProblem::reads_vectors(const LowerCall& call, std::initializer_list<Operand> more) const {
  if (params.head_dim % 4 != 0) return false;
  const int64_t bytes = type == "f16" ? 8 : 16, key_bytes = key_type == "f16" ? 8 : 16;
  for (const uint32_t stride : {params.q_batch, params.q_head, params.q_seq})
    if (stride % 4 != 0) return false;
  if (!call.starts_at_multiple_of(q, bytes)) return false;
  if (is_q8) return true;  // words, which are vectors already
  for (const uint32_t stride :
       {params.k_batch, params.k_head, params.k_seq, params.v_batch, params.v_head, params.v_seq})
    if (stride % 4 != 0) return false;
  for (const Operand o : {k, v})
    if (!call.starts_at_multiple_of(o, key_bytes)) return false;
  if (mask_use != 0)
    for (const Operand o : {q, k, v})
      if (call.same_root(mask, o)) return false;  // they may share a binding
  for (const Operand o : more)
    if (!call.starts_at_multiple_of(o, bytes)) return false;
  return true;
}

KernelKey AttentionProblem::kernel(std::string name, bool vectors) const {
  const auto read_by = [&](const std::string& t) { return vectors ? str("vec4<", t, ">") : t; };
  KernelKey key{.kernel = std::move(name),
                .types = {{"T", type}, {"E", read_by(type)}, {"M", mask_type}},
                .constants = {{"VEC", vectors}, {"MASK", mask_use}}};
  if (is_q8) {
    key.includes.emplace_back("attention_keys", "attention_keys_q8");
  } else {
    key.types.emplace_back("KT", key_type);
    key.types.emplace_back("KE", read_by(key_type));
  }
  if (in_pages) key.includes.emplace_back("attention_places", "attention_pages");
  return key;
}

uint32_t AttentionTile::staged(uint32_t most) const {
  uint32_t n = 4;
  while (2 * n <= most && 2 * n * threads_across * vectors <= tile_vectors()) n *= 2;
  return n;
}

void AttentionTile::add_to(KernelKey& key) const {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint32_t>>{{"BR", rows},
                                                                                           {"TX", threads_across},
                                                                                           {"RM", rows_per_thread},
                                                                                           {"OV", vectors},
                                                                                           {"DV", depth},
                                                                                           {"VK", staged(keys())}})
    key.constants.emplace_back(name, value);
}

uint32_t AttentionTile::vectors_for(uint32_t width, uint32_t across, uint32_t most) {
  uint32_t n = 1;
  while (n < most && 4 * across * n < width) n *= 2;
  return n;
}

// Of a tile of 64 rows and 64 keys: weights take 17 KiB, and each vector of depth 2 KiB.
bool AttentionTile::has_room(const Limits& limits) {
  return limits.workgroup_bytes >= 28 * 1024 && limits.workgroup_threads >= 256;
}
uint32_t AttentionTile::depth_for(const Limits& limits) { return limits.workgroup_bytes >= 36 * 1024 ? 8 : 4; }

int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Few rows: a block as small as they are. Else the largest that the device's workgroup memory holds.
static AttentionTile choose_tile(const AttentionProblem& problem, const Limits& limits) {
  const uint32_t width = problem.params.head_dim;
  const uint32_t wide = AttentionTile::vectors_for(width, 16, 4);
  if (problem.rows() <= 8) return {8, 16, 1, wide};
  if (problem.rows() <= 16) return {16, 16, 1, wide};
  if (problem.rows() > 32 && AttentionTile::has_room(limits))
    return {64, 16, 4, wide, AttentionTile::depth_for(limits)};
  return {32, 8, width <= 128 ? 4u : 2u, AttentionTile::vectors_for(width, 8, 8)};
}

namespace {

// How attention_decode.wgsl splits its work.
struct DecodeShape {
  uint32_t fours;    // R4
  uint32_t vectors;  // LV
  uint32_t per;      // PER
  uint32_t keys;     // KEYS
  int64_t bytes() const { return 16 * fours * (16 * vectors + 128 * per + keys + 16 + 2) + 64; }
};
// Of a problem of few rows; nothing where the tiles of attention.wgsl serve better.
std::optional<DecodeShape> decode_shape(const AttentionProblem& problem, bool vectors, const Limits& limits) {
  const uint32_t width = problem.params.head_dim;
  if (!vectors || problem.rows() > 16 || width % 16 != 0 || width > 512) return std::nullopt;
  const uint32_t fours = problem.rows() <= 4 ? 1 : problem.rows() <= 8 ? 2 : 4;
  for (const DecodeShape shape : {DecodeShape{fours, width / 16, 2, 256}, DecodeShape{fours, width / 16, 1, 128}})
    if (shape.bytes() <= (shape.per == 2 ? std::min<int64_t>(limits.workgroup_bytes, 24 * 1024)  // several on a core
                                         : static_cast<int64_t>(limits.workgroup_bytes)))
      return shape;
  return std::nullopt;
}

// A kernel that computes attention, and how it splits the keys.
struct Plan {
  KernelKey key;
  int64_t slices = 1;  // of a head's width
  int64_t whole = 0;   // workgroups that do all keys
  int64_t splits = 1, chunk = 0;
};

// The keys' parts: enough workgroups to fill a GPU, of which none is too small to be worth its part of the merging.
int64_t parts_of(int64_t keys, int64_t whole, int64_t enough, int64_t least) {
  const int64_t most = std::clamp<int64_t>(ceil_div(keys, least), 1, kMostParts);
  return std::clamp<int64_t>(ceil_div(enough, std::max<int64_t>(whole, 1)), 1, most);
}

Plan plan_decode(const AttentionProblem& problem, const DecodeShape& shape) {
  const auto& params = problem.params;
  Plan plan{.key = problem.kernel("attention_decode", true), .whole = int64_t{params.batch} * params.kv_heads};
  plan.chunk = 64;
  plan.splits = parts_of(params.seq_k, plan.whole, 512, plan.chunk);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint32_t>>{
           {"R4", shape.fours}, {"LV", shape.vectors}, {"PER", shape.per}, {"KEYS", shape.keys}})
    plan.key.constants.emplace_back(name, value);
  return plan;
}

Plan plan_tiles(const AttentionProblem& problem, bool vectors, bool has_result, const Limits& limits) {
  const auto& params = problem.params;
  const AttentionTile tile = choose_tile(problem, limits);
  Plan plan{.key = problem.kernel("attention", vectors)};
  tile.add_to(plan.key);
  plan.slices = has_result ? ceil_div(params.head_dim, tile.columns()) : 1;
  plan.whole = ceil_div(problem.rows(), tile.rows) * params.batch * params.kv_heads;
  const int64_t parts = parts_of(params.seq_k, plan.whole, 256, 256);
  plan.chunk = std::max<int64_t>(ceil_div(ceil_div(params.seq_k, parts), tile.keys()) * tile.keys(), tile.keys());
  plan.splits = std::max<int64_t>(ceil_div(params.seq_k, plan.chunk), 1);
  return plan;
}

void emit_merge(LowerCall& call, const AttentionProblem& problem, uint32_t splits, Operand parts, Operand stats,
                std::optional<Operand> y, std::optional<Operand> lse) {
  namespace m = wgsl::attention_merge;
  const auto& params = problem.params;
  const Operand merged = y ? *y : call.temporary(call.storage(problem.q), {problem.queries() * params.head_dim});
  const Operand sums = lse ? *lse : call.temporary(Storage::kF32, {1});
  const uint32_t width = params.head_dim % 4 == 0 ? 4 : 1;
  call.emit({.kernel = {"attention_merge",
                        {{"T", std::string(call.element(merged))}, {"V", width == 4 ? "vec4<f32>" : "f32"}},
                        {{"WIDTH", width}}},
             .operands = {LowerCall::reading(parts), LowerCall::reading(stats), merged, sums},
             .params = m::Params{.queries = to_u32(problem.queries()),
                                 .heads = params.heads,
                                 .seq_q = params.seq_q,
                                 .head_dim = params.head_dim,
                                 .splits = splits,
                                 .y_batch = params.y_batch,
                                 .y_head = params.y_head,
                                 .y_seq = params.y_seq,
                                 .neg_inf = kNegInf,
                                 .has_lse = lse.has_value()},
             .grid = {.x = {.items = problem.queries()}},
             .extent_safe = problem.extent_safe,  // rows beyond it are merged from what nobody wrote, and not read
             .own_bound = true},
            "attention_merge");
}

}  // namespace

void emit_attention(LowerCall& call, const AttentionProblem& problem, std::optional<Operand> y,
                    std::optional<Operand> lse) {
  const Limits& limits = call.device().limits();
  const bool vectors = problem.reads_vectors(call);
  const auto shape = decode_shape(problem, vectors, limits);
  Plan plan = shape ? plan_decode(problem, *shape) : plan_tiles(problem, vectors, y.has_value(), limits);
  const bool split = plan.splits > 1;
  auto params = problem.params;
  params.has_lse = lse.has_value();
  params.slices = to_u32(plan.slices);
  params.splits = to_u32(plan.splits);
  params.chunk = to_u32(plan.chunk);
  params.groups = to_u32(plan.whole * plan.splits * plan.slices);
  const int64_t results = checked_mul(problem.queries() * plan.splits, params.head_dim);
  to_u32(results);

  const Operand out = split || !y ? call.temporary(split ? Storage::kF32 : call.storage(problem.q), {results}) : *y;
  const Operand stats = split ? call.temporary(Storage::kF32, {checked_mul(problem.queries() * plan.splits, 2)})
                        : lse ? *lse
                              : call.temporary(Storage::kF32, {1});
  plan.key.types.emplace_back("Y", call.element(out));
  plan.key.constants.emplace_back("SPLIT", split);
  call.emit({.kernel = std::move(plan.key),
             .operands = {problem.q, problem.k, problem.v, problem.mask, problem.lengths, out, stats},
             .params = problem.with_extent(params),
             .grid = {.x = {.items = params.groups}},
             .extent_safe = problem.extent_safe,
             .own_bound = true},
            shape ? "attention_decode" : "attention");
  if (split) emit_merge(call, problem, params.splits, out, stats, y, lse);
}

void lower_attention(LowerCall& call) {
  const int64_t masks = ops::has_mask_operand(call.attrs<ops::AttentionAttrs>().mask_kind) ? 1 : 0;
  const AttentionProblem problem(call, 3, call.num_inputs() > 3 + masks, call.options().webgpu.packed_attention);
  const auto wanted = [&](int64_t i) { return call.wants(i) ? std::optional(call.write(i)) : std::nullopt; };
  emit_attention(call, problem, wanted(0), wanted(1));
}

}  // namespace rlx::webgpu
