// .npz: a zip archive of .npy files. libzip reads and writes the archive.
#include <zip.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/mapped_file.h"
#include "core/npy.h"
#include "core/npy_array.h"
#include "core/write_file.h"
#include "rlx/error.h"

namespace rlx {

namespace {

constexpr std::string_view kSuffix = ".npy";
// Deflate makes at most 258 bytes of two bits, 1032 of a byte. An entry that claims more is a zip bomb or damaged.
constexpr uint64_t kMaxDeflateRatio = 1032;

struct ZipError {
  zip_error_t error;
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  std::string text() { return zip_error_strerror(&error); }
};

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Entry = std::unique_ptr<zip_file_t, Close>;

Archive open_archive(std::span<const std::byte> bytes) {
  require(!bytes.empty(), "This is not a zip archive: it is empty.");  // libzip would take it for one without entries
  ZipError error;
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error.error);
  if (source == nullptr) fail(ErrorKind::kMemory, str("The archive cannot be opened (", error.text(), ")."));
  Archive archive(zip_open_from_source(source, ZIP_RDONLY, &error.error));
  if (!archive) {
    zip_source_free(source);  // an archive that was opened owns it
    fail(ErrorKind::kInvalid, str("This is not a zip archive, or it is damaged (", error.text(), ")."));
  }
  return archive;
}

void read_exactly(zip_file_t* file, std::span<std::byte> into) {
  while (!into.empty()) {
    const zip_int64_t n = zip_fread(file, into.data(), into.size());
    if (n < 0) fail(ErrorKind::kInvalid, str("The entry is damaged (", zip_file_strerror(file), ")."));
    require(n > 0, "The entry ends ", into.size(), " bytes early.");
    into = into.subspan(static_cast<size_t>(n));
  }
}

// What the archive says of an entry, once it is all there and plausible. `packed_left`: bytes of the archive that no
// earlier entry has claimed; entries that share their bytes would multiply what a small file can ask for.
zip_stat_t check_entry(zip_t* archive, zip_uint64_t index, uint64_t& packed_left) {
  zip_stat_t info;
  zip_stat_init(&info);
  require(zip_stat_index(archive, index, 0, &info) == 0, "The entry is damaged (", zip_strerror(archive), ").");
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  require((info.valid & kNeeded) == kNeeded, "The archive does not say how large the entry is.");
  if ((info.valid & ZIP_STAT_ENCRYPTION_METHOD) && info.encryption_method != ZIP_EM_NONE)
    fail(ErrorKind::kUnsupported, "The entry is encrypted.");
  if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE)
    fail(ErrorKind::kUnsupported,
         str("The compression method (", info.comp_method, ") is neither stored (0) nor deflated (8)."));
  require(info.comp_size <= packed_left, "The entry's compressed size (", info.comp_size,
          ") is more than the archive has left (", packed_left, ").");
  packed_left -= info.comp_size;
  const uint64_t ratio = info.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  require(info.size / ratio <= info.comp_size, "The entry's size (", info.size, ") is more than its compressed bytes (",
          info.comp_size, ") can hold.");
  return info;
}

Tensor read_entry(zip_t* archive, zip_uint64_t index, uint64_t& packed_left) {
  const zip_stat_t info = check_entry(archive, index, packed_left);
  const Entry entry(zip_fopen_index(archive, index, 0));
  require(entry != nullptr, "The entry cannot be opened (", zip_strerror(archive), ").");
  Tensor tensor = read_npy_array([&](std::span<std::byte> into) { read_exactly(entry.get(), into); }, info.size);
  // Reading to the very end makes libzip compare the checksum.
  std::byte extra;
  const zip_int64_t n = zip_fread(entry.get(), &extra, 1);
  if (n < 0) fail(ErrorKind::kInvalid, str("The entry is damaged (", zip_file_strerror(entry.get()), ")."));
  require(n == 0, "The entry is longer than its size (", info.size, ").");
  return tensor;
}

// An archive without entries, which libzip would delete instead of writing.
void write_empty_archive(const std::string& path) {
  std::array<std::byte, 22> end = {std::byte{'P'}, std::byte{'K'}, std::byte{5}, std::byte{6}};
  write_file(path, {end});
}

}  // namespace

std::map<std::string, Tensor> parse_npz(std::span<const std::byte> bytes, const std::string& where) {
  try {
    const Archive archive = open_archive(bytes);
    uint64_t packed_left = bytes.size();
    std::map<std::string, Tensor> tensors;
    const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<zip_uint64_t>(i);
      const char* raw_name = zip_get_name(archive.get(), index, 0);
      require(raw_name != nullptr, "The name of entry ", i, " cannot be read (", zip_strerror(archive.get()), ").");
      std::string name = raw_name;
      try {
        require(name.ends_with(kSuffix), "The entry's name does not end with ", kSuffix, ".");
        Tensor tensor = read_entry(archive.get(), index, packed_left);
        name.resize(name.size() - kSuffix.size());
        require(tensors.emplace(name, std::move(tensor)).second, "The archive has a second entry of this name.");
      } catch (Error& e) {
        e.add_context(str("reading entry '", raw_name, "'"));
        throw;
      }
    }
    return tensors;
  } catch (Error& e) {
    e.add_context(str("reading ", where));
    throw;
  }
}

std::map<std::string, Tensor> read_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_npz(file->bytes(), str("'", path, "'"));
}

void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  if (tensors.empty()) return write_empty_archive(path);
  const auto give_up = [&](const std::string& reason) {
    fail(ErrorKind::kUnavailable, str("File '", path, "' cannot be written (", reason, ")."));
  };
  std::vector<NpyArray> arrays;  // libzip reads from them when the archive is closed
  arrays.reserve(tensors.size());
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) {
    ZipError error;
    zip_error_init_with_code(&error.error, code);
    give_up(error.text());
  }
  for (const auto& [name, tensor] : tensors) {
    const NpyArray& array = arrays.emplace_back(to_npy_array(tensor));
    // libzip does not write to the fragments, but takes them as mutable.
    auto* header = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(array.header.data()));
    auto* data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(array.data.bytes().data()));
    const zip_buffer_fragment_t parts[] = {{header, array.header.size()}, {data, array.data.bytes().size()}};
    zip_source_t* source = zip_source_buffer_fragment(archive.get(), parts, array.data.bytes().empty() ? 1 : 2, 0);
    if (source == nullptr) give_up(zip_strerror(archive.get()));
    const zip_int64_t index =
        zip_file_add(archive.get(), (name + std::string(kSuffix)).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      give_up(zip_strerror(archive.get()));
    }
    const auto i = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kFirstOf1980 = (1 << 5) | 1;  // no clock in it: equal tensors give equal files
    if (zip_set_file_compression(archive.get(), i, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.get(), i, 0, kFirstOf1980, 0) != 0)
      give_up(zip_strerror(archive.get()));
  }
  // Writes a temporary file and renames it; a failed close leaves the archive open, and Discard removes the file.
  if (zip_close(archive.get()) != 0) give_up(zip_strerror(archive.get()));
  archive.release();
}

}  // namespace rlx
