// If, Loop and Scan. A branch or a number of iterations that is known is built in place. What only a run tells becomes
// a region where types allow that (every value keeps its shape), else the import observes it (importer.h).
#include <algorithm>
#include <limits>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMaxUnrolled = 16;        // iterations in place; more become a region
constexpr int64_t kMaxIterations = 20'000;  // of a loop that is written out
constexpr int64_t kMaxReversed = 1 << 24;   // elements of an axis
constexpr int64_t kNoBound = 1LL << 31;     // iterations that no loop gets to; a GPU's integers have 32 bits

// A number of iterations; exporters write the largest int64 where only the condition counts, which no double holds.
int64_t iterations(const Tensor& trips) {
  require(trips.num_elements() == 1, "The number of iterations has ", trips.num_elements(), " elements, not one.");
  return trips.cast(DType::I64).values<int64_t>()[0];
}

// A region whose inputs are `types`; input i of the region as built stands at `places[i]` among them.
GraphPtr arranged(const Importer::Region& region, const std::vector<TensorType>& types,
                  const std::vector<size_t>& places) {
  Graph graph = region.graph.empty_revision();
  Values all, ordered;
  for (size_t i = 0; i < types.size(); ++i) all.push_back(graph.input(str("in", i), types[i]));
  for (const size_t place : places) ordered.push_back(all[place]);
  const Values outputs = inline_graph(graph, region.graph, ordered);
  for (size_t i = 0; i < outputs.size(); ++i) graph.output(outputs[i], str("out", i));
  return std::make_shared<Graph>(std::move(graph));
}

// The body as a region: its own inputs of the given types, then what it captures. Outputs are all tensors.
struct BodyRegion {
  Importer::Region region;
  std::vector<ElemType> elems;  // of the outputs
};

BodyRegion body_region(OnnxNode& n, const GraphProto& body, const std::vector<TensorType>& types,
                       const std::vector<ElemType>& elems) {
  Importer& importer = n.importer();
  BodyRegion result;
  result.region = importer.build_region([&] {
    std::vector<Item> inputs;
    for (size_t i = 0; i < types.size(); ++i)
      inputs.push_back(importer.item(importer.graph().input(str("own", i), types[i]), elems[i]));
    const std::vector<Item> outputs = importer.import_body(body, inputs, n.frame());
    for (size_t i = 0; i < outputs.size(); ++i) {
      result.elems.push_back(outputs[i].elem);
      importer.graph().output(importer.value(outputs[i]), str("out", i));
    }
  });
  return result;
}

std::vector<TensorType> types_of(Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorType> types;
  for (const ValueId id : ids) types.push_back(graph.type(id));
  return types;
}

std::vector<Item> results_of(OnnxNode& n, const Value& first, const std::vector<ElemType>& elems) {
  std::vector<Item> items;
  for (size_t i = 0; i < elems.size(); ++i) items.push_back(n.result(first.result(static_cast<int64_t>(i)), elems[i]));
  return items;
}

// ---- If

std::vector<Item> if_region(OnnxNode& n) {
  const BodyRegion yes = body_region(n, n.graph_attr("then_branch"), {}, {});
  const BodyRegion no = body_region(n, n.graph_attr("else_branch"), {}, {});
  std::vector<ValueId> captures = yes.region.captures;
  const auto place_of = [&](ValueId id) {
    const auto it = std::find(captures.begin(), captures.end(), id);
    if (it != captures.end()) return static_cast<size_t>(it - captures.begin());
    captures.push_back(id);
    return captures.size() - 1;
  };
  std::vector<size_t> yes_places, no_places;
  for (const ValueId id : yes.region.captures) yes_places.push_back(place_of(id));
  for (const ValueId id : no.region.captures) no_places.push_back(place_of(id));
  const std::vector<TensorType> types = types_of(n.graph(), captures);
  Values operands{n.input(0)};
  for (const ValueId id : captures) operands.push_back(n.graph().value(id));
  const Value y = ops::if_(operands, {.then_branch = arranged(yes.region, types, yes_places),
                                      .else_branch = arranged(no.region, types, no_places)});
  return results_of(n, y, yes.elems);
}

Built if_op(OnnxNode& n) {
  Importer& importer = n.importer();
  const Item condition = n.item(0);
  const auto known = importer.try_known(importer.value(condition).id());
  if (!known && !importer.can_observe()) return if_region(n);
  const bool yes = importer.known_now(condition).at(0) != 0;
  return importer.import_body(n.graph_attr(yes ? "then_branch" : "else_branch"), {}, n.frame());
}

