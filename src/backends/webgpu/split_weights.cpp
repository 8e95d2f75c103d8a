#include "backends/webgpu/split_weights.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx::webgpu {

namespace {

int64_t element_bytes_of(DType dtype, const Device& device) {
  if (dtype == DType::F16) return device.features().f16 ? 2 : 4;
  if (dtype == DType::C64) return 8;
  return std::max<int64_t>(static_cast<int64_t>(std::min<size_t>(size_of(dtype), 4)), 1);
}

// Rows of a matrix or table that fit; fours of them where that is possible, so that kernels load vectors.
int64_t rows_that_fit(const TensorType& type, const Device& device, int64_t visible) {
  int64_t row = element_bytes_of(type.dtype, device);
  for (int64_t i = 1; i < type.rank(); ++i) row = checked_mul(row, type.dim(i).value());
  const int64_t rows = visible / std::max<int64_t>(row, 1);
  return rows >= 4 ? rows / 4 * 4 : rows;
}

Value rows_of(const Value& x, int64_t axis, int64_t first, int64_t count) {
  return ops::narrow(x, {.axis = axis, .start = first, .len = count});
}

// Sums of a part are no halves: they would be rounded once per part, and may be larger than a half and the whole sum
// not. Kernels read the halves of a weight themselves (LowerCall::f16_weight).
Value split_matmul(const Value& x, const Value& w, int64_t rows, bool halves) {
  const auto wide = [&](const Value& v) { return halves ? ops::cast(v, {.to = DType::F32}) : v; };
  const Value lhs = wide(x);
  const int64_t k = w.shape()[0].value();
  std::optional<Value> sum;
  for (int64_t at = 0; at < k; at += rows) {
    const int64_t count = std::min(rows, k - at);
    const Value part = ops::matmul(rows_of(lhs, lhs.shape().rank() - 1, at, count), wide(rows_of(w, 0, at, count)));
    sum = sum ? *sum + part : part;
  }
  return halves ? ops::cast(*sum, {.to = DType::F16}) : *sum;
}

// x times the transpose of a large table (a head tied to its embedding): a part of the columns after the other.
Value split_transposed(const Value& x, const Value& table, int64_t rows) {
  const int64_t n = table.shape()[0].value();
  Values parts;
  for (int64_t at = 0; at < n; at += rows)
    parts.push_back(ops::matmul(x, ops::transpose(rows_of(table, 0, at, std::min(rows, n - at)), {.perm = {1, 0}})));
  return parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = x.shape().rank() - 1});
}

// `checks`: of indices, by a gather of the numbers of all rows.
Value split_gather(Graph& g, const Value& table, const Value& indices, int64_t rows, bool checks) {
  const int64_t n = table.shape()[0].value();
  const auto number = [&](int64_t value) {
    Tensor t = Tensor::i64({}, {value});
    return g.constant(indices.dtype() == DType::I64 ? t : t.cast(indices.dtype()));
  };
  // As a gather on the GPU reads them: negative ones count from the end, and none is out of range (spec 10, Q16).
  Value index = indices;
  if (checks) {
    std::vector<double> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0.0);
    index = ops::gather(g.constant(Tensor::from_doubles(indices.dtype(), {n}, all)), indices);
  } else {
    index = ops::where(ops::lt(indices, number(0)), indices + number(n), indices);
    index = ops::min(ops::max(index, number(0)), number(n - 1));
  }
  std::vector<Dim> column(indices.shape().begin(), indices.shape().end());
  for (int64_t i = 1; i < table.shape().rank(); ++i) column.emplace_back(1);
  std::optional<Value> result;
  for (int64_t at = 0; at < n; at += rows) {
    const int64_t count = std::min(rows, n - at);
    const Value local = ops::min(ops::max(index - number(at), number(0)), number(count - 1));
    const Value part = ops::gather(rows_of(table, 0, at, count), local, {.axis = 0});
    const Value here = ops::reshape(ops::ge(index, number(at)), {.new_shape = column});
    result = result ? ops::where(here, part, *result) : part;
  }
  return *result;
}

// What takes the node's place; nullopt: it stays.
std::optional<Value> split_node(Graph& g, const Node& node, const Device& device, const CompileOptions& options,
                                int64_t visible) {
  const auto rows_if_large = [&](ValueId id) -> int64_t {
    return is_too_large(g.type(id), device, visible) ? rows_that_fit(g.type(id), device, visible) : 0;
  };
  if (node.op == &ops::matmul && g.type(node.inputs[1]).rank() == 2) {
    const int64_t rows = rows_if_large(node.inputs[1]);
    if (rows == 0) return std::nullopt;
    const Value x = g.value(node.inputs[0]), w = g.value(node.inputs[1]);
    const Node& from = g.node_of(w.id());
    if (from.op == &ops::transpose && from.attrs.as<ops::TransposeAttrs>().perm == std::vector<int64_t>{1, 0}) {
      const Value table = g.value(from.inputs[0]);
      if (const int64_t table_rows = rows_if_large(table.id()); table_rows > 0)
        return split_transposed(x, table, table_rows);
    }
    const bool halves = w.dtype() == DType::F16 && device.features().f16 && !options.webgpu.f32_uniform;
    if (!halves) return split_matmul(x, w, rows, false);
    const int64_t wide_rows = rows_that_fit({w.shape(), DType::F32}, device, visible);
    return wide_rows > 0 ? std::optional(split_matmul(x, w, wide_rows, true)) : std::nullopt;
  }
  if (node.op == &ops::gather && node.attrs.as<ops::GatherAttrs>().axis == 0)
    if (const int64_t rows = rows_if_large(node.inputs[0]); rows > 0)
      return split_gather(g, g.value(node.inputs[0]), g.value(node.inputs[1]), rows, options.webgpu.check_indices);
  return std::nullopt;
}

}  // namespace

int64_t visible_bytes(const Limits& limits) {
  const uint64_t shown = std::min(limits.max_binding_bytes, limits.max_buffer_bytes);
  return static_cast<int64_t>(shown) - static_cast<int64_t>(limits.binding_alignment) - 16;
}

bool is_too_large(const TensorType& type, const Device& device, int64_t visible) {
  const auto n = type.shape.try_elements();
  return n && checked_mul(*n, element_bytes_of(type.dtype, device)) > visible;
}

Graph split_large_weights(const Graph& graph, const Device& device, const CompileOptions& options, int64_t visible) {
  Graph out = graph.empty_revision();
  std::unordered_map<ValueId, ValueId> replaced;
  const auto now = [&](ValueId id) {
    const auto it = replaced.find(id);
    return it == replaced.end() ? id : it->second;
  };
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    for (ValueId& id : copy.inputs) id = now(id);
    out.set_origin(node.origin);
    const std::optional<Value> split = split_node(out, copy, device, options, visible);
    out.set_origin("");
    if (split)
      replaced[node.results[0].id] = split->id();
    else
      out.append(std::move(copy));
  }
  std::vector<Output> outputs = graph.outputs();
  for (Output& o : outputs) o.value = now(o.value);
  out.set_outputs(std::move(outputs));
  std::vector<StateUpdate> updates = graph.updates();
  for (StateUpdate& u : updates) u = {now(u.state), now(u.value)};
  out.set_updates(std::move(updates));
  return out;
}

}  // namespace rlx::webgpu
