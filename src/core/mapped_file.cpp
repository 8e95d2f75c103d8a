#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "rlx/error.h"

namespace rlx {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(std::string path, void* address, size_t size)
    : path_(std::move(path)), address_(address), size_(size) {}

MappedFile::~MappedFile() { ::munmap(address_, size_); }

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for a writer before we could see that it is no file.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail(ErrorKind::kUnavailable, str("File '", path, "' cannot be opened (", reason(errno), ")."));
  struct stat info = {};
  if (::fstat(file.fd, &info) != 0)
    fail(ErrorKind::kUnavailable, str("File '", path, "' cannot be read (", reason(errno), ")."));
  require(!S_ISDIR(info.st_mode), "File '", path, "' cannot be read: it is a directory.");
  require(S_ISREG(info.st_mode), "File '", path, "' cannot be read: it is not a plain file.");
  require(info.st_size > 0, "File '", path, "' is empty.");
  require(static_cast<uint64_t>(info.st_size) <= std::numeric_limits<size_t>::max(), "File '", path, "' (",
          info.st_size, " bytes) is larger than the address space.");
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED)
    fail(ErrorKind::kUnavailable, str("File '", path, "' (", size, " bytes) cannot be mapped (", reason(errno), ")."));
  return std::shared_ptr<const MappedFile>(new MappedFile(path, address, size));
}

}  // namespace rlx
