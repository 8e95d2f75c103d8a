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

// A file without a name, which the system removes whatever ends the process. -1 where file systems have none.
int open_nameless(const std::string& path) {
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) != 0) return -1;  // a name is given to it by way of that
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#else
  return -1;
#endif
}

// The file until it takes its place: without a name, or with a temporary one and removed unless it was renamed. A
// device or a pipe is written as it is: nothing may take its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path) {
    struct stat info = {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
      in_place_ = true;
      fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd_ < 0) give_up("opened", errno);
      return;
    }
    fd_ = open_nameless(path);
    if (fd_ >= 0) return;
    do {
      name_ = next_name();
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) {
      const int error = errno;
      name_.clear();
      give_up("created", error);
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
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
    if (name_.empty() && !in_place_) give_name();
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) give_up("written", errno);  // a full disk may show only here
    if (in_place_) return;
    if (std::rename(name_.c_str(), path_.c_str()) != 0) give_up("replaced", errno);
    name_.clear();
  }

 private:
  std::string next_name() const {
    static std::atomic<unsigned> counter = 0;  // several threads may write the same path
    return str(path_, ".tmp-", ::getpid(), "-", counter++);
  }
  void give_name() {
    const std::string self = str("/proc/self/fd/", fd_);
    while (true) {
      const std::string name = next_name();
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        name_ = name;
        return;
      }
      if (errno != EEXIST) give_up("created", errno);
    }
  }
  [[noreturn]] void give_up(const char* what, int error) const {
    fail(ErrorKind::kUnavailable,
         str("File '", path_, "' cannot be ", what, " (", std::generic_category().message(error), ")."));
  }

  std::string path_, name_;  // name_: the temporary one, while there is one
  int fd_ = -1;
  bool in_place_ = false;
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
