#include "backends/webgpu/lower.h"
#include "backends/webgpu/program_builder.h"
#include "backends/webgpu/strided.h"
#include "rlx/ops/cast.h"

namespace rlx::webgpu {

uint32_t to_u32(int64_t n) {
  if (n < 0 || n > INT64_C(0xFFFFFFFF))
    fail(ErrorKind::kUnsupported, str("A size (", n, ") does not fit the 32 bits that a GPU kernel counts with."));
  return static_cast<uint32_t>(n);
}

AxisSplit split_at(const Shape& shape, int64_t axis) {
  AxisSplit s{1, 1, 1};
  axis = normalize_axis(axis, shape.rank());
  for (int64_t i = 0; i < shape.rank(); ++i) (i < axis ? s.outer : i == axis ? s.cols : s.inner) *= shape[i].value();
  return s;
}

// Is the size the bucket's symbol, or computed of it?
static bool follows(const Dim& dim, std::optional<uint32_t> bucket, const SymbolTable& symbols) {
  if (dim.is_static() || !bucket) return false;
  if (dim.symbol_id() == *bucket) return true;
  const auto& derived = symbols.derived();
  const auto it = derived.find(dim.symbol_id());
  return it != derived.end() && (follows(it->second.lhs, bucket, symbols) || follows(it->second.rhs, bucket, symbols));
}

LowerCall::LowerCall(ProgramBuilder& builder, const Node& node, std::span<const TensorType> inputs, bool is_static)
    : builder_(builder), node_(node), inputs_(inputs), is_static_(is_static) {}

const Device& LowerCall::device() const { return builder_.device(); }
const CompileOptions& LowerCall::options() const { return builder_.options(); }
bool LowerCall::wants(int64_t i) const {
  return i < num_outputs() && builder_.wants(node_.results[static_cast<size_t>(i)].id);
}
bool LowerCall::is_static_input(int64_t i) const { return builder_.is_static(builder_.value_of(input_id(i))); }
Operand LowerCall::read(int64_t i) { return {builder_.unpacked(builder_.value_of(input_id(i))), false}; }
Operand LowerCall::read_packed(int64_t i) {
  const int32_t v = builder_.value_of(input_id(i));
  return builder_.value(v).storage == Storage::kPacked ? Operand{v, false} : read(i);
}
Operand LowerCall::write(int64_t i) {
  return {builder_.written(builder_.value_of(node_.results[static_cast<size_t>(i)].id)), true};
}
std::optional<Operand> LowerCall::f16_weight(int64_t i) {
  const Graph& bound = builder_.bound();
  const Node& from = bound.node_of(input_id(i));
  if (from.op == &ops::cast && input_type(i).dtype == DType::F32 && bound.type(from.inputs[0]).dtype == DType::F16) {
    const int32_t halves = builder_.value_of(from.inputs[0]);
    if (builder_.is_static(halves) && builder_.value(halves).storage == Storage::kF16) return Operand{halves, false};
  }
  const WebGpuOptions& o = options().webgpu;
  const bool wanted = o.f16_weights && o.f16_mirror && !o.f32_uniform && device().features().f16;
  const int32_t v = builder_.value_of(input_id(i));
  if (!wanted || !builder_.is_static(v) || builder_.value(v).storage != Storage::kF32) return std::nullopt;
  return Operand{builder_.f16_copy(v), false};
}
std::optional<LowerCall::IndexErrors> LowerCall::index_errors(
    int64_t i, std::vector<int64_t> what, std::function<std::string(int64_t, int64_t, int64_t)> complaint) {
  return builder_.add_index_check(read(i).value, std::move(what), std::move(complaint));
}
std::optional<LowerCall::Strided> LowerCall::read_strided(int64_t i) {
  const Graph &symbolic = builder_.symbolic(), &bound = builder_.bound();
  const ValueId id = input_id(i);
  std::vector<const Node*> moves;  // from `id` upwards
  const Node* node = &bound.node_of(id);
  while (moves_by_strides(symbolic.nodes()[static_cast<size_t>(node - bound.nodes().data())])) {
    moves.push_back(node);
    node = &bound.node_of(node->inputs[0]);
  }
  if (moves.empty()) return std::nullopt;
  ValueId from = moves.back()->inputs[0];
  StridedLayout layout = StridedLayout::dense(bound.type(from));
  for (size_t m = moves.size(); m-- > 0;) {
    if (auto next = layout_of(*moves[m], layout)) {
      layout = std::move(*next);
    } else {  // its copy is where the others begin
      from = moves[m]->results[0].id;
      layout = StridedLayout::dense(bound.type(from));
    }
  }
  if (layout.is_dense()) return std::nullopt;
  const int32_t root = builder_.value_of(from);
  const Storage storage = builder_.value(root).storage;
  if (storage != kernel_storage(builder_.value(root).type.dtype, device(), options()) || builder_.is_static(root))
    return std::nullopt;
  const TensorType type{{layout.extent()}, builder_.value(root).type.dtype};
  const int32_t v = builder_.new_value(type, type, storage, Source::kStep, bound.label(id));
  builder_.add_view(v, root, checked_mul(layout.offset, storage_element_bytes(storage, type.dtype)));
  return LowerCall::Strided{{v, false}, layout.strides};
}
Operand LowerCall::new_temporary(Storage storage, const std::vector<int64_t>& sizes,
                                 const std::optional<std::vector<int32_t>>& params) {
  const DType dtype = storage == Storage::kF16   ? DType::F16
                      : storage == Storage::kI32 ? DType::I32
                      : storage == Storage::kU32 ? DType::U32
                      : storage == Storage::kC64 ? DType::C64
                                                 : DType::F32;
  const TensorType type{Shape(std::span<const int64_t>(sizes)), dtype};
  const int32_t v = builder_.new_value(type, type, storage, params ? Source::kStatic : Source::kStep, "a temporary");
  if (params) builder_.make_static(v, *params);
  return {v, true};
}
Operand LowerCall::temporary(Storage storage, std::vector<int64_t> sizes) {
  return new_temporary(storage, sizes, is_static_ ? builder_.node_params() : std::nullopt);
}
Operand LowerCall::derived(int64_t i, Storage storage, std::vector<int64_t> sizes) {
  const auto* params = builder_.static_params(builder_.value_of(input_id(i)));
  return new_temporary(storage, sizes, params ? std::optional(*params) : std::nullopt);
}
Operand LowerCall::table(std::span<const uint32_t> words) { return builder_.add_table(words); }
int64_t LowerCall::bucket_axis(int64_t i) const {
  const Graph& graph = builder_.symbolic();
  const TensorType& type = graph.type(builder_.symbolic_node().inputs[static_cast<size_t>(i)]);
  for (int64_t axis = 0; axis < type.rank(); ++axis)
    if (follows(type.dim(axis), builder_.program().bucket, graph.symbols())) return axis;
  return -1;
}
Storage LowerCall::storage(Operand operand) const { return builder_.value(operand.value).storage; }
bool LowerCall::starts_at_multiple_of(Operand operand, int64_t bytes) const {
  return builder_.view_offset_bytes(operand.value) % bytes == 0;
}
bool LowerCall::same_root(Operand first, Operand second) const {
  return builder_.root_of(first.value) == builder_.root_of(second.value);
}
void LowerCall::emit(Dispatch dispatch, std::string_view name) { builder_.emit(std::move(dispatch), name, is_static_); }
void LowerCall::emit_derived(int64_t i, Dispatch dispatch, std::string_view name) {
  builder_.emit(std::move(dispatch), name, is_static_input(i));
}

}  // namespace rlx::webgpu
