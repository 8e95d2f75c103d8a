#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/ops/attention.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Lengths {
  Dim queries, keys;
};

Lengths lengths_of(const Attention& a) {
  const int64_t axis = a.flat ? 1 : 2;
  return {a.q.shape()[axis], a.k.shape()[axis]};
}

void check(const Attention& a) {
  require(a.kv_heads >= 1 && a.heads >= 1 && a.heads % a.kv_heads == 0, "The heads of keys and values (", a.kv_heads,
          ") do not divide those of the queries (", a.heads, ").");
  const int64_t rank = a.flat ? 3 : 4;
  require_rank(a.q, rank, "The query");
  require_rank(a.k, rank, "The key");
  require_rank(a.v, rank, "The value");
}

int64_t width_of(const Value& x, bool flat, int64_t heads) {
  const int64_t last = x.shape()[x.shape().rank() - 1].value();
  require(!flat || last % heads == 0, "A width of ", last, " is not a whole number of ", heads, " heads.");
  return flat ? last / heads : last;
}

// Is the causal mask the one that the catalogue's op means: queries are the last of the keys?
bool aligned_at_end(OnnxNode& n, const Attention& a) {
  const Lengths l = lengths_of(a);
  if (l.queries.is_static() && l.keys.is_static() && a.offset.is_static())
    return std::max<int64_t>(0, l.keys.value() - l.queries.value()) == a.offset.value();
  return n.symbols().add(a.offset, l.queries) == l.keys;
}

// Which keys a query sees, as [queries, keys] or, where that differs, [batch, 1, queries, keys].
Value causal_mask(OnnxNode& n, const Attention& a) {
  const Lengths l = lengths_of(a);
  const Value keys = reshape_to(count_up(n, l.keys), {1, l.keys});
  const Value queries = reshape_to(count_up(n, l.queries), {l.queries, 1});
  Value offset = reshape_to(sizes_as_tensor(n, {a.at_end ? l.queries : a.offset}), {});
  if (a.at_end) offset = reshape_to(cast_to(*a.kv_len, DType::I64), {a.q.shape()[0], 1, 1, 1}) - offset;
  const Value last = queries + offset;
  const Value seen = ops::le(keys, last);
  if (!a.window) return seen;
  return both(n, seen, ops::gt(keys, last - n.scalar(static_cast<double>(*a.window), DType::I64)));
}

// Keys and values for every head of the query.
Value repeated(OnnxNode& n, const Value& x, int64_t times) {
  if (times == 1) return x;
  const Shape& s = x.shape();
  const Value apart = reshape_to(x, {s[0], s[1], 1, s[2], s[3]});
  const Value wide = expand_to(apart, Shape({s[0], s[1], times, s[2], s[3]}));
  return reshape_to(wide, {s[0], n.symbols().mul(s[1], times), s[2], s[3]});
}

}  // namespace

Value split_heads(const Value& x, int64_t heads) {
  require_rank(x, 3, "A query, key or value");
  require(heads >= 1, "The number of heads (", heads, ") is less than 1.");
  const int64_t width = width_of(x, true, heads);
  return ops::transpose(reshape_to(x, {x.shape()[0], x.shape()[1], heads, width}), {.perm = {0, 2, 1, 3}});
}

Value join_heads(const Value& x) {
  const Value rows = ops::transpose(x, {.perm = {0, 2, 1, 3}});
  const Shape& s = rows.shape();
  return reshape_to(rows, {s[0], s[1], checked_mul(s[2].value(), s[3].value())});
}

Value both(OnnxNode& n, const std::optional<Value>& a, const Value& b) {
  return a ? ops::where(*a, b, n.scalar(0, DType::Bool)) : b;
}

AttentionSteps attend_in_steps(OnnxNode& n, const Attention& a, DType softmax) {
  check(a);
  const Lengths l = lengths_of(a);
  const Value q = a.flat ? split_heads(a.q, a.heads) : a.q;
  const Value k = repeated(n, a.flat ? split_heads(a.k, a.kv_heads) : a.k, a.heads / a.kv_heads);
  const Value v = repeated(n, a.flat ? split_heads(a.v, a.kv_heads) : a.v, a.heads / a.kv_heads);
  const double width = static_cast<double>(width_of(q, false, a.heads));
  // Half of the scale on either side: products of large values overflow later.
  const Value root = scalar_like(n, q, std::sqrt(a.scale ? static_cast<double>(*a.scale) : 1 / std::sqrt(width)));
  const Value scores = ops::matmul(q * root, swap_last_two(k * root));
  Value capped = scores;
  if (a.softcap > 0) capped = ops::tanh(scores / scalar_like(n, q, a.softcap)) * scalar_like(n, q, a.softcap);

  Value masked = a.bias ? capped + cast_to(*a.bias, q.dtype()) : capped;
  std::optional<Value> keep = a.keep;
  if (a.causal) keep = both(n, keep, causal_mask(n, a));
  if (a.kv_len) {
    const Value keys = reshape_to(count_up(n, l.keys), {1, 1, 1, l.keys});
    keep = both(n, keep, ops::lt(keys, reshape_to(cast_to(*a.kv_len, DType::I64), {q.shape()[0], 1, 1, 1})));
  }
  if (keep) masked = ops::where(*keep, masked, scalar_like(n, masked, -kInfinity));

  Value probabilities = cast_to(masked, softmax);
  if (a.sink) {
    const Shape& s = masked.shape();
    const Value logit = reshape_to(cast_to(*a.sink, softmax), {1, a.heads, 1, 1});
    const Value all = ops::concat(Values{probabilities, expand_to(logit, Shape({s[0], s[1], s[2], 1}))}, {.axis = 3});
    probabilities = ops::narrow(ops::softmax(all, {.axis = 3}), {.axis = 3, .start = 0, .len = l.keys});
  } else {
    probabilities = ops::softmax(probabilities, {.axis = 3});
  }
  probabilities = cast_to(probabilities, q.dtype());
  const Value y = ops::matmul(probabilities, cast_to(v, q.dtype()));
  return {a.flat ? join_heads(y) : y, scores, capped, masked, probabilities};
}

