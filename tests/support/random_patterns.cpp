#include "support/random_patterns.h"

#include <cmath>
#include <numeric>

#include "rlx/blocks.h"
#include "rlx/ops.h"

namespace rlx::test {

namespace {

using namespace rlx::ops;

class Patterns {
 public:
  explicit Patterns(PatternSite& site) : s_(site) {}

  std::vector<Value> run() {
    using Make = void (Patterns::*)();
    static constexpr Make kAll[] = {
        &Patterns::linear,
        &Patterns::linear,
        &Patterns::residual_norm,
        &Patterns::swiglu_halves,
        &Patterns::swiglu_ff,
        &Patterns::shared_lhs,
        &Patterns::slices,
        &Patterns::dot,
        &Patterns::constants,
        &Patterns::neutral,
        &Patterns::twins,
        &Patterns::layout_pairs,
        &Patterns::loop,
        &Patterns::scan_rows,
        &Patterns::function,
        &Patterns::group_norm_of,
        &Patterns::resized,
        &Patterns::apart_axes,
        &Patterns::region,
        &Patterns::choice,
        &Patterns::chain,
        &Patterns::apart_axes,
        &Patterns::broadcasts,
        &Patterns::fused_linear,
        &Patterns::backward,
        &Patterns::attend,
        &Patterns::attend,
        &Patterns::encoder_layer,
        &Patterns::rounded,
        &Patterns::rounded,
        &Patterns::image,
        &Patterns::slices,
        &Patterns::image,
        &Patterns::swiglu_halves,
        &Patterns::convolved,
        &Patterns::convolved,
        &Patterns::convolved,
        &Patterns::norm_parts,
        &Patterns::norm_parts,
        &Patterns::attention_parts,
        &Patterns::attention_parts,
        &Patterns::gelu_parts,
        &Patterns::quantized,
        &Patterns::quantized,
        &Patterns::rotary_parts,
        &Patterns::rotary_parts,
        &Patterns::rotary_parts,
        &Patterns::slices,
    };
    (this->*kAll[integer(0, std::size(kAll) - 1)])();
    return std::move(out_);
  }

 private:
  int64_t integer(int64_t low, int64_t high) { return s_.rng.integer(low, high); }
  bool chance(double p) { return s_.rng.chance(p); }
  void give(const Value& v) { out_.push_back(v); }
  // A member that is read from outside too: most patterns must leave it alone then.
  void maybe_give(const Value& v) {
    if (chance(0.2)) give(v);
  }

  static Dim last(const Value& x) { return x.shape()[x.shape().rank() - 1]; }
  int64_t width(const Value& x) {
    require(x.shape().rank() >= 1 && last(x).is_static() && last(x).value() > 0, "no width");
    return last(x).value();
  }
  // At least a matrix, with a last axis whose size is known.
  Value matrix() {
    const Value x = s_.pick();
    const int64_t n = width(x);
    return x.shape().rank() == 1 ? reshape(x, {.new_shape = {1, n}}) : x;
  }
  Value weight(std::vector<int64_t> sizes) {
    const Tensor value = s_.rng.tensor(sizes);
    if (chance(0.3)) return s_.graph.constant(value);
    const std::string name = str("p", s_.params.size());
    s_.params[name] = value;
    return s_.graph.param(name, value.type());
  }
  Value number(double v) { return s_.graph.constant(Tensor::from_doubles(DType::F32, {}, {&v, 1})); }
  ActivationKind any_activation() {
    const ActivationKind kinds[] = {ActivationKind::kRelu, ActivationKind::kGelu,    ActivationKind::kSilu,
                                    ActivationKind::kTanh, ActivationKind::kSigmoid, ActivationKind::kNeg};
    return kinds[integer(0, 5)];
  }
  Value norm(const Value& x) {
    const int64_t n = width(x);
    const Value gamma = weight({n});
    if (chance(0.5)) return layer_norm(x, gamma, weight({n}));
    return chance(0.5) ? rms_norm(x, gamma) : rms_norm(x, gamma, weight({n}));
  }

