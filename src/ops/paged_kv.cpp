#include "rlx/ops/paged_kv.h"

#include "core/kv_rows.h"
#include "ops/infer.h"

namespace rlx::ops {

int64_t kv_row_elements(KvFormat format, int64_t head_dim) {
  return format == KvFormat::kQ8 ? q8_row_words(head_dim) : head_dim;
}

AttentionAttrs PagedAttentionAttrs::dense() const {
  return {.num_heads = num_heads,
          .head_dim = head_dim,
          .layout = AttentionLayout::kBshd,
          .mask_kind = mask_kind,
          .window = window,
          .score_scale = score_scale,
          .attn_logit_softcap = attn_logit_softcap};
}

static void check_pool(const TensorType& pool, KvFormat format, int64_t head_dim) {
  require_rank(pool, 4, "Pool");
  for (const int64_t axis : {0, 1})
    require(!pool.dim(axis).is(0), "Pool shape (", pool.shape, ") has no pages, or pages without tokens.");
  if (format == KvFormat::kQ8) {
    require(head_dim % kQ8Block == 0, "Head width (", head_dim, ") is not a multiple of ", kQ8Block, ".");
    require_dtype(pool, DType::U32, "Pool");
  } else {
    require_float(pool, "Pool");
  }
  require_same_dim(pool.dim(3), kv_row_elements(format, head_dim), "Row sizes of the pool and of its format");
}

static void check_table(const TensorType& table, const TensorType& len, const Dim& batch) {
  require_dtype(table, DType::I32, "Page table");
  require_rank(table, 2, "Page table");
  require_same_dim(table.dim(0), batch, "Batch sizes of the page table and the rows");
  require_dtype(len, DType::I32, "Length");
  require_shape(len, {batch}, "Length");
}

static Types infer_attention(const InferCall& call) {
  const auto& a = call.attrs<PagedAttentionAttrs>();
  const TensorType &q = call.input(0), &k = call.input(1), &v = call.input(2);
  require(a.num_heads >= 1, "num_heads (", a.num_heads, ") is less than 1.");
  require(a.head_dim >= 1, "head_dim (", a.head_dim, ") is less than 1.");
  require(!has_mask_operand(a.mask_kind), "Mask kind ", name_of(a.mask_kind),
          " needs keys that lie in a row, not pages.");
  require(a.mask_kind != MaskKind::kSlidingWindow || a.window >= 0, "window (", a.window, ") is negative.");
  require_float(q, "Query");
  require_rank(q, 4, "Query");
  require_same_dim(q.dim(2), a.num_heads, "Heads of the query and num_heads");
  require_same_dim(q.dim(3), a.head_dim, "Head widths of the query and head_dim");
  check_pool(k, a.format, a.head_dim);
  require_same_dtype(k, v);
  require_shape(v, k.shape, "Pool of values");
  if (k.dim(2).is_static())
    require(k.dim(2).value() >= 1 && a.num_heads % k.dim(2).value() == 0, "Heads of the key (", k.dim(2),
            ") do not divide num_heads (", a.num_heads, ").");
  check_table(call.input(3), call.input(4), q.dim(0));
  return q;
}

static Types infer_append(const InferCall& call) {
  const TensorType &pool = call.input(0), &rows = call.input(1);
  require_float(rows, "Row");
  require_rank(rows, 4, "Row");
  require(rows.dim(3).is_static(), "Head width (", rows.dim(3), ") is a symbol.");
  check_pool(pool, call.attrs<PagedKvAppendAttrs>().format, rows.dim(3).value());
  require_same_dim(pool.dim(2), rows.dim(2), "Heads of the pool and of the rows");
  check_table(call.input(2), call.input(3), rows.dim(0));
  return pool;
}

constinit const Op<PagedAttentionAttrs> paged_attention{
    {.name = "paged_attention",
     .category = "Attention",
     .min_inputs = 5,
     .max_inputs = 5,
     .infer = infer_attention,
     .traits = {.extent = ExtentRule::kOwnBound},
     .doc = "Attention on keys and values that lie in pages of a pool, float or quantised."}};

constinit const Op<PagedKvAppendAttrs> paged_kv_append{
    {.name = "paged_kv_append",
     .category = "Sequence state",
     .min_inputs = 4,
     .max_inputs = 4,
     .infer = infer_append,
     .traits = {.state_operand = 0, .state_result = 0, .extent = ExtentRule::kOwnBound},
     .doc = "The pool with new rows written into the pages of each batch at its length, quantised if the pool is."}};

}  // namespace rlx::ops
