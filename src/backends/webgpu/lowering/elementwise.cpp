// Element-wise ops and regions: straight-line WGSL is generated for each distinct chain, types and way of reading the
// operands; sizes are parameters, so that a kernel is compiled once for all shapes.
#include <algorithm>
#include <array>
#include <numeric>

#include "backends/webgpu/lowering/elementwise_text.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "rlx/ops.h"

namespace rlx::webgpu {

namespace {

// The node's chain: a region's own, or of one step.
std::optional<ChainText> text_of(const OpDef& op, const Attrs& attrs, std::span<const DType> inputs) {
  if (&op == &ops::elementwise_region) return chain_text(attrs.as<ops::ElementwiseRegionAttrs>().chain, inputs);
  if (&op == &ops::batch_elementwise_region)
    return chain_text(attrs.as<ops::BatchElementwiseRegionAttrs>().chain, inputs);
  return op_text(op, attrs, inputs);
}

// Which operand is doubled in height and width before the chain reads it; -1: none.
int64_t resized_input(const OpDef& op, const Attrs& attrs) {
  const auto input = [](const auto& a) { return a.prologue == ops::RegionPrologue::kNone ? -1 : a.prologue_input; };
  if (&op == &ops::elementwise_region) return input(attrs.as<ops::ElementwiseRegionAttrs>());
  if (&op == &ops::batch_elementwise_region) return input(attrs.as<ops::BatchElementwiseRegionAttrs>());
  return -1;
}

// The last two axes as pairs: [.., 2 h, 2 w] is [.., h, 2, w, 2], and what is doubled there [.., h, 1, w, 1].
std::vector<int64_t> in_pairs(const std::vector<int64_t>& sizes, size_t rank, bool doubled) {
  std::vector<int64_t> out(rank - sizes.size(), 1);
  out.insert(out.end(), sizes.begin(), sizes.end());
  const int64_t h = out[rank - 2], w = out[rank - 1];
  out.resize(rank - 2);
  for (const int64_t n : {h, w}) {
    const bool split = !doubled && n != 1;
    out.push_back(split ? n / 2 : n);
    out.push_back(split ? 2 : 1);
  }
  return out;
}

// From so many items (elements, or fours of them) on a thread computes several.
constexpr int64_t kManyItems = 1 << 20;

// How an operand is read for the elements of the result.
enum class Reads {
  kFull,     // element i for element i
  kScalar,   // the same for all
  kStrided,  // by strides over the merged axes
};

struct Access {
  Reads reads = Reads::kFull;
  std::vector<int64_t> strides;  // over the merged axes
  bool vector = false;           // four elements in one load
};

// The axes of the result with neighbours merged where every operand allows it.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<Access> operands;
};
Layout merge_axes(const std::vector<int64_t>& result, const std::vector<std::vector<int64_t>>& operands) {
  const size_t rank = result.size();
  std::vector<std::vector<int64_t>> strides(operands.size(), std::vector<int64_t>(rank, 0));
  for (size_t o = 0; o < operands.size(); ++o) {
    int64_t stride = 1;
    for (size_t k = operands[o].size(); k-- > 0;) {
      const size_t axis = rank - operands[o].size() + k;
      if (operands[o][k] != 1) strides[o][axis] = stride;
      stride *= operands[o][k];
    }
  }
  Layout layout;
  layout.operands.resize(operands.size());
  for (size_t axis = 0; axis < rank; ++axis) {
    if (result[axis] == 1) continue;
    bool merges = !layout.sizes.empty();
    for (size_t o = 0; o < operands.size() && merges; ++o)
      merges = layout.operands[o].strides.back() == strides[o][axis] * result[axis];
    if (!merges) {
      layout.sizes.push_back(result[axis]);
      for (size_t o = 0; o < operands.size(); ++o) layout.operands[o].strides.push_back(strides[o][axis]);
      continue;
    }
    layout.sizes.back() *= result[axis];
    for (size_t o = 0; o < operands.size(); ++o) layout.operands[o].strides.back() = strides[o][axis];
  }
  if (layout.sizes.empty()) {
    layout.sizes.push_back(1);
    for (Access& a : layout.operands) a.strides.push_back(0);
  }
  for (Access& a : layout.operands) {
    int64_t stride = 1;
    bool full = true, scalar = true;
    for (size_t k = layout.sizes.size(); k-- > 0;) {
      full &= a.strides[k] == stride || layout.sizes[k] == 1;
      scalar &= a.strides[k] == 0;
      stride *= layout.sizes[k];
    }
    a.reads = scalar ? Reads::kScalar : full ? Reads::kFull : Reads::kStrided;
  }
  return layout;
}

// The chain on some of the node's operands; the result's elements start at `first` of its value.
void emit_chain(LowerCall& call, std::span<const int64_t> inputs, std::vector<int64_t> result, int64_t first,
                bool active) {
  const size_t count = inputs.size();
  std::vector<DType> dtypes;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<Operand> operands;
  for (const int64_t i : inputs) {
    dtypes.push_back(call.input_type(i).dtype);
    sizes.push_back(call.input_type(i).shape.sizes());
    operands.push_back(call.read(i));
  }
  const auto text = text_of(call.op(), call.raw_attrs(), dtypes);
  const DType out_dtype = call.output_type(0).dtype;
  RLX_ASSERT(text.has_value() && text->result == out_dtype);
  const int64_t n = product(std::span<const int64_t>(result));
  if (const int64_t resized = resized_input(call.op(), call.raw_attrs()); resized >= 0) {
    const size_t rank = result.size();
    for (size_t i = 0; i < count; ++i) sizes[i] = in_pairs(sizes[i], rank, static_cast<int64_t>(i) == resized);
    result = in_pairs(result, rank, false);
  }
  Layout layout = merge_axes(result, sizes);
  operands.push_back(call.write(0));
  const size_t rank = layout.sizes.size();

  // Four elements per thread, where the innermost axis is made of fours. (A temporary's start is always aligned.)
  const bool by_four = layout.sizes.back() % 4 == 0 && first % 4 == 0 && !text->is_complex &&
                       call.starts_at_multiple_of(operands.back(), 16);
  for (size_t i = 0; i < count; ++i) {
    Access& a = layout.operands[i];
    a.vector =
        by_four && a.reads != Reads::kScalar && a.strides.back() == 1 && call.starts_at_multiple_of(operands[i], 16);
    for (size_t k = 0; k + 1 < rank; ++k) a.vector &= a.strides[k] % 4 == 0;
  }
  // Operands in one value's bytes may have to share a binding: they are read alike, then.
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (call.same_root(operands[i], operands[j]) && !layout.operands[j].vector) layout.operands[i].vector = false;
  const bool strided = std::any_of(layout.operands.begin(), layout.operands.end(),
                                   [](const Access& a) { return a.reads == Reads::kStrided; });

  ParamFields fields;
  fields.add("n", by_four ? n / 4 : n);
  if (strided)
    for (size_t k = 1; k < rank; ++k)
      fields.add(str("d", k), by_four && k + 1 == rank ? layout.sizes[k] / 4 : layout.sizes[k]);
  std::string declarations, loads;
  const std::string_view lanes[] = {"x", "y", "z", "w"};
  for (size_t i = 0; i < count; ++i) {
    const Access& a = layout.operands[i];
    const std::string_view element = call.element(operands[i]);
    const std::string type = a.vector ? str("vec4<", element, ">") : std::string(element);
    declarations += str("@group(0) @binding(", i, ") var<storage, read> x", i, ": array<", type, ">;\n");
    fields.add(str("x", i, "_base"), 0);
    std::string at = str("p.x", i, "_base");
    if (a.reads == Reads::kFull) {
      at += by_four && !a.vector ? " + i * 4u" : " + i";
    } else if (a.reads == Reads::kStrided) {
      for (size_t k = 0; k < rank; ++k) {
        if (a.strides[k] == 0) continue;
        const bool last = k + 1 == rank;
        // In units of what is loaded: a vector, or one element of the four that the last coordinate counts.
        const int64_t stride = a.vector          ? (last ? 1 : a.strides[k] / 4)
                               : last && by_four ? a.strides[k] * 4
                                                 : a.strides[k];
        fields.add(str("x", i, "_s", k), stride);
        at += str(" + c", k, " * p.x", i, "_s", k);
      }
    }
    loads += str("  let at", i, " = ", at, ";\n");
    const bool varies = a.reads == Reads::kFull || (a.reads == Reads::kStrided && a.strides.back() != 0);
    if (!by_four || !varies) {
      loads += str("  let v", i, " = x", i, "[at", i, "];\n");
    } else if (a.vector) {
      loads += str("  let q", i, " = x", i, "[at", i, "];\n");
    } else {
      const int64_t step = a.reads == Reads::kFull ? 1 : a.strides.back();
      fields.add(str("x", i, "_step"), step);
      loads += str("  let q", i, " = vec4<", element, ">(");
      for (int lane = 0; lane < 4; ++lane)
        loads += str(lane ? ", " : "", "x", i, "[at", i, " + ", lane, "u * p.x", i, "_step]");
      loads += ");\n";
    }
  }
  const std::string_view out_element = call.element(operands.back());
  declarations += str("@group(0) @binding(", count, ") var<storage, read_write> y: array<",
                      by_four ? str("vec4<", out_element, ">") : std::string(out_element), ">;\n");
  fields.add("y_base", 0);
  std::string y_at = "p.y_base + i";
  if (first != 0) {
    fields.add("y_first", by_four ? first / 4 : first);
    y_at += " + p.y_first";
  }
  declarations += str("@group(0) @binding(", count + 1, ") var<uniform> p: Params;\n");

  std::string arguments;
  for (size_t i = 0; i < count; ++i) arguments += str(i ? ", " : "", "i", i, ": ", register_type(dtypes[i]));
  const auto apply = [&](int lane) {
    std::string list;
    for (size_t i = 0; i < count; ++i) {
      const Access& a = layout.operands[i];
      const bool varies = a.reads == Reads::kFull || (a.reads == Reads::kStrided && a.strides.back() != 0);
      const std::string x = lane >= 0 && varies ? str("q", i, ".", lanes[lane]) : str("v", i);
      list += str(i ? ", " : "", load_text(x, dtypes[i]));
    }
    return store_text(str("chain(", list, ")"), out_dtype, out_element);
  };
  std::string source = str(kScalarIncludes, "struct Params {\n", fields.text, "}\n", declarations);
  source += str("fn chain(", arguments, ") -> ", register_type(out_dtype), " {\n", text->body, "}\n");
  const std::string out_type = by_four ? str("vec4<", out_element, ">") : std::string(out_element);
  source += str("fn value(i: u32) -> ", out_type, " {\n");
  if (strided) {
    source += "  var r = i;\n";
    for (size_t k = rank; k-- > 1;) source += str("  let c", k, " = r % p.d", k, ";\n  r = r / p.d", k, ";\n");
    source += "  let c0 = r;\n";
  }
  source += loads;
  if (by_four)
    source += str("  return ", out_type, "(", apply(0), ", ", apply(1), ", ", apply(2), ", ", apply(3), ");\n}\n");
  else
    source += str("  return ", apply(-1), ";\n}\n");

  const int64_t items = by_four ? n / 4 : n;
  // Large tensors: several elements per thread, all of them loaded before the first is stored, so that more loads are
  // under way. (The compiler cannot reorder them by itself: the buffers may be the same.)
  const int64_t per_thread = items >= kManyItems ? 4 : 1;
  source += R"(
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
)";
  source += str("  let i = (group.x + group.y * groups.x) * ", per_thread * 256, "u + lane;\n");
  source += "  if (i >= p.n) { return; }\n";
  for (int64_t k = 0; k < per_thread; ++k)
    source +=
        str("  let e", k, " = value(", k == 0 ? std::string("i") : str("min(i + ", k * 256, "u, p.n - 1u)"), ");\n");
  for (int64_t k = 0; k < per_thread; ++k)
    source += k == 0 ? str("  y[", y_at, "] = e0;\n")
                     : str("  if (i + ", k * 256, "u < p.n) { y[", y_at, " + ", k * 256, "u] = e", k, "; }\n");
  source += "}\n";
  call.emit(
      {.kernel = {.kernel = std::string(call.op().name), .source = std::make_shared<std::string>(std::move(source))},
       .operands = std::move(operands),
       .params = {std::move(fields.words), active ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}},
       .grid = {.x = {.items = items, .per_group = 256 * per_thread, .active = active}},
       .extent_safe = active,
       .in_place = true});
}

}  // namespace

bool elementwise_supports(const LowerSignature& s, const Device& device) {
  const bool batch = &s.op == &ops::batch_elementwise_region;
  if (!batch && s.inputs.size() + 1 > device.limits().storage_bindings) return false;
  std::vector<DType> dtypes;
  for (const TensorType& t : s.inputs) dtypes.push_back(t.dtype);
  if (batch) dtypes.resize(1);
  return text_of(s.op, s.attrs, dtypes).has_value();
}

void lower_elementwise(LowerCall& call) {
  std::vector<int64_t> inputs(static_cast<size_t>(call.num_inputs()));
  std::iota(inputs.begin(), inputs.end(), 0);
  emit_chain(call, inputs, call.output_type(0).shape.sizes(), 0, call.op().traits.extent != ExtentRule::kNever);
}

// Slices one after the other, each from its own operand.
void lower_batch_region(LowerCall& call) {
  std::vector<int64_t> result = call.output_type(0).shape.sizes();
  result[0] = 1;
  const int64_t slice = product(std::span<const int64_t>(result));
  for (int64_t i = 0; i < call.num_inputs(); ++i) emit_chain(call, std::array{i}, result, i * slice, false);
}

}  // namespace rlx::webgpu
