#include "rlx/ops/attention.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

struct Sizes {
  Dim batch, heads, seq;
};

// What the layout makes of a shape; `heads` as a number or symbol.
Sizes sizes_of(const TensorType& t, const AttentionAttrs& a, std::string_view what, SymbolTable& symbols) {
  if (a.layout == AttentionLayout::kBsf) {
    require_rank(t, 3, what);
    const Dim& width = t.dim(2);
    require(!width.is_static() || width.value() % a.head_dim == 0, what, " width (", width,
            ") is not a whole number of heads of ", a.head_dim, ".");
    return {t.dim(0), symbols.div(width, a.head_dim), t.dim(1)};
  }
  require_rank(t, 4, what);
  require_same_dim(t.dim(3), a.head_dim, str("Head widths of ", what, " and head_dim"));
  if (a.layout == AttentionLayout::kBhsd) return {t.dim(0), t.dim(1), t.dim(2)};
  return {t.dim(0), t.dim(2), t.dim(1)};
}

void require_one_or_same(const Dim& dim, const Dim& full, const TensorType& mask, std::string_view what) {
  require(dim.is(1) || dim == full || dim.is_static() != full.is_static(), "Mask shape (", mask.shape, ") has ", dim,
          " for the ", what, ", not 1 or ", full, ".");
}

void check_mask(const TensorType& mask, MaskKind kind, const Sizes& q, const Sizes& k) {
  if (kind == MaskKind::kBias)
    require_float(mask, "Bias");
  else
    require(!is_complex(mask.dtype), "Mask dtype (", mask.dtype, ") is complex.");
  const int64_t rank = mask.rank();
  require(rank >= 2 && rank <= 4, "Mask rank (", rank, ") is not 2, 3 or 4.");
  require_one_or_same(mask.dim(0), q.batch, mask, "batch");
  require_one_or_same(mask.dim(rank - 1), k.seq, mask, "keys");
  if (rank >= 3) require_one_or_same(mask.dim(rank - 2), q.seq, mask, "queries");
  if (rank == 4) require_one_or_same(mask.dim(1), q.heads, mask, "heads");
}

// Checks q, k, v, and the operands from `next` on: [mask], [kv_len]. Returns the sizes of q.
Sizes check(const InferCall& call, int64_t next, int64_t end) {
  const auto& a = call.attrs<AttentionAttrs>();
  const TensorType &q = call.input(0), &k = call.input(1), &v = call.input(2);
  require(a.num_heads >= 1, "num_heads (", a.num_heads, ") is less than 1.");
  require(a.head_dim >= 1, "head_dim (", a.head_dim, ") is less than 1.");
  require(a.mask_kind != MaskKind::kSlidingWindow || a.window >= 0, "window (", a.window, ") is negative.");
  require_float(q, "Query");
  require_same_dtype(q, k);
  require_same_dtype(q, v);
  const Sizes qs = sizes_of(q, a, "Query", call.symbols), ks = sizes_of(k, a, "Key", call.symbols);
  require_same_dim(qs.heads, a.num_heads, "Heads of the query and num_heads");
  require_same_dim(qs.batch, ks.batch, "Batch sizes of query and key");
  require_shape(v, k.shape, "Value");
  if (ks.heads.is_static())
    require(ks.heads.value() >= 1 && a.num_heads % ks.heads.value() == 0, "Heads of the key (", ks.heads,
            ") do not divide num_heads (", a.num_heads, ").");
  if (has_mask_operand(a.mask_kind)) {
    require(next < end, "Mask kind ", name_of(a.mask_kind), " needs a mask operand.");
    check_mask(call.input(next++), a.mask_kind, qs, ks);
  }
  require(end - next <= 1, "Mask kind ", name_of(a.mask_kind), " takes ", next, " operands and kv_len, not ", end, ".");
  if (next < end) {
    require_dtype(call.input(next), DType::I32, "kv_len");
    require_shape(call.input(next), {qs.batch}, "kv_len");
  }
  return {qs.batch, a.num_heads, qs.seq};
}

Types infer(const InferCall& call) {
  const Sizes q = check(call, 3, call.num_inputs());
  return {call.input(0), TensorType{{q.batch, q.heads, q.seq}, DType::F32}};
}

Types infer_backward(const InferCall& call) {
  const MaskKind kind = call.attrs<AttentionAttrs>().mask_kind;
  const int64_t first = 4 + (has_mask_operand(kind) ? 1 : 0), optional = call.num_inputs() - first;
  require(optional >= 0, "Mask kind ", name_of(kind), " needs a mask operand.");
  require(optional <= 3, "Mask kind ", name_of(kind), " takes ", first, " operands, kv_len, y and lse, not ",
          call.num_inputs(), ".");
  const bool saved = optional >= 2;  // y and lse come together
  const int64_t end = call.num_inputs() - (saved ? 2 : 0);
  const Sizes q = check(call, 4, end);
  const TensorType& dy = call.input(3);
  require_same_dtype(call.input(0), dy);
  require_shape(dy, call.input(0).shape, "Gradient");
  if (saved) {
    require_same_dtype(call.input(0), call.input(end));
    require_shape(call.input(end), call.input(0).shape, "Forward result");
    require_dtype(call.input(end + 1), DType::F32, "lse");
    require_shape(call.input(end + 1), {q.batch, q.heads, q.seq}, "lse");
  }
  Types types = {call.input(0), call.input(1), call.input(2)};
  if (kind == MaskKind::kBias) types.push_back(call.input(4));
  return types;
}

}  // namespace

constinit const Op<AttentionAttrs> attention{
    {.name = "attention",
     .category = "Attention",
     .min_inputs = 3,
     .max_inputs = 5,
     .infer = infer,
     .traits = {.extent = ExtentRule::kOwnBound},
     .doc = "softmax(q k^T * scale, masked) v per head, and the log-sum-exp of the scores; a row without keys is 0."}};

constinit const Op<AttentionAttrs> attention_backward{
    {.name = "attention_backward",
     .category = "Backward",
     .min_inputs = 4,
     .max_inputs = 8,
     .infer = infer_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradients of attention with respect to q, k, v and, for an additive bias, the bias."}};

}  // namespace rlx::ops
