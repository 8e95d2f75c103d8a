#include "backends/webgpu/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "backends/cpu/table.h"
#include "backends/host/program.h"
#include "backends/reference/table.h"
#include "backends/webgpu/lower_loop.h"
#include "backends/webgpu/memory.h"
#include "backends/webgpu/split_weights.h"
#include "backends/webgpu/step_names.h"
#include "backends/webgpu/strided.h"
#include "ops/cost.h"
#include "rlx/ops/leaves.h"
#include "wgsl/cast_f32_to_f16.h"
#include "wgsl/convert.h"
#include "wgsl/unpack.h"

namespace rlx::webgpu {

std::string_view element_type(Storage storage) {
  switch (storage) {
    case Storage::kF32: return "f32";
    case Storage::kF16: return "f16";
    case Storage::kI32: return "i32";
    case Storage::kU32:
    case Storage::kPacked: return "u32";
    case Storage::kC64: return "vec2<f32>";
    case Storage::kHost: break;
  }
  fail(ErrorKind::kInternal, "A value without device bytes is asked for its element type.");
}

int64_t storage_element_bytes(Storage storage, DType dtype) {
  switch (storage) {
    case Storage::kF16: return 2;
    case Storage::kC64: return 8;
    case Storage::kPacked:
    case Storage::kHost: return static_cast<int64_t>(size_of(dtype));
    default: return 4;
  }
}

int64_t storage_bytes(Storage storage, const TensorType& type) {
  const int64_t bytes = checked_mul(type.shape.num_elements(), storage_element_bytes(storage, type.dtype));
  return (bytes + 3) / 4 * 4;
}

uint32_t to_u32(int64_t n) {
  if (n < 0 || n > INT64_C(0xFFFFFFFF))
    fail(ErrorKind::kUnsupported, str("A size (", n, ") does not fit the 32 bits that a GPU kernel counts with."));
  return static_cast<uint32_t>(n);
}

uint32_t packed_kind(DType dtype) {
  switch (dtype) {
    case DType::I8: return 0;
    case DType::U8: return 1;
    case DType::Bool: return 2;
    case DType::I16: return 3;
    case DType::U16: return 4;
    case DType::BF16: return 5;
    default: fail(ErrorKind::kInternal, str("A packed value is ", dtype, "."));
  }
}

AxisSplit split_at(const Shape& shape, int64_t axis) {
  AxisSplit s{1, 1, 1};
  axis = normalize_axis(axis, shape.rank());
  for (int64_t i = 0; i < shape.rank(); ++i) (i < axis ? s.outer : i == axis ? s.cols : s.inner) *= shape[i].value();
  return s;
}

const LoweringRow* find_lowering(const LowerSignature& signature, const Device& device) {
  for (const auto types : {signature.inputs, signature.outputs})
    for (const TensorType& t : types)
      if (t.dtype == DType::F64) return nullptr;
  const auto rows = lowering_table();
  const auto range =
      std::equal_range(rows.begin(), rows.end(), LoweringRow{&signature.op, nullptr},
                       [](const LoweringRow& a, const LoweringRow& b) { return a.op->name < b.op->name; });
  for (auto row = range.first; row != range.second; ++row)
    if (row->supports == nullptr || row->supports(signature, device)) return &*row;
  return nullptr;
}

class Lowering {
 public:
  Lowering(const Graph& symbolic, const Graph& bound, const Manifest& manifest, const DimBinding& binding,
           const Device& device, const CompileOptions& options, bool nested)
      : symbolic_(symbolic),
        bound_(bound),
        binding_(binding),
        device_(device),
        options_(options),
        nested_(nested),
        used_(host::used_values(bound)) {
    program_.manifest = manifest;
    program_.bucket = find_bucket();
    program_.state_values.assign(manifest.states.size(), -1);
    const auto index = [](const std::vector<Port>& ports, PortIndex& map) {
      for (size_t i = 0; i < ports.size(); ++i) map[ports[i].name] = static_cast<int32_t>(i);
    };
    index(manifest.inputs, inputs_);
    index(manifest.params, params_);
    index(manifest.states, states_);
  }

  Program run() {
    if (is_uniform()) check_uniform_sizes();
    choose_places();
    for (size_t i = 0; i < bound_.nodes().size(); ++i) lower_node(i);
    for (const Output& o : bound_.outputs())
      program_.outputs.push_back(nested_ ? plain(value_.at(o.value)) : value_.at(o.value));
    for (const StateUpdate& u : bound_.updates())
      program_.updates.push_back({value_.at(u.state), plain(value_.at(u.value))});
    for (const int32_t v : program_.outputs) program_.problem.outputs.push_back(v);
    program_.problem.updates = program_.updates;
    drop_unread_steps();
    pin_outputs();
    return std::move(program_);
  }

  // ---- for LowerCall ----

  const Device& device() const { return device_; }
  const CompileOptions& options() const { return options_; }
  int32_t value_of(ValueId id) const { return value_.at(id); }
  bool wants(ValueId id) const { return used_.contains(id); }
  bool is_static(int32_t v) const { return find_static(v) != nullptr; }
  const ProgramValue& value(int32_t v) const { return program_.values[static_cast<size_t>(v)]; }
  int64_t view_offset_bytes(int32_t v) const { return plan::root_of(program_.problem, v).offset_bytes; }

