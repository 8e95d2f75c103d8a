// The attention ops of ONNX Runtime's domain, com.microsoft. Their masks are a number added to the scores, which leaves
// rows that see nothing else as they are.
#include "import/onnx/ops.h"
#include "import/onnx/ops/attention.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/integer.h"

namespace rlx::onnx {

namespace {

void set_scale(OnnxNode& n, Attention& a) {
  if (n.attr("scale", 0.0f) != 0) a.scale = n.attr("scale", 0.0f);
}

Value part(const Value& x, int64_t axis, int64_t start, int64_t len) {
  return ops::narrow(x, {.axis = axis, .start = start, .len = len});
}

struct Sizes {
  Dim batch, queries, keys;
};

// The mask operand i as a summand of the scores: lengths [batch], ends and starts [2 * batch], or 0 where a key is
// masked, [batch, keys] or [batch, queries, keys].
std::optional<Value> mask_summand(OnnxNode& n, int64_t i, const Sizes& s, DType dtype) {
  if (!n.has(i)) return std::nullopt;
  const Value mask = cast_to(n.input(i), DType::I64);
  const int64_t rank = mask.shape().rank();
  std::optional<Value> keep;
  if (rank == 1) {
    const Value keys = reshape_to(count_up(n, s.keys), {1, s.keys});
    const bool ends_only = mask.shape()[0] == s.batch;
    if (!ends_only && !(mask.shape()[0] == n.symbols().mul(s.batch, 2)))
      n.unsupported(str("A mask of shape ", mask.shape(), " is not supported."));
    const auto column = [&](const Dim& start) {
      const Value own = ends_only ? mask : ops::narrow(mask, {.axis = 0, .start = start, .len = s.batch});
      return reshape_to(own, {s.batch, 1});
    };
    keep = ops::lt(keys, column(0));
    if (!ends_only) keep = both(n, keep, ops::ge(keys, column(s.batch)));
    keep = reshape_to(*keep, {s.batch, 1, 1, s.keys});
  } else {
    require(rank == 2 || rank == 3, "A mask of rank ", rank, " is not supported.");
    keep = unsqueeze(ops::gt(mask, n.scalar(0, DType::I64)),
                     rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
  }
  return ops::where(*keep, n.scalar(0, dtype), n.scalar(n.attr("mask_filter_value", -10000.0f), dtype));
}

void add_bias(Attention& a, const std::optional<Value>& bias) {
  if (bias) a.bias = a.bias ? *a.bias + *bias : *bias;
}

// ---- Attention, QAttention: the projections are part of the op

// `projected` [batch, length, q, k and v side by side]. Inputs are given by number, -1 for those that an op lacks.
Built self_attention(OnnxNode& n, const Value& projected, int64_t mask, int64_t past, int64_t bias) {
  if (n.attr("do_rotary", false)) n.unsupported("Rotary embeddings inside this op are not supported.");
  if (n.attr("past_present_share_buffer", false)) n.unsupported("A past that shares its buffer is not supported.");
  require_rank(projected, 3, "The input");
  const int64_t heads = n.required_int("num_heads");
  const int64_t all = projected.shape()[2].value();
  const std::vector<int64_t> widths = n.attr("qkv_hidden_sizes", std::vector<int64_t>(3, all / 3));
  require(widths.size() == 3 && checked_add(checked_add(widths[0], widths[1]), widths[2]) == all, "The widths ", widths,
          " of Q, K and V do not add up to ", all, ".");
  Attention a{.q = part(projected, 2, 0, widths[0]),
              .k = part(projected, 2, widths[0], widths[1]),
              .v = part(projected, 2, widths[0] + widths[1], widths[2]),
              .flat = true,
              .heads = heads,
              .kv_heads = heads};
  const bool cached = n.has(past) || n.wants(1);
  if (cached) {
    a.flat = false;
    a.q = split_heads(a.q, heads);
    a.k = split_heads(a.k, heads);
    a.v = split_heads(a.v, heads);
  }
  if (n.has(past)) {
    const Value both_pasts = n.input(past);
    require_rank(both_pasts, 5, "The past");
    a.offset = both_pasts.shape()[3];
    a.k = ops::concat(Values{squeeze(part(both_pasts, 0, 0, 1), {0}), a.k}, {.axis = 2});
    a.v = ops::concat(Values{squeeze(part(both_pasts, 0, 1, 1), {0}), a.v}, {.axis = 2});
  }
  a.causal = n.attr("unidirectional", false);
  set_scale(n, a);
  const Sizes s{projected.shape()[0], projected.shape()[1], a.k.shape()[cached ? 2 : 1]};
  add_bias(a, mask_summand(n, mask, s, projected.dtype()));
  if (bias >= 0 && n.has(bias)) add_bias(a, n.input(bias));
  const Value y = attend(n, a);
  if (!cached) return y;
  return Values{join_heads(y), ops::concat(Values{unsqueeze(a.k, {0}), unsqueeze(a.v, {0})}, {.axis = 0})};
}

Built attention(OnnxNode& n) {
  Value projected = ops::matmul(n.input(0), n.input(1));
  if (n.has(2)) projected = projected + n.input(2);
  return self_attention(n, projected, 3, 4, 5);
}

Built q_attention(OnnxNode& n) {
  const auto zero = [&](int64_t i) { return n.has(i) ? std::optional(n.input(i)) : std::nullopt; };
  const Value product = matmul_integer_of(n, n.input(0), n.input(1), zero(6), zero(7));
  const Value scale = n.input(3) * n.input(4);
  const Value projected = cast_to(product, DType::F32) * scale + n.input(2);
  return self_attention(n, projected, 5, 8, -1);
}

// ---- MultiHeadAttention

Built multi_head_attention(OnnxNode& n) {
  if (n.has(8) || n.has(9)) n.unsupported("A past that shares its buffer is not supported.");
  if (n.wants(3)) n.unsupported("The output of Q times K is not supported.");
  const int64_t heads = n.required_int("num_heads");
  const Value query = n.input(0);
  const bool all_packed = query.shape().rank() == 5;
  if (!all_packed) require_rank(query, 3, "The query");
  const Dim batch = query.shape()[0], length = query.shape()[1];
  // One of several tensors that lie side by side in axis 3 of [batch, length, heads, count, width].
  const auto unpacked = [&](const Value& x, int64_t i) {
    const Shape& s = x.shape();
    return reshape_to(part(x, 3, i, 1), {s[0], s[1], checked_mul(s[2].value(), s[4].value())});
  };
  const bool pair_packed = !all_packed && n.input(1).shape().rank() == 5;
  const bool ready = !all_packed && !pair_packed && n.input(1).shape().rank() == 4;  // keys and values in heads
  Attention a{.q = all_packed ? unpacked(query, 0) : query,
              .k = all_packed    ? unpacked(query, 1)
                   : pair_packed ? unpacked(n.input(1), 0)
                                 : n.input(1),
              .v = all_packed    ? unpacked(query, 2)
                   : pair_packed ? unpacked(n.input(1), 1)
                                 : n.input(2),
              .flat = true,
              .heads = heads,
              .kv_heads = heads};
  if (!ready) require_rank(a.k, 3, "The key");
  if (!ready) require_rank(a.v, 3, "The value");
  if (n.has(3)) {
    const Value bias = n.input(3);
    int64_t at = 0;
    const auto biased = [&](const Value& x) {
      const int64_t width = x.shape()[2].value();
      at += width;
      return x + part(bias, 0, at - width, width);
    };
    a.q = biased(a.q);
    if (!ready) a.k = biased(a.k);
    if (!ready) a.v = biased(a.v);
  }
  const bool cached = n.has(6) || n.has(7) || n.wants(1) || n.wants(2);
  if (ready || cached) {
    a.flat = false;
    a.q = split_heads(a.q, heads);
    if (!ready) a.k = split_heads(a.k, heads);
    if (!ready) a.v = split_heads(a.v, heads);
  }
  if (n.has(6)) {
    require_rank(n.input(6), 4, "past_key");
    a.offset = n.input(6).shape()[2];
    a.k = ops::concat(Values{n.input(6), a.k}, {.axis = 2});
  }
  if (n.has(7)) a.v = ops::concat(Values{n.input(7), a.v}, {.axis = 2});
  a.causal = n.attr("unidirectional", false);
  set_scale(n, a);
  const Sizes s{batch, length, a.k.shape()[a.flat ? 1 : 2]};
  add_bias(a, mask_summand(n, 4, s, query.dtype()));
  if (n.has(5)) add_bias(a, n.input(5));
  const Value y = attend(n, a);
  return Values{a.flat ? y : join_heads(y), a.k, a.v};
}

// ---- GroupQueryAttention

// What is in use of a cache that may be longer: `lengths` I32 [batch] with the new rows, `before` without them.
struct Cache {
  Value lengths, before;
  Dim capacity;
  bool prompt;  // nothing comes before the new rows
};

// The cache of input i with the new rows in it.
Value appended(OnnxNode& n, int64_t i, const Value& rows, const Cache& c) {
  if (!n.has(i)) return rows;
  Value cache = n.input(i);
  require_rank(cache, 4, "The cache");
  const Shape& s = cache.shape();
  if (!(s[2] == c.capacity)) {
    const Value rest =
        expand_to(scalar_like(n, cache, 0), Shape({s[0], s[1], n.symbols().sub(c.capacity, s[2]), s[3]}));
    cache = ops::concat(Values{cache, rest}, {.axis = 2});
  }
  return ops::kv_append(cache, rows, c.before, {.axis = 2});
}

Built group_query_attention(OnnxNode& n) {
  if (n.attr("k_quant_type", "NONE") != "NONE" || n.attr("v_quant_type", "NONE") != "NONE")
    n.unsupported("A quantised cache is not supported.");
  if (n.attr("sliding_window_cache", false)) n.unsupported("A cache that is as long as its window is not supported.");
  if (n.has(14) || n.has(15)) n.unsupported("A norm of Q and K inside this op is not supported.");
  Attention a{.q = n.input(0),
              .k = n.input(0),
              .v = n.input(0),
              .heads = n.required_int("num_heads"),
              .kv_heads = n.required_int("kv_num_heads")};
  require(a.kv_heads >= 1 && a.heads >= 1 && a.heads % a.kv_heads == 0, "kv_num_heads (", a.kv_heads,
          ") does not divide num_heads (", a.heads, ").");
  require_rank(a.q, 3, "The query");
  if (n.has(3)) require_rank(n.input(3), 4, "past_key");
  const int64_t all = a.q.shape()[2].value();
  const int64_t width = n.has(1) ? all / a.heads : all / checked_add(a.heads, checked_mul(2, a.kv_heads));
  if (n.has(1)) {
    a.k = n.input(1);
    a.v = n.input(2);
  } else {
    const Value packed = a.q;
    a.q = part(packed, 2, 0, a.heads * width);
    a.k = part(packed, 2, a.heads * width, a.kv_heads * width);
    a.v = part(packed, 2, (a.heads + a.kv_heads) * width, a.kv_heads * width);
  }
  const Dim batch = a.q.shape()[0];
  const int64_t length = a.q.shape()[1].value(), total = n.int_value(6);
  const Value lengths = reshape_to(cast_to(n.input(5), DType::I32), {batch}) + n.scalar(1, DType::I32);
  const bool prompt = length == total;
  const Cache cache{lengths,
                    prompt ? expand_to(n.scalar(0, DType::I32), Shape({batch}))
                           : lengths - n.scalar(static_cast<double>(length), DType::I32),
                    n.has(3) ? std::max(total, n.input(3).shape()[2].value()) : total, prompt};

  if (n.attr("do_rotary", false)) {
    Rotary r{.cos = n.input(7), .sin = n.input(8), .width = width, .interleaved = n.attr("rotary_interleaved", false)};
    require_rank(r.cos, 2, "cos_cache");
    r.rotated = checked_mul(2, r.cos.shape()[1].value());
    const Value steps = reshape_to(count_up(n, length), {1, length});
    r.positions = n.has(9) ? n.input(9) : reshape_to(cast_to(cache.before, DType::I64), {batch, 1}) + steps;
    a.q = rotate(n, a.q, r);
    a.k = rotate(n, a.k, r);
  }
  a.q = split_heads(a.q, a.heads);
  a.k = split_heads(a.k, a.kv_heads);
  a.v = split_heads(a.v, a.kv_heads);
  const Value keys = appended(n, 3, a.k, cache), values = appended(n, 4, a.v, cache);
  if (!prompt) {
    const bool whole = cache.capacity.is(total);  // a bias is as wide as the keys in use
    a.k = whole || !n.has(10) ? keys : part(keys, 2, 0, total);
    a.v = whole || !n.has(10) ? values : part(values, 2, 0, total);
    a.kv_len = lengths;
    a.at_end = true;
  }
  a.causal = n.attr("causal", true);
  if (const int64_t window = n.attr("local_window_size", -1); window > 0) a.window = window;
  a.softcap = n.attr("softcap", 0.0f);
  set_scale(n, a);
  if (n.has(10)) a.bias = n.input(10);
  if (n.has(11))
    a.sink = n.input(11);
  else if (n.attr("smooth_softmax", 0) == 1)
    a.sink = expand_to(n.scalar(0, DType::F32), Shape({a.heads}));
  const int64_t shown = n.attr("qk_output", 0);
  if (!n.wants(3) || shown == 0) return Values{join_heads(attend(n, a)), keys, values};
  const AttentionSteps s = attend_in_steps(n, a, a.q.dtype() == DType::F64 ? DType::F64 : DType::F32);
  return Values{join_heads(s.y), keys, values, shown == 1 ? s.capped : s.probabilities};
}

// ---- RotaryEmbedding

Built rotary_embedding(OnnxNode& n) {
  if (n.attr("is_packed_batching", false)) n.unsupported("Packed batches are not supported.");
  if (n.attr("scale", 1.0f) != 1.0f) n.unsupported("A scale other than 1 is not supported.");
  const Value x = n.input(0), cos = n.input(2);
  const int64_t rank = x.shape().rank();
  require(rank == 3 || rank == 4, "The input has rank ", rank, "; 3 or 4 is expected.");
  require_rank(cos, 2, "cos_cache");
  const int64_t rotated = checked_mul(2, cos.shape()[1].value()), heads = n.attr("num_heads", 0);
  int64_t width = rotated;
  if (rank == 4) {
    width = x.shape()[3].value();
  } else if (n.attr("rotary_embedding_dim", 0) > 0) {
    require(heads > 0, "num_heads is needed where only a part of a head is rotated.");
    width = x.shape()[2].value() / heads;
  }
  Value positions = cast_to(n.input(1), DType::I64);
  if (positions.shape().rank() < 2) positions = count_up(n, x.shape()[rank - 2]) + positions;
  return rotate(n, x,
                {.cos = cos,
                 .sin = n.input(3),
                 .positions = positions,
                 .width = width,
                 .rotated = rotated,
                 .interleaved = n.attr("interleaved", false)});
}

}  // namespace

Rows contrib_attention_rows() {
  return {
      {"Attention", 1, attention},
      {"GroupQueryAttention", 1, group_query_attention},
      {"MultiHeadAttention", 1, multi_head_attention},
      {"QAttention", 1, q_attention},
      {"RotaryEmbedding", 1, rotary_embedding},
  };
}

}  // namespace rlx::onnx
