// GGUF files: metadata and tensors, in place (spec 10, 5.4). Nothing here knows a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/mapped_file.h"

namespace rlx::gguf {

// A metadata value. Integers of all widths are int64_t (or uint64_t, where they do not fit), floats are double.
// Arrays hold one kind of element.
struct Value {
  using Strings = std::vector<std::string_view>;  // borrowed from the file
  std::variant<int64_t, uint64_t, double, bool, std::string_view, std::vector<int64_t>, std::vector<double>, Strings>
      data;
  std::span<const std::byte> raw;  // type and value as the file has them (in versions 2 and 3)
  std::string_view kind() const;   // for errors: "an integer", "a list of strings"
};

struct Tensor {
  std::string name;
  std::vector<int64_t> sizes;  // outermost first, as everywhere in rlx; the file has them the other way round
  uint32_t type = 0;           // ggml's code
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;  // that the bytes are in
};

// ggml's name of a type ("Q4_K"), its elements per block and bytes per block; null for a code that nobody has defined.
struct TypeInfo {
  uint32_t code;
  const char* name;
  int64_t block, bytes;
};
const TypeInfo* type_info(uint32_t code);

class File {
 public:
  // Follows split files (…-00001-of-00003.gguf) from any of them. Error(kInvalid) says what is wrong, and where.
  static File open(const std::string& path);
  // The same from bytes, which must outlive it: for tests.
  static File parse(std::span<const std::byte> bytes, const std::string& where);

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  const std::map<std::string, Value, std::less<>>& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find_tensor(std::string_view name) const;

  // Metadata by key; nullopt when it is absent, an Error when it is of another kind.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // integers too
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;  // empty when absent
  std::vector<int64_t> integers(std::string_view key) const;   // one integer counts as a list
  std::vector<double> numbers(std::string_view key) const;
  std::vector<bool> booleans(std::string_view key) const;

 private:
  const Value* find(std::string_view key) const;
  [[noreturn]] void wrong_kind(std::string_view key, const Value& value, std::string_view expected) const;
  void add_part(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file, const std::string& where);

  std::string path_;
  uint32_t version_ = 0;
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<Tensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace rlx::gguf