  int32_t root_of(int32_t v) const { return plan::root_of(program_.problem, v).value; }

  std::optional<std::vector<int32_t>> static_params(int32_t v) const {
    const auto* params = find_static(v);
    return params ? std::optional(*params) : std::nullopt;
  }

  // The value as kernels see it, an element in each place: unpacked by a kernel, once.
  int32_t unpacked(int32_t v) {
    const Storage to = kernel_storage(value(v).type.dtype);
    if (value(v).storage == to || value(v).storage == Storage::kHost) return v;
    if (const auto it = unpacked_.find(v); it != unpacked_.end()) return it->second;
    return unpacked_[v] = value(v).storage == Storage::kPacked ? unpack(v, to) : convert(v, to);
  }

  // The same bytes in another storage, by a kernel of a step of its own.
  int32_t new_form(int32_t v, Storage to, std::string_view how) {
    const TensorType type = value(v).type, symbolic = value(v).symbolic;  // values may move
    const auto params = static_params(v);
    const int32_t out =
        new_value(type, symbolic, to, params ? Source::kStatic : Source::kStep, str(value(v).label, ", ", how));
    if (params) make_static(out, *params);
    return out;
  }
  // `kernel`: one thread per element, operands x and y.
  template <class P>
  void emit_form(int32_t v, int32_t out, KernelKey kernel, std::string_view name) {
    const int64_t n = value(v).type.shape.num_elements();
    if (n == 0) return;
    Dispatch d{.kernel = std::move(kernel),
               .operands = {{v, false}, {out, true}},
               .params = {P{.n = to_u32(n)}, {&P::n}},
               .grid = {.x = {.items = n, .per_group = 256, .active = true}},
               .extent_safe = true,
               .of_one_value = true};
    emit_step(std::move(d), name, is_static(v));
  }

  int32_t convert(int32_t v, Storage to) {
    const int32_t out = new_form(v, to, "converted");
    emit_convert(v, out);
    return out;
  }
  void emit_convert(int32_t v, int32_t out) {
    emit_form<wgsl::convert::Params>(
        v, out,
        {"convert",
         {{"S", std::string(element_type(value(v).storage))}, {"T", std::string(element_type(value(out).storage))}}},
        "convert");
  }

  // An f32 weight as halves, rounded to nearest even.
  int32_t f16_copy(int32_t v) {
    if (const auto it = f16_copies_.find(v); it != f16_copies_.end()) return it->second;
    const int32_t out = f16_copies_[v] = new_form(v, Storage::kF16, "as f16");
    emit_form<wgsl::cast_f32_to_f16::Params>(v, out, {"cast_f32_to_f16"}, "cast_f32_to_f16");
    return out;
  }

  int32_t unpack(int32_t v, Storage to) {
    const DType dtype = value(v).type.dtype;
    const int32_t out = new_form(v, to, "unpacked");
    const uint32_t kind = dtype == DType::F16 ? 6 : packed_kind(dtype);
    emit_form<wgsl::unpack::Params>(v, out, {"unpack", {{"T", std::string(element_type(to))}}, {{"KIND", kind}}},
                                    "unpack");
    return out;
  }

  // What a kernel writes of a result: the result itself, or a form of it that is converted when the node is done.
  int32_t written(int32_t v) {
    const Storage to = kernel_storage(value(v).type.dtype);
    if (value(v).storage == to || value(v).storage == Storage::kHost) return v;
    const auto [it, is_new] = written_.emplace(v, -1);
    if (is_new) it->second = new_form(v, to, "to be converted");
    return it->second;
  }

  template <class F>
  std::optional<LowerCall::IndexErrors> add_index_check(int32_t indices, std::vector<int64_t> what, F complaint) {
    if (!index_checks_.emplace(indices, std::move(what)).second) return std::nullopt;
    if (program_.index_errors < 0) {
      const TensorType words{Shape{Program::kIndexWords}, DType::U32};
      program_.index_errors = new_value(words, words, Storage::kU32, Source::kConstant, "indices out of range");
      make_static(program_.index_errors, {});
      program_.values[static_cast<size_t>(program_.index_errors)].constant = Tensor(DType::U32, {Program::kIndexWords});
    }
    program_.index_checks.push_back({label_, std::string(node_->op->name), node_->origin, std::move(complaint)});
    return LowerCall::IndexErrors{{program_.index_errors, true},
                                  static_cast<uint32_t>(program_.index_checks.size() - 1)};
  }

  // A value inside the bytes of the one that the moves in front of `id` begin with.
  std::optional<LowerCall::Strided> strided(ValueId id) {
    std::vector<const Node*> moves;  // from `id` upwards
    const Node* node = &bound_.node_of(id);
    while (moves_by_strides(symbolic_.nodes()[static_cast<size_t>(node - bound_.nodes().data())])) {
      moves.push_back(node);
      node = &bound_.node_of(node->inputs[0]);
    }
    if (moves.empty()) return std::nullopt;
    ValueId from = moves.back()->inputs[0];
    StridedLayout layout = StridedLayout::dense(bound_.type(from));
    for (size_t i = moves.size(); i-- > 0;) {
      if (auto next = layout_of(*moves[i], layout)) {
        layout = std::move(*next);
      } else {  // its copy is where the others begin
        from = moves[i]->results[0].id;
        layout = StridedLayout::dense(bound_.type(from));
      }
    }
    if (layout.is_dense()) return std::nullopt;
    const int32_t root = value_.at(from);
    const Storage storage = value(root).storage;
    if (storage != kernel_storage(value(root).type.dtype) || find_static(root)) return std::nullopt;
    const TensorType type{{layout.extent()}, value(root).type.dtype};
    const int32_t v = new_value(type, type, storage, Source::kStep, bound_.label(id));
    add_view(v, root, checked_mul(layout.offset, storage_element_bytes(storage, type.dtype)));
    return LowerCall::Strided{{v, false}, layout.strides};
  }

