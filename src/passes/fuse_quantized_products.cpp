// Products of dequantised bytes as exact integer products: matmul(dq(a), dq(b)) is the i32 sum of the codes' products
// times both scales. A quantize_linear behind it, with biases and a relu between, becomes element-wise steps on the
// sums (one factor instead of three scales), which are one region later: no float tensor is written. Codes that are
// dequantised, moved and quantised as they were stay codes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "ops/linear_scales.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/conv.h"
#include "rlx/ops/integer.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/quantize_linear.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

// A value that is dequantised, then moved.
struct Dequantized {
  const Node* node = nullptr;       // the dequantize_linear
  std::vector<const Node*> moves;   // what follows it, first to last
  std::optional<int64_t> axis = 0;  // of the scales, in the moved value; none: one scale for all
  ValueId codes() const { return node->inputs[0]; }
  ValueId scale() const { return node->inputs[1]; }
  std::optional<ValueId> zero() const {
    return node->inputs.size() > 2 ? std::optional(node->inputs[2]) : std::nullopt;
  }
};

struct Product {
  const Node* node = nullptr;  // matmul or conv
  Dequantized a, b;
};

struct Refusal {
  std::string_view guard, hint;
};

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    if (node.op == &ops::quantize_linear) {
      if (auto codes = unchanged_codes(node)) return codes;
      return requantized(node);
    }
    if (!is_product(node)) return std::nullopt;
    Refusal why;
    const auto product = match(node, &why);
    if (!product) {
      if (!why.guard.empty()) rw_.miss(node, why.guard, why.hint);
      return std::nullopt;
    }
    const Value sum = sums(*product);
    const Value factor = factor_of(*product);
    Value y = ops::cast(sum, {.to = DType::F32}) * factor;
    if (node.inputs.size() > 2) y = y + conv_bias(node);
    return Values{y};
  }

 private:
  static constexpr size_t kMostMoves = 4;

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }
  static bool is_product(const Node& node) { return node.op == &ops::matmul || node.op == &ops::conv; }

  const Tensor* constant(ValueId id) const {
    const Node* node = &rw_.producer(id);
    while (node->op == &ops::reshape) node = &rw_.producer(node->inputs[0]);
    return node->op == &ops::constant ? &node->attrs.as<ops::ConstantAttrs>().value : nullptr;
  }
  bool same_numbers(ValueId a, ValueId b) const {
    if (a == b) return true;
    const Tensor *x = constant(a), *y = constant(b);
    if (!x || !y || x->dtype() != y->dtype() || x->num_elements() != y->num_elements()) return false;
    for (int64_t i = 0; i < x->num_elements(); ++i)
      if (x->at(i) != y->at(i)) return false;
    return true;
  }
  // Numbers that can be divided by, far from where f32 ends.
  bool is_positive(ValueId scale) const {
    const Tensor* t = constant(scale);
    if (!t) return false;
    for (int64_t i = 0; i < t->num_elements(); ++i)
      if (!(t->at(i) > 1e-30 && t->at(i) < 1e30)) return false;
    return true;
  }

  std::optional<Dequantized> dequantized(ValueId id) const {
    Dequantized d;
    for (d.node = &rw_.producer(id); d.node->op != &ops::dequantize_linear; d.node = &rw_.producer(d.node->inputs[0])) {
      if ((d.node->op != &ops::transpose && d.node->op != &ops::reshape) || d.moves.size() == kMostMoves)
        return std::nullopt;
      d.moves.push_back(d.node);
    }
    std::reverse(d.moves.begin(), d.moves.end());
    const auto& attrs = d.node->attrs.as<ops::DequantizeLinearAttrs>();
    d.axis.reset();
    if (attrs.block_size > 0) {
      d.axis = kInBlocks;
    } else if (!ops::is_one_scale(type(d.scale()).shape)) {
      d.axis = normalize_axis(attrs.axis, type(d.codes()).rank());
      for (const Node* move : d.moves) {
        if (move->op != &ops::transpose) {
          d.axis = kInBlocks;  // the axis may have been cut
          break;
        }
        const std::vector<int64_t>& perm = move->attrs.as<ops::TransposeAttrs>().perm;
        d.axis = std::find(perm.begin(), perm.end(), *d.axis) - perm.begin();
      }
    }
    return d;
  }

  bool has_bytes(const Dequantized& d) const {
    const DType codes = type(d.codes()).dtype;
    return codes == DType::I8 || codes == DType::U8;
  }
  bool fits(const Dequantized& d, ValueId moved) const {
    return !d.axis || type(d.scale()).dim(0) == type(moved).dim(*d.axis);
  }
  // The largest distance of a code from its zero point.
  int64_t reach(const Dequantized& d) const {
    const DType dtype = type(d.codes()).dtype;
    const int64_t low = smallest_int(dtype), high = largest_int(dtype);
    if (!d.zero()) return std::max(-low, high);
    const Tensor* zero = constant(*d.zero());
    if (!zero) return high - low;
    int64_t most = 0;
    for (int64_t i = 0; i < zero->num_elements(); ++i) {
      const auto z = static_cast<int64_t>(zero->at(i));
      most = std::max({most, z - low, high - z});
    }
    return most;
  }
  // How many products each sum has.
  std::optional<int64_t> depth(const Node& node) const {
    const TensorType& w = type(node.inputs[1]);
    const bool conv = node.op == &ops::conv;
    int64_t n = 1;
    for (int64_t i = conv ? 1 : w.rank() - 2; i < (conv ? w.rank() : w.rank() - 1); ++i) {
      if (!w.dim(i).is_static()) return std::nullopt;
      n = checked_mul(n, w.dim(i).value());
    }
    return n;
  }

  std::optional<Product> match(const Node& node, Refusal* why = nullptr) {
    const auto refuse = [&](std::string_view guard, std::string_view hint) {
      if (why) *why = {guard, hint};
      return std::nullopt;
    };
    if (!is_product(node) || node.results[0].type.dtype != DType::F32) return std::nullopt;
    const auto a = dequantized(node.inputs[0]), b = dequantized(node.inputs[1]);
    if (!a && !b) return std::nullopt;
    if (!a || !b)
      return refuse("OneSide", "Only one operand is dequantised; the other is a float that was never codes.");
    if (!has_bytes(*a) || !has_bytes(*b)) return refuse("NotBytes", "The codes are not i8 or u8.");
    const bool conv = node.op == &ops::conv;
    const int64_t a_rank = type(node.inputs[0]).rank(), b_rank = type(node.inputs[1]).rank();
    if ((a->axis && (conv || *a->axis != a_rank - 2)) || (b->axis && *b->axis != (conv ? 0 : b_rank - 1)))
      return refuse("ScaleAxis",
                    "The scales change along what is summed, in blocks, or along another axis than the result's last "
                    "(of a conv: its channels).");
    if (!fits(*a, node.inputs[0]) || !fits(*b, node.inputs[1]))
      return refuse("ScaleAxis", "A size of the operand is a symbol where the scales have a number, or the reverse.");
    const auto terms = depth(node);
    const int64_t largest = std::numeric_limits<int32_t>::max();
    if (!terms || *terms > largest / (reach(*a) * reach(*b)))
      return refuse("Depth", "The sums are not known to be short enough for 32 bits.");
    Product p{&node, *a, *b};
    std::vector<TensorType> types;
    for (size_t i = 0; i < 2; ++i)
      types.push_back({type(node.inputs[i]).shape, type((i == 0 ? p.a : p.b).codes()).dtype});
    if (p.a.zero() || p.b.zero()) types.push_back(p.a.zero() ? type(*p.a.zero()) : TensorType{{}, types[0].dtype});
    if (p.b.zero()) types.push_back(type(*p.b.zero()));
    const bool claimed = conv ? rw_.claims(ops::conv_integer, node.attrs, types)
                              : rw_.claims(ops::matmul_integer, Attrs(NoAttrs{}), types);
    if (!claimed) return refuse("Unclaimed", "The target has no integer product of these operands.");
    return p;
  }

  Value moved_codes(const Dequantized& d) {
    Value v = rw_.in(d.codes());
    for (const Node* move : d.moves) {
      const Value from[] = {v};
      v = rw_.out().add(*move->op, from, move->attrs);
    }
    return v;
  }

  Value sums(const Product& p) {
    Values operands = {moved_codes(p.a)};
    operands.push_back(moved_codes(p.b));
    if (p.a.zero())
      operands.push_back(rw_.in(*p.a.zero()));
    else if (p.b.zero())
      operands.push_back(rw_.out().constant(Tensor(operands[0].dtype(), {})));
    if (p.b.zero()) operands.push_back(rw_.in(*p.b.zero()));
    if (p.node->op == &ops::conv) return rw_.out().add(ops::conv_integer, operands, p.node->attrs);
    return ops::matmul_integer(operands);
  }

  // A list with one number per index of an axis, so that it broadcasts with a value of that rank.
  static Value along(const Value& list, int64_t axis, int64_t rank) {
    if (axis == rank - 1) return list;
    std::vector<Dim> shape(static_cast<size_t>(rank - axis), Dim(1));
    shape[0] = list.shape()[0];
    return ops::reshape(list, {.new_shape = shape});
  }
  std::optional<int64_t> listed(ValueId numbers, int64_t axis, int64_t rank) const {
    return ops::is_one_scale(type(numbers).shape) ? std::nullopt : std::optional(normalize_axis(axis, rank));
  }

  Value factor_of(const Product& p) {
    const int64_t rank = p.node->results[0].type.rank();
    const int64_t column = p.node->op == &ops::conv ? 1 : rank - 1;
    Value a = rw_.in(p.a.scale());
    if (p.a.axis) a = along(a, rank - 2, rank);
    Value b = rw_.in(p.b.scale());
    if (p.b.axis) b = along(b, column, rank);
    return a * b;
  }

  Value conv_bias(const Node& conv) { return along(rw_.in(conv.inputs[2]), 1, conv.results[0].type.rank()); }

  // quantize_linear(moves(dequantize_linear(q))) with the same scale and zero point: moves(q).
  std::optional<Values> unchanged_codes(const Node& node) {
    const auto d = dequantized(node.inputs[0]);
    if (!d || !has_bytes(*d) || d->axis == kInBlocks || type(node.inputs[0]).dtype != DType::F32) return std::nullopt;
    const auto& attrs = node.attrs.as<ops::QuantizeLinearAttrs>();
    if (attrs.block_size > 0 || attrs.to != type(d->codes()).dtype ||
        attrs.low.value_or(smallest_int(attrs.to)) != smallest_int(attrs.to) ||
        attrs.high.value_or(largest_int(attrs.to)) != largest_int(attrs.to))
      return std::nullopt;
    if (listed(node.inputs[1], attrs.axis, node.results[0].type.rank()) != d->axis || !is_positive(node.inputs[1]) ||
        !same_numbers(node.inputs[1], d->scale()))
      return std::nullopt;
    const bool has_zero = node.inputs.size() > 2;
    if (has_zero != d->zero().has_value() || (has_zero && !same_numbers(node.inputs[2], *d->zero())))
      return std::nullopt;
    return Values{moved_codes(*d)};
  }

  struct Requantized {
    Product product;
    std::vector<ValueId> added;
    bool relu = false;
  };

  std::optional<Requantized> match_requantized(const Node& node) {
    Requantized r;
    const Node* reader = &node;
    ValueId value = node.inputs[0];
    const auto take = [&](ValueId id) -> bool {
      auto found = match(rw_.producer(id));
      if (!found) return false;
      if (!rw_.uses().sole_use(id, *reader)) {
        rw_.miss(node, "MultiConsumer", "The product before it is quantised is read elsewhere too, or is an output.");
        return false;
      }
      r.product = std::move(*found);
      return true;
    };
    if (const Node& relu = rw_.producer(value); relu.op == &ops::relu && rw_.uses().sole_use(value, node)) {
      r.relu = true;
      reader = &relu;
      value = relu.inputs[0];
    }
    if (const Node& sum = rw_.producer(value); sum.op == &ops::add && rw_.uses().sole_use(value, *reader)) {
      reader = &sum;
      for (size_t i = 0; i < 2; ++i) {
        if (type(sum.inputs[i]) != sum.results[0].type || sum.inputs[0] == sum.inputs[1] || !take(sum.inputs[i]))
          continue;
        r.added.push_back(sum.inputs[1 - i]);
        return r;
      }
      return std::nullopt;
    }
    if (!take(value)) return std::nullopt;
    return r;
  }

  std::optional<Values> requantized(const Node& node) {
    const auto& attrs = node.attrs.as<ops::QuantizeLinearAttrs>();
    const auto r = match_requantized(node);
    if (!r) return std::nullopt;
    const ValueId scale = node.inputs[1];
    if (attrs.block_size > 0 || attrs.to == DType::I32 || type(scale).dtype != DType::F32 || !is_positive(scale)) {
      rw_.miss(node, "ResultScale",
               "The scales of the codes are not positive constants in f32, or are those of blocks.");
      return std::nullopt;
    }
    const int64_t rank = node.results[0].type.rank();
    const auto axis = listed(scale, attrs.axis, rank);
    if (axis && type(scale).dim(0) != node.results[0].type.dim(*axis)) return std::nullopt;
    Value step = rw_.in(scale);
    if (axis) step = along(step, *axis, rank);
    const Value sum = sums(r->product);
    const Value factor = factor_of(r->product) / step;
    Value y = ops::cast(sum, {.to = DType::F32}) * factor;
    if (r->product.node->inputs.size() > 2) y = y + conv_bias(*r->product.node) / step;
    for (const ValueId added : r->added) {
      const Value part = rw_.in(added) / step;
      y = y + part;
    }
    if (r->relu) y = ops::relu(y);
    y = ops::round(y);
    if (node.inputs.size() > 2) {
      const Value zero = ops::cast(rw_.in(node.inputs[2]), {.to = DType::F32});
      y = y + (axis ? along(zero, *axis, rank) : zero);
    }
    const auto number = [&](int64_t v) {
      const auto value = static_cast<double>(v);
      return rw_.out().constant(Tensor::from_doubles(DType::F32, {}, {&value, 1}));
    };
    if (attrs.low.value_or(smallest_int(attrs.to)) != smallest_int(attrs.to)) y = ops::max(y, number(*attrs.low));
    if (attrs.high.value_or(largest_int(attrs.to)) != largest_int(attrs.to)) y = ops::min(y, number(*attrs.high));
    return Values{ops::cast(y, {.to = attrs.to})};  // what lies outside becomes the nearest code
  }

  static constexpr int64_t kInBlocks = -1;  // scales that belong to no single axis

  Rewriter& rw_;
};

}  // namespace

void fuse_quantized_products(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
