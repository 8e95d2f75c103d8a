// MappedFile: a file's bytes without a copy, for as long as somebody holds it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rlx {

// Read-only. Tensors that borrow from bytes() take the pointer as their owner. A file that another process shortens
// while it is mapped faults on access, as with every mmap; files are replaced by renaming, as write_file() does.
class MappedFile {
 public:
  // Error(kUnavailable) when the file is missing or may not be read, Error(kInvalid) when it is a directory, another
  // thing that is no plain file, or empty; each with the path and the reason.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, void* address, size_t size);

  std::string path_;
  void* address_;
  size_t size_;
};

}  // namespace rlx