  int32_t new_value(const TensorType& type, const TensorType& symbolic, Storage storage, Source source,
                    std::string label) {
    const auto index = static_cast<int32_t>(program_.values.size());
    program_.values.push_back(
        {.type = type, .symbolic = symbolic, .storage = storage, .source = source, .label = std::move(label)});
    const bool on_device = storage != Storage::kHost;
    auto region = plan::Region::kActivation;
    if (source == Source::kInput || source == Source::kState || source == Source::kDimValue || !on_device)
      region = plan::Region::kPersistent;
    if (source == Source::kParam || source == Source::kConstant || source == Source::kStatic)
      region = plan::Region::kExternal;
    program_.problem.values.push_back({.size_bytes = on_device ? storage_bytes(storage, type) : 0, .region = region});
    return index;
  }

  Operand add_table(std::span<const uint32_t> words) {
    Tensor tensor = Tensor::of<uint32_t>(DType::U32, {static_cast<int64_t>(words.size())}, words);
    const int32_t v = new_value(tensor.type(), tensor.type(), Storage::kU32, Source::kConstant, "a table");
    program_.values[static_cast<size_t>(v)].constant = std::move(tensor);
    make_static(v, {});
    return {v, false};
  }

  void make_static(int32_t v, std::vector<int32_t> params) {
    static_params_.resize(program_.values.size());
    static_params_[static_cast<size_t>(v)] = std::move(params);
  }

  void emit(Dispatch dispatch, std::string_view name, const Node& node, bool is_static) {
    const bool in_place = dispatch.in_place;
    for (const Axis* axis : {&dispatch.grid.x, &dispatch.grid.y, &dispatch.grid.z})
      if (axis->items == 0) return;
    const std::string called = name.empty() ? step_name(*node.op, node.attrs, bound_types(node)) : std::string(name);
    append(make_step(std::move(dispatch), called), is_static, &node, in_place);
  }

  std::vector<TensorType> bound_types(const Node& node) const {
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) types.push_back(bound_.type(id));
    return types;
  }

  // What the node being lowered depends on, if it is static.
  const std::optional<std::vector<int32_t>>& node_params() const { return node_params_; }

  // Of an operand of the node being lowered.
  int64_t bucket_axis(size_t operand) const {
    const Node& node = symbolic_.nodes()[static_cast<size_t>(node_index_)];
    const TensorType& type = symbolic_.type(node.inputs[operand]);
    for (int64_t i = 0; i < type.rank(); ++i)
      if (follows_bucket(type.dim(i))) return i;
    return -1;
  }

 private:
  Step make_step(Dispatch dispatch, std::string_view name) const {
    return {.work = std::move(dispatch),
            .op = node_->op,
            .name = std::string(name),
            .node = label_,
            .origin = node_->origin,
            .graph_node = node_index_};
  }
  void emit_step(Dispatch dispatch, std::string_view name, bool is_static) {
    append(make_step(std::move(dispatch), name), is_static, nullptr, false);
  }

  using PortIndex = std::unordered_map<std::string, int32_t>;
  enum class Place : uint8_t { kSkip, kLeaf, kView, kDevice, kLoop, kHost };

  // How kernels see elements of a dtype.
  Storage kernel_storage(DType dtype) const {
    switch (dtype) {
      case DType::F32:
      case DType::BF16: return Storage::kF32;
      case DType::F16: return device_.features().f16 && !is_uniform() ? Storage::kF16 : Storage::kF32;
      case DType::I8:
      case DType::I16:
      case DType::I32:
      case DType::I64: return Storage::kI32;
      case DType::U8:
      case DType::U16:
      case DType::U32:
      case DType::U64:
      case DType::Bool: return Storage::kU32;
      case DType::C64: return Storage::kC64;
      case DType::F64: break;
    }
    return Storage::kHost;
  }
  // How values that are computed lie in memory: as kernels see them, or all as f32 (spec 10, 1.5).
  Storage computed_storage(DType dtype) const {
    const Storage seen = kernel_storage(dtype);
    return is_uniform() && (seen == Storage::kI32 || seen == Storage::kU32) ? Storage::kF32 : seen;
  }
  bool is_uniform() const { return options_.webgpu.f32_uniform; }
  // An index, which is an f32 then, must be exact.
  void check_uniform_sizes() const {
    for (const Node& node : bound_.nodes())
      for (const Result& r : node.results)
        for (const Dim& d : r.type.shape)
          if (d.value() > int64_t{1} << 24)
            fail(ErrorKind::kUnsupported, str("A size (", d, ") of ", bound_.label(r.id),
                                              " is more than 2^24, which indices may be with f32_uniform."));
  }

