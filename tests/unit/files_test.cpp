// MappedFile and write_file.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <thread>

#include "core/mapped_file.h"
#include "core/write_file.h"
#include "rlx/tensor.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace rlx {
namespace {

using test::TempFolder;

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TempFolder folder;
  const auto file = MappedFile::open(folder.write("a.bin", "hello"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()), "hello");
  EXPECT_EQ(file->path(), folder.path("a.bin"));
}

TEST(MappedFile, LivesAsLongAsATensorBorrowsFromIt) {
  const TempFolder folder;
  Tensor t;
  {
    const auto file = MappedFile::open(folder.write("a.bin", std::string("\1\0\0\0\2\0\0\0", 8)));
    t = Tensor::borrow(DType::I32, {2}, file->bytes(), file);
  }
  EXPECT_EQ(t.values<int32_t>()[1], 2);
  EXPECT_ERROR(t.mutable_bytes(), kInvalid, "is borrowed or mapped");
}

TEST(MappedFile, SaysWhatIsWrongWithAFile) {
  const TempFolder folder;
  EXPECT_ERROR(MappedFile::open(folder.path("none")), kUnavailable,
               str("File '", folder.path("none"), "' cannot be opened (No such file or directory)."));
  EXPECT_ERROR(MappedFile::open(folder.path("")), kInvalid, "it is a directory");
  EXPECT_ERROR(MappedFile::open(folder.write("empty", "")), kInvalid, str("'", folder.path("empty"), "' is empty."));
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(MappedFile::open(pipe), kInvalid, "it is not a plain file");
  EXPECT_ERROR(MappedFile::open(folder.write("a", "x") + "/b"), kUnavailable, "Not a directory");
}

TEST(MappedFile, AFileThatMayNotBeReadIsUnavailable) {
  const TempFolder folder;
  const std::string path = folder.write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const uid_t user = ::geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::seteuid(user == 0 ? kNobody : user), 0);  // root may read everything
  EXPECT_ERROR(MappedFile::open(path), kUnavailable, "Permission denied");
  ASSERT_EQ(::seteuid(user), 0);
}

TEST(WriteFile, ReplacesTheFileAndLeavesNothingElse) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old and longer");
  write_file(path, {as_bytes("new"), {}, as_bytes("er")});
  EXPECT_EQ(test::read_whole_file(path), "newer");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"a"});
}

// /dev/null must not become a file.
TEST(WriteFile, WritesToDevicesAndPipes) {
  const TempFolder folder;
  const std::string device = folder.path("null");
  std::filesystem::create_symlink("/dev/null", device);
  write_file(device, {as_bytes("x")});
  EXPECT_TRUE(std::filesystem::is_symlink(device));
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = test::read_whole_file(pipe); });
  write_file(pipe, {as_bytes("through "), as_bytes("a pipe")});
  reader.join();
  EXPECT_EQ(read, "through a pipe");
  EXPECT_ERROR(write_file("/dev/full", {as_bytes("x")}), kUnavailable, "cannot be written (No space left on device)");
}

TEST(WriteFile, AProcessThatEndsLeavesNothing) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    write_file(path, [](const WritePart& write) {
      write(as_bytes("half"));
      ::_exit(0);  // as a signal would end it: nothing is cleaned up
    });
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(test::read_whole_file(path), "old");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"a"});
}

TEST(WriteFile, AFailureLeavesTheOldFileAndNothingElse) {
  const TempFolder folder;
  EXPECT_ERROR(write_file(folder.path("none/a"), {}), kUnavailable,
               str("File '", folder.path("none/a"), "' cannot be created (No such file or directory)."));
  std::filesystem::create_directory(folder.path("taken"));
  EXPECT_ERROR(write_file(folder.path("taken"), {as_bytes("x")}), kUnavailable, "cannot be replaced");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"taken"});
}

}  // namespace
}  // namespace rlx