// ---- Loop

struct LoopParts {
  const GraphProto& body;
  Item trips, condition;      // absent: no bound, true
  std::vector<Item> carried;  // initial values
  size_t stacks;              // outputs that are stacked
};

LoopParts loop_parts(OnnxNode& n) {
  const GraphProto& body = n.graph_attr("body");
  LoopParts parts{body, n.has(0) ? n.item(0) : Item(), n.has(1) ? n.item(1) : Item(), {}, 0};
  // A carried optional may be empty.
  for (int64_t i = 2; i < n.num_inputs(); ++i) parts.carried.push_back(n.has(i) ? n.item(i) : Item());
  require(body.outputs.size() >= parts.carried.size() + 1, "The body of the loop has ", body.outputs.size(),
          " outputs for ", parts.carried.size(), " carried values.");
  parts.stacks = body.outputs.size() - 1 - parts.carried.size();
  return parts;
}

// Without rows: none of the type that the body would give them (`inferred`, where it can be), else of the declared one.
Item stack(OnnxNode& n, const std::vector<Item>& rows, const ValueInfo& declared,
           const TensorType* inferred = nullptr) {
  Importer& importer = n.importer();
  if (rows.empty()) {
    std::vector<int64_t> sizes{0};
    if (inferred)
      for (const Dim& d : inferred->shape) sizes.push_back(d.is_static() ? d.value() : 0);
    else if (declared.type.shape)
      for (const DimProto& d : *declared.type.shape) sizes.push_back(std::max<int64_t>(d.value, 0));
    return importer.item(HostValue(declared.type.elem, Tensor(storage_of(declared.type.elem), sizes)));
  }
  Values parts;
  for (const Item& row : rows) parts.push_back(unsqueeze(importer.value(row), {0}));
  return importer.item(parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = 0}), rows[0].elem);
}

// Of the body's outputs; none where only values tell them.
std::vector<TensorType> output_types(OnnxNode& n, const LoopParts& parts) {
  std::vector<TensorType> types{{{}, DType::I64}, {{}, DType::Bool}};
  std::vector<ElemType> elems{ElemType::kInt64, ElemType::kBool};
  try {
    for (const Item& c : parts.carried) {
      types.push_back(n.importer().value(c).type());
      elems.push_back(c.elem);
    }
    const Graph body = body_region(n, parts.body, types, elems).region.graph;
    std::vector<TensorType> results;
    for (const Output& o : body.outputs()) results.push_back(body.type(o.value));
    return results;
  } catch (const Error&) {
    return {};
  }
}

std::vector<Item> loop_in_place(OnnxNode& n, LoopParts parts) {
  Importer& importer = n.importer();
  int64_t bound = std::numeric_limits<int64_t>::max();
  if (parts.trips.kind != Item::Kind::kAbsent) bound = iterations(importer.known_now(parts.trips));
  std::vector<std::vector<Item>> stacks(parts.stacks);
  Item condition = parts.condition;
  for (int64_t i = 0; i < bound; ++i) {
    if (condition.kind != Item::Kind::kAbsent && importer.known_now(condition).at(0) == 0) break;
    require(i < kMaxIterations, "The loop did not end after ", kMaxIterations, " iterations.");
    const Item iteration = importer.item(HostValue(ElemType::kInt64, Tensor::i64({}, {i})));
    const Item keep = condition.kind == Item::Kind::kAbsent
                          ? importer.item(HostValue(ElemType::kBool, Tensor::from_doubles(DType::Bool, {}, {{1.0}})))
                          : condition;
    std::vector<Item> inputs{iteration, keep};
    inputs.insert(inputs.end(), parts.carried.begin(), parts.carried.end());
    const std::vector<Item> outputs = importer.import_body(parts.body, inputs, n.frame());
    // Without a condition of its own the loop ignores the body's, but for the bound.
    condition = outputs[0];
    for (size_t c = 0; c < parts.carried.size(); ++c) parts.carried[c] = outputs[1 + c];
    for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(outputs[1 + parts.carried.size() + s]);
  }
  std::vector<Item> results = parts.carried;
  std::vector<TensorType> types;
  if (!stacks.empty() && stacks[0].empty()) types = output_types(n, parts);
  for (size_t s = 0; s < stacks.size(); ++s) {
    const size_t i = 1 + parts.carried.size() + s;
    results.push_back(stack(n, stacks[s], parts.body.outputs[i], i < types.size() ? &types[i] : nullptr));
  }
  return results;
}