  Storage storage_of(ValueId id, DType dtype, Source source) {
    if (!on_device_.contains(find_group(id))) return Storage::kHost;
    const Storage computed = computed_storage(dtype);
    const bool small = size_of(dtype) < 4 && dtype != DType::F16;
    const bool given =
        (source == Source::kInput && !nested_) || source == Source::kParam || source == Source::kConstant;
    if (small && given && !(dtype == DType::BF16 && (source == Source::kInput || is_uniform())))
      return Storage::kPacked;
    return computed;
  }

  // ---- the bucket symbol ----

  std::optional<uint32_t> find_bucket() const {
    if (options_.bucket_symbol) return options_.bucket_symbol;
    std::optional<uint32_t> found;
    for (const uint32_t id : symbolic_.dynamic_symbols()) {
      if (symbolic_.symbols().derived().contains(id)) continue;
      if (found) return std::nullopt;
      found = id;
    }
    return found;
  }
  bool follows_bucket(const Dim& dim) const {
    if (dim.is_static() || !program_.bucket) return false;
    if (dim.symbol_id() == *program_.bucket) return true;
    const auto& derived = symbolic_.symbols().derived();
    const auto it = derived.find(dim.symbol_id());
    return it != derived.end() && (follows_bucket(it->second.lhs) || follows_bucket(it->second.rhs));
  }

  // ---- where each node runs, and which values need device bytes ----

  ValueId find_group(ValueId id) {
    auto it = group_.find(id);
    if (it == group_.end()) return id;
    return it->second = find_group(it->second);
  }
  void unite(ValueId a, ValueId b) {
    a = find_group(a);
    b = find_group(b);
    if (a == b) return;
    group_[b] = a;
    if (on_device_.contains(b)) on_device_.insert(a);
  }