  void linear() {
    const Value x = matrix();
    const int64_t n = integer(1, 5);
    const Value product = matmul(x, weight({width(x), n}));
    const std::vector<int64_t> shapes[] = {{n}, {n}, {n}, {1}, {}, {1, n}};
    const Value bias = weight(shapes[integer(0, 5)]);
    const Value sum = chance(0.7) ? product + bias : bias + product;
    const Value y = chance(0.7) ? activate(sum, any_activation()) : sum;
    maybe_give(product);
    maybe_give(sum);
    give(y);
  }
  void fused_linear() {
    const Value x = matrix();
    const int64_t n = integer(1, 5);
    const Value w = weight({width(x), n}), b = weight({n});
    give(blocks::linear_fused(x, w, b, any_activation()));
  }
  void residual_norm() {
    const Value x = s_.pick();
    const int64_t n = width(x);
    const Value branch = chance(0.5) ? relu(x) : x + weight({n});
    const Value sum = chance(0.5) ? x + branch : branch + x;
    maybe_give(sum);
    give(norm(sum));
  }
  void swiglu_halves() {
    const Value x = matrix();
    const int64_t n = integer(1, 3);
    const Value both = matmul(x, weight({width(x), chance(0.8) ? 2 * n : 2 * n + 1}));
    const Value a = narrow(both, {.axis = -1, .start = 0, .len = n}),
                b = narrow(both, {.axis = -1, .start = n, .len = n});
    const Value gate = silu(chance(0.5) ? a : b);
    const Value up = chance(0.9) ? (gate.graph().node_of(gate.id()).inputs[0] == a.id() ? b : a) : a;
    maybe_give(a);
    give(chance(0.5) ? gate * up : up * gate);
  }
  void swiglu_ff() {
    const Value x = matrix();
    const int64_t k = width(x), n = integer(1, 4);
    const Value up = weight({k, n}), gate = weight({k, n}), down = weight({n, k});
    give(blocks::swiglu_ffn(x, up, gate, down));
  }
  void shared_lhs() {
    const Value x = matrix();
    const int64_t k = width(x), count = integer(2, 3);
    for (int64_t i = 0; i < count; ++i) {
      const Value y = matmul(x, weight({k, integer(1, 4)}));
      give(chance(0.5) ? y : y + weight({width(y)}));
    }
  }
  // Slices of one tensor, the same op on each, put together again: in order or not, complete or not.
  void slices() {
    const Value x = s_.pick();
    require(x.shape().rank() >= 1 && x.shape()[0].is_static() && x.shape()[0].value() >= 2, "nothing to slice");
    const int64_t rows = x.shape()[0].value(), cut = integer(1, rows - 1);
    const Value a = narrow(x, {.axis = 0, .start = 0, .len = cut}),
                b = narrow(x, {.axis = 0, .start = cut, .len = rows - cut});
    const Value fa = relu(a), fb = chance(0.7) ? relu(b) : sigmoid(b);
    give(chance(0.7) ? concat(fa, fb, {.axis = 0}) : concat(fb, fa, {.axis = 0}));
  }
  void dot() {
    const Value x = s_.pick();
    const int64_t rank = x.shape().rank();
    require(rank >= 1, "no axis");
    DotGeneralAttrs attrs;
    std::vector<int64_t> sizes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (!x.shape()[axis].is_static() || chance(0.4)) continue;
      const bool batch = chance(0.4);
      (batch ? attrs.lhs_batch : attrs.lhs_contracting).push_back(axis);
      (batch ? attrs.rhs_batch : attrs.rhs_contracting).push_back(static_cast<int64_t>(sizes.size()));
      sizes.push_back(x.shape()[axis].value());
    }
    if (chance(0.7)) sizes.push_back(integer(1, 3));
    give(dot_general(x, weight(sizes), attrs));
  }
  void constants() {
    const Value a = number(s_.rng.normal()), b = s_.graph.constant(s_.rng.tensor({width(s_.pick())}));
    const Value c = tanh(a * b);
    const Value scale = chance(0.5) ? c : cast(cast(c, {.to = DType::F16}), {.to = DType::F32});
    give(s_.pick() + scale);
  }
  void neutral() {
    const Value x = chance(0.5) ? s_.pick() : neg(relu(s_.pick()));  // with zeros of both signs
    const double numbers[] = {0.0, -0.0, 1.0, -1.0};
    const Value c = number(numbers[integer(0, 3)]);
    const Op<NoAttrs>* kinds[] = {&add, &sub, &mul, &div};
    const Op<NoAttrs>& op = *kinds[integer(0, 3)];
    give(&op == &div || chance(0.7) ? op(x, c) : op(c, x));
  }
  void twins() {
    const Value x = s_.pick(), y = s_.pick();
    for (int i = 0; i < 2; ++i) give(tanh(x + y));
  }
  void layout_pairs() {
    Value x = s_.pick();
    for (int i = 0; i < 3; ++i) {
      require(x.shape().rank() > 0, "a scalar");
      std::vector<int64_t> perm(static_cast<size_t>(x.shape().rank()));
      std::iota(perm.begin(), perm.end(), 0);
      std::swap(perm[static_cast<size_t>(integer(0, x.shape().rank() - 1))], perm[0]);
      x = chance(0.5) ? transpose(x, {.perm = perm}) : x;
      if (chance(0.4)) x = reshape(x, {.new_shape = {-1}});
      if (chance(0.3)) x = cast(x, {.to = DType::F32});
      maybe_give(x);
    }
    give(x);
  }
  // A while whose condition is a number, not a truth value; sometimes without a bound.
  void loop() {
    if (!s_.regions) return;
    const Value x = s_.pick();
    const TensorType scalar{{}, DType::F32};
    auto cond = std::make_shared<Graph>("cond"), body = std::make_shared<Graph>("body");
    const Value i = cond->input("i", scalar);
    cond->input("v", x.type());
    cond->output(i, "more");
    const Value j = body->input("i", scalar), v = body->input("v", x.type());
    const Value one = body->constant(Tensor::f32({}, {1}));
    body->output(j - one, "i");
    body->output(tanh(v + v), "v");
    const bool bounded = chance(0.8);
    const Value count = number(static_cast<double>(integer(0, 3)));
    const Value start = chance(0.5) ? count : relu(count);
    const Value r = while_(
        start, x,
        {.cond = cond, .body = body, .max_iterations = bounded ? std::optional<int64_t>(integer(0, 3)) : std::nullopt});
    give(r.result(1));
  }
  void scan_rows() {
    if (!s_.regions) return;
    const Value xs = s_.pick();
    require(xs.shape().rank() >= 1 && xs.shape()[0].is_static() && xs.shape()[0].value() > 0, "no rows");
    const TensorType row{Shape(std::vector<Dim>(xs.shape().begin() + 1, xs.shape().end())), DType::F32};
    auto body = std::make_shared<Graph>("body");
    const Value c = body->input("c", row), x = body->input("x", row);
    body->output(tanh(c + x), "c");
    body->output(c * x, "y");
    const Value init = reshape(narrow(xs, {.axis = 0, .start = 0, .len = 1}), {.new_shape = row.shape.dims()});
    const Value r =
        scan(init, xs, {.body = body, .length = xs.shape()[0], .num_xs = 1, .save_trajectory = chance(0.5)});
    give(r);
    give(r.result(1));
    if (s_.graph.node_of(r.id()).results.size() > 2) give(r.result(2));
  }
  void function() {
    if (!s_.regions) return;
    const Value x = s_.pick();
    auto body = std::make_shared<Graph>("fwd");
    const Value v = body->input("v", x.type());
    body->output(sigmoid(v) * v, "y");
    body->output(v, "x");
    const Value r = custom_fn(x, {.fwd_body = body});
    give(r);
    maybe_give(r.result(1));
  }
  void choice() {
    if (!s_.regions) return;
    const Value x = s_.pick();
    auto yes = std::make_shared<Graph>("then"), no = std::make_shared<Graph>("else");
    const Value a = yes->input("v", x.type()), b = no->input("v", x.type());
    yes->output(chance(0.5) ? relu(a) : a, "y");
    no->output(neg(b), "y");
    // Known when compiling or not.
    const Value flag = number(static_cast<double>(integer(0, 1)));
    give(if_(chance(0.5) ? flag : relu(flag), x, {.then_branch = yes, .else_branch = no}));
  }
  void group_norm_of() {
    const Value x = s_.pick();
    require(x.shape().rank() >= 2 && x.shape()[1].is_static() && x.shape()[1].value() > 0, "no channels");
    const int64_t c = x.shape()[1].value();
    const Value gamma = weight({c}), beta = weight({c});
    give(group_norm(x, gamma, beta, {.num_groups = c % 2 == 0 ? 2 : 1}));
  }
  void resized() {
    const Value x = s_.pick();
    require(x.shape().rank() == 4 && !s_.symbols, "no image");
    give(chance(0.5) ? relu(resize_nearest_2x(x)) : resize_nearest_2x(x));
  }
  void apart_axes() {
    const Value x = s_.pick();
    require(x.shape().rank() >= 3, "too few axes");
    const ReduceKind kinds[] = {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax};
    give(reduce_op(kinds[integer(0, 2)])(x, {.axes = {0, x.shape().rank() - 1}, .keep_dim = chance(0.5)}));
  }
  void region() {
    const Value x = s_.pick(), y = s_.pick();
    const Chain steps = {{.op = &lt, .operands = {{false, 0}, {false, 1}}},
                         {.op = &where, .operands = {{true, 0}, {false, 0}, {false, 1}}},
                         {.op = &tanh, .operands = {{true, 1}}}};
    give(elementwise_region(x, y, {.chain = steps, .num_inputs = 2}));
  }
  // Element-wise ops in a row, two strands that meet.
  void chain() {
    Value x = s_.pick();
    const int64_t length = integer(2, 6);
    for (int64_t i = 0; i < length; ++i) {
      x = chance(0.3) ? x * sigmoid(x) : activate(x, any_activation());
      maybe_give(x);
    }
    give(x);
  }
  // A per-channel weight, not at the end: [C, 1, 1] into [.., C, H, W].
  void broadcasts() {
    const Value x = s_.pick();
    require(x.shape().rank() >= 2, "nothing to broadcast");
    const Dim c = x.shape()[1];
    require(c.is_static(), "a symbol");
    std::vector<int64_t> sizes(static_cast<size_t>(x.shape().rank()) - 1, 1);
    sizes[0] = c.value();
    give(x * weight(sizes));
  }
  // [B, S, C], small; its sizes are known.
  Value tokens() {
    const Value x = matrix();
    require(!s_.symbols, "a symbol");
    return reshape(x, {.new_shape = {1, -1, width(x)}});
  }
  // Attention between projections: Q, K and V of one product, sometimes in another order or with a scale of their own.
  // A norm, gelu and attention as models spell them with primitives, and what looks alike.
  void norm_parts() {
    const Value x = s_.pick();
    const int64_t n = width(x), axis = chance(0.9) ? x.shape().rank() - 1 : 0;
    const ReduceAttrs last{.axes = {axis}, .keep_dim = true};
    const Value d = chance(0.6) ? x - reduce_mean(x, last) : x;
    const Value square = chance(0.5) ? d * d : pow(d, number(2));
    const Value variance = reduce_mean(square, last) + number(0.01);
    const Value y = chance(0.5) ? d / sqrt(variance) : d * rsqrt(variance);
    maybe_give(y);
    const Value scaled = chance(0.8) ? y * weight({n}) : y;
    give(chance(0.6) ? scaled + weight({n}) : scaled);
  }
  void gelu_parts() {
    const Value x = s_.pick();
    const Value e = erf(chance(0.5) ? x / number(std::sqrt(2.0)) : x * number(chance(0.8) ? std::sqrt(0.5) : 0.7));
    const Value gate = chance(0.5) ? e + number(1) : number(1) + e;
    maybe_give(gate);
    give(chance(0.5) ? x * gate * number(0.5) : number(0.5) * x * gate);
    if (chance(0.3)) give(x * sigmoid(x));
  }
  // A product of codes, with a bias and a relu or not, quantised or not; scales per column, per row, along the sum.
  void quantized() {
    require(!s_.smooth, "a step function");
    const Value x = matrix();
    const int64_t k = width(x), n = integer(1, 3);
    const DType dtypes[] = {DType::I8, DType::U8, DType::U8, DType::I16};
    const auto positive = [&](std::vector<int64_t> sizes) {
      return s_.graph.constant(s_.rng.uniform_tensor(sizes, 0.01, 0.1));
    };
    const auto codes = [&](const std::vector<int64_t>& sizes, DType dtype) {
      return s_.graph.constant(s_.rng.uniform_tensor(sizes, dtype == DType::U8 ? 0 : -20, 40, dtype));
    };
    const auto quantize_to = [&](const Value& v, DType dtype) {
      return chance(0.7) ? quantize_linear(v, positive({}), codes({}, dtype), {.to = dtype})
                         : quantize_linear(v, positive({1}), {.to = dtype});
    };
    const Value q = quantize_to(x, dtypes[integer(0, 3)]);
    const bool zero = chance(0.5);
    const Value left =
        zero ? dequantize_linear(q, positive({}), codes({}, q.dtype())) : dequantize_linear(q, positive({}));
    const bool conv2d = !s_.symbols && chance(0.4), turned = !conv2d && chance(0.3);
    const DType of_weight = dtypes[integer(0, 3)];
    const std::vector<int64_t> sizes = conv2d   ? std::vector<int64_t>{n, 1, 2, 1}
                                       : turned ? std::vector<int64_t>{n, k}
                                                : std::vector<int64_t>{k, n};
    const int64_t axis = chance(0.8) == (conv2d || turned) ? 0 : 1;
    const std::vector<int64_t> list = {sizes[static_cast<size_t>(axis)]};
    const std::vector<int64_t> scales = chance(0.5) ? list : std::vector<int64_t>{};
    const Value w = codes(sizes, of_weight);
    Value right = chance(0.5) ? dequantize_linear(w, positive(scales), codes(scales, of_weight), {.axis = axis})
                              : dequantize_linear(w, positive(scales), {.axis = axis});
    if (turned) right = transpose(right, {.perm = {1, 0}});
    if (chance(0.1)) right = relu(right);
    Value y = conv2d ? conv(reshape(left, {.new_shape = {1, 1, -1, k}}), right,
                            {.kernel_size = {2, 1}, .padding = {1, 0, 0, 0}})
                     : matmul(left, right);
    maybe_give(y);
    if (chance(0.5)) y = y + weight(conv2d ? std::vector<int64_t>{n, 1, 1} : std::vector<int64_t>{n});
    if (chance(0.3)) y = relu(y);
    if (chance(0.3)) give(y);
    const Value again = quantize_to(y, dtypes[integer(0, 3)]);
    give(dequantize_linear(again, positive({})));
  }
  // x * cos + turned(x) * sin, and what looks alike.
  void rotary_parts() {
    const Value from = tokens();
    const int64_t n = 2 * integer(1, 2);
    const Value x = matmul(from, weight({width(from), n}));
    const Dim seq = x.shape()[1];
    const auto table = [&]() -> Value {
      if (chance(0.15)) return weight({seq.value(), n});
      const Value angles = weight({seq.value(), n / 2});
      const Value both = concat(angles, angles, {.axis = -1});
      if (chance(0.3)) return reshape(tanh(both), {.new_shape = {1, seq, n}});
      return chance(0.5) ? cos(both) : sin(both) * number(0.5);
    };
    const Value low = narrow(x, {.axis = 2, .start = 0, .len = n / 2}),
                high = narrow(x, {.axis = 2, .start = n / 2, .len = n / 2});
    const Value turned = chance(0.9) ? concat(neg(high), low, {.axis = 2}) : concat(neg(low), high, {.axis = -1});
    if (chance(0.1)) give(turned);
    const Value c = table(), s = table();
    const Value plain = chance(0.5) ? x * c : c * x, other = chance(0.5) ? turned * s : s * turned;
    give(chance(0.5) ? plain + other : other + plain);
  }
  void attention_parts() {
    const Value x = tokens();
    const int64_t heads = integer(1, 2), dim = integer(1, 3), w = heads * dim;
    const Dim batch = x.shape()[0], seq = x.shape()[1];
    const auto project = [&](const std::vector<int64_t>& perm) {
      const Value y = reshape(matmul(x, weight({width(x), w})), {.new_shape = {batch, seq, heads, dim}});
      return transpose(y, {.perm = perm});
    };
    const Value q = project({0, 2, 1, 3}), v = project({0, 2, 1, 3});
    const Value kt = chance(0.5) ? project({0, 2, 3, 1}) : transpose(project({0, 2, 1, 3}), {.perm = {0, 1, 3, 2}});
    Value scores = matmul(chance(0.5) ? q * number(0.5) : q, kt);
    if (chance(0.5)) scores = scores / number(1.5);
    if (chance(0.5)) scores = scores + weight({1, 1, 1, seq.value()});
    const Value p = softmax(scores);
    maybe_give(p);
    give(matmul(p, v));
  }
  void attend() {
    const Value x = tokens();
    const int64_t heads = integer(1, 2), dim = 2 * integer(1, 2), w = heads * dim, c = width(x);
    const bool bias = chance(0.7), turned = chance(0.3);
    const auto linear_to = [&](const Value& v, int64_t n) {
      const Value k = weight({width(v), n});
      return bias ? blocks::linear_fused(v, k, weight({n}), ActivationKind::kNone) : matmul(v, k);
    };
    const Value packed = linear_to(x, 3 * w);
    const Dim seq = x.shape()[1];
    const Value cos = weight({seq.value(), dim / 2}), sin = weight({seq.value(), dim / 2});
    std::vector<Value> parts;
    const bool ordered = chance(0.9);
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t at = ordered ? i : 2 - i;
      parts.push_back(narrow(packed, {.axis = 2, .start = at * w, .len = w}));
      if (turned && i < 2)
        parts.back() = rope(parts.back(), cos, sin, {.head_dim = dim, .layout = AttentionLayout::kBsf});
    }
    parts.push_back(weight({1, seq.value()}));
    AttentionAttrs attrs{.num_heads = heads,
                         .head_dim = dim,
                         .layout = AttentionLayout::kBsf,
                         .mask_kind = chance(0.9) ? MaskKind::kCustom : MaskKind::kBias};
    if (chance(0.1)) attrs.score_scale = 0.1f;
    if (chance(0.1)) attrs.attn_logit_softcap = 30.f;
    const Value y = attention(parts, attrs);
    if (chance(0.1)) give(y.result(1));
    if (chance(0.1)) give(packed);
    give(linear_to(y, c));
  }
  void encoder_layer() {
    const Value x = tokens();
    const int64_t c = width(x), inner = integer(1, 4), seq = x.shape()[1].value();
    const Value block =
        fused_attention_block({x, weight({c, 6}), weight({2, c}), weight({1, seq}), weight({6}), weight({c})},
                              {.num_heads = 1, .head_dim = 2, .has_bias = true});
    const Value h = chance(0.5) ? fused_residual_ln(block, x, weight({c}), weight({c}))
                                : fused_residual_ln(x, block, weight({c}), weight({c}));
    const Value up = blocks::linear_fused(h, weight({c, inner}), weight({inner}), any_activation());
    const Value down = blocks::linear_fused(up, weight({inner, c}), weight({c}), ActivationKind::kNone);
    if (chance(0.1)) give(h.result(1));
    if (chance(0.1)) give(h);
    give(fused_residual_ln(down, chance(0.9) ? h : x, weight({c}), weight({c})));
  }
  // Rounded to a grid, then again, with something between that leaves the values on it or does not.
  void rounded() {
    require(!s_.smooth, "a step function");
    const Value x = s_.pick();
    const bool fixed = chance(0.5);
    const FakeQuantizeAttrs attrs{.bits = chance(0.5) ? 8 : 4,
                                  .scale_mode = fixed ? ScaleMode::kFixed : ScaleMode::kPerBatch};
    const Value scale = s_.graph.constant(Tensor::f32({1}, {0.05f}));
    const auto quantized = [&](const Value& v) {
      return fixed ? fake_quantize(v, scale, attrs) : fake_quantize(v, attrs);
    };
    Value y = quantized(x);
    if (chance(0.4)) y = relu(y);
    if (chance(0.4)) y = reshape(y, {.new_shape = {-1}});
    if (chance(0.2)) y = tanh(y);
    maybe_give(y);
    give(quantized(y));
  }
  void image() {
    const Value x = matrix();
    require(!s_.symbols, "a symbol");
    const Value large = resize_nearest_2x(reshape(x, {.new_shape = {1, 1, -1, width(x)}}));
    maybe_give(large);
    const Value y = chance(0.5) ? large * weight({2 * width(x)}) : large;
    give(activate(y, any_activation()));
  }
  // A convolution, scaled and shifted per channel, with a residual and an activation; each of them or not, sometimes
  // per row or column instead.
  void convolved() {
    const Value x = matrix();
    require(!s_.symbols, "a symbol");
    const int64_t c = integer(1, 3);
    const Value from = reshape(x, {.new_shape = {1, 1, -1, width(x)}});
    const bool transposed = chance(0.2);
    std::vector<Value> operands = {
        from, weight(transposed ? std::vector<int64_t>{1, c, 2, 2} : std::vector<int64_t>{c, 1, 2, 2})};
    if (chance(0.4)) operands.push_back(weight({c}));
    Value y = transposed ? conv_transpose(operands, {.kernel_size = {2, 2}, .padding = {1, 0, 0, 1}})
                         : conv(operands, {.kernel_size = {2, 2}, .padding = {1, 0, 0, 1}});
    maybe_give(y);
    const std::vector<int64_t> shapes[] = {{c, 1, 1}, {c, 1, 1}, {1, c, 1, 1}, {}, {1, 1, width(y)}};
    for (int64_t i = integer(0, 3); i > 0; --i) {
      const Value number = weight(shapes[integer(0, 4)]);
      const int64_t kind = integer(0, 9);
      y = kind < 4 ? y * number : kind < 7 ? y + number : kind < 8 ? number + y : kind < 9 ? y - number : number - y;
      if (chance(0.1)) give(y);
    }
    if (chance(0.4)) {
      const Value other = chance(0.5)   ? tanh(y)
                          : chance(0.8) ? relu(weight({1, c, y.shape()[2].value(), width(y)}))
                                        : y;
      y = chance(0.5) ? y + other : other + y;
      if (chance(0.1)) give(y);
    }
    give(chance(0.6) ? activate(y, any_activation()) : y);
  }
  void backward() {
    const Value x = s_.pick();
    const Value dy = tanh(x);
    give(activation_backward(x, dy, {.kind = any_activation()}));
  }

  PatternSite& s_;
  std::vector<Value> out_;
};

}  // namespace

std::vector<Value> random_pattern(PatternSite& site) { return Patterns(site).run(); }

}  // namespace rlx::test
