// Attention, and what models keep beside it: rotary embeddings, caches, linear attention, causal convolutions.
#include "import/onnx/ops/attention.h"

#include <cmath>
#include <limits>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The mask as wide as the keys: what it leaves out is masked.
Value padded_mask(OnnxNode& n, const Value& mask, const Dim& keys) {
  const int64_t last = mask.shape().rank() - 1;
  require(last >= 0, "The mask is a scalar.");
  const Dim own = mask.shape()[last];
  if (!own.is_static() || !keys.is_static() || own.value() >= keys.value()) return mask;
  std::vector<Dim> shape = mask.shape().dims();
  shape.back() = keys.value() - own.value();
  const Value fill = n.scalar(mask.dtype() == DType::Bool ? 0 : -kInfinity, mask.dtype());
  return ops::concat(Values{mask, expand_to(fill, Shape(shape))}, {.axis = last});
}

Built attention(OnnxNode& n) {
  Attention a{.q = n.input(0), .k = n.input(1), .v = n.input(2)};
  const DType own = a.q.dtype();
  const int64_t rank = a.q.shape().rank();
  require(rank == 3 || rank == 4, "Q has rank ", rank, "; 3 or 4 is expected.");
  a.flat = rank == 3;
  a.heads = a.flat ? n.required_int("q_num_heads") : a.q.shape()[1].value();
  require_rank(a.k, rank, "K");
  require_rank(a.v, rank, "V");
  a.kv_heads = a.flat ? n.required_int("kv_num_heads") : a.k.shape()[1].value();
  const bool joined = a.flat;
  const bool cached = n.has(4) || n.has(5) || n.wants(1) || n.wants(2);
  if (a.flat && cached) {
    a.flat = false;
    a.q = split_heads(a.q, a.heads);
    a.k = split_heads(a.k, a.kv_heads);
    a.v = split_heads(a.v, a.kv_heads);
  }
  if (n.has(4)) {
    require_rank(n.input(4), 4, "past_key");
    a.offset = n.input(4).shape()[2];
    a.k = ops::concat(Values{n.input(4), a.k}, {.axis = 2});
  }
  if (n.has(5)) a.v = ops::concat(Values{n.input(5), a.v}, {.axis = 2});
  const Dim keys = a.k.shape()[a.flat ? 1 : 2];
  if (n.has(3)) {
    const Value mask = padded_mask(n, n.input(3), keys);
    if (mask.dtype() == DType::Bool)
      a.keep = mask;
    else
      a.bias = cast_to(mask, own);
  }
  if (n.has(6)) a.kv_len = cast_to(n.input(6), DType::I32);
  a.causal = n.attr("is_causal", false);
  a.softcap = n.attr("softcap", 0.0f);
  if (n.has_attr("scale")) a.scale = n.attr("scale", 0.0f);

  if (!n.wants(3)) {
    const Value y = attend(n, a);
    return Values{joined && !a.flat ? join_heads(y) : y, a.k, a.v};
  }
  const auto precision = n.attr("softmax_precision", static_cast<int64_t>(elem_of(own)));
  const AttentionSteps s = attend_in_steps(n, a, storage_of(static_cast<ElemType>(precision)));
  const Value* shown[] = {&s.scores, &s.capped, &s.masked, &s.probabilities};
  const int64_t mode = n.attr("qk_matmul_output_mode", 0);
  require(mode >= 0 && mode <= 3, "qk_matmul_output_mode (", mode, ") is not 0, 1, 2 or 3.");
  return Values{joined && !a.flat ? join_heads(s.y) : s.y, a.k, a.v, *shown[mode]};
}