  void choose_places() {
    const auto& nodes = bound_.nodes();
    places_.resize(nodes.size(), Place::kSkip);
    rows_.resize(nodes.size());
    std::unordered_set<ValueId> of_weights;  // what depends on weights alone
    const int64_t visible = visible_bytes(limits_for(device_, options_));
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      bool needed = node.op == &ops::input || node.op == &ops::state;
      for (const Result& r : node.results) needed |= used_.contains(r.id);
      if (!needed) continue;
      if (node.op->traits.leaf) {
        places_[i] = Place::kLeaf;
        if (node.op == &ops::param || node.op == &ops::constant) of_weights.insert(node.results[0].id);
        continue;
      }
      const bool is_once =
          node.attrs.graphs().empty() &&
          std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return of_weights.contains(v); });
      if (is_once)
        for (const Result& r : node.results) of_weights.insert(r.id);
      const std::vector<TensorType> types = input_types(node);
      std::vector<TensorType> results;
      for (const Result& r : node.results) results.push_back(r.type);
      rows_[i] = find_lowering({*node.op, node.attrs, types, results}, device_);
      if (find_view(node, types)) {
        places_[i] = Place::kView;
        unite(node.inputs[0], node.results[0].id);
        continue;
      }
      places_[i] = rows_[i] ? Place::kDevice : Place::kHost;
      // A weight that is computed and that no binding holds: the host computes it, once; readers take it in parts.
      const auto too_large = [&](const TensorType& t) { return is_too_large(t, device_, visible); };
      if (is_once && (std::any_of(types.begin(), types.end(), too_large) ||
                      std::any_of(results.begin(), results.end(), too_large)))
        places_[i] = Place::kHost;
      if (auto loop = node.attrs.graphs().empty() ? std::nullopt : lower_loop(node, device_, options_)) {
        places_[i] = Place::kLoop;
        loops_.emplace(i, std::move(*loop));
      }
    }
    for (const StateUpdate& u : bound_.updates()) unite(u.state, u.value);
    if (nested_) {
      for (const Node& node : nodes)
        if (node.op == &ops::input || node.op == &ops::state) on_device_.insert(find_group(node.results[0].id));
      for (const Output& o : bound_.outputs()) on_device_.insert(find_group(o.value));
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (places_[i] != Place::kDevice && places_[i] != Place::kLoop) continue;
      for (const ValueId id : nodes[i].inputs) on_device_.insert(find_group(id));
      for (const Result& r : nodes[i].results) on_device_.insert(find_group(r.id));
    }
  }

  std::vector<TensorType> input_types(const Node& node) const {
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) types.push_back(bound_.type(id));
    return types;
  }

  std::optional<ViewOf> find_view(const Node& node, const std::vector<TensorType>& types) const {
    if (node.op->view == nullptr) return std::nullopt;
    SymbolTable symbols = bound_.symbols();
    return node.op->view(InferCall(*node.op, types, node.attrs, symbols));
  }

  // ---- values that depend on weights alone ----

  const std::vector<int32_t>* find_static(int32_t v) const {
    const auto i = static_cast<size_t>(v);
    return i < static_params_.size() && static_params_[i] ? &*static_params_[i] : nullptr;
  }
  std::optional<std::vector<int32_t>> params_of(const Node& node) const {
    std::vector<int32_t> params;
    for (const ValueId id : node.inputs) {
      const auto* own = find_static(value_.at(id));
      if (own == nullptr) return std::nullopt;
      params.insert(params.end(), own->begin(), own->end());
    }
    if (!node.attrs.graphs().empty())
      for (const auto& [name, index] : params_) params.push_back(index);
    std::sort(params.begin(), params.end());
    params.erase(std::unique(params.begin(), params.end()), params.end());
    return params;
  }

  // An element in each place, the first at a multiple of four bytes: what can be copied to where a step puts its
  // results.
  int32_t plain(int32_t v) {
    const Storage to = computed_storage(value(v).type.dtype);
    if (value(v).storage == Storage::kPacked)
      return to == kernel_storage(value(v).type.dtype) ? unpacked(v) : unpack(v, to);
    if (value(v).storage == Storage::kHost || value(v).type.shape.num_elements() == 0) return v;
    return view_offset_bytes(v) % 4 == 0 ? v : unpack(v, to);
  }

  // ---- nodes ----

  int32_t add_result(const Result& bound, const Result& symbolic, Source source) {
    const int32_t v = new_value(bound.type, symbolic.type, storage_of(bound.id, bound.type.dtype, source), source,
                                bound_.label(bound.id));
    value_[bound.id] = v;
    return v;
  }

  static int32_t find_port(const PortIndex& ports, const Node& leaf) {
    const auto it = ports.find(leaf.attrs.as<ops::LeafAttrs>().name);
    RLX_ASSERT(it != ports.end() && "a leaf is missing in the manifest");
    return it->second;
  }

  void lower_leaf(const Node& node, const Node& symbolic) {
    const auto add = [&](Source source) -> ProgramValue& {
      return program_.values[static_cast<size_t>(add_result(node.results[0], symbolic.results[0], source))];
    };
    const auto v = static_cast<int32_t>(program_.values.size());
    if (node.op == &ops::input) {
      ProgramValue& value = add(Source::kInput);
      value.index = find_port(inputs_, node);
      value.label = str("input '", program_.manifest.inputs[static_cast<size_t>(value.index)].name, "'");
    } else if (node.op == &ops::param) {
      ProgramValue& value = add(Source::kParam);
      value.index = find_port(params_, node);
      value.label = str("param '", program_.manifest.params[static_cast<size_t>(value.index)].name, "'");
      make_static(v, {value.index});
    } else if (node.op == &ops::state) {
      ProgramValue& value = add(Source::kState);
      value.index = find_port(states_, node);
      value.label = str("state '", program_.manifest.states[static_cast<size_t>(value.index)].name, "'");
      program_.state_values[static_cast<size_t>(value.index)] = v;
    } else if (node.op == &ops::constant) {
      add(Source::kConstant).constant = node.attrs.as<ops::ConstantAttrs>().value;
      make_static(v, {});
    } else if (node.op == &ops::dim_value) {
      add(Source::kDimValue).dim = symbolic.attrs.as<ops::DimValueAttrs>().dim;
    } else {
      fail(ErrorKind::kInternal, str("Leaf '", node.op->name, "' is not known."));
    }
  }

  // `v` lies in the bytes of `of`, from `offset_bytes` on.
  void add_view(int32_t v, int32_t of, int64_t offset_bytes) {
    const plan::Root root = plan::root_of(program_.problem, of);
    plan::Value& planned = program_.problem.values[static_cast<size_t>(v)];
    planned.view_of = root.value;
    planned.view_offset_bytes = root.offset_bytes + offset_bytes;
    planned.region = program_.problem.values[static_cast<size_t>(root.value)].region;
  }

  // A value inside its operand's bytes needs no step. False where the stored elements differ in size.
  bool lower_view(const Node& node, const Node& symbolic) {
    const auto view = find_view(node, input_types(node));
    const int32_t operand = value_.at(node.inputs[0]);
    const plan::Root root = plan::root_of(program_.problem, operand);
    const ProgramValue& from = value(operand);
    const DType to_dtype = node.results[0].type.dtype;
    Storage storage = from.storage;
    if (from.type.dtype != to_dtype && storage != Storage::kHost && storage != Storage::kPacked) {
      storage = computed_storage(to_dtype);
      // Integers as f32 have other bits than their own.
      if (storage != kernel_storage(to_dtype) || from.storage != kernel_storage(from.type.dtype)) return false;
      if (storage_element_bytes(storage, to_dtype) != static_cast<int64_t>(size_of(to_dtype)) ||
          storage_element_bytes(from.storage, from.type.dtype) != static_cast<int64_t>(size_of(from.type.dtype)))
        return false;
    }
    const int64_t own_offset = checked_mul(view->offset_elems, storage_element_bytes(from.storage, from.type.dtype));
    const int64_t host_offset = storage == Storage::kHost ? from.host_offset_bytes + own_offset : 0;
    const int32_t v = new_value(node.results[0].type, symbolic.results[0].type, storage, Source::kStep,
                                bound_.label(node.results[0].id));
    value_[node.results[0].id] = v;
    add_view(v, operand, storage == Storage::kHost ? -root.offset_bytes : own_offset);
    program_.values[static_cast<size_t>(v)].host_offset_bytes = host_offset;
    if (const auto* params = find_static(root.value)) make_static(v, std::vector(*params));
    program_.views.push_back({node_index_, view->offset_elems});
    return true;
  }

  void lower_node(size_t index) {
    const Node& node = bound_.nodes()[index];
    const Node& symbolic = symbolic_.nodes()[index];
    node_ = &node;
    node_index_ = static_cast<int64_t>(index);
    label_ = bound_.label(node.results[0].id);
    switch (places_[index]) {
      case Place::kSkip: return;
      case Place::kLeaf: lower_leaf(node, symbolic); return;
      case Place::kView:
        if (lower_view(node, symbolic)) return;
        break;
      default: break;
    }
    const LoweringRow* row = places_[index] == Place::kHost ? nullptr : rows_[index];
    node_params_ = params_of(node);
    bool all_empty = true;
    for (size_t r = 0; r < node.results.size(); ++r) {
      all_empty &= node.results[r].type.shape.num_elements() == 0;
      if (!used_.contains(node.results[r].id)) continue;
      const int32_t v =
          add_result(node.results[r], symbolic.results[r], node_params_ ? Source::kStatic : Source::kStep);
      if (node_params_) make_static(v, *node_params_);
    }
    if (all_empty) return;  // nothing to compute
    const std::vector<TensorType> types = input_types(node);
    if (places_[index] == Place::kLoop) {
      add_loop(node, std::move(loops_.at(index)));
      return;
    }
    if (row == nullptr) {
      add_host_call(node, symbolic);
      return;
    }
    LowerCall call(*this, node, types, node_params_.has_value());
    try {
      written_.clear();
      row->lower(call);
      for (const auto& [v, form] : written_) emit_convert(form, v);
    } catch (Error& e) {
      e.add_context(str("lowering ", label_, " (", node.op->name, ") for the GPU"));
      throw;
    }
  }

  // The node alone, as a program for the host.
  void add_host_call(const Node& node, const Node& symbolic) {
    // Sizes that are symbols stay so: an active extent cuts the host's step too.
    Graph graph = symbolic_.empty_revision();
    std::vector<ValueId> operands;
    for (size_t i = 0; i < symbolic.inputs.size(); ++i)
      operands.push_back(graph.input(str("x", i), symbolic_.type(symbolic.inputs[i])).id());
    std::vector<TensorType> results;
    for (const Result& r : symbolic.results) results.push_back(r.type);
    const Value first = graph.add_node(*symbolic.op, operands, symbolic.attrs, results);
    HostCall call;
    for (const ValueId id : node.inputs) call.inputs.push_back(value_.at(id));
    for (size_t r = 0; r < node.results.size(); ++r) {
      if (!used_.contains(node.results[r].id)) continue;
      call.outputs.push_back(value_.at(node.results[r].id));
      graph.output(first.result(static_cast<int64_t>(r)), str("y", r));
    }
    const host::KernelTable tables[] = {{"cpu", cpu::kernel_table()}, {"reference", reference::kernel_table()}};
    CompileOptions options = options_;
    options.poison = false;
    const Manifest manifest = manifest_of(graph);
    call.program = host::make_program(graph, manifest, binding_, tables, options);
    for (size_t i = 0; i < manifest.params.size(); ++i)
      call.params.emplace_back(i, static_cast<size_t>(params_.at(manifest.params[i].name)));
    const PlanInfo plan = call.program->plan();
    call.kernel = plan.steps.empty() ? "cpu" : plan.steps.back().kernel;
    Step step{.work = std::move(call),
              .op = node.op,
              .name = host_step_name(*node.op, node.attrs, bound_types(node)),
              .node = label_,
              .origin = node.origin,
              .graph_node = node_index_};
    append(std::move(step), node_params_.has_value(), nullptr, false);
  }

  void add_loop(const Node& node, Loop loop) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int32_t v = value_.at(node.inputs[i]);
      loop.inputs.push_back(loop.kind == Loop::Kind::kIf && i == 0 ? v : plain(v));  // a predicate is the host's
    }
    for (const Result& r : node.results) loop.outputs.push_back(used_.contains(r.id) ? value_.at(r.id) : -1);
    Step step{.work = std::move(loop),
              .op = node.op,
              .name = std::string(node.op->name),
              .node = label_,
              .origin = node.origin,
              .graph_node = node_index_};
    append(std::move(step), node_params_.has_value(), nullptr, false);
  }

  // `node`: whose in-place traits hold, if `in_place`.
  void append(Step step, bool is_static, const Node* node, bool in_place) {
    std::vector<int32_t> reads, writes;
    if (const auto* d = std::get_if<Dispatch>(&step.work)) {
      for (const Operand& o : d->operands) {             // one may be bound twice, in an optional operand's place
        if (o.value == program_.index_errors) continue;  // outside the plan, as weights are
        auto& list = o.write ? writes : reads;
        if (std::find(list.begin(), list.end(), o.value) == list.end()) list.push_back(o.value);
      }
    } else if (const auto* h = std::get_if<HostCall>(&step.work)) {
      reads = h->inputs;
      writes = h->outputs;
    } else {
      const auto& loop = std::get<Loop>(step.work);
      reads = loop.inputs;
      std::copy_if(loop.outputs.begin(), loop.outputs.end(), std::back_inserter(writes),
                   [](int32_t v) { return v >= 0; });
    }
    if (is_static) {
      std::vector<int32_t> params;
      for (const int32_t v : reads)
        if (const auto* own = find_static(v)) params.insert(params.end(), own->begin(), own->end());
      if (!node && node_params_) params.insert(params.end(), node_params_->begin(), node_params_->end());
      std::sort(params.begin(), params.end());
      params.erase(std::unique(params.begin(), params.end()), params.end());
      step.params = std::move(params);
      program_.static_steps.push_back(std::move(step));
      return;
    }
    plan::Step planned;
    for (auto* list : {&reads, &writes}) {  // an absent operand is bound as another one
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (const int32_t v : reads)  // nobody writes an empty value
      if (value(v).type.shape.num_elements() > 0) planned.reads.push_back(v);
    planned.writes = writes;
    if (node && in_place) add_sharing(*node, planned);
    program_.steps.push_back(std::move(step));
    program_.problem.steps.push_back(std::move(planned));
  }

  void add_sharing(const Node& node, plan::Step& planned) const {
    const Traits& traits = node.op->traits;
    const auto try_share = [&](size_t result, uint32_t operands) {
      if (result >= node.results.size() || !used_.contains(node.results[result].id)) return;
      const int32_t written = value_.at(node.results[result].id);
      for (const int32_t read : planned.reads) {
        // Operands that may be overwritten, and are nothing else of this node.
        bool ok = true, found = false;
        for (size_t i = 0; i < node.inputs.size(); ++i)
          if (value_.at(node.inputs[i]) == read) {
            found = true;
            ok &= i < 32 && (operands >> i & 1) != 0;
          }
        if (!found || !ok || value(written).storage != value(read).storage ||
            value(written).type.shape.num_elements() != value(read).type.shape.num_elements())
          continue;
        planned.may_share.emplace_back(written, read);
      }
    };
    if (traits.in_place != 0) try_share(0, traits.in_place);
    if (traits.state_operand >= 0 && traits.state_result >= 0)
      try_share(static_cast<size_t>(traits.state_result), uint32_t{1} << traits.state_operand);
  }

  // Copies whose readers read what was copied (read_strided) are no steps.
  void drop_unread_steps() {
    const plan::Problem& problem = program_.problem;
    std::vector<bool> read(problem.values.size());
    const auto mark = [&](int32_t v) { read[static_cast<size_t>(root_of(v))] = true; };
    for (const int32_t v : problem.outputs) mark(v);
    for (const plan::Update& u : problem.updates) mark(u.value);
    std::vector<Step> steps;
    std::vector<plan::Step> planned;
    for (size_t i = problem.steps.size(); i-- > 0;) {
      plan::Step& step = program_.problem.steps[i];
      // What writes nothing that the plan knows of checks indices.
      const bool is_used = !std::holds_alternative<Dispatch>(program_.steps[i].work) || step.writes.empty() ||
                           std::any_of(step.writes.begin(), step.writes.end(),
                                       [&](int32_t v) { return read[static_cast<size_t>(root_of(v))]; });
      if (!is_used) continue;
      for (const int32_t v : step.reads) mark(v);
      for (const int32_t v : step.writes) mark(v);  // it may add to what an earlier step has written
      steps.push_back(std::move(program_.steps[i]));
      planned.push_back(std::move(step));
    }
    program_.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
    program_.problem.steps.assign(planned.rbegin(), planned.rend());
  }

  // Outputs and new states keep their bytes until the next run.
  void pin_outputs() {
    auto& values = program_.problem.values;
    const auto pin = [&](int32_t v) {
      plan::Value& root = values[static_cast<size_t>(plan::root_of(program_.problem, v).value)];
      if (root.region == plan::Region::kActivation) root.region = plan::Region::kPersistent;
    };
    for (const int32_t v : program_.outputs) pin(v);
    for (const plan::Update& u : program_.updates) pin(u.value);
    for (size_t v = 0; v < values.size(); ++v)
      values[v].region =
          values[static_cast<size_t>(plan::root_of(program_.problem, static_cast<int32_t>(v)).value)].region;
  }

  const Graph& symbolic_;
  const Graph& bound_;
  const DimBinding& binding_;
  const Device& device_;
  const CompileOptions& options_;
  bool nested_;
  std::unordered_set<ValueId> used_;
  PortIndex inputs_, params_, states_;

  std::vector<Place> places_;                   // by node
  std::vector<const LoweringRow*> rows_;        // by node
  std::unordered_map<size_t, Loop> loops_;      // by node
  std::unordered_map<ValueId, ValueId> group_;  // views with their roots, states with their new values
  std::unordered_set<ValueId> on_device_;       // groups that a kernel touches

  const Node* node_ = nullptr;  // being lowered
  int64_t node_index_ = 0;
  std::string label_;
  std::optional<std::vector<int32_t>> node_params_;

  std::vector<std::optional<std::vector<int32_t>>> static_params_;  // by value
  std::unordered_map<int32_t, int32_t> unpacked_, f16_copies_;
  std::set<std::pair<int32_t, std::vector<int64_t>>> index_checks_;  // values, and what is checked of them
  std::map<int32_t, int32_t> written_;  // of the node being lowered: results, and what kernels write of them
  std::unordered_map<ValueId, int32_t> value_;
  Program program_;
};

