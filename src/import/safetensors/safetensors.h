// safetensors files: named tensors, in place. Nothing here knows a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "rlx/dtype.h"

namespace rlx::safetensors {

struct Tensor {
  std::string name;
  std::string dtype_name;      // as the file spells it: "BF16"
  std::optional<DType> dtype;  // nullopt: one that rlx does not have, such as F8_E4M3
  std::vector<int64_t> sizes;
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;  // that the bytes are in
};

class File {
 public:
  // A .safetensors file, or the .index.json of one that is cut into shards. Error(kInvalid) says what is wrong, and
  // where.
  static File open(const std::string& path);
  // What a Hugging Face folder holds: model.safetensors, its shards, or the only .safetensors file there is.
  static File open_folder(const std::string& folder);
  // The same from bytes, which must outlive it: for tests.
  static File parse(std::span<const std::byte> bytes, const std::string& where);

  const std::string& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;
  // Of the file's __metadata__; a sharded file has that of its first shard.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void add(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file, const std::string& where);
  void add_shards(const std::string& index);

  std::string path_;
  std::map<std::string, std::string> metadata_;
  std::vector<Tensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace rlx::safetensors