// Scores and probabilities may be changed by a sub-graph each; items, not values, are held around them (node.h).
Built flex_attention(OnnxNode& n) {
  Importer& importer = n.importer();
  const auto heads_of = [&](int64_t i) {
    require_rank(n.input(i), 4, str("Input ", i));
    return n.input(i).shape()[1].value();
  };
  const int64_t heads = heads_of(0), kv_heads = heads_of(1);
  require(kv_heads >= 1 && heads % kv_heads == 0 && heads_of(2) == kv_heads, "The heads of K and V (", kv_heads,
          ") do not divide those of Q (", heads, ").");
  const DType own = n.input(0).dtype();
  std::optional<float> scale;
  if (n.has_attr("scale")) scale = n.attr("scale", 0.0f);
  if (!n.has_attr("score_mod") && !n.has_attr("prob_mod"))
    return attend(
        n, {.q = n.input(0), .k = n.input(1), .v = n.input(2), .heads = heads, .kv_heads = kv_heads, .scale = scale});
  const auto usual = static_cast<int64_t>(own == DType::F64 ? ElemType::kDouble : ElemType::kFloat);
  const DType dtype = storage_of(static_cast<ElemType>(n.attr("softmax_precision", usual)));
  // A group of query heads is one axis more, so that keys and values need not be repeated.
  const auto in_groups = [&](const Value& x, int64_t each) {
    const Shape& s = x.shape();
    return reshape_to(x, {s[0], kv_heads, each, s[2], s[3]});
  };
  const auto changed = [&](const char* name, Item item) {
    if (!n.has_attr(name)) return item;
    const std::vector<Item> results = importer.import_body(n.graph_attr(name), {&item, 1}, n.frame());
    require(results.size() == 1, "The graph '", name, "' has ", results.size(), " results; 1 is expected.");
    return results[0];
  };
  Item item = [&] {
    const Value q = n.input(0), k = n.input(1);
    const double width = static_cast<double>(q.shape()[3].value());
    const Value root = scalar_like(n, q, std::sqrt(scale ? static_cast<double>(*scale) : 1 / std::sqrt(width)));
    const Value scores = ops::matmul(in_groups(q * root, heads / kv_heads), swap_last_two(in_groups(k * root, 1)));
    return n.result(cast_to(reshape_to(scores, {q.shape()[0], heads, q.shape()[2], k.shape()[2]}), dtype));
  }();
  item = changed("score_mod", item);
  item = n.result(ops::softmax(cast_to(importer.value(item), dtype), {.axis = 3}));
  item = changed("prob_mod", item);
  const Value v = n.input(2), probabilities = importer.value(item);
  const Shape s = probabilities.shape();
  const Value y =
      ops::matmul(in_groups(cast_to(probabilities, dtype), heads / kv_heads), in_groups(cast_to(v, dtype), 1));
  return cast_to(reshape_to(y, {s[0], heads, s[2], v.shape()[3]}), own);
}

Built rotary_embedding(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  require(rank == 3 || rank == 4, "X has rank ", rank, "; 3 or 4 is expected.");
  int64_t width = x.shape()[rank - 1].value();
  if (rank == 3) {
    const int64_t heads = n.required_int("num_heads");
    require(heads >= 1 && width % heads == 0, "num_heads (", heads, ") does not divide the width (", width, ").");
    width /= heads;
  }
  const int64_t rotated = n.attr("rotary_embedding_dim", 0);
  Rotary r{.cos = n.input(1),
           .sin = n.input(2),
           .width = width,
           .rotated = rotated == 0 ? width : rotated,
           .interleaved = n.attr("interleaved", false)};
  if (n.has(3)) r.positions = n.input(3);
  return rotate(n, x, r);
}

// ---- caches

// Rows of `update` in place of those of the cache, from an index per batch on.
Built tensor_scatter(OnnxNode& n) {
  const Value cache = n.input(0), update = n.input(1);
  const int64_t rank = cache.shape().rank();
  const int64_t axis = normalize_axis(n.attr("axis", -2), rank);
  require(axis >= 1, "Axis (", axis, ") is the batch axis.");
  require_rank(update, rank, "update");
  const std::string mode = n.attr("mode", "linear");
  require(mode == "linear" || mode == "circular", "Mode '", mode, "' is not known.");
  const Dim batch = cache.shape()[0];
  const Value first = n.has(2) ? n.input(2) : expand_to(n.scalar(0, DType::I64), Shape({batch}));
  if (mode == "linear") return n.like(ops::kv_append(cache, update, cast_to(first, DType::I32), {.axis = axis}), 0);

  // Row p of the result is row (p - first) mod capacity of the update, where there is one. Both tensors as rows, one
  // after the other, and an index per row of the result.
  const Dim capacity = cache.shape()[axis], length = update.shape()[axis];
  SymbolTable& symbols = n.symbols();
  std::vector<int64_t> perm{0, axis}, back(static_cast<size_t>(rank));
  for (int64_t i = 1; i < rank; ++i)
    if (i != axis) perm.push_back(i);
  for (int64_t i = 0; i < rank; ++i) back[static_cast<size_t>(perm[static_cast<size_t>(i)])] = i;
  std::vector<Dim> rest;
  for (int64_t i = 2; i < rank; ++i) rest.push_back(cache.shape()[perm[static_cast<size_t>(i)]]);
  const auto rows = [&](const Value& x, const Dim& each) {
    std::vector<Dim> shape{symbols.mul(batch, each)};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return reshape_to(ops::transpose(x, {.perm = perm}), shape);
  };
  const auto size = [&](const Dim& d) { return reshape_to(sizes_as_tensor(n, {d}), {}); };
  const Value all = ops::concat(Values{rows(cache, capacity), rows(update, length)}, {.axis = 0});
  const Value own = reshape_to(count_up(n, symbols.mul(batch, capacity)), {batch, capacity});
  const Value batches = reshape_to(count_up(n, batch), {batch, 1});
  const Value begin = reshape_to(first - first / size(capacity) * size(capacity), {batch, 1});
  const Value distance = reshape_to(count_up(n, capacity), {1, capacity}) - begin;
  const Value source = ops::where(ops::lt(distance, n.scalar(0, DType::I64)), distance + size(capacity), distance);
  const Value updated = source + batches * size(length) + size(symbols.mul(batch, capacity));
  const Value index = ops::where(ops::lt(source, size(length)), updated, own);
  return n.like(ops::transpose(ops::gather(all, index, {.axis = 0}), {.perm = back}), 0);
}

