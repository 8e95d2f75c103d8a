// Regions run as compiled programs where the step has them, else through evaluate(): every value of a body a tensor of
// its own.
#include "rlx/ops/control_flow.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/reference/evaluate.h"
#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/leaves.h"

namespace rlx::reference {

namespace {

using host::Region;

class EvaluatedRegion : public Region {
 public:
  EvaluatedRegion(const Graph& body, const host::ParamSource& params) : body_(body), params_(params) {
    for (const Node* leaf : body.leaves(ops::input)) types_.push_back(leaf->results[0].type);
    inputs_.resize(types_.size());
    own_.resize(types_.size());
  }

  void set_input(size_t index, const std::byte* bytes) override {
    const TensorType& type = types_[index];
    inputs_[index] = Tensor::borrow(type.dtype, type.shape.sizes(), {bytes, static_cast<size_t>(type.size_bytes())});
  }
  std::span<std::byte> own_input(size_t index) override {
    if (own_[index].num_elements() == 0) own_[index] = Tensor(types_[index].dtype, types_[index].shape.sizes());
    inputs_[index] = own_[index];
    return own_[index].mutable_bytes();
  }
  void run() override {
    outputs_ = evaluate(body_, inputs_, params_);
    for (Tensor& out : outputs_)  // one may be an input as it is
      if (std::any_of(inputs_.begin(), inputs_.end(),
                      [&](const Tensor& in) { return in.bytes().data() == out.bytes().data(); }))
        out = out.clone();
  }
  const Tensor& output(size_t index) const override { return outputs_[index]; }

 private:
  const Graph& body_;
  const host::ParamSource& params_;
  std::vector<TensorType> types_;  // of the inputs
  std::vector<Tensor> inputs_, own_, outputs_;
};

// A region of the call's step.
class RegionOf {
 public:
  RegionOf(const Call& call, const GraphPtr& body)
      : evaluated_(call.bodies() ? nullptr : std::make_unique<EvaluatedRegion>(*body, call.params())),
        region_(evaluated_ ? *evaluated_ : call.bodies()->region(*body)) {}
  Region* operator->() { return &region_; }

 private:
  std::unique_ptr<EvaluatedRegion> evaluated_;
  Region& region_;
};

size_t bytes_of(const View& v) { return static_cast<size_t>(v.elements()) * size_of(v.dtype); }

// Row t of a stack.
size_t row_bytes(const View& stack) {
  return static_cast<size_t>(product(stack.sizes.subspan(1))) * size_of(stack.dtype);
}
std::byte* row(const View& stack, int64_t t) {
  return stack.data == nullptr ? nullptr : stack.data + static_cast<size_t>(t) * row_bytes(stack);
}

void copy(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}
void put(const Call& call, int64_t result, std::span<const std::byte> value) {
  if (call.wants(result)) copy(value, call.output(result).data);
}
void put_row(const Call& call, int64_t result, int64_t t, std::span<const std::byte> value) {
  if (call.wants(result)) copy(value, row(call.output(result), t));
}

// What one iteration hands on to the next lies in the region's own input.
void begin_carry(RegionOf& region, size_t input, const View& first) {
  const std::span<std::byte> carry = region->own_input(input);
  copy({first.data, carry.size()}, carry.data());
}
void carry_on(RegionOf& region, size_t output, size_t input) {
  copy(region->output(output).bytes(), region->own_input(input).data());
}

bool is_true(const Tensor& t) { return t.at(0) != 0; }  // NaN counts as true
bool is_true(const View& v) { return load_fn(v.dtype)(v.data, 0) != 0; }

}  // namespace

void if_(const Call& call) {
  const auto& attrs = call.attrs<ops::IfAttrs>();
  RegionOf branch(call, is_true(call.input(0)) ? attrs.then_branch : attrs.else_branch);
  for (int64_t i = 1; i < call.num_inputs(); ++i) branch->set_input(static_cast<size_t>(i - 1), call.input(i).data);
  branch->run();
  for (int64_t i = 0; i < call.num_outputs(); ++i) put(call, i, branch->output(static_cast<size_t>(i)).bytes());
}

void while_(const Call& call) {
  const auto& attrs = call.attrs<ops::WhileAttrs>();
  RegionOf cond(call, attrs.cond), body(call, attrs.body);
  const auto carries = static_cast<size_t>(call.num_inputs());
  for (size_t i = 0; i < carries; ++i) {
    begin_carry(body, i, call.input(static_cast<int64_t>(i)));
    cond->set_input(i, body->own_input(i).data());
  }
  for (int64_t n = 0; !attrs.max_iterations || n < *attrs.max_iterations; ++n) {
    cond->run();
    if (!is_true(cond->output(0))) break;
    body->run();
    for (size_t i = 0; i < carries; ++i) carry_on(body, i, i);
  }
  for (size_t i = 0; i < carries; ++i) put(call, static_cast<int64_t>(i), body->own_input(i));
}

void scan(const Call& call) {
  const auto& attrs = call.attrs<ops::ScanAttrs>();
  const int64_t length = attrs.length.value(), carries = attrs.num_carries, fixed = carries + attrs.num_bcast;
  const auto stacks = static_cast<int64_t>(attrs.body->outputs().size()) - carries;
  int64_t kept = 0;
  RegionOf body(call, attrs.body);
  for (int64_t i = 0; i < carries; ++i) begin_carry(body, static_cast<size_t>(i), call.input(i));
  for (int64_t i = carries; i < fixed; ++i) body->set_input(static_cast<size_t>(i), call.input(i).data);
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t x = fixed; x < call.num_inputs(); ++x) body->set_input(static_cast<size_t>(x), row(call.input(x), t));
    body->run();
    for (int64_t s = carries; s < carries + stacks; ++s)
      put_row(call, s, t, body->output(static_cast<size_t>(s)).bytes());
    if (attrs.save_trajectory && ops::checkpoint_step(length, attrs.num_checkpoints, kept) == t)
      put_row(call, carries + stacks, kept++, body->output(0).bytes());
    for (int64_t i = 0; i < carries; ++i) carry_on(body, static_cast<size_t>(i), static_cast<size_t>(i));
  }
  for (int64_t i = 0; i < carries; ++i) put(call, i, body->own_input(static_cast<size_t>(i)));
}

