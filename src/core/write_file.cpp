#include "core/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "rlx/error.h"

namespace rlx {

namespace {

// The file under its temporary name; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path) {
    static std::atomic<unsigned> counter = 0;  // several threads may write the same path
    do {
      name_ = str(path, ".tmp-", ::getpid(), "-", counter++);
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) give_up("created", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(name_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t chunk = std::min<size_t>(bytes.size(), size_t{1} << 30);  // Linux writes less than 2 GiB at once
      const ssize_t n = ::write(fd_, bytes.data(), chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) give_up("written", errno);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }

  void rename() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) give_up("written", errno);  // a full disk may show only here
    if (std::rename(name_.c_str(), path_.c_str()) != 0) give_up("replaced", errno);
    renamed_ = true;
  }

 private:
  [[noreturn]] void give_up(const char* what, int error) const {
    fail(ErrorKind::kUnavailable,
         str("File '", path_, "' cannot be ", what, " (", std::generic_category().message(error), ")."));
  }

  std::string path_, name_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace

void write_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts) {
  TemporaryFile file(path);
  for (const auto part : parts) file.write(part);
  file.rename();
}

void write_file(const std::string& path, const std::function<void(const WritePart&)>& parts) {
  TemporaryFile file(path);
  parts([&](std::span<const std::byte> part) { file.write(part); });
  file.rename();
}

}  // namespace rlx
