// What a builder of an ONNX op sees, and the tables of builders.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/elem_type.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

class OnnxNode {
 public:
  OnnxNode(Importer& importer, const NodeProto& proto, const Frame& frame, std::vector<Item> inputs, int64_t opset)
      : importer_(importer), proto_(proto), frame_(frame), inputs_(std::move(inputs)), opset_(opset) {}

  std::string_view op_type() const { return proto_.op_type; }
  std::string label() const;  // "node 'attn/probs' (Softmax, opset 13)"
  int64_t opset() const { return opset_; }
  Importer& importer() { return importer_; }
  Graph& graph() { return importer_.graph(); }
  SymbolTable& symbols() { return importer_.graph().symbols(); }
  const Frame& frame() const { return frame_; }

  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(proto_.outputs.size()); }
  bool has(int64_t i) const;    // is input i given?
  bool wants(int64_t i) const;  // has output i a name?

  const Item& item(int64_t i) const;  // throws when not given
  Value input(int64_t i);             // a tensor of the graph; throws when not given or not a tensor
  ElemType elem(int64_t i) const { return item(i).elem; }
  // Inputs from `first` on, all tensors.
  Values inputs_from(int64_t first);

  // Values that decide what is built; see importer.h.
  Tensor known(int64_t i) { return importer_.known(input(i).id()); }
  std::vector<Dim> dims(int64_t i) { return importer_.dims(input(i).id()); }
  std::vector<int64_t> ints(int64_t i);  // a list or a scalar, as a list
  int64_t int_value(int64_t i);          // of one element
  double float_value(int64_t i);

  bool has_attr(std::string_view name) const { return find_attr(name) != nullptr; }
  int64_t attr(std::string_view name, int64_t otherwise) const;
  int64_t attr(std::string_view name, int otherwise) const { return attr(name, static_cast<int64_t>(otherwise)); }
  bool attr(std::string_view name, bool otherwise) const { return attr(name, int64_t{otherwise}) != 0; }
  float attr(std::string_view name, float otherwise) const;
  std::string attr(std::string_view name, const char* otherwise) const;
  std::vector<int64_t> attr(std::string_view name, std::vector<int64_t> otherwise) const;
  std::vector<float> attr(std::string_view name, std::vector<float> otherwise) const;
  std::vector<std::string> attr(std::string_view name, std::vector<std::string> otherwise) const;
  int64_t required_int(std::string_view name) const;
  std::vector<int64_t> required_ints(std::string_view name) const;
  HostValue tensor_attr(std::string_view name) const;  // throws when it is not there
  const GraphProto& graph_attr(std::string_view name) const;
  // A value that an attribute names (Gradient).
  Item named(std::string_view name) const { return importer_.lookup(name, frame_); }
  const AttributeProto* find_attr(std::string_view name) const;  // function arguments resolved; null: not given

  // Values of the graph that many builders need.
  Value constant(const Tensor& value) { return importer_.constant(value); }
  Value scalar(double value, DType dtype);
  Value ints_constant(std::span<const int64_t> values);  // I64 [n]
  Item result(const Value& value, ElemType elem = ElemType::kUndefined) { return importer_.item(value, elem); }
  // The value with input i's element type, for ops that only move elements.
  Item like(const Value& value, int64_t i) { return importer_.item(value, elem(i)); }

  [[noreturn]] void unsupported(std::string_view why) const;

 private:
  const AttributeProto* typed_attr(std::string_view name, AttributeProto::Type type) const;

  Importer& importer_;
  const NodeProto& proto_;
  const Frame& frame_;
  std::vector<Item> inputs_;
  int64_t opset_;
};

// Builders return a Value, an Item or several of them.
class Built {
 public:
  Built(const Value& value) : values_{value} {}
  Built(Values values) : values_(std::move(values)) {}
  Built(Item item) : items_{std::move(item)} {}
  Built(std::vector<Item> items) : items_(std::move(items)) {}
  std::vector<Item> items(Importer& importer) const;

 private:
  Values values_;
  std::vector<Item> items_;
};

using Builder = Built (*)(OnnxNode&);

// One row per op and opset that changed it: the newest one not above the model's opset is taken.
struct OpRow {
  std::string_view op_type;
  int64_t since;
  Builder build;
};

struct Domain {
  std::string_view name;    // "" is ai.onnx
  std::vector<OpRow> rows;  // sorted by name and opset
};

// Every builder there is (ops.cpp).
std::span<const Domain> all_builders();
// Null when there is none for that op and opset.
const OpRow* find_builder(std::string_view domain, std::string_view op_type, int64_t opset);

}  // namespace rlx::onnx
