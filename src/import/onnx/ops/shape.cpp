// Constants, and ops that move or count elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

Built constant(OnnxNode& n) {
  using Type = AttributeProto::Type;
  if (n.has_attr("value")) return n.importer().item(n.tensor_attr("value"));
  if (n.has_attr("value_float")) return n.scalar(n.attr("value_float", 0.0f), DType::F32);
  if (n.has_attr("value_int")) return n.constant(Tensor::i64({}, {n.attr("value_int", 0)}));
  if (n.has_attr("value_ints")) return n.ints_constant(n.required_ints("value_ints"));
  if (n.has_attr("value_floats")) {
    const std::vector<float> values = n.attr("value_floats", std::vector<float>());
    return n.constant(Tensor::f32({static_cast<int64_t>(values.size())}, values));
  }
  if (const AttributeProto* a = n.find_attr("value_string"); a && a->type == Type::kString)
    return n.importer().item(HostValue(Strings{{}, {std::string(a->s)}}));
  if (n.has_attr("value_strings")) {
    std::vector<std::string> values = n.attr("value_strings", std::vector<std::string>());
    return n.importer().item(HostValue(Strings{{static_cast<int64_t>(values.size())}, std::move(values)}));
  }
  n.unsupported("It has no value of a kind that rlx reads (sparse tensors are not supported).");
}

Built constant_of_shape(OnnxNode& n) {
  HostValue value(ElemType::kFloat, Tensor::f32({1}, {0}));
  if (n.has_attr("value")) value = n.tensor_attr("value");
  require(value.kind == HostValue::Kind::kTensor && value.tensor.num_elements() == 1,
          "Attribute 'value' is not a tensor of one element.");
  const std::vector<Dim> shape = n.dims(0);
  for (const Dim& d : shape) require(!d.is_static() || d.value() >= 0, "The shape ", shape, " has a negative size.");
  const Value one = n.constant(value.tensor.reshaped({}));
  return n.result(expand_to(one, Shape(shape)), value.elem);
}

Built identity(OnnxNode& n) { return n.num_inputs() == 1 && !n.has(0) ? Item() : n.item(0); }  // an empty optional too

Built shape(OnnxNode& n) {
  const std::vector<Dim>& all = n.input(0).shape().dims();
  const int64_t rank = static_cast<int64_t>(all.size());
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = clamp(n.attr("start", 0)), end = clamp(n.attr("end", rank));
  std::vector<Dim> dims;
  for (int64_t i = start; i < end; ++i) dims.push_back(all[static_cast<size_t>(i)]);
  return sizes_as_tensor(n, dims);
}

Built size(OnnxNode& n) {
  const Dim count = n.symbols().product(n.input(0).shape().dims());
  return reshape_to(sizes_as_tensor(n, {count}), {});
}

Built reshape(OnnxNode& n) {
  const Value x = n.input(0);
  std::vector<Dim> shape;
  if (n.opset() < 5) {
    for (const int64_t d : n.required_ints("shape")) shape.emplace_back(d);
  } else {
    shape = n.dims(1);
  }
  if (!n.attr("allowzero", false))
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i].is(0)) {
        require(static_cast<int64_t>(i) < x.shape().rank(), "Size 0 at axis ", i, " of ", shape,
                " copies an axis that the operand (", x.type(), ") does not have.");
        shape[i] = x.shape()[static_cast<int64_t>(i)];
      }
  return n.like(reshape_to(x, std::move(shape)), 0);
}

Built flatten(OnnxNode& n) { return n.like(as_matrix(n.graph(), n.input(0), n.attr("axis", 1)), 0); }

Built transpose(OnnxNode& n) {
  const Value x = n.input(0);
  std::vector<int64_t> perm(static_cast<size_t>(x.shape().rank()));
  std::iota(perm.rbegin(), perm.rend(), 0);
  return n.like(ops::transpose(x, {.perm = n.attr("perm", perm)}), 0);
}

Built concat(OnnxNode& n) {
  const Values parts = n.inputs_from(0);
  return n.like(parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = n.attr("axis", 1)}), 0);
}

// Axes are an attribute before opset 13, then an input.
Built squeeze_op(OnnxNode& n) {
  const Value x = n.input(0);
  std::vector<int64_t> axes = n.attr("axes", std::vector<int64_t>());
  if (n.has(1)) axes = n.ints(1);
  if (!n.has(1) && !n.has_attr("axes"))
    for (int64_t i = 0; i < x.shape().rank(); ++i) {
      if (x.shape()[i].value() == 1) axes.push_back(i);
    }
  return n.like(squeeze(x, axes), 0);
}

