// The same element-wise work on neighbouring slices of one tensor, put together again: the work on the slice that
// covers them (spec 20, 1.4.11). concat0(f(p[0:2]), f(p[2:5])) is f(p[0:5]).
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/regions.h"
#include "passes/rewriter.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/elementwise_region.h"
#include "rlx/ops/narrow.h"

namespace rlx::passes {

namespace {

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    if (node.op == &ops::batch_elementwise_region) return batch(node);
    if (node.op != &ops::concat || node.inputs.size() < 2) return std::nullopt;
    rank_ = node.results[0].type.rank();
    if (normalize_axis(node.attrs.as<ops::ConcatAttrs>().axis, rank_) != 0) return std::nullopt;
    if (!take_lengths(node.inputs) || !is_region_step(rw_.producer(node.inputs[0]))) return std::nullopt;
    slices_ = nodes_ = 0;
    is_shared_work_ = false;
    if (!is_same(node.inputs) || slices_ == 0) return std::nullopt;
    if (is_shared_work_) {
      rw_.miss(node, "MultiConsumer", "Work on one of the slices is read elsewhere too, or is an output.");
      return std::nullopt;
    }
    return Values{build(node.inputs)};
  }

 private:
  using Ids = std::vector<ValueId>;  // one per slice

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  bool take_lengths(const Ids& ids) {
    lengths_.clear();
    for (const ValueId id : ids) {
      if (!type(id).dim(0).is_static()) return false;
      lengths_.push_back(type(id).dim(0).value());
    }
    return true;
  }

  Ids operands(const Ids& ids, size_t position) const {
    Ids out;
    for (const ValueId id : ids) out.push_back(rw_.producer(id).inputs[position]);
    return out;
  }

  // Neighbours along axis 0 of one tensor, in this order, each as long as its part of the result.
  bool are_slices(const Ids& ids) const {
    const Node& first = rw_.producer(ids[0]);
    int64_t end = -1;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Node& node = rw_.producer(ids[i]);
      if (node.op != &ops::narrow || node.inputs[0] != first.inputs[0] || type(ids[i]).rank() != rank_) return false;
      const auto& attrs = node.attrs.as<ops::NarrowAttrs>();
      if (normalize_axis(attrs.axis, rank_) != 0 || !attrs.start.is_static() || !attrs.len.is(lengths_[i]))
        return false;
      if (end >= 0 && attrs.start.value() != end) return false;
      end = attrs.start.value() + lengths_[i];
    }
    return true;
  }

  // One value for all slices that looks the same from every one of them.
  bool is_shared(const Ids& ids) const {
    for (const ValueId id : ids)
      if (id != ids[0]) return false;
    const TensorType& t = type(ids[0]);
    return t.rank() < rank_ || (t.rank() == rank_ && t.dim(0).is(1));
  }

  // Are these the same work on the slices? Bounded, because a value that is read twice is looked at twice.
  bool is_same(const Ids& ids) {
    if (++nodes_ > rw_.context().limits.max_region_steps) return false;
    if (is_shared(ids)) return true;
    if (are_slices(ids)) {
      ++slices_;
      return true;
    }
    const Node& first = rw_.producer(ids[0]);
    if (!is_region_step(first)) return false;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Node& node = rw_.producer(ids[i]);
      const TensorType& t = node.results[0].type;
      if (node.op != first.op || !(node.attrs == first.attrs) || t.rank() != rank_ || !t.dim(0).is(lengths_[i]))
        return false;
      is_shared_work_ = is_shared_work_ || rw_.uses().edges(ids[i]) != 1;
    }
    for (size_t p = 0; p < first.inputs.size(); ++p)
      if (!is_same(operands(ids, p))) return false;
    return true;
  }

  Value cover(const Ids& ids) {
    const Node& first = rw_.producer(ids[0]);
    int64_t sum = 0;
    for (const int64_t n : lengths_) sum += n;
    const Value source = rw_.in(first.inputs[0]);
    if (source.shape()[0].is(sum)) return source;
    return ops::narrow(source, {.axis = 0, .start = first.attrs.as<ops::NarrowAttrs>().start, .len = sum});
  }

  Value build(const Ids& ids) {
    if (is_shared(ids)) return rw_.in(ids[0]);
    if (are_slices(ids)) return cover(ids);
    const Node& first = rw_.producer(ids[0]);
    Values values;
    for (size_t p = 0; p < first.inputs.size(); ++p) values.push_back(build(operands(ids, p)));
    return rw_.out().add(*first.op, values, first.attrs);
  }

  // The op that says so by itself.
  std::optional<Values> batch(const Node& node) {
    const auto& attrs = node.attrs.as<ops::BatchElementwiseRegionAttrs>();
    rank_ = type(node.inputs[0]).rank();
    if (!take_lengths(node.inputs) || !are_slices(node.inputs)) return std::nullopt;
    TensorType whole = type(node.inputs[0]);
    whole.shape[0] = attrs.num_batch_inputs;
    const ops::ElementwiseRegionAttrs region{
        .chain = attrs.chain, .num_inputs = 1, .prologue = attrs.prologue, .prologue_input = attrs.prologue_input};
    if (!rw_.claims(ops::elementwise_region, region, {&whole, 1})) return std::nullopt;
    return Values{ops::elementwise_region(cover(node.inputs), region)};
  }

  Rewriter& rw_;
  int64_t rank_ = 0;              // of the concat that is looked at
  std::vector<int64_t> lengths_;  // of its parts
  int64_t slices_ = 0;            // operands that are slices
  int64_t nodes_ = 0;             // looked at
  bool is_shared_work_ = false;   // read by others too
};

}  // namespace

void fuse_batch_slices(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