// A depthwise convolution that sees nothing later than its own element; the last inputs are the next call's state.
Built causal_conv(OnnxNode& n) {
  const Value x = n.input(0), w = n.input(1);
  require_rank(x, 3, "The input");
  require_rank(w, 3, "The weight");
  const int64_t channels = w.shape()[0].value(), kernel = w.shape()[2].value();
  require(kernel >= 1, "The kernel is empty.");
  const Dim length = x.shape()[2];
  Value all = x;
  if (kernel > 1) {
    const Shape state({x.shape()[0], channels, kernel - 1});
    all = ops::concat(Values{n.has(3) ? n.input(3) : expand_to(scalar_like(n, x, 0), state), x}, {.axis = 2});
  }
  Value y = ops::conv(all, w, {.kernel_size = {kernel}, .groups = channels});
  if (n.has(2)) y = y + reshape_to(n.input(2), {channels, 1});
  const std::string activation = n.attr("activation", "none");
  require(activation == "none" || activation == "silu" || activation == "swish", "Activation '", activation,
          "' is not known.");
  if (activation != "none") y = ops::silu(y);
  return Values{y, ops::narrow(all, {.axis = 2, .start = length, .len = kernel - 1})};
}

// ---- linear attention

struct LinearAttention {
  int64_t heads, kv_heads, key_width, value_width;
  bool gated, delta;
  double scale;
};

// One step: the state [batch, kv heads, key width, value width] after it, and the result of each query head of a group.
Values linear_step(const LinearAttention& l, const Value& state, const Value& q, const Value& k, const Value& v,
                   const Value* decay, const Value* beta) {
  Value before = l.gated ? state * ops::exp(*decay) : state;
  Value written = v;
  if (l.delta) written = *beta * (v - ops::matmul(k, before));
  const Value after = before + ops::matmul(swap_last_two(k), written);
  return {after, ops::matmul(q, after)};
}

// The result and the last state, in f32.
Values by_scan(OnnxNode& n, const LinearAttention& l) {
  const Value query = n.input(0);
  const Dim batch = query.shape()[0], steps = query.shape()[1];

  // [batch, steps, kv heads * rows * width] -> [steps, batch, kv heads, rows, width], in f32.
  const auto by_step = [&](const Value& x, int64_t heads, int64_t rows, int64_t width) {
    const Value apart = reshape_to(cast_to(x, DType::F32), {batch, steps, heads, rows, width});
    return ops::transpose(apart, {.perm = {1, 0, 2, 3, 4}});
  };
  Value q = by_step(query, l.kv_heads, l.heads / l.kv_heads, l.key_width);
  q = q * scalar_like(n, q, l.scale);
  const Value k = by_step(n.input(1), l.kv_heads, 1, l.key_width);
  const Value v = by_step(n.input(2), l.kv_heads, 1, l.value_width);
  Values rows = {q, k, v};
  if (l.gated) {  // one number per head, or one per element of a key
    const bool per_head = n.input(4).shape()[2].is(l.kv_heads);
    rows.push_back(by_step(n.input(4), l.kv_heads, per_head ? 1 : l.key_width, 1));
  }
  if (l.delta) rows.push_back(by_step(n.input(5), n.input(5).shape()[2].value(), 1, 1));
  const Shape state({batch, l.kv_heads, l.key_width, l.value_width});
  Values operands = {n.has(3) ? cast_to(n.input(3), DType::F32) : expand_to(n.scalar(0, DType::F32), state)};
  operands.insert(operands.end(), rows.begin(), rows.end());

  auto body = std::make_shared<Graph>(n.graph().empty_revision());
  Values in;
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorType type = operands[i].type();
    if (i > 0) type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    in.push_back(body->input(str("in", i), type));
  }
  const Value* decay = l.gated ? &in[4] : nullptr;
  const Value* beta = l.delta ? &in.back() : nullptr;
  const Values out = linear_step(l, in[0], in[1], in[2], in[3], decay, beta);
  body->output(out[0], "state");
  body->output(out[1], "y");
  const Value last = ops::scan(
      operands, {.body = body, .length = steps, .num_carries = 1, .num_xs = static_cast<int64_t>(rows.size())});
  const Value y = ops::transpose(last.result(1), {.perm = {1, 0, 2, 3, 4}});
  return {reshape_to(y, {batch, steps, checked_mul(l.heads, l.value_width)}), last};
}

