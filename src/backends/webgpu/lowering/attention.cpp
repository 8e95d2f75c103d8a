#include "backends/webgpu/lowering/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/attention_merge.h"

namespace rlx::webgpu {

namespace {

constexpr uint32_t kNegInf = 0xff800000u;
constexpr int32_t kNoWindow = 1 << 30;
constexpr int64_t kKeyChunk = 256;          // keys of a workgroup, at least, where keys are split
constexpr int64_t kEnoughWorkgroups = 256;  // to fill a GPU

struct Strides {
  int64_t batch, head, seq;
};
Strides strides_of(ops::AttentionLayout layout, int64_t heads, int64_t seq, int64_t width) {
  if (layout == ops::AttentionLayout::kBhsd) return {heads * seq * width, seq * width, width};
  return {seq * heads * width, width, heads * width};
}

}  // namespace

AttentionProblem::AttentionProblem(LowerCall& call, int64_t next, bool has_kv_len) {
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
  const bool causal = attrs.mask_kind == ops::MaskKind::kCausal;
  const bool windowed = attrs.mask_kind == ops::MaskKind::kSlidingWindow;
  params = {
      .batch = to_u32(size(qt, 0)),
      .heads = to_u32(heads),
      .kv_heads = to_u32(kv_heads),
      .group = to_u32(heads / kv_heads),
      .seq_q = to_u32(seq_q),
      .seq_k = to_u32(seq_k),
      .head_dim = to_u32(width),
      .scale = attrs.score_scale ? *attrs.score_scale : static_cast<float>(1 / std::sqrt(static_cast<double>(width))),
      .softcap = std::max(attrs.attn_logit_softcap.value_or(0), 0.0f),
      .causal = causal || windowed,
      .window = windowed ? static_cast<int32_t>(std::min<int64_t>(attrs.window, kNoWindow)) : kNoWindow,
      .neg_inf = kNegInf,
      .lse_seq = to_u32(seq_q),
      .q_batch = to_u32(qs.batch),
      .q_head = to_u32(qs.head),
      .q_seq = to_u32(qs.seq),
      .kv_batch = to_u32(ks.batch),
      .kv_head = to_u32(ks.head),
      .kv_seq = to_u32(ks.seq)};
  const int64_t q_axis = call.bucket_axis(0), k_axis = call.bucket_axis(1), seq_axis = bhsd ? 2 : 1;
  const auto cut = [&](uint32_t wgsl::attention_params::Params::*field) {
    active.push_back(static_cast<uint32_t>(&(params.*field) - &params.batch));
  };
  if (q_axis == 0) cut(&wgsl::attention_params::Params::batch);
  if (q_axis == seq_axis) cut(&wgsl::attention_params::Params::seq_q);
  if (k_axis == seq_axis) cut(&wgsl::attention_params::Params::seq_k);
  extent_safe = (q_axis <= 0 || q_axis == seq_axis) && (k_axis <= 0 || k_axis == seq_axis);
  q = call.read(0);
  k = seq_k > 0 ? call.read(1) : q;  // what is empty has no bytes to bind
  v = seq_k > 0 ? call.read(2) : q;
  type = call.element(q);
  const uint32_t unused[] = {0};
  mask = lengths = call.table(unused);
  mask_type = "f32";
  if (ops::has_mask_operand(attrs.mask_kind)) {
    mask_use = attrs.mask_kind == ops::MaskKind::kCustom ? 1 : 2;
    const TensorType& t = call.input_type(next);
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
  if (has_kv_len) lengths = call.read(next);
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
  const int64_t bytes = type == "f16" ? 8 : 16;
  for (const Operand o : {q, k, v})
    if (!call.starts_at_multiple_of(o, bytes)) return false;
  if (mask_use != 0)
    for (const Operand o : {q, k, v})
      if (call.same_root(mask, o)) return false;  // they may share a binding
  for (const Operand o : more)
    if (!call.starts_at_multiple_of(o, bytes)) return false;
  return true;
}

KernelKey AttentionProblem::kernel(std::string name, bool vectors) const {
  return {std::move(name),
          {{"T", type}, {"E", vectors ? str("vec4<", type, ">") : type}, {"M", mask_type}},
          {{"VEC", vectors}, {"MASK", mask_use}}};
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

void emit_attention(LowerCall& call, const AttentionProblem& problem, std::optional<Operand> y,
                    std::optional<Operand> lse) {
  const AttentionTile tile = choose_tile(problem, call.device().limits());
  const bool vectors = problem.reads_vectors(call);
  auto params = problem.params;
  const int64_t slices = y ? ceil_div(params.head_dim, tile.columns()) : 1;
  const int64_t whole =
      ceil_div(problem.rows(), tile.rows) * params.batch * params.kv_heads;  // workgroups that do all keys
  const int64_t most = ceil_div(params.seq_k, kKeyChunk);
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(kEnoughWorkgroups, std::max<int64_t>(whole, 1)), 1, std::max<int64_t>(most, 1));
  const int64_t chunk =
      std::max<int64_t>(ceil_div(ceil_div(params.seq_k, wanted), tile.keys()) * tile.keys(), tile.keys());
  const int64_t splits = std::max<int64_t>(ceil_div(params.seq_k, chunk), 1);
  const bool split = splits > 1;
  to_u32(checked_mul(problem.queries() * splits, params.head_dim));
  params.has_lse = lse.has_value();
  params.slices = to_u32(slices);
  params.splits = to_u32(splits);
  params.chunk = to_u32(chunk);
  params.groups = to_u32(whole * splits * slices);

  Operand out = split || !y ? call.temporary(split ? Storage::kF32 : call.storage(problem.q),
                                             {checked_mul(problem.queries() * splits, params.head_dim)})
                            : *y;
  Operand stats = split ? call.temporary(Storage::kF32, {checked_mul(problem.queries() * splits, 2)})
                  : lse ? *lse
                        : call.temporary(Storage::kF32, {1});
  KernelKey key = problem.kernel("attention", vectors);
  key.types.emplace_back("Y", call.element(out));
  tile.add_to(key);
  key.constants.emplace_back("SPLIT", split);
  call.emit({.kernel = std::move(key),
             .operands = {problem.q, problem.k, problem.v, problem.mask, problem.lengths, out, stats},
             .params = problem.with_extent(params),
             .grid = {.x = {.items = params.groups}},
             .extent_safe = problem.extent_safe,
             .own_bound = true},
            "attention");
  if (!split) return;
  namespace m = wgsl::attention_merge;
  const Operand merged = y ? *y : call.temporary(call.storage(problem.q), {problem.queries() * params.head_dim});
  const Operand sums = lse ? *lse : call.temporary(Storage::kF32, {1});
  const int64_t n = problem.queries() * params.head_dim;
  call.emit({.kernel = {"attention_merge", {{"T", std::string(call.element(merged))}}},
             .operands = {LowerCall::reading(out), LowerCall::reading(stats), merged, sums},
             .params = m::Params{.n = to_u32(n),
                                 .heads = params.heads,
                                 .seq_q = params.seq_q,
                                 .head_dim = params.head_dim,
                                 .splits = params.splits,
                                 .q_batch = params.q_batch,
                                 .q_head = params.q_head,
                                 .q_seq = params.q_seq,
                                 .neg_inf = kNegInf,
                                 .has_lse = params.has_lse},
             .grid = {.x = {.items = n, .per_group = 64}},
             .extent_safe = problem.extent_safe,  // rows beyond it are merged from what nobody wrote, and not read
             .own_bound = true},
            "attention_merge");
}

void lower_attention(LowerCall& call) {
  const int64_t masks = ops::has_mask_operand(call.attrs<ops::AttentionAttrs>().mask_kind) ? 1 : 0;
  const AttentionProblem problem(call, 3, call.num_inputs() > 3 + masks);
  const auto wanted = [&](int64_t i) { return call.wants(i) ? std::optional(call.write(i)) : std::nullopt; };
  emit_attention(call, problem, wanted(0), wanted(1));
}

}  // namespace rlx::webgpu
