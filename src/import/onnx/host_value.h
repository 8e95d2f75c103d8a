// What a name of an ONNX model can stand for outside a graph: a tensor, a tensor of strings, a sequence, an optional.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/onnx/proto.h"
#include "rlx/tensor.h"

namespace rlx::onnx {

struct Strings {
  std::vector<int64_t> sizes;
  std::vector<std::string> values;
  bool operator==(const Strings&) const = default;
};

// A value of the host. A tensor's `elem` says what its elements mean: types that rlx lacks are held as codes, one per
// byte (elem_type.h).
struct HostValue {
  enum class Kind { kAbsent, kTensor, kStrings, kSequence };  // kAbsent: an empty optional
  Kind kind = Kind::kAbsent;
  ElemType elem = ElemType::kUndefined;
  Tensor tensor;
  Strings strings;
  std::vector<HostValue> items;

  HostValue() = default;
  HostValue(ElemType e, Tensor t) : kind(Kind::kTensor), elem(e), tensor(std::move(t)) {}
  explicit HostValue(Strings s) : kind(Kind::kStrings), elem(ElemType::kString), strings(std::move(s)) {}
  explicit HostValue(std::vector<HostValue> list) : kind(Kind::kSequence), items(std::move(list)) {}
};

}  // namespace rlx::onnx