Built unsqueeze_op(OnnxNode& n) {
  const Value x = n.input(0);
  return n.like(unsqueeze(x, n.opset() < 13 ? n.required_ints("axes") : n.ints(1)), 0);
}

Built expand(OnnxNode& n) {
  const Value x = n.input(0);
  const Shape target(n.dims(1));
  return n.like(expand_to(x, broadcast_shapes(x.shape(), target, n.symbols())), 0);
}

Built gather(OnnxNode& n) {
  const Value x = n.input(0);
  Value indices = n.input(1);
  if (!is_index(indices.dtype())) indices = cast_to(indices, DType::I64);
  return n.like(ops::gather(x, indices, {.axis = n.attr("axis", 0)}), 0);
}

// One axis of a slice. `start` and `end` are as ONNX has them: negative ones count from the end, and what lies outside
// is cut off: backwards, a start before the first element is the first (not as in NumPy).
Value slice_axis(OnnxNode& n, const Value& x, int64_t axis, const Dim& start, const Dim& end, int64_t step) {
  const Dim& size = x.shape()[axis];
  SymbolTable& symbols = n.symbols();
  constexpr int64_t kFar = std::numeric_limits<int32_t>::max();  // exporters write this, or more, for "to the end"
  if (start.is_static() && end.is_static() && size.is_static()) {
    const int64_t d = size.value();
    if (d == 0) return x;
    const int64_t high = step > 0 ? d : d - 1;
    const auto bound = [&](int64_t i, int64_t low) { return std::clamp(i < 0 ? checked_add(i, d) : i, low, high); };
    const int64_t first = bound(start.value(), 0);
    // From the end backwards, "before the first element" can only be written as something less than -d.
    const int64_t last = bound(end.value(), step > 0 ? 0 : -1);
    if (step == 1) {
      const int64_t count = std::max<int64_t>(last - first, 0);
      return count == d ? x : ops::narrow(x, {.axis = axis, .start = std::min(first, d), .len = count});
    }
    const int64_t span = step > 0 ? last - first : first - last;
    const int64_t stride = std::abs(std::clamp(step, -d, d));  // a longer one takes one element as well
    const int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (count == 0) return ops::narrow(x, {.axis = axis, .start = 0, .len = 0});
    ops::SliceAttrs attrs;
    attrs.start.assign(static_cast<size_t>(x.shape().rank()), 0);
    attrs.step.assign(static_cast<size_t>(x.shape().rank()), 1);
    attrs.len = x.shape().dims();
    attrs.start[static_cast<size_t>(axis)] = first;
    attrs.step[static_cast<size_t>(axis)] = count == 1 ? 1 : step;
    attrs.len[static_cast<size_t>(axis)] = count;
    return ops::slice(x, attrs);
  }
  require(step == 1, "A slice with step ", step, " of a size that is not known (", size, ") is not possible.");
  const auto resolve = [&](const Dim& i) {
    if (!i.is_static()) return i;
    if (i.value() < 0) return symbols.add(size, i);
    if (i.value() >= kFar) return size;
    require(i.is(0), "A slice that begins or ends at ", i, " of a size that is not known (", size,
            ") is not possible.");
    return i;
  };
  // A bound within the axis: a begin at 3 of ?n needs no knowledge of n to be described, only to be valid.
  const Dim first = start.is_static() && start.value() >= 0 && start.value() < kFar ? start : resolve(start);
  const Dim last =
      size.is_static() && end.is_static() && end.value() >= 0 ? Dim(std::min(end.value(), size.value())) : resolve(end);
  if (first.is(0) && last == size) return x;
  const Dim count = symbols.sub(last, first);
  return ops::narrow(x, {.axis = axis, .start = first, .len = count});
}

Built slice(OnnxNode& n) {
  Value x = n.input(0);
  std::vector<Dim> starts, ends;
  std::vector<int64_t> axes, steps;
  if (n.opset() < 10) {
    for (const int64_t i : n.required_ints("starts")) starts.emplace_back(i);
    for (const int64_t i : n.required_ints("ends")) ends.emplace_back(i);
    axes = n.attr("axes", std::vector<int64_t>());
  } else {
    starts = n.dims(1);
    ends = n.dims(2);
    if (n.has(3)) axes = n.ints(3);
    if (n.has(4)) steps = n.ints(4);
  }
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  steps.resize(axes.size(), 1);
  require(starts.size() == ends.size() && starts.size() == axes.size(), "The numbers of starts (", starts.size(),
          "), ends (", ends.size(), ") and axes (", axes.size(), ") differ.");
  for (size_t i = 0; i < axes.size(); ++i) {
    require(steps[i] != 0, "A step is 0.");
    x = slice_axis(n, x, normalize_axis(axes[i], x.shape().rank()), starts[i], ends[i], steps[i]);
  }
  return n.like(x, 0);
}

