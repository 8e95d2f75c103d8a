#include "import/onnx/node.h"

#include "core/aligned.h"

namespace rlx::onnx {

using Type = AttributeProto::Type;

constexpr size_t kMaxCopiedBytes = 1 << 16;

std::string OnnxNode::label() const {
  std::string text = "node ";
  if (!proto_.name.empty()) text += str("'", proto_.name, "' ");
  text += str("(", proto_.domain.empty() ? "" : str(proto_.domain, "."), proto_.op_type, ", opset ", opset_, ")");
  return text;
}

bool OnnxNode::has(int64_t i) const {
  return i < num_inputs() && inputs_[static_cast<size_t>(i)].kind != Item::Kind::kAbsent;
}

bool OnnxNode::wants(int64_t i) const { return i < num_outputs() && !proto_.outputs[static_cast<size_t>(i)].empty(); }

const Item& OnnxNode::item(int64_t i) const {
  require(has(i), "Input ", i, " is not given.");
  return inputs_[static_cast<size_t>(i)];
}

Value OnnxNode::input(int64_t i) {
  const Item& it = item(i);
  require(it.kind == Item::Kind::kTensor, "Input ", i, " is not a tensor of numbers.");
  return importer_.value(it);
}

Values OnnxNode::inputs_from(int64_t first) {
  Values values;
  for (int64_t i = first; i < num_inputs(); ++i) values.push_back(input(i));
  return values;
}

std::vector<int64_t> OnnxNode::ints(int64_t i) {
  const std::vector<Dim> sizes = dims(i);
  std::vector<int64_t> values;
  for (const Dim& d : sizes) {
    require(d.is_static(), "Input ", i, " depends on a size (", d, ") that is not known yet.");
    values.push_back(d.value());
  }
  return values;
}

int64_t OnnxNode::int_value(int64_t i) {
  const std::vector<int64_t> values = ints(i);
  require(values.size() == 1, "Input ", i, " has ", values.size(), " elements; one is expected.");
  return values[0];
}

double OnnxNode::float_value(int64_t i) {
  const Tensor t = known(i);
  require(t.num_elements() == 1, "Input ", i, " has ", t.num_elements(), " elements; one is expected.");
  return t.at(0);
}

const AttributeProto* OnnxNode::find_attr(std::string_view name) const {
  for (const AttributeProto& a : proto_.attributes) {
    if (a.name != name) continue;
    if (a.ref_name.empty()) return &a;
    if (frame_.function_attributes)
      for (const AttributeProto& given : *frame_.function_attributes)
        if (given.name == a.ref_name) return &given;
    return nullptr;
  }
  return nullptr;
}

const AttributeProto* OnnxNode::typed_attr(std::string_view name, Type type) const {
  const AttributeProto* a = find_attr(name);
  // Files of the first ONNX versions leave the type out.
  require(!a || a->type == type || a->type == Type::kUndefined, "Attribute '", name,
          "' has another type than expected.");
  return a;
}

int64_t OnnxNode::attr(std::string_view name, int64_t otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kInt);
  return a ? a->i : otherwise;
}
float OnnxNode::attr(std::string_view name, float otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kFloat);
  return a ? a->f : otherwise;
}
std::string OnnxNode::attr(std::string_view name, const char* otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kString);
  return std::string(a ? a->s : otherwise);
}
std::vector<int64_t> OnnxNode::attr(std::string_view name, std::vector<int64_t> otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kInts);
  return a ? a->ints : otherwise;
}
std::vector<float> OnnxNode::attr(std::string_view name, std::vector<float> otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kFloats);
  return a ? a->floats : otherwise;
}
std::vector<std::string> OnnxNode::attr(std::string_view name, std::vector<std::string> otherwise) const {
  const AttributeProto* a = typed_attr(name, Type::kStrings);
  return a ? std::vector<std::string>(a->strings.begin(), a->strings.end()) : otherwise;
}

int64_t OnnxNode::required_int(std::string_view name) const {
  require(has_attr(name), "Attribute '", name, "' is missing.");
  return attr(name, 0);
}
std::vector<int64_t> OnnxNode::required_ints(std::string_view name) const {
  require(has_attr(name), "Attribute '", name, "' is missing.");
  return attr(name, std::vector<int64_t>());
}

HostValue OnnxNode::tensor_attr(std::string_view name) const {
  const AttributeProto* a = typed_attr(name, Type::kTensor);
  require(a && !a->tensors.empty(), "Attribute '", name, "' is missing, or not a tensor.");
  HostValue value = importer_.model().tensors.value(a->tensors[0]);
  // Builders read its elements. Large ones are weights in a Constant, which stay where they are.
  if (value.tensor.bytes().size() <= kMaxCopiedBytes) value.tensor = aligned(value.tensor);
  return value;
}

const GraphProto& OnnxNode::graph_attr(std::string_view name) const {
  const AttributeProto* a = typed_attr(name, Type::kGraph);
  require(a && !a->graphs.empty(), "Attribute '", name, "' is missing, or not a graph.");
  return *a->graphs[0];
}

Value OnnxNode::scalar(double value, DType dtype) {
  const double values[] = {value};
  return constant(Tensor::from_doubles(dtype, {}, values));
}

Value OnnxNode::ints_constant(std::span<const int64_t> values) {
  return constant(Tensor::i64({static_cast<int64_t>(values.size())}, {values.begin(), values.end()}));
}

void OnnxNode::unsupported(std::string_view why) const { fail(ErrorKind::kUnsupported, std::string(why)); }

std::vector<Item> Built::items(Importer& importer) const {
  if (values_.empty()) return items_;
  std::vector<Item> items;
  for (const Value& v : values_) items.push_back(importer.item(v));
  return items;
}

}  // namespace rlx::onnx
