#include "support/random_graph.h"

#include <functional>
#include <numeric>

#include "rlx/ops.h"
#include "support/random_patterns.h"

namespace rlx::test {

namespace {

class Maker {
 public:
  Maker(Rng& rng, const RandomGraphOptions& options) : rng_(rng), options_(options) {}

  RandomGraph run() {
    leaves();
    for (int64_t i = 0; i < options_.nodes; ++i) node();
    outputs();
    return std::move(out_);
  }

 private:
  Graph& g() { return out_.graph; }

  const Value& pick() {
    return values_[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(values_.size()) - 1))];
  }
  const Value& pick_float() {
    for (int tries = 0; tries < 50; ++tries)
      if (const Value& v = pick(); v.dtype() == DType::F32) return v;
    return values_[0];
  }

  // The first input is always f32, so that there is something to compute with.
  void leaves() {
    const int64_t count = rng_.integer(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> sizes =
          rng_.shape({.min_rank = 1, .max_rank = 4, .min_dim = i > 0 && rng_.chance(0.05) ? 0 : 1, .max_dim = 5});
      if (options_.symbols) {
        for (int64_t& size : sizes) size = size < 3 ? 1 : 4;
        sizes[0] = 4;
      }
      Shape shape{std::span<const int64_t>(sizes)};
      if (options_.symbols) shape[0] = Dim::symbol(symbols::kBatch);
      values_.push_back(g().input(str("x", i), {shape, DType::F32}));
      out_.inputs.push_back(rng_.tensor(sizes));
    }
    if (rng_.chance(0.7)) {
      std::vector<int64_t> sizes = rng_.shape({.min_rank = 1, .max_rank = 2, .max_dim = 5});
      if (options_.symbols)  // a size that the symbol is broadcast with has to be 1 or its own
        for (int64_t& size : sizes) size = size < 3 ? 1 : 4;
      values_.push_back(g().param("w", {Shape(sizes), DType::F32}));
      out_.params["w"] = rng_.tensor(sizes);
    }
    if (!options_.symbols && rng_.chance(0.5))
      values_.push_back(g().constant(rng_.tensor(rng_.shape({.max_rank = 2, .max_dim = 4}))));
    if (!options_.states) return;
    const int64_t states = rng_.integer(0, 3);
    const TensorType type = values_[0].type();
    for (int64_t i = 0; i < states; ++i) {
      states_.push_back(g().state(str("s", i), type));
      values_.push_back(states_.back());
    }
  }