// As `while`: (iteration, condition, carried…, captures…); nothing is stacked.
std::vector<Item> loop_region(OnnxNode& n, const LoopParts& parts, std::optional<int64_t> known_trips) {
  if (parts.stacks > 0) n.unsupported("A loop that stacks values needs a known number of iterations.");
  Importer& importer = n.importer();
  Values operands{n.constant(Tensor::i64({}, {0}))};
  const Value yes = n.constant(Tensor::from_doubles(DType::Bool, {}, {{1.0}}));
  operands.push_back(parts.condition.kind == Item::Kind::kAbsent ? yes
                                                                 : reshape_to(importer.value(parts.condition), {}));
  std::vector<ElemType> elems{ElemType::kInt64, ElemType::kBool};
  for (const Item& c : parts.carried) {
    operands.push_back(importer.value(c));
    elems.push_back(c.elem);
  }
  std::vector<TensorType> types;
  for (const Value& v : operands) types.push_back(v.type());
  const size_t own = types.size();
  const BodyRegion body = body_region(n, parts.body, types, elems);
  for (const ValueId id : body.region.captures) {
    operands.push_back(n.graph().value(id));
    types.push_back(n.graph().type(id));
  }
  const bool has_bound = parts.trips.kind != Item::Kind::kAbsent && known_trips.value_or(0) < kNoBound;
  if (has_bound) {
    operands.push_back(reshape_to(cast_to(importer.value(parts.trips), DType::I64), {}));
    types.push_back(operands.back().type());
  }
  std::vector<size_t> places(own + body.region.captures.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  const GraphPtr step = arranged(body.region, types, places);
  Graph next = step->empty_revision(), cond = step->empty_revision();
  Values in, test;
  for (size_t i = 0; i < types.size(); ++i) {
    in.push_back(next.input(str("in", i), types[i]));
    test.push_back(cond.input(str("in", i), types[i]));
  }
  const Values out = inline_graph(next, *step, in);
  next.output(in[0] + next.constant(Tensor::i64({}, {1})), "iteration");
  next.output(reshape_to(out[0], {}), "condition");
  for (size_t i = 2; i < own; ++i) next.output(out[i - 1], str("carried", i));
  for (size_t i = own; i < types.size(); ++i) next.output(in[i], str("same", i));
  Value go_on = test[1];
  if (has_bound) go_on = ops::where(ops::lt(test[0], test.back()), test[1], cond.constant(Tensor(DType::Bool, {})));
  cond.output(go_on, "go_on");
  const Value y = ops::while_(
      operands, {.cond = std::make_shared<Graph>(std::move(cond)), .body = std::make_shared<Graph>(std::move(next))});
  std::vector<Item> results;
  for (size_t i = 2; i < own; ++i) results.push_back(n.result(y.result(static_cast<int64_t>(i)), elems[i]));
  return results;
}

Built loop(OnnxNode& n) {
  const LoopParts parts = loop_parts(n);
  Importer& importer = n.importer();
  std::optional<int64_t> trips;
  if (parts.trips.kind != Item::Kind::kAbsent)
    if (const auto known = importer.try_known(importer.value(parts.trips).id())) trips = iterations(*known);
  const bool tensors = std::all_of(parts.carried.begin(), parts.carried.end(),
                                   [](const Item& c) { return c.kind == Item::Kind::kTensor; });
  if (tensors && (!trips || *trips > kMaxUnrolled)) {
    try {
      return loop_region(n, parts, trips);
    } catch (const Error&) {  // shapes change, or the body needs values
      if (!importer.can_observe() && !trips) throw;
    }
  }
  return loop_in_place(n, parts);
}

// ---- Scan

std::vector<int64_t> reversed_indices(int64_t size) {
  require(size <= kMaxReversed, "An axis of ", size, " elements is too long to be reversed.");
  std::vector<int64_t> indices;
  for (int64_t i = size - 1; i >= 0; --i) indices.push_back(i);
  return indices;
}

Value reverse_rows(OnnxNode& n, const Value& x) {
  return ops::gather(x, n.ints_constant(reversed_indices(x.shape()[0].value())), {.axis = 0});
}

Value move_axis(const Value& x, int64_t from, int64_t to) {
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < x.shape().rank(); ++i)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return from == to ? x : ops::transpose(x, {.perm = perm});
}

