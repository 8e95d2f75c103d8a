// Regions run as compiled programs where the step has them, else through evaluate(): every value of a body a tensor of
// its own.
#include "rlx/ops/control_flow.h"

#include <algorithm>
#include <cstring>

#include "backends/reference/evaluate.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

std::span<const std::byte> bytes_of(const View& v) {
  return {v.data, static_cast<size_t>(v.elements()) * size_of(v.dtype)};
}

Tensor borrowed(const View& v) { return Tensor::borrow(v.dtype, {v.sizes.begin(), v.sizes.end()}, bytes_of(v)); }
Tensor copied(const View& v) { return borrowed(v).clone(); }

// Row t of a stack, as a tensor of its own.
Tensor row(const View& stack, int64_t t) {
  std::vector<int64_t> sizes(stack.sizes.begin() + 1, stack.sizes.end());
  const auto size = static_cast<size_t>(product(sizes)) * size_of(stack.dtype);
  return Tensor::borrow(stack.dtype, std::move(sizes), {stack.data + static_cast<size_t>(t) * size, size});
}

void put(const Call& call, int64_t result, const Tensor& value) {
  if (call.wants(result)) std::memcpy(call.output(result).data, value.bytes().data(), value.bytes().size());
}

void put_row(const Call& call, int64_t result, int64_t t, const Tensor& value) {
  if (call.wants(result))
    std::memcpy(call.output(result).data + static_cast<size_t>(t) * value.bytes().size(), value.bytes().data(),
                value.bytes().size());
}

std::vector<Tensor> run_body(const Call& call, const GraphPtr& body, std::span<const Tensor> inputs) {
  return call.bodies() ? call.bodies()->run(*body, inputs) : evaluate(*body, inputs, call.params());
}

bool is_true(const Tensor& t) { return t.at(0) != 0; }  // NaN counts as true

}  // namespace

void if_(const Call& call) {
  const auto& attrs = call.attrs<ops::IfAttrs>();
  std::vector<Tensor> captures;
  for (int64_t i = 1; i < call.num_inputs(); ++i) captures.push_back(borrowed(call.input(i)));
  const GraphPtr& branch = is_true(borrowed(call.input(0))) ? attrs.then_branch : attrs.else_branch;
  const auto outputs = run_body(call, branch, captures);
  for (size_t i = 0; i < outputs.size(); ++i) put(call, static_cast<int64_t>(i), outputs[i]);
}

void while_(const Call& call) {
  const auto& attrs = call.attrs<ops::WhileAttrs>();
  std::vector<Tensor> carried;
  for (int64_t i = 0; i < call.num_inputs(); ++i) carried.push_back(borrowed(call.input(i)));
  for (int64_t n = 0; !attrs.max_iterations || n < *attrs.max_iterations; ++n) {
    if (!is_true(run_body(call, attrs.cond, carried)[0])) break;
    carried = run_body(call, attrs.body, carried);
  }
  for (size_t i = 0; i < carried.size(); ++i) put(call, static_cast<int64_t>(i), carried[i]);
}

void scan(const Call& call) {
  const auto& attrs = call.attrs<ops::ScanAttrs>();
  const int64_t length = attrs.length.value(), carries = attrs.num_carries, fixed = carries + attrs.num_bcast;
  const auto stacks = static_cast<int64_t>(attrs.body->outputs().size()) - carries;
  const std::vector<int64_t> kept = ops::checkpoint_steps(length, attrs.num_checkpoints);
  size_t next_kept = 0;
  std::vector<Tensor> values;  // carries, then broadcast values
  for (int64_t i = 0; i < fixed; ++i) values.push_back(borrowed(call.input(i)));
  for (int64_t t = 0; t < length; ++t) {
    std::vector<Tensor> inputs = values;
    for (int64_t x = fixed; x < call.num_inputs(); ++x) inputs.push_back(row(call.input(x), t));
    const auto outputs = run_body(call, attrs.body, inputs);
    std::copy_n(outputs.begin(), carries, values.begin());
    for (int64_t s = 0; s < stacks; ++s) put_row(call, carries + s, t, outputs[static_cast<size_t>(carries + s)]);
    if (attrs.save_trajectory && next_kept < kept.size() && kept[next_kept] == t)
      put_row(call, carries + stacks, static_cast<int64_t>(next_kept++), values[0]);
  }
  for (int64_t i = 0; i < carries; ++i) put(call, i, values[static_cast<size_t>(i)]);
}

void scan_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::ScanBackwardAttrs>();
  const int64_t length = attrs.length.value();
  const std::vector<int64_t> kept = ops::checkpoint_steps(length, attrs.num_checkpoints);
  const auto xs_at = [&](std::vector<Tensor>& inputs, int64_t t) {
    for (int64_t i = 0; i < attrs.num_xs; ++i) inputs.push_back(row(call.input(3 + i), t));
  };
  // The carry before step t: init, a kept row, or recomputed from the nearest one before.
  const auto carry_before = [&](int64_t t) {
    const auto after = std::upper_bound(kept.begin(), kept.end(), t - 1);  // rows after steps <= t - 1
    Tensor carry = after == kept.begin() ? borrowed(call.input(0)) : row(call.input(1), after - kept.begin() - 1);
    for (int64_t u = after == kept.begin() ? 0 : *(after - 1) + 1; u < t; ++u) {
      std::vector<Tensor> inputs = {carry};
      xs_at(inputs, u);
      carry = run_body(call, attrs.forward_body, inputs)[0];
    }
    return carry;
  };
  Tensor dc = attrs.save_trajectory
                  ? Tensor(call.input(0).dtype, {call.input(0).sizes.begin(), call.input(0).sizes.end()})
                  : copied(call.input(2));
  for (int64_t t = length - 1; t >= 0; --t) {
    if (attrs.save_trajectory) {
      const Tensor upstream = row(call.input(2), t);
      const Writer sum(dc.dtype(), dc.mutable_bytes().data());
      for (int64_t i = 0; i < dc.num_elements(); ++i) sum.set(i, dc.at(i) + upstream.at(i));
    }
    std::vector<Tensor> inputs = {carry_before(t)};
    xs_at(inputs, t);
    inputs.push_back(dc);
    const auto gradients = run_body(call, attrs.body_vjp, inputs);
    for (int64_t i = 0; i < attrs.num_xs; ++i) put_row(call, 1 + i, t, gradients[static_cast<size_t>(1 + i)]);
    dc = gradients[0].clone();
  }
  put(call, 0, dc);
}

}  // namespace rlx::reference