  // A node that does not fit its operands is simply not made.
  void node() {
    using Make = void (Maker::*)();
    static constexpr Make kMakers[] = {
        &Maker::binary,     &Maker::binary, &Maker::unary,    &Maker::unary,   &Maker::reshape,
        &Maker::transpose,  &Maker::narrow, &Maker::concat,   &Maker::expand,  &Maker::softmax,
        &Maker::compare,    &Maker::cast,   &Maker::branch,   &Maker::reshape, &Maker::narrow,
        &Maker::state_like, &Maker::matmul, &Maker::reduce,   &Maker::topk,    &Maker::cumsum,
        &Maker::norm,       &Maker::gather, &Maker::residual, &Maker::bits,    &Maker::logic};
    try {
      if (rng_.chance(options_.patterns)) return pattern();
      (this->*kMakers[rng_.integer(0, std::size(kMakers) - 1)])();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalid) throw;  // what was made of it already stays, used by nobody
    }
  }

  void add(const Value& v) {
    const auto n = v.shape().try_elements();
    if (!n || *n <= 4096) values_.push_back(v);
  }

  void pattern() {
    PatternSite site{.rng = rng_,
                     .graph = g(),
                     .params = out_.params,
                     .pick = [&] { return pick_float(); },
                     .symbols = options_.symbols,
                     .regions = options_.regions,
                     .smooth = options_.smooth};
    for (const Value& v : random_pattern(site)) add(v);
  }

  void binary() {
    const Value a = pick_float(), b = rng_.chance(0.2) ? a : pick_float();
    const ops::BinaryKind kinds[] = {ops::BinaryKind::kAdd, ops::BinaryKind::kSub, ops::BinaryKind::kMul,
                                     ops::BinaryKind::kMax};
    add(ops::binary_op(kinds[rng_.integer(0, 3)])(a, b));
  }

  void unary() {
    static const Op<NoAttrs>* const kOps[] = {&ops::relu,  &ops::neg,   &ops::tanh, &ops::sigmoid, &ops::erf,
                                              &ops::asinh, &ops::floor, &ops::ceil, &ops::sign};
    add((*kOps[rng_.integer(0, options_.smooth ? 5 : 8)])(pick_float()));
  }

  // Integers: remainders, bits and shifts with a constant, and back to floats.
  void bits() {
    if (options_.smooth) return;
    static const Op<NoAttrs>* const kOps[] = {&ops::bit_and,    &ops::bit_or,      &ops::bit_xor, &ops::mod,
                                              &ops::shift_left, &ops::shift_right, &ops::fmod,    &ops::div};
    const Value x = ops::cast(pick_float(), {.to = rng_.chance(0.5) ? DType::I32 : DType::I8});
    const Value other = g().constant(rng_.integers({}, 1, 5, x.dtype()));
    const Value y = (*kOps[rng_.integer(0, 7)])(x, other);
    add(ops::cast(rng_.chance(0.3) ? ops::bit_not(y) : y, {.to = DType::F32}));
  }

  // Logic of comparisons.
  void logic() {
    if (options_.smooth) return;
    const Value a = pick_float(), b = pick_float();
    const Value either = ops::bit_or(ops::is_nan(a), ops::bit_not(ops::lt(a, b)));
    add(ops::where(rng_.chance(0.5) ? either : ops::bit_and(either, ops::is_inf(b)), a, b));
  }

  void reshape() {
    const Value x = pick();
    std::vector<Dim> dims(x.shape().begin(), x.shape().end());
    if (rng_.chance(0.3)) {
      dims = {-1};
    } else if (rng_.chance(0.5) || dims.size() < 2) {
      dims.insert(dims.begin() + rng_.integer(0, static_cast<int64_t>(dims.size())), Dim(1));
    } else {
      const auto i = static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(dims.size()) - 2));
      dims[i] = g().symbols().mul(dims[i], dims[i + 1]);
      dims.erase(dims.begin() + static_cast<int64_t>(i) + 1);
    }
    add(ops::reshape(x, {.new_shape = dims}));
  }

  void transpose() {
    const Value x = pick();
    std::vector<int64_t> perm(static_cast<size_t>(x.shape().rank()));
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i)
      std::swap(perm[i - 1], perm[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(i) - 1))]);
    add(ops::transpose(x, {.perm = perm}));
  }

  void narrow() {
    const Value x = pick();
    if (x.shape().rank() == 0) return;
    const int64_t axis = rng_.chance(0.6) ? 0 : rng_.integer(0, x.shape().rank() - 1);
    const Dim& d = x.shape()[axis];
    if (!d.is_static() || d.value() == 0 || options_.symbols) return;
    const int64_t start = rng_.integer(0, d.value() - 1);
    add(ops::narrow(x, {.axis = axis, .start = start, .len = rng_.integer(0, d.value() - start)}));
  }

  void concat() {
    const Value a = pick_float();
    if (a.shape().rank() == 0 || options_.symbols) return;
    add(ops::concat(a, rng_.chance(0.5) ? a : pick_float(), {.axis = rng_.integer(0, a.shape().rank() - 1)}));
  }

  void expand() {
    const Value x = pick();
    std::vector<Dim> target = {options_.symbols ? 1 : rng_.integer(1, 3)};
    for (const Dim& d : x.shape()) target.push_back(d.is(1) && rng_.chance(0.5) ? Dim(options_.symbols ? 4 : 3) : d);
    add(ops::expand(x, {.target_shape = target}));
  }

  void softmax() {
    const Value x = pick_float();
    if (x.shape().rank() > 0) add(ops::softmax(x, {.axis = rng_.integer(-x.shape().rank(), x.shape().rank() - 1)}));
  }

  void matmul() {
    const Value x = pick_float();
    if (x.shape().rank() < 1 || !x.shape()[x.shape().rank() - 1].is_static()) return;
    const int64_t k = x.shape()[x.shape().rank() - 1].value();
    const Value lhs = x.shape().rank() == 1 ? ops::reshape(x, {.new_shape = {1, k}}) : x;
    add(ops::matmul(lhs, g().constant(rng_.tensor({k, rng_.integer(1, 5)}))));
  }

  void reduce() {
    const Value x = pick_float();
    std::vector<int64_t> axes;
    for (int64_t a = 0; a < x.shape().rank(); ++a)
      if (rng_.chance(0.5)) axes.push_back(a);
    const ops::ReduceKind kinds[] = {ops::ReduceKind::kSum, ops::ReduceKind::kMean, ops::ReduceKind::kMax};
    add(ops::reduce_op(kinds[rng_.integer(0, 2)])(x, {.axes = axes, .keep_dim = rng_.chance(0.5)}));
  }

  // Two results, of which either, both or none is used.
  void topk() {
    const Value x = pick_float();
    if (x.shape().rank() == 0 || !x.shape()[x.shape().rank() - 1].is_static() || x.shape()[x.shape().rank() - 1].is(0))
      return;
    const Value values = ops::topk(x, {.k = 1});
    if (rng_.chance(0.7)) add(values);
    if (!options_.smooth && rng_.chance(0.7)) add(ops::cast(values.result(1), {.to = DType::F32}));
  }

  void cumsum() {
    const Value x = pick_float();
    if (x.shape().rank() > 0)
      add(ops::cumsum(x, {.axis = rng_.integer(0, x.shape().rank() - 1), .exclusive = rng_.chance(0.5)}));
  }

  void norm() {
    const Value x = pick_float();
    if (x.shape().rank() == 0 || !x.shape()[x.shape().rank() - 1].is_static()) return;
    const int64_t n = x.shape()[x.shape().rank() - 1].value();
    add(ops::layer_norm(x, g().constant(rng_.tensor({n})), g().constant(rng_.tensor({n}))));
  }

  void gather() {
    const Value x = pick();
    if (x.shape().rank() == 0 || !x.shape()[0].is_static() || x.shape()[0].is(0)) return;
    add(ops::gather(x, g().constant(rng_.integers({2}, -1, x.shape()[0].value() - 1, DType::I64))));
  }

  // A fused op, which the oracle runs as its decomposition, with a tee.
  void residual() {
    const Value x = pick_float();
    if (x.shape().rank() == 0 || !x.shape()[x.shape().rank() - 1].is_static()) return;
    const int64_t n = x.shape()[x.shape().rank() - 1].value();
    const Value y = ops::fused_residual_ln(x, x, g().constant(rng_.tensor({n})), g().constant(rng_.tensor({n})));
    add(y);
    if (rng_.chance(0.5)) add(y.result(1));
  }

  void compare() {
    if (options_.smooth) return;
    const Value a = pick_float(), b = pick_float();
    add(ops::where(ops::lt(a, b), a, b));
  }

  void cast() {
    const DType types[] = {DType::F32, DType::F16, DType::I32, DType::F64};
    const Value x = pick();
    const Value y = ops::cast(x, {.to = types[rng_.integer(0, 3) * (options_.smooth ? 0 : 1)]});
    add(y);
    add(ops::cast(y, {.to = DType::F32}));
  }

  // Both branches of an if, one with a param of the parent.
  void branch() {
    if (!options_.regions) return;
    const Value x = pick_float();
    const auto body = [&](const std::string& name, bool with_param) {
      auto region = std::make_shared<Graph>(name);
      Value v = region->input("v", x.type());
      if (with_param && out_.params.contains("w")) {
        const Tensor& w = out_.params["w"];
        const Value sum = ops::add(v, ops::softmax(ops::reshape(region->param("w", w.type()), {.new_shape = {-1}})));
        if (sum.type() == x.type()) v = sum;
      }
      region->output(ops::tanh(v), "y");
      return region;
    };
    const Value flag = g().constant(Tensor::i32({}, {static_cast<int32_t>(rng_.integer(0, 1))}));
    add(ops::if_(flag, x, {.then_branch = body("then", true), .else_branch = body("else", false)}));
  }

  // A value of the states' type, so that updates find candidates.
  void state_like() {
    if (states_.empty()) return;
    const Value s = states_[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(states_.size()) - 1))];
    add(rng_.chance(0.5) ? ops::add(s, values_[0]) : ops::relu(s));
  }

  void outputs() {
    const int64_t count = rng_.integer(1, 3);
    for (int64_t i = 0; i < count; ++i) g().output(rng_.chance(0.5) ? values_.back() : pick(), str("y", i));
    for (const Value& s : states_) {
      if (rng_.chance(0.2)) continue;
      std::vector<Value> fitting;
      for (const Value& v : values_)
        if (v.type() == s.type()) fitting.push_back(v);
      g().update(s, fitting[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(fitting.size()) - 1))]);
    }
  }

  Rng& rng_;
  RandomGraphOptions options_;
  RandomGraph out_;
  std::vector<Value> values_, states_;
};

}  // namespace

RandomGraph random_graph(Rng& rng, const RandomGraphOptions& options) { return Maker(rng, options).run(); }

}  // namespace rlx::test