void scan_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::ScanBackwardAttrs>();
  const int64_t length = attrs.length.value(), kept = call.input(1).dim(0);
  const auto xs = static_cast<size_t>(attrs.num_xs);
  const size_t carry_bytes = bytes_of(call.input(0));
  RegionOf vjp(call, attrs.body_vjp);
  std::optional<RegionOf> forward;
  if (kept != length) forward.emplace(call, attrs.forward_body);
  const auto set_xs = [&](RegionOf& region, int64_t t) {
    for (size_t i = 0; i < xs; ++i) region->set_input(1 + i, row(call.input(3 + static_cast<int64_t>(i)), t));
  };
  // The carry before step t: init, a kept row, or recomputed from the nearest one before.
  const auto set_carry_before = [&](int64_t t) {
    const int64_t before = t * kept / length;  // rows of steps < t
    const std::byte* carry = before == 0 ? call.input(0).data : row(call.input(1), before - 1);
    const int64_t first = before == 0 ? 0 : ops::checkpoint_step(length, attrs.num_checkpoints, before - 1) + 1;
    if (first == t) {
      vjp->set_input(0, carry);
      return;
    }
    copy({carry, carry_bytes}, (*forward)->own_input(0).data());
    for (int64_t u = first; u < t; ++u) {
      set_xs(*forward, u);
      (*forward)->run();
      carry_on(*forward, 0, 0);
    }
    vjp->set_input(0, (*forward)->own_input(0).data());
  };
  const std::span<std::byte> dc = vjp->own_input(1 + xs);
  if (attrs.save_trajectory)
    std::fill(dc.begin(), dc.end(), std::byte{0});
  else
    copy({call.input(2).data, dc.size()}, dc.data());
  for (int64_t t = length - 1; t >= 0; --t) {
    if (attrs.save_trajectory) {
      const DType dtype = call.input(0).dtype;
      const Reader now(dtype, dc.data()), upstream(dtype, row(call.input(2), t));
      const Writer sum(dtype, dc.data());
      for (int64_t i = 0; i < call.input(0).elements(); ++i) sum.set(i, now[i] + upstream[i]);
    }
    set_carry_before(t);
    set_xs(vjp, t);
    vjp->run();
    for (size_t i = 1; i <= xs; ++i) put_row(call, static_cast<int64_t>(i), t, vjp->output(i).bytes());
    carry_on(vjp, 0, 1 + xs);
  }
  put(call, 0, dc);
}

}  // namespace rlx::reference
