// ONNX's protobuf messages as plain structs that borrow from the file's bytes. Only what rlx reads is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx::onnx {

// TensorProto.DataType.
enum class ElemType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

struct GraphProto;

using Entry = std::pair<std::string_view, std::string_view>;

// Its elements stay in `message` until somebody asks for them (tensor_proto.h).
struct TensorProto {
  std::string_view name;
  ElemType elem = ElemType::kUndefined;
  std::vector<int64_t> dims;
  std::string_view message;
  std::vector<Entry> external;  // data_location EXTERNAL: location, offset, length
  bool is_external = false;
};

struct DimProto {
  int64_t value = -1;      // -1: not a number
  std::string_view param;  // empty: no name
};

struct TypeProto {
  enum class Kind { kUnknown, kTensor, kSequence, kMap, kOptional, kOther };
  Kind kind = Kind::kUnknown;
  ElemType elem = ElemType::kUndefined;              // of a tensor; of a map its keys
  std::optional<std::vector<DimProto>> shape;        // of a tensor; absent: the rank is not known
  std::shared_ptr<const TypeProto> inner = nullptr;  // of a sequence, map or optional
};

struct ValueInfo {
  std::string_view name;
  TypeProto type;
};

struct AttributeProto {
  enum class Type : int32_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };
  std::string_view name, ref_name;  // ref_name: the attribute of the enclosing function that supplies the value
  Type type = Type::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorProto> tensors;                       // of kTensor: one
  std::vector<std::shared_ptr<const GraphProto>> graphs;  // of kGraph: one
  TypeProto type_proto;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // an empty name: not given
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs, value_infos;
  bool has_sparse_initializers = false;
};

struct OpsetId {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> default_attributes;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer;
  std::vector<OpsetId> opsets;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

// What a file with test data holds: a tensor, a sequence, an optional or a map of them.
struct DataProto {
  std::vector<TensorProto> tensors;  // of a tensor: one
  std::vector<DataProto> items;      // of a sequence of sequences, of a sequence of optionals
  bool present = true;               // false: an empty optional
};

// Bytes that are no protobuf, or that nest deeper than 100 graphs, are an Error.
ModelProto parse_model(std::string_view bytes);
TensorProto parse_tensor(std::string_view bytes);
DataProto parse_data(std::string_view bytes, const TypeProto& type);

}  // namespace rlx::onnx
