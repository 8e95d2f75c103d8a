// Rotary positions as models spell them: x * cos + concat(-x2, x1) * sin, where x1 and x2 are the halves of x. One
// rope, when the halves of cos and of sin are the same: tables of half the width are all it needs.
#include <cstring>
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/gather.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/rope.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

class Recognizer {
 public:
  explicit Recognizer(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (node.op != &ops::add || is_unused(rw_, node) || !is_float(node.results[0].type.dtype)) return std::nullopt;
    for (size_t i = 0; i < 2; ++i)
      if (const auto m = match(node, node.inputs[i], node.inputs[1 - i])) return rotated(node, *m);
    return std::nullopt;
  }

 private:
  struct Match {
    ValueId x = 0, cos = 0, sin = 0;
    bool sole = true;  // nobody else reads a part
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  // The value of which this is the second half before the first, the second one negated.
  std::optional<ValueId> turned(ValueId id) const {
    const Node& joined = rw_.producer(id);
    const TensorType& t = joined.results[0].type;
    if (joined.op != &ops::concat || joined.inputs.size() != 2 || !last_dim(t).is_static() ||
        normalize_axis(joined.attrs.as<ops::ConcatAttrs>().axis, t.rank()) != t.rank() - 1)
      return std::nullopt;
    const std::optional<ValueId> second = negated(joined.inputs[0]);
    if (!second) return std::nullopt;
    const Node &high = rw_.producer(*second), &low = rw_.producer(joined.inputs[1]);
    const auto from_high = as_last_slice(high), from_low = as_last_slice(low);
    const int64_t width = last_dim(t).value(), half = width / 2;
    if (!from_high || !from_low || width % 2 != 0 || from_high->start != half || from_high->len != half ||
        from_low->start != 0 || from_low->len != half || high.inputs[0] != low.inputs[0] || type(high.inputs[0]) != t)
      return std::nullopt;
    return high.inputs[0];
  }
  std::optional<ValueId> negated(ValueId id) const {
    const Node& node = rw_.producer(id);
    if (node.op == &ops::neg) return node.inputs[0];
    if (node.op == &ops::mul) return other_operand(rw_, node, -1, 0);
    return std::nullopt;
  }

  std::optional<Match> match(const Node& sum, ValueId plain, ValueId rotated) {
    const Node &a = rw_.producer(plain), &b = rw_.producer(rotated);
    if (a.op != &ops::mul || b.op != &ops::mul || plain == rotated) return std::nullopt;
    for (size_t j = 0; j < 2; ++j) {
      const auto x = turned(b.inputs[j]);
      if (!x) continue;
      for (size_t i = 0; i < 2; ++i) {
        if (a.inputs[i] != *x || type(*x) != sum.results[0].type) continue;
        Match m{*x, a.inputs[1 - i], b.inputs[1 - j]};
        m.sole =
            rw_.uses().sole_use(plain, sum) && rw_.uses().sole_use(rotated, sum) && rw_.uses().sole_use(b.inputs[j], b);
        return m;
      }
    }
    return std::nullopt;
  }

  // ---- tables

  // The bytes of the halves of every row are the same.
  bool halves_equal(ValueId id, const Tensor& t) {
    const auto [it, is_new] = checked_.emplace(id, true);  // tables are large, and every layer has the same
    if (!is_new) return it->second;
    const auto half = static_cast<size_t>(t.sizes().back()) / 2 * size_of(t.dtype());
    const auto bytes = t.bytes();
    for (size_t row = 0; row < bytes.size() && it->second; row += 2 * half)
      it->second = std::memcmp(bytes.data() + row, bytes.data() + row + half, half) == 0;
    return it->second;
  }

  // The operand whose last axis this value's last axis is, entry by entry; nullopt when it is another matter.
  std::optional<size_t> followed(const Node& node) const {
    if (node.results.size() != 1 || node.inputs.empty()) return std::nullopt;
    const TensorType &y = node.results[0].type, &x = type(node.inputs[0]);
    if (node.op->traits.elementwise) {
      if (node.inputs.size() == 1) return 0;
      if (node.inputs.size() == 2)
        for (size_t i = 0; i < 2; ++i)
          if (type(node.inputs[i]).shape == y.shape && type(node.inputs[1 - i]).shape.try_elements() == 1) return i;
      return std::nullopt;
    }
    if (x.rank() == 0 || last_dim(x) != last_dim(y)) return std::nullopt;
    if (node.op == &ops::reshape || node.op == &ops::expand) return 0;
    if (node.op == &ops::transpose)
      return node.attrs.as<ops::TransposeAttrs>().perm.back() == x.rank() - 1 ? std::optional<size_t>(0) : std::nullopt;
    if (node.op == &ops::narrow)
      return normalize_axis(node.attrs.as<ops::NarrowAttrs>().axis, x.rank()) != x.rank() - 1 ? std::optional<size_t>(0)
                                                                                              : std::nullopt;
    if (node.op == &ops::gather)
      return normalize_axis(node.attrs.as<ops::GatherAttrs>().axis, x.rank()) != x.rank() - 1 ? std::optional<size_t>(0)
                                                                                              : std::nullopt;
    return std::nullopt;
  }

  static bool is_doubled(const Node& node) {
    if (node.op != &ops::concat || node.inputs.size() != 2 || node.inputs[0] != node.inputs[1]) return false;
    const int64_t rank = node.results[0].type.rank();
    return normalize_axis(node.attrs.as<ops::ConcatAttrs>().axis, rank) == rank - 1;
  }

