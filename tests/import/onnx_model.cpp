#include "import/onnx_model.h"

#include "import/onnx/protobuf.h"  // before the writer: protozero's assertions are the same everywhere
//
#include <protozero/pbf_writer.hpp>

namespace rlx::test {

using protozero::pbf_writer;
using Type = onnx::AttributeProto::Type;

Message& Message::text(uint32_t tag, std::string_view value) {
  pbf_writer(bytes_).add_bytes(tag, value.data(), value.size());
  return *this;
}
Message& Message::texts(uint32_t tag, const std::vector<std::string>& values) {
  for (const std::string& v : values) text(tag, v);
  return *this;
}
Message& Message::number(uint32_t tag, int64_t value) {
  pbf_writer(bytes_).add_int64(tag, value);
  return *this;
}
Message& Message::real(uint32_t tag, float value) {
  pbf_writer(bytes_).add_float(tag, value);
  return *this;
}
Message& Message::numbers(uint32_t tag, const std::vector<int64_t>& values) {
  pbf_writer(bytes_).add_packed_int64(tag, values.begin(), values.end());
  return *this;
}
Message& Message::reals(uint32_t tag, const std::vector<float>& values) {
  pbf_writer(bytes_).add_packed_float(tag, values.begin(), values.end());
  return *this;
}

// ---- types

std::string tensor_type(ElemType elem, const std::vector<Size>& shape) {
  Message dims;
  for (const Size& s : shape) {
    Message dim;
    if (s.param.empty())
      dim.number(1, s.value);
    else
      dim.text(2, s.param);
    dims.text(1, dim.bytes());
  }
  const Message tensor = Message().number(1, static_cast<int32_t>(elem)).text(2, dims.bytes());
  return Message().text(1, tensor.bytes());
}
std::string any_rank(ElemType elem) {
  return Message().text(1, Message().number(1, static_cast<int32_t>(elem)).bytes());
}
std::string sequence_type(const std::string& element) { return Message().text(4, Message().text(1, element).bytes()); }
std::string optional_type(const std::string& element) { return Message().text(9, Message().text(1, element).bytes()); }
std::string value_info(std::string_view name, const std::string& type) { return Message().text(1, name).text(2, type); }

// ---- tensors

static Message tensor_head(std::string_view name, ElemType elem, const std::vector<int64_t>& dims) {
  Message m;
  m.numbers(1, dims).number(2, static_cast<int32_t>(elem));
  if (!name.empty()) m.text(8, name);
  return m;
}
std::string raw_tensor(std::string_view name, ElemType elem, const std::vector<int64_t>& dims, std::string_view raw) {
  return tensor_head(name, elem, dims).text(9, raw);
}
std::string floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return raw_tensor(name, ElemType::kFloat, dims, bytes_of(values));
}
std::string ints(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return raw_tensor(name, ElemType::kInt64, dims, bytes_of(values));
}
std::string boolean(std::string_view name, bool value) {
  return raw_tensor(name, ElemType::kBool, {}, std::string(1, value ? '\1' : '\0'));
}
std::string external_tensor(std::string_view name, ElemType elem, const std::vector<int64_t>& dims,
                            std::string_view location,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  Message m = tensor_head(name, elem, dims);
  m.text(13, Message().text(1, "location").text(2, location).bytes());
  for (const auto& [key, value] : entries) m.text(13, Message().text(1, key).text(2, value).bytes());
  return m.number(14, 1);
}

// ---- attributes

static Message attribute(std::string_view name, Type type) {
  Message m;
  m.text(1, name).number(20, static_cast<int32_t>(type));
  return m;
}
std::string attr(std::string_view name, int64_t value) { return attribute(name, Type::kInt).number(3, value); }
std::string attr(std::string_view name, float value) { return attribute(name, Type::kFloat).real(2, value); }
std::string attr(std::string_view name, const char* value) { return attribute(name, Type::kString).text(4, value); }
std::string attr(std::string_view name, const std::vector<int64_t>& values) {
  return attribute(name, Type::kInts).numbers(8, values);
}
std::string graph_attr(std::string_view name, const std::string& graph) {
  return attribute(name, Type::kGraph).text(6, graph);
}
std::string tensor_attr(std::string_view name, const std::string& tensor) {
  return attribute(name, Type::kTensor).text(5, tensor);
}
std::string ref_attr(std::string_view name, std::string_view of, Type type) {
  return attribute(name, type).text(21, of);
}

// ---- graphs

NodeText::operator std::string() const {
  Message m;
  m.texts(1, inputs).texts(2, outputs);
  if (!name.empty()) m.text(3, name);
  m.text(4, op).texts(5, attributes);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

GraphText::operator std::string() const {
  return Message()
      .texts(1, nodes)
      .text(2, "g")
      .texts(5, initializers)
      .texts(11, inputs)
      .texts(12, outputs)
      .texts(13, value_infos);
}

static void add_opsets(Message& m, uint32_t tag, const std::vector<std::pair<std::string, int64_t>>& opsets) {
  for (const auto& [domain, version] : opsets) m.text(tag, Message().text(1, domain).number(2, version).bytes());
}

FunctionText::operator std::string() const {
  Message m;
  m.text(1, name).texts(4, inputs).texts(5, outputs).texts(6, attributes).texts(7, nodes);
  add_opsets(m, 9, opsets);
  return m.text(10, domain).texts(11, defaults);
}

ModelText::operator std::string() const {
  Message m;
  m.number(1, 10).text(7, std::string(graph));
  add_opsets(m, 8, opsets);
  return m.texts(25, functions);
}

ModelText model_of(const NodeText& node, const std::vector<std::string>& initializers, ElemType result) {
  ModelText m;
  m.graph.node(node).output("y", any_rank(result));
  m.graph.initializers = initializers;
  return m;
}

}  // namespace rlx::test