Built split(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t axis = normalize_axis(n.attr("axis", 0), x.shape().rank());
  std::vector<int64_t> parts = n.attr("split", std::vector<int64_t>());
  if (n.has(1)) parts = n.ints(1);
  if (parts.empty()) {
    const int64_t count = n.attr("num_outputs", n.num_outputs());
    const int64_t size = x.shape()[axis].value();
    require(count > 0 && count <= 1 << 16, "The number of outputs is ", count, ".");
    const int64_t each = size / count + (size % count != 0);  // the last part may be smaller
    for (int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  std::vector<Item> results;
  int64_t start = 0;
  for (const int64_t len : parts) {
    results.push_back(n.like(ops::narrow(x, {.axis = axis, .start = start, .len = len}), 0));
    start = checked_add(start, len);
  }
  require(x.shape()[axis].is(start), "The parts ", parts, " do not add up to the size (", x.shape()[axis], ") of axis ",
          axis, ".");
  return results;
}

Built tile(OnnxNode& n) {
  const Value x = n.input(0);
  const std::vector<Dim> repeats = n.dims(1);
  const int64_t rank = x.shape().rank();
  require(static_cast<int64_t>(repeats.size()) == rank, "There are ", repeats.size(), " repeats for rank ", rank, ".");
  std::vector<Dim> apart, repeated, joined;
  for (int64_t i = 0; i < rank; ++i) {
    const Dim& r = repeats[static_cast<size_t>(i)];
    apart.insert(apart.end(), {Dim(1), x.shape()[i]});
    repeated.insert(repeated.end(), {r, x.shape()[i]});
    joined.push_back(n.symbols().mul(r, x.shape()[i]));
  }
  return n.like(reshape_to(expand_to(reshape_to(x, apart), Shape(repeated)), joined), 0);
}

Built range(OnnxNode& n) {
  const DType dtype = n.input(0).dtype();
  if (is_int(dtype)) {
    const auto start = n.importer().try_dims(n.input(0).id()), limit = n.importer().try_dims(n.input(1).id()),
               delta = n.importer().try_dims(n.input(2).id());
    for (const auto* given : {&start, &limit, &delta})
      if (*given) require((*given)->size() == 1, "An operand has ", (*given)->size(), " elements; one is expected.");
    if (start && limit && delta && delta->at(0).is(1) && !(start->at(0).is_static() && limit->at(0).is_static())) {
      const Value steps = count_up(n, n.symbols().sub(limit->at(0), start->at(0)));
      return cast_to(steps, dtype) + reshape_to(cast_to(sizes_as_tensor(n, *start), dtype), {});
    }
  }
  const Tensor start = n.known(0), limit = n.known(1), delta = n.known(2);
  const double first = start.at(0), step = delta.at(0);
  require(step != 0, "The step of a range is 0.");
  const double count = std::max(0.0, std::ceil((limit.at(0) - first) / step));
  require(count < 1 << 26, "A range of ", count, " elements is too long.");
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i) * step;
  return n.constant(Tensor::from_doubles(dtype, {static_cast<int64_t>(values.size())}, values));
}

}  // namespace

Value sizes_as_tensor(OnnxNode& n, const std::vector<Dim>& dims) {
  if (std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_static(); })) {
    std::vector<int64_t> sizes;
    for (const Dim& d : dims) sizes.push_back(d.value());
    return n.ints_constant(sizes);
  }
  Values parts;
  for (const Dim& d : dims) {
    if (d.is_static()) {
      parts.push_back(n.constant(Tensor::i64({1}, {d.value()})));
    } else {
      parts.push_back(reshape_to(cast_to(n.graph().dim_value(d), DType::I64), {1}));
    }
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = 0});
}

Rows shape_rows() {
  return {
      {"Concat", 1, concat},
      {"Constant", 1, constant},
      {"ConstantOfShape", 9, constant_of_shape},
      {"Expand", 8, expand},
      {"Flatten", 1, flatten},
      {"Gather", 1, gather},
      {"Identity", 1, identity},
      {"Range", 11, range},
      {"Reshape", 1, reshape},
      {"Shape", 1, shape},
      {"Size", 1, size},
      {"Slice", 1, slice},
      {"Split", 1, split},
      {"Squeeze", 1, squeeze_op},
      {"Tile", 6, tile},
      {"Transpose", 1, transpose},
      {"Unsqueeze", 1, unsqueeze_op},
  };
}

}  // namespace rlx::onnx