// Can the catalogue's op say it? Its delta rule has one decay per head, and values as wide as keys.
bool is_delta_net(OnnxNode& n, const LinearAttention& l) {
  return l.delta && l.key_width == l.value_width && (!l.gated || n.input(4).shape()[2].is(l.kv_heads));
}

Values by_delta_net(OnnxNode& n, const LinearAttention& l) {
  const Dim batch = n.input(0).shape()[0], steps = n.input(0).shape()[1];
  const int64_t width = l.key_width, group = l.heads / l.kv_heads;
  // Every query head has a state of its own: those of a group are equal.
  const auto per_head = [&](const Value& x, int64_t columns) {
    const Value apart =
        reshape_to(cast_to(x, DType::F32), {batch, steps, Dim(x.shape()[2].value() / columns), 1, columns});
    return reshape_to(expand_to(apart, Shape({batch, steps, l.kv_heads, group, columns})),
                      {batch, steps, l.heads, columns});
  };
  const auto per_step = [&](const Value& x) { return reshape_to(per_head(x, 1), {batch, steps, l.heads}); };
  const double factor = l.scale * std::sqrt(static_cast<double>(width));  // beside the op's own scale
  Value q = reshape_to(cast_to(n.input(0), DType::F32), {batch, steps, l.heads, width});
  if (std::abs(factor - 1) > 1e-7) q = q * scalar_like(n, q, factor);
  const Value k = per_head(n.input(1), width), v = per_head(n.input(2), width);
  const Value zero = n.scalar(0, DType::F32);
  const Value decay = l.gated ? per_step(n.input(4)) : expand_to(zero, Shape({batch, steps, l.heads}));
  const Value beta = per_step(n.input(5));
  Value state = expand_to(zero, Shape({batch, l.heads, width, width}));
  if (n.has(3)) {
    const Value apart = reshape_to(cast_to(n.input(3), DType::F32), {batch, l.kv_heads, 1, width, width});
    state =
        reshape_to(expand_to(apart, Shape({batch, l.kv_heads, group, width, width})), {batch, l.heads, width, width});
  }
  const Value y = ops::gated_delta_net(Values{q, k, v, decay, beta, state}, {.state_size = width, .carry_state = true});
  Value last = y.result(1);
  if (group > 1)
    last = ops::narrow(reshape_to(last, {batch, l.kv_heads, group, width, width}), {.axis = 2, .start = 0, .len = 1});
  return {reshape_to(y, {batch, steps, checked_mul(l.heads, width)}),
          reshape_to(last, {batch, l.kv_heads, width, width})};
}

Built linear_attention(OnnxNode& n) {
  const std::string rule = n.attr("update_rule", "gated_delta");
  require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta", "Update rule '", rule,
          "' is not known.");
  LinearAttention l;
  l.gated = rule == "gated" || rule == "gated_delta";
  l.delta = rule == "delta" || rule == "gated_delta";
  require(n.has(4) == l.gated, "Update rule '", rule, l.gated ? "' needs" : "' has no", " decay.");
  require(n.has(5) == l.delta, "Update rule '", rule, l.delta ? "' needs" : "' has no", " beta.");
  l.heads = n.required_int("q_num_heads");
  l.kv_heads = n.required_int("kv_num_heads");
  require(l.kv_heads >= 1 && l.heads >= 1 && l.heads % l.kv_heads == 0, "q_num_heads (", l.heads,
          ") is not a positive multiple of kv_num_heads (", l.kv_heads, ").");
  const Value query = n.input(0);
  const DType own = query.dtype();
  for (const int64_t i : {0, 1, 2, 4, 5})
    if (n.has(i)) require_rank(n.input(i), 3, str("Input ", i));
  l.key_width = query.shape()[2].value() / l.heads;
  l.value_width = n.input(2).shape()[2].value() / l.kv_heads;
  require(l.key_width >= 1 && l.value_width >= 1, "A head is empty.");
  l.scale = n.attr("scale", 0.0f) == 0 ? 1 / std::sqrt(static_cast<double>(l.key_width)) : n.attr("scale", 0.0f);
  const Values results = is_delta_net(n, l) ? by_delta_net(n, l) : by_scan(n, l);
  const DType state = n.has(3) ? n.input(3).dtype() : own;
  return Values{cast_to(results[0], own), cast_to(results[1], state)};
}

}  // namespace

Rows attention_rows() {
  return {
      {"Attention", 23, attention},
      {"CausalConvWithState", 27, causal_conv},
      {"LinearAttention", 27, linear_attention},
      {"RotaryEmbedding", 23, rotary_embedding},
      {"TensorScatter", 24, tensor_scatter},
  };
}

Rows preview_rows() { return {{"FlexAttention", 1, flex_attention}}; }

}  // namespace rlx::onnx