// The same step by step, where the body is no region: it needs the sizes or values of this import.
std::vector<Item> scan_in_place(OnnxNode& n, const GraphProto& body, std::vector<Item> states,
                                const std::vector<Item>& xs, const std::vector<int64_t>& out_directions,
                                const std::vector<int64_t>& out_axes) {
  Importer& importer = n.importer();
  const int64_t length = importer.value(xs[0]).shape()[0].value();
  std::vector<std::vector<Item>> stacks(body.outputs.size() - std::min(body.outputs.size(), states.size()));
  for (int64_t t = 0; t < length; ++t) {
    std::vector<Item> inputs = states;
    for (const Item& x : xs)
      inputs.push_back(
          importer.item(squeeze(ops::narrow(importer.value(x), {.axis = 0, .start = t, .len = 1}), {0}), x.elem));
    const std::vector<Item> outputs = importer.import_body(body, inputs, n.frame());
    require(outputs.size() >= states.size(), "The body of the scan has too few outputs.");
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i < states.size())
        states[i] = outputs[i];
      else
        stacks[i - states.size()].push_back(outputs[i]);
    }
  }
  std::vector<Item> results = states;
  for (size_t k = 0; k < stacks.size(); ++k) {
    const bool reversed = k < out_directions.size() && out_directions[k] == 1;
    if (reversed) std::reverse(stacks[k].begin(), stacks[k].end());
    const Item stacked = stack(n, stacks[k], body.outputs[states.size() + k]);
    const Value out = importer.value(stacked);
    const int64_t axis = k < out_axes.size() ? normalize_axis(out_axes[k], out.shape().rank()) : 0;
    results.push_back(importer.item(move_axis(out, 0, axis), stacked.elem));
  }
  return results;
}

std::vector<Item> scan_region(OnnxNode& n, const GraphProto& body, std::vector<Item> states,
                              const std::vector<Item>& xs, const std::vector<int64_t>& out_directions,
                              const std::vector<int64_t>& out_axes) {
  Importer& importer = n.importer();
  require(!xs.empty(), "A scan has at least one scanned input.");
  Values operands;
  std::vector<TensorType> types;
  std::vector<ElemType> elems;
  for (const Item& s : states) {
    operands.push_back(importer.value(s));
    types.push_back(operands.back().type());
    elems.push_back(s.elem);
  }
  const Dim length = importer.value(xs[0]).shape()[0];
  for (const Item& x : xs) {
    TensorType row = importer.value(x).type();
    row.shape = Shape(std::vector<Dim>(row.shape.begin() + 1, row.shape.end()));
    types.push_back(row);
    elems.push_back(x.elem);
  }
  const BodyRegion region = body_region(n, body, types, elems);
  // As `scan` has them: carries, then what is the same in every step, then the rows.
  const size_t carries = states.size(), captured = region.region.captures.size();
  std::vector<TensorType> ordered(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(carries));
  for (const ValueId id : region.region.captures) {
    operands.push_back(n.graph().value(id));
    ordered.push_back(n.graph().type(id));
  }
  ordered.insert(ordered.end(), types.begin() + static_cast<std::ptrdiff_t>(carries), types.end());
  for (const Item& x : xs) operands.push_back(importer.value(x));
  std::vector<size_t> places;
  for (size_t i = 0; i < types.size(); ++i) places.push_back(i < carries ? i : i + captured);
  for (size_t i = 0; i < captured; ++i) places.push_back(carries + i);
  const Value y = ops::scan(operands, {.body = arranged(region.region, ordered, places),
                                       .length = length,
                                       .num_carries = static_cast<int64_t>(carries),
                                       .num_bcast = static_cast<int64_t>(captured),
                                       .num_xs = static_cast<int64_t>(xs.size())});
  std::vector<Item> results;
  for (size_t i = 0; i < region.elems.size(); ++i) {
    Value out = y.result(static_cast<int64_t>(i));
    if (i >= carries) {
      const size_t k = i - carries;
      if (k < out_directions.size() && out_directions[k] == 1) out = reverse_rows(n, out);
      const int64_t axis = k < out_axes.size() ? normalize_axis(out_axes[k], out.shape().rank()) : 0;
      out = move_axis(out, 0, axis);
    }
    results.push_back(n.result(out, region.elems[i]));
  }
  return results;
}

