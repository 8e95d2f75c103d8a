// Writes ONNX files for tests: every part is a string of protobuf bytes, so that a test can also make wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx/proto.h"

namespace rlx::test {

using onnx::ElemType;
using Names = std::vector<std::string>;

// One protobuf message, field by field.
class Message {
 public:
  Message& text(uint32_t tag, std::string_view value);  // strings, bytes and messages
  Message& texts(uint32_t tag, const std::vector<std::string>& values);
  Message& number(uint32_t tag, int64_t value);
  Message& real(uint32_t tag, float value);
  Message& numbers(uint32_t tag, const std::vector<int64_t>& values);  // packed
  Message& reals(uint32_t tag, const std::vector<float>& values);
  const std::string& bytes() const { return bytes_; }
  operator std::string() const { return bytes_; }

 private:
  std::string bytes_;
};

// A size of a declared shape: a number, or a name.
struct Size {
  Size(int64_t n) : value(n) {}
  Size(int n) : value(n) {}
  Size(const char* name) : param(name) {}
  int64_t value = 0;
  std::string param;
};

// Types.
std::string tensor_type(ElemType elem, const std::vector<Size>& shape);
std::string any_rank(ElemType elem);
std::string sequence_type(const std::string& element);
std::string optional_type(const std::string& element);
inline std::string floats_type(const std::vector<Size>& shape) { return tensor_type(ElemType::kFloat, shape); }
inline std::string ints_type(const std::vector<Size>& shape) { return tensor_type(ElemType::kInt64, shape); }
std::string value_info(std::string_view name, const std::string& type);

// Tensors. `raw` has its elements in raw_data.
std::string raw_tensor(std::string_view name, ElemType elem, const std::vector<int64_t>& dims, std::string_view raw);
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::string floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values);
std::string ints(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values);
std::string boolean(std::string_view name, bool value);  // a scalar
// Elements in the file `location`; entries such as {"offset", "8"} follow.
std::string external_tensor(std::string_view name, ElemType elem, const std::vector<int64_t>& dims,
                            std::string_view location,
                            const std::vector<std::pair<std::string, std::string>>& entries = {});

// Attributes.
std::string attr(std::string_view name, int64_t value);
inline std::string attr(std::string_view name, int value) { return attr(name, int64_t{value}); }
std::string attr(std::string_view name, float value);
std::string attr(std::string_view name, const char* value);
std::string attr(std::string_view name, const std::vector<int64_t>& values);
std::string graph_attr(std::string_view name, const std::string& graph);
std::string tensor_attr(std::string_view name, const std::string& tensor);
// The value is the calling node's attribute `of`.
std::string ref_attr(std::string_view name, std::string_view of, onnx::AttributeProto::Type type);

struct NodeText {
  std::string op;
  Names inputs, outputs;
  std::vector<std::string> attributes = {};
  std::string name = "";
  std::string domain = "";
  operator std::string() const;
};

struct GraphText {
  std::vector<std::string> nodes, initializers, inputs, outputs, value_infos;

  GraphText& node(const NodeText& n) { return nodes.push_back(n), *this; }
  GraphText& initializer(const std::string& tensor) { return initializers.push_back(tensor), *this; }
  GraphText& input(std::string_view name, const std::string& type) {
    return inputs.push_back(value_info(name, type)), *this;
  }
  GraphText& output(std::string_view name, const std::string& type) {
    return outputs.push_back(value_info(name, type)), *this;
  }
  operator std::string() const;
};

struct FunctionText {
  std::string name;
  Names inputs, outputs;
  std::vector<std::string> nodes;
  Names attributes = {};                   // without a default
  std::vector<std::string> defaults = {};  // attributes with one
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 21}, {"local", 1}};
  std::string domain = "local";
  operator std::string() const;
};

struct ModelText {
  GraphText graph;
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 21}, {"local", 1}};
  std::vector<std::string> functions = {};
  operator std::string() const;
};

// A model of one node whose inputs are initializers; its one output is y.
ModelText model_of(const NodeText& node, const std::vector<std::string>& initializers,
                   ElemType result = ElemType::kFloat);

}  // namespace rlx::test