LowerCall::LowerCall(Lowering& lowering, const Node& node, std::span<const TensorType> inputs, bool is_static)
    : lowering_(lowering), node_(node), inputs_(inputs), is_static_(is_static) {}

const Device& LowerCall::device() const { return lowering_.device(); }
const CompileOptions& LowerCall::options() const { return lowering_.options(); }
bool LowerCall::wants(int64_t i) const {
  return i < num_outputs() && lowering_.wants(node_.results[static_cast<size_t>(i)].id);
}
bool LowerCall::is_static_input(int64_t i) const {
  return lowering_.is_static(lowering_.value_of(node_.inputs[static_cast<size_t>(i)]));
}
Operand LowerCall::read(int64_t i) {
  return {lowering_.unpacked(lowering_.value_of(node_.inputs[static_cast<size_t>(i)])), false};
}
Operand LowerCall::read_packed(int64_t i) {
  const int32_t v = lowering_.value_of(node_.inputs[static_cast<size_t>(i)]);
  return lowering_.value(v).storage == Storage::kPacked ? Operand{v, false} : read(i);
}
Operand LowerCall::write(int64_t i) {
  return {lowering_.written(lowering_.value_of(node_.results[static_cast<size_t>(i)].id)), true};
}
std::optional<Operand> LowerCall::f16_weight(int64_t i) {
  const WebGpuOptions& o = options().webgpu;
  const bool wanted = o.f16_weights && o.f16_mirror && !o.f32_uniform && device().features().f16;
  const int32_t v = lowering_.value_of(node_.inputs[static_cast<size_t>(i)]);
  if (!wanted || !lowering_.is_static(v) || lowering_.value(v).storage != Storage::kF32) return std::nullopt;
  return Operand{lowering_.f16_copy(v), false};
}
std::optional<LowerCall::IndexErrors> LowerCall::index_errors(
    int64_t i, std::vector<int64_t> what, std::function<std::string(int64_t, int64_t, int64_t)> complaint) {
  return lowering_.add_index_check(read(i).value, std::move(what), std::move(complaint));
}
std::optional<LowerCall::Strided> LowerCall::read_strided(int64_t i) {
  return lowering_.strided(node_.inputs[static_cast<size_t>(i)]);
}
Operand LowerCall::new_temporary(Storage storage, const std::vector<int64_t>& sizes,
                                 const std::optional<std::vector<int32_t>>& params) {
  const DType dtype = storage == Storage::kF16   ? DType::F16
                      : storage == Storage::kI32 ? DType::I32
                      : storage == Storage::kU32 ? DType::U32
                      : storage == Storage::kC64 ? DType::C64
                                                 : DType::F32;
  const TensorType type{Shape(std::span<const int64_t>(sizes)), dtype};
  const int32_t v = lowering_.new_value(type, type, storage, params ? Source::kStatic : Source::kStep, "a temporary");
  if (params) lowering_.make_static(v, *params);
  return {v, true};
}
Operand LowerCall::temporary(Storage storage, std::vector<int64_t> sizes) {
  return new_temporary(storage, sizes, is_static_ ? lowering_.node_params() : std::nullopt);
}
Operand LowerCall::derived(int64_t i, Storage storage, std::vector<int64_t> sizes) {
  return new_temporary(storage, sizes,
                       lowering_.static_params(lowering_.value_of(node_.inputs[static_cast<size_t>(i)])));
}
Operand LowerCall::table(std::span<const uint32_t> words) { return lowering_.add_table(words); }
int64_t LowerCall::bucket_axis(int64_t i) const { return lowering_.bucket_axis(static_cast<size_t>(i)); }
Storage LowerCall::storage(Operand operand) const { return lowering_.value(operand.value).storage; }
bool LowerCall::starts_at_multiple_of(Operand operand, int64_t bytes) const {
  return lowering_.view_offset_bytes(operand.value) % bytes == 0;
}
bool LowerCall::same_root(Operand first, Operand second) const {
  return lowering_.root_of(first.value) == lowering_.root_of(second.value);
}
void LowerCall::emit(Dispatch dispatch, std::string_view name) {
  lowering_.emit(std::move(dispatch), name, node_, is_static_);
}
void LowerCall::emit_derived(int64_t i, Dispatch dispatch, std::string_view name) {
  lowering_.emit(std::move(dispatch), name, node_, is_static_input(i));
}

Program lower(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding, const Device& device,
              const CompileOptions& options, bool nested) {
  const int64_t visible = visible_bytes(limits_for(device, options));
  const auto too_large = [&](const TensorType& t) { return is_too_large(t, device, visible); };
  // A fused op that no kernel here runs, or whose weight no binding holds, is run as its definition, whose parts may
  // have a kernel.
  Graph primitive = decompose(symbolic, [&](const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                                            std::span<const TensorType> outputs) {
    return find_lowering({op, attrs, inputs, outputs}, device) == nullptr ||
           std::any_of(inputs.begin(), inputs.end(), too_large);
  });
  primitive = split_large_weights(primitive, device, visible);
  const Graph bound = bind(primitive, binding);
  std::string unbound;
  for (const uint32_t id : bound.dynamic_symbols()) unbound += str(unbound.empty() ? "?" : ", ?", id);
  require(unbound.empty(), "Symbols (", unbound, ") have no size; pass inputs of known sizes or an explicit binding.");
  Program program = Lowering(primitive, bound, manifest, binding, device, options, nested).run();
  program.binding = primitive.symbols().complete(binding);
  program.symbolic = std::move(primitive);
  return program;
}

}  // namespace rlx::webgpu