std::vector<Item> scan_of(OnnxNode& n, const GraphProto& body, const std::vector<Item>& states,
                          const std::vector<Item>& xs, const std::vector<int64_t>& out_directions,
                          const std::vector<int64_t>& out_axes) {
  try {
    return scan_region(n, body, states, xs, out_directions, out_axes);
  } catch (const Error&) {
    if (!n.importer().can_observe()) throw;
  }
  return scan_in_place(n, body, states, xs, out_directions, out_axes);
}

Built scan(OnnxNode& n) {
  const GraphProto& body = n.graph_attr("body");
  const auto count = static_cast<size_t>(n.required_int("num_scan_inputs"));
  require(count >= 1, "num_scan_inputs is 0: nothing says how often the body runs.");
  require(count <= static_cast<size_t>(n.num_inputs()), "num_scan_inputs (", count, ") is more than there are inputs.");
  std::vector<Item> states, xs;
  const std::vector<int64_t> axes = n.attr("scan_input_axes", std::vector<int64_t>());
  const std::vector<int64_t> directions = n.attr("scan_input_directions", std::vector<int64_t>());
  const size_t num_states = static_cast<size_t>(n.num_inputs()) - count;
  for (size_t i = 0; i < num_states; ++i) states.push_back(n.item(static_cast<int64_t>(i)));
  for (size_t k = 0; k < count; ++k) {
    const auto i = static_cast<int64_t>(num_states + k);
    Value x = n.input(i);
    require(x.shape().rank() > 0, "A scanned input is a scalar.");
    if (k < axes.size()) x = move_axis(x, normalize_axis(axes[k], x.shape().rank()), 0);
    if (k < directions.size() && directions[k] == 1) x = reverse_rows(n, x);
    xs.push_back(n.like(x, i));
  }
  return scan_of(n, body, states, xs, n.attr("scan_output_directions", std::vector<int64_t>()),
                 n.attr("scan_output_axes", std::vector<int64_t>()));
}

// Opset 8: an operand of lengths comes first, and everything has a batch axis.
Built scan_batched(OnnxNode& n) {
  if (n.has(0)) n.unsupported("Sequence lengths of Scan (opset 8) are not supported.");
  const GraphProto& body = n.graph_attr("body");
  const auto count = static_cast<size_t>(n.required_int("num_scan_inputs"));
  const std::vector<int64_t> directions = n.attr("directions", std::vector<int64_t>());
  const int64_t inputs = n.num_inputs() - 1;
  require(static_cast<int64_t>(count) <= inputs && count > 0, "num_scan_inputs (", count, ") does not fit.");
  for (int64_t i = 1; i <= inputs; ++i) require(n.input(i).shape().rank() > 0, "Input ", i, " is a scalar.");
  const int64_t batch = n.input(1).shape()[0].value();
  require(batch <= kMaxIterations, "A batch of ", batch, " rows is too large to be scanned one by one.");
  std::vector<std::vector<Item>> rows;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Item> states, xs;
    for (int64_t i = 0; i < inputs; ++i) {
      Value x = squeeze(ops::narrow(n.input(1 + i), {.axis = 0, .start = b, .len = 1}), {0});
      const int64_t k = i - (inputs - static_cast<int64_t>(count));
      if (k >= 0 && k < static_cast<int64_t>(directions.size()) && directions[static_cast<size_t>(k)] == 1)
        x = reverse_rows(n, x);
      (k < 0 ? states : xs).push_back(n.like(x, 1 + i));
    }
    rows.push_back(scan_of(n, body, states, xs, {}, {}));
  }
  require(!rows.empty(), "A batch of 0 rows cannot be scanned.");
  std::vector<Item> results;
  for (size_t o = 0; o < rows[0].size(); ++o) {
    Values parts;
    for (const auto& row : rows) parts.push_back(unsqueeze(n.importer().value(row[o]), {0}));
    results.push_back(n.result(parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = 0}), rows[0][o].elem));
  }
  return results;
}

}  // namespace

Rows control_flow_rows() {
  return {
      {"If", 1, if_op},
      {"Loop", 1, loop},
      {"Scan", 8, scan_batched},
      {"Scan", 9, scan},
  };
}

}  // namespace rlx::onnx