  // Are the two halves of its last axis the same, whatever the data?
  bool repeats(ValueId id) {
    const Node* node = &rw_.producer(id);
    for (int depth = 0; depth < kMostSteps; ++depth) {
      if (is_doubled(*node)) return true;
      if (node->op == &ops::constant)
        return halves_equal(node->results[0].id, node->attrs.as<ops::ConstantAttrs>().value);
      const auto next = followed(*node);
      if (!next) return false;
      node = &rw_.producer(node->inputs[*next]);
    }
    return false;
  }

  // The first half of a value that repeats, computed as such.
  Value half_of(ValueId id) {
    if (const auto it = halves_.find(id); it != halves_.end()) return rw_.out().value(it->second);
    const Node& node = rw_.producer(id);
    const TensorType& t = node.results[0].type;
    const int64_t half = last_dim(t).value() / 2;
    const auto build = [&]() -> Value {
      if (is_doubled(node)) return rw_.in(node.inputs[0]);
      if (node.op == &ops::constant) return ops::narrow(rw_.in(id), {.axis = t.rank() - 1, .start = 0, .len = half});
      const size_t at = *followed(node);
      const Value from = half_of(node.inputs[at]);
      std::vector<Dim> shape = t.shape.dims();
      shape.back() = half;
      if (node.op == &ops::reshape) return ops::reshape(from, {.new_shape = shape});
      if (node.op == &ops::expand) return ops::expand(from, {.target_shape = shape});
      Values operands;
      for (size_t i = 0; i < node.inputs.size(); ++i) operands.push_back(i == at ? from : rw_.in(node.inputs[i]));
      return rw_.out().add(*node.op, operands, node.attrs);
    };
    const Value made = build();
    halves_[id] = made.id();
    return made;
  }

  struct Layout {
    ops::AttentionLayout kind = ops::AttentionLayout::kBhsd;
    Dim batch = 1, seq = 1;  // of the tables
  };
  // How a table broadcasts with x: a row per token, the same for every head.
  static std::optional<Layout> layout_of(const TensorType& x, const TensorType& table, ops::AttentionLayout kind) {
    const int64_t rank = x.rank(), extra = rank - table.rank();
    if (extra < 0 || table.rank() < 1 || last_dim(table) != last_dim(x) || rank < 2) return std::nullopt;
    if (kind == ops::AttentionLayout::kBshd && rank != 4) return std::nullopt;
    const int64_t axis = kind == ops::AttentionLayout::kBshd ? 1 : rank - 2;
    Layout found{.kind = kind};
    for (int64_t i = 0; i < rank - 1; ++i) {
      const Dim d = i < extra ? Dim(1) : table.dim(i - extra);
      if (i == axis) {
        if (d != x.dim(i)) return std::nullopt;
        found.seq = d;
      } else if (i == 0) {
        if (!d.is(1) && d != x.dim(0)) return std::nullopt;
        found.batch = d;
      } else if (!d.is(1)) {
        return std::nullopt;
      }
    }
    return found;
  }

  std::optional<Values> rotated(const Node& node, const Match& m) {
    const TensorType& x = type(m.x);
    if (!m.sole) {
      rw_.miss(node, "MultiConsumer", "A part of the rotation is read elsewhere too, or is an output.");
      return std::nullopt;
    }
    std::optional<Layout> layout;
    for (const auto kind : {ops::AttentionLayout::kBhsd, ops::AttentionLayout::kBshd})
      if (!layout)
        if (const auto found = layout_of(x, type(m.cos), kind); found && type(m.cos).shape == type(m.sin).shape)
          layout = found;
    if (!layout) {
      rw_.miss(node, "Tables", "The cosines and sines are not one row per token, the same for every head.");
      return std::nullopt;
    }
    if (!repeats(m.cos) || !repeats(m.sin)) {
      rw_.miss(node, "Halves", "The halves of the cosines or of the sines are not known to be the same.");
      return std::nullopt;
    }
    const int64_t width = last_dim(x).value(), half = width / 2;
    const ops::RopeAttrs attrs{.head_dim = width, .layout = layout->kind};
    std::vector<Dim> shape = {layout->seq, half};
    if (!layout->batch.is(1)) shape.insert(shape.begin(), layout->batch);
    const TensorType table{Shape(shape), type(m.cos).dtype};
    if (type(m.sin).dtype != table.dtype || table.dtype != x.dtype ||
        !rw_.claims(ops::rope, attrs, std::vector<TensorType>{x, table, table})) {
      rw_.miss(node, "Unclaimed", "The target has no rope for these operands.");
      return std::nullopt;
    }
    const Value from = rw_.in(m.x);
    const Value cos = shaped(half_of(m.cos), shape);
    const Value sin = shaped(half_of(m.sin), shape);
    return Values{ops::rope(from, cos, sin, attrs)};
  }

  static Value shaped(const Value& v, const std::vector<Dim>& shape) {
    return v.shape() == Shape(shape) ? v : ops::reshape(v, {.new_shape = shape});
  }

  static constexpr int kMostSteps = 16;

  Rewriter& rw_;
  std::unordered_map<ValueId, ValueId> halves_;  // by old value; looked up only, as the next
  std::unordered_map<ValueId, bool> checked_;    // by constant: are its halves equal?
};

}  // namespace

void recognize_rope(Rewriter& rw) {
  Recognizer recognizer(rw);
  rw.for_each([&](const Node& node) { return recognizer.visit(node); });
}

}  // namespace rlx::passes
