#include "import/safetensors/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/byte_reader.h"
#include "import/json.h"
#include "rlx/error.h"
#include "rlx/log.h"
#include "rlx/shape.h"

namespace rlx::safetensors {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 16;

struct DTypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};
constexpr DTypeRow kDTypes[] = {
    {"F32", 32, DType::F32},  {"F16", 16, DType::F16}, {"BF16", 16, DType::BF16}, {"F64", 64, DType::F64},
    {"I8", 8, DType::I8},     {"I16", 16, DType::I16}, {"I32", 32, DType::I32},   {"I64", 64, DType::I64},
    {"U8", 8, DType::U8},     {"U16", 16, DType::U16}, {"U32", 32, DType::U32},   {"U64", 64, DType::U64},
    {"BOOL", 8, DType::Bool}, {"C64", 64, DType::C64}, {"F8_E4M3", 8, {}},        {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},       {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},       {"F4", 4, {}},
};

const DTypeRow* dtype_row(std::string_view name) {
  for (const DTypeRow& row : kDTypes)
    if (row.name == name) return &row;
  return nullptr;
}

// A list of non-negative integers, each of which fits an int64_t.
std::vector<int64_t> sizes_of(const Json& list, const std::string& what) {
  require(list.is_array() && list.size() <= kMaxRank, what, " is not a list of at most ", kMaxRank, " integers.");
  std::vector<int64_t> out;
  for (const Json& v : list) {
    require(v.is_number_unsigned() && v.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
            what, " holds something that is no size.");
    out.push_back(v.get<int64_t>());
  }
  return out;
}

uint64_t bytes_of(const std::vector<int64_t>& sizes, const DTypeRow& dtype, const std::string& what) {
  try {
    int64_t bits = dtype.bits;
    for (const int64_t s : sizes) bits = checked_mul(bits, s);
    require(bits % 8 == 0, what, " ends within a byte.");
    return static_cast<uint64_t>(bits / 8);
  } catch (const Error& e) {
    if (e.message().starts_with(what)) throw;
    fail(ErrorKind::kInvalid, str(what, " has sizes that overflow."));
  }
}

}  // namespace

File File::open(const std::string& path) {
  File out;
  out.path_ = path;
  if (path.ends_with(".json")) {
    out.add_shards(path);
  } else {
    const auto file = MappedFile::open(path);
    out.add(file->bytes(), file, path);
  }
  return out;
}

File File::open_folder(const std::string& folder) {
  const fs::path root(folder);
  std::error_code ignored;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(root / name, ignored)) return open((root / name).string());
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator i(root, error), end; !error && i != end; i.increment(error))
    if (i->path().extension() == ".safetensors") found.push_back(i->path().string());
  if (error) fail(ErrorKind::kUnavailable, str("Folder '", folder, "' cannot be read: ", error.message(), "."));
  if (found.empty())
    fail(ErrorKind::kUnavailable,
         str("Folder '", folder, "' holds no .safetensors file",
             fs::exists(root / "pytorch_model.bin", ignored) ? "; rlx does not read pytorch_model.bin." : "."));
  require(found.size() == 1, "Folder '", folder, "' holds ", found.size(),
          " .safetensors files, and neither model.safetensors nor model.safetensors.index.json.");
  return open(found[0]);
}

File File::parse(std::span<const std::byte> bytes, const std::string& where) {
  File out;
  out.path_ = where;
  out.add(bytes, nullptr, where);
  return out;
}

