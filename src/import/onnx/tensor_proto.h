// TensorProto to values of the host: borrowed from the file where its bytes allow that.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/mapped_file.h"
#include "import/onnx/host_value.h"

namespace rlx::onnx {

// Where tensors come from: the bytes of the model file, and the files beside it that hold external data.
class TensorSource {
 public:
  // `owner` keeps the bytes of the model alive; `folder` is where external data must lie (empty: none is allowed).
  TensorSource(std::shared_ptr<const void> owner, std::string folder);

  // Throws when dims, type and bytes do not fit together. Nothing is allocated that the file does not hold.
  HostValue value(const TensorProto& proto) const;
  HostValue value(const DataProto& data, const TypeProto& type) const;

 private:
  // `expected`: how many bytes the tensor has, where the file does not say it.
  std::span<const std::byte> external_bytes(const TensorProto& proto, size_t expected,
                                            std::shared_ptr<const void>& owner) const;

  std::shared_ptr<const void> owner_;
  std::string folder_;
  mutable std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace rlx::onnx