Value attend(OnnxNode& n, const Attention& a) {
  check(a);
  const int64_t width = width_of(a.q, a.flat, a.heads);
  const DType dtype = a.q.dtype();
  if (a.sink || width_of(a.v, a.flat, a.kv_heads) != width || a.v.dtype() != dtype)
    return attend_in_steps(n, a, dtype == DType::F64 ? dtype : DType::F32).y;
  ops::AttentionAttrs attrs{.num_heads = a.heads,
                            .head_dim = width,
                            .layout = a.flat ? ops::AttentionLayout::kBsf : ops::AttentionLayout::kBhsd,
                            .score_scale = a.scale};
  if (a.softcap > 0) attrs.attn_logit_softcap = a.softcap;
  std::optional<Value> keep = a.keep;
  // The op itself knows a causal mask only alone; with kv_len its queries are the last of the keys in use.
  const bool own_causal = a.causal && !a.keep && !a.bias && (a.kv_len ? a.at_end : aligned_at_end(n, a));
  if (a.causal && !own_causal) keep = both(n, keep, causal_mask(n, a));
  Values operands = {a.q, a.k, a.v};
  const auto to_rank_4 = [](const Value& mask) {
    require(mask.shape().rank() <= 4, "A mask has rank ", mask.shape().rank(), "; 4 or less is expected.");
    std::vector<Dim> shape(static_cast<size_t>(4 - mask.shape().rank()), Dim(1));
    shape.insert(shape.end(), mask.shape().begin(), mask.shape().end());
    return reshape_to(mask, shape);
  };
  if (own_causal) {
    attrs.mask_kind = a.window ? ops::MaskKind::kSlidingWindow : ops::MaskKind::kCausal;
    if (a.window) attrs.window = *a.window - 1;
  } else if (a.bias) {
    attrs.mask_kind = ops::MaskKind::kBias;
    Value bias = to_rank_4(*a.bias);
    if (keep) bias = ops::where(to_rank_4(*keep), bias, scalar_like(n, bias, -kInfinity));
    operands.push_back(bias);
  } else if (keep) {
    attrs.mask_kind = ops::MaskKind::kCustom;
    operands.push_back(to_rank_4(*keep));
  }
  if (a.kv_len) operands.push_back(*a.kv_len);
  return ops::attention(operands, attrs);
}

Value rotate(OnnxNode& n, const Value& x, const Rotary& r) {
  require(r.rotated % 2 == 0 && r.rotated <= r.width, "The rotated width (", r.rotated,
          ") is not an even number up to the width of a head (", r.width, ").");
  // The catalogue's tables are as wide as half a head, whatever part of it is rotated.
  const auto table = [&](const Value& t) {
    std::vector<Dim> rest = t.shape().dims();
    require(rest.size() >= 2, "A table of angles has rank ", rest.size(), "; 2 or 3 is expected.");
    require(rest.back().is(r.rotated / 2), "The tables have ", rest.back(), " columns; ", r.rotated / 2,
            " are expected.");
    if (r.rotated / 2 == r.width / 2) return t;
    rest.back() = r.width / 2 - r.rotated / 2;
    const Value unused = expand_to(scalar_like(n, t, 0), Shape(rest));
    return ops::concat(Values{t, unused}, {.axis = t.shape().rank() - 1});
  };
  Values operands = {x, table(r.cos), table(r.sin)};
  if (r.positions) operands.push_back(*r.positions);
  return ops::rope(operands,
                   {.head_dim = r.width,
                    .n_rot = r.rotated,
                    .layout = x.shape().rank() == 3 ? ops::AttentionLayout::kBsf : ops::AttentionLayout::kBhsd,
                    .style = r.interleaved ? ops::RopeStyle::kGptj : ops::RopeStyle::kNeox});
}

}  // namespace rlx::onnx