void File::add(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file, const std::string& where) {
  ByteReader r(bytes, where);
  const uint64_t length = r.u64("the header's length");
  require(length <= kMaxHeader, where, " is not a safetensors file: it claims a header of ", length, " bytes, at most ",
          kMaxHeader, " are possible.");
  require(length <= r.remaining(), where, " is cut off: it claims a header of ", length, " bytes, ", r.remaining(),
          " are left.");
  const std::string_view text = r.text(length, "the header");
  // Spaces pad a header at its end; the format wants the object to begin at once.
  require(text.starts_with('{'), where, " is not a safetensors file: its header does not begin with '{'.");
  const Json header = parse_json(text, str("The header of ", where));
  const std::span<const std::byte> data = bytes.subspan(r.offset());

  struct Range {
    uint64_t begin, end;
    std::string_view name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      require(entry.is_object(), where, ": '__metadata__' is not an object.");
      for (const auto& [key, value] : entry.items()) {
        require(value.is_string(), where, ": '", key, "' of '__metadata__' is not a text.");
        metadata_.emplace(key, value.get<std::string>());
      }
      continue;
    }
    const std::string what = str(where, ": tensor '", name, "'");
    require(entry.is_object() && entry.size() == 3 && entry.contains("dtype") && entry.contains("shape") &&
                entry.contains("data_offsets") && entry["dtype"].is_string(),
            what, " is not described by dtype, shape and data_offsets.");
    Tensor t;
    t.name = name;
    t.dtype_name = entry["dtype"].get<std::string>();
    t.file = file;
    const DTypeRow* dtype = dtype_row(t.dtype_name);
    if (dtype == nullptr)
      fail(ErrorKind::kUnsupported, str(what, " has the dtype '", t.dtype_name, "', which rlx does not know."));
    t.dtype = dtype->dtype;
    t.sizes = sizes_of(entry["shape"], str(what, ": its shape"));
    const std::vector<int64_t> offsets = sizes_of(entry["data_offsets"], str(what, ": its data_offsets"));
    require(offsets.size() == 2 && offsets[0] <= offsets[1], what, ": its data_offsets are not a begin and an end.");
    const auto begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
    require(end <= data.size(), what, " ends at ", end, ", behind the end of the file's data (", data.size(), ").");
    const uint64_t size = bytes_of(t.sizes, *dtype, what);
    require(size == end - begin, what, " (", t.dtype_name, " ", t.sizes, ") takes ", size, " bytes, and is given ",
            end - begin, ".");
    t.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
    require(by_name_.emplace(name, tensors_.size()).second, what, " is in more than one shard.");
    tensors_.push_back(std::move(t));
    ranges.push_back({begin, end, by_name_.find(name)->first});
  }
  // The data is covered from its begin to its end, once: nothing is hidden in it, and nothing shared.
  std::ranges::sort(
      ranges, [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t at = 0;
  for (const Range& range : ranges) {
    require(range.begin == at, where, ": tensor '", range.name, "' begins at ", range.begin,
            range.begin < at ? ", within another one that ends at " : ", behind a hole that begins at ", at, ".");
    at = range.end;
  }
  require(at == data.size(), where, " holds ", data.size(), " bytes of data, its tensors end at ", at, ".");
}

void File::add_shards(const std::string& index) {
  const Json json = read_json(index);
  require(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(), index,
          " has no 'weight_map'.");
  std::map<std::string, std::vector<std::string>> shards;  // the tensors of each
  for (const auto& [name, shard] : json["weight_map"].items()) {
    require(shard.is_string(), index, ": the shard of '", name, "' is not a text.");
    const auto file = shard.get<std::string>();
    // A name alone: an index must not lead out of its folder.
    require(!file.empty() && file.find_first_of("/\\") == std::string::npos && file != "." && file != "..", index,
            ": the shard '", file, "' is not the name of a file beside it.");
    shards[file].push_back(name);
  }
  const fs::path folder = fs::path(index).parent_path();
  size_t done = 0;
  for (const auto& [name, tensors] : shards) {
    progress("opening the shards of the model", static_cast<double>(++done) / static_cast<double>(shards.size()));
    const auto file = MappedFile::open((folder / name).string());
    add(file->bytes(), file, file->path());
    for (const std::string& tensor : tensors) {
      const Tensor* found = find(tensor);
      require(found != nullptr && found->file == file, index, ": tensor '", tensor, "' is not in its shard '", name,
              "'.");
    }
  }
}

const Tensor* File::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace rlx::safetensors
