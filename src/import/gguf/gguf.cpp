#include "import/gguf/gguf.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "core/byte_reader.h"
#include "rlx/error.h"
#include "rlx/log.h"
#include "rlx/shape.h"

namespace rlx::gguf {

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMagicSwapped = 0x47475546;
constexpr uint32_t kMaxRank = 4;  // of ggml

enum ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
constexpr int kValueTypes = 13;

const TypeInfo kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},
};

// Bytes that a value of this type takes at least, so that a count is checked before anything is allocated for it.
uint64_t least_bytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool: return 1;
    case kU16:
    case kI16: return 2;
    case kU32:
    case kI32:
    case kF32: return 4;
    default: return 8;
  }
}

// Version 1 counts in 32 bits.
class Reader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  bool wide = true;
  uint64_t count(std::string_view what) { return wide ? u64(what) : u32(what); }
  std::string_view name(std::string_view what) { return text(count(what), what); }
};

// All but a U64 beyond an int64_t.
std::optional<int64_t> signed_integer(Reader& r, uint32_t type, uint64_t* beyond) {
  switch (type) {
    case kU8: return r.u8();
    case kI8: return r.i8();
    case kU16: return r.u16();
    case kI16: return r.i16();
    case kU32: return r.u32();
    case kI32: return r.i32();
    case kI64: return r.i64();
    default: break;
  }
  const uint64_t v = r.u64();
  if (v <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(v);
  *beyond = v;
  return std::nullopt;
}

Value read_array(Reader& r, const std::string& key) {
  const uint32_t type = r.u32(str("the element type of '", key, "'"));
  require(type < kValueTypes && type != kArray, r.where(), ": metadata '", key, "' is a list of an unknown type (",
          type, ").");
  const uint64_t n = r.count(str("the length of '", key, "'"));
  require(n <= r.remaining() / least_bytes(type), r.where(), ": metadata '", key, "' claims ", n, " elements, ",
          r.remaining(), " bytes are left in the file.");
  const auto size = static_cast<size_t>(n);
  if (type == kString) {
    Value::Strings out;
    out.reserve(size);
    for (size_t i = 0; i < size; ++i) out.push_back(r.name(str("an element of '", key, "'")));
    return {.data = std::move(out)};
  }
  if (type == kF32 || type == kF64) {
    std::vector<double> out(size);
    for (double& v : out) v = type == kF32 ? static_cast<double>(r.f32()) : r.f64();
    return {.data = std::move(out)};
  }
  std::vector<int64_t> out(size);
  for (int64_t& v : out) {
    uint64_t beyond = 0;
    if (type == kBool) {
      v = r.u8() != 0;
      continue;
    }
    const std::optional<int64_t> i = signed_integer(r, type, &beyond);
    require(i.has_value(), r.where(), ": metadata '", key, "' holds ", beyond, ", which does not fit 64 signed bits.");
    v = *i;
  }
  return {.data = std::move(out)};
}

Value read_value(Reader& r, const std::string& key) {
  const uint32_t type = r.u32(str("the type of '", key, "'"));
  require(type < kValueTypes, r.where(), ": metadata '", key, "' has an unknown type (", type, ").");
  if (type == kArray) return read_array(r, key);
  if (type == kString) return {.data = r.name(str("the value of '", key, "'"))};
  if (type == kBool) return {.data = r.u8() != 0};
  if (type == kF32) return {.data = static_cast<double>(r.f32())};
  if (type == kF64) return {.data = r.f64()};
  uint64_t beyond = 0;
  if (const std::optional<int64_t> i = signed_integer(r, type, &beyond)) return {.data = *i};
  return {.data = beyond};
}

// Messages quote it, so that it must be one line.
std::string read_key(Reader& r, std::string_view what) {
  const std::string key(r.name(what));
  require(key.find('\n') == std::string::npos, r.where(), ": ", what, " has a line break in it.");
  return key;
}

// "model-00002-of-00005.gguf": the part's number, the parts' count, and the name before.
struct Split {
  std::string prefix;
  int number = 1, count = 1;
  std::string path(int n) const {
    char tail[40];
    std::snprintf(tail, sizeof tail, "-%05d-of-%05d.gguf", n, count);
    return prefix + tail;
  }
};
std::optional<Split> split_of(const std::string& path) {
  const std::string pattern = "-00000-of-00000.gguf";
  if (path.size() < pattern.size()) return std::nullopt;
  const std::string tail = path.substr(path.size() - pattern.size());
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool digit = tail[i] >= '0' && tail[i] <= '9';
    if (pattern[i] == '0' ? !digit : tail[i] != pattern[i]) return std::nullopt;
  }
  Split out{path.substr(0, path.size() - pattern.size()), std::stoi(tail.substr(1, 5)), std::stoi(tail.substr(10, 5))};
  if (out.number < 1 || out.number > out.count) return std::nullopt;
  return out;
}

}  // namespace

std::string_view Value::kind() const {
  constexpr std::string_view kinds[] = {"an integer", "an integer",         "a number",          "true or false",
                                        "a text",     "a list of integers", "a list of numbers", "a list of texts"};
  return kinds[data.index()];
}

const TypeInfo* type_info(uint32_t code) {
  for (const TypeInfo& t : kTypes)
    if (t.code == code) return &t;
  return nullptr;
}

File File::open(const std::string& path) {
  File out;
  out.path_ = path;
  const std::optional<Split> split = split_of(path);
  const int parts = split ? split->count : 1;
  for (int n = 1; n <= parts; ++n) {
    if (parts > 1) progress("opening the parts of the model", static_cast<double>(n) / parts);
    const auto file = MappedFile::open(split ? split->path(n) : path);
    out.add_part(file->bytes(), file, file->path());
  }
  if (const auto count = out.integer("split.count"); count && *count > 1 && *count != parts)
    fail(ErrorKind::kInvalid, str("File '", path, "' is one of ", *count,
                                  " parts, which are found by their names only: NAME-00001-of-0000", *count, ".gguf."));
  if (const auto count = out.integer("split.tensors.count"))
    require(*count == static_cast<int64_t>(out.tensors_.size()), "File '", path, "' and its parts hold ",
            out.tensors_.size(), " tensors, and should hold ", *count, ".");
  return out;
}

File File::parse(std::span<const std::byte> bytes, const std::string& where) {
  File out;
  out.path_ = where;
  out.add_part(bytes, nullptr, where);
  return out;
}

void File::add_part(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file,
                    const std::string& where) {
  Reader r(bytes, where);
  const uint32_t magic = r.u32("the magic number");
  require(magic != kMagicSwapped, where, " is a big-endian GGUF file, which rlx does not read.");
  require(magic == kMagic, where, " is not a GGUF file: it does not begin with 'GGUF'.");
  const uint32_t version = r.u32("the version");
  require(version >= 1 && version <= 3, where, " has GGUF version ", version, "; rlx reads 1, 2 and 3",
          (version & 0xFFFF) == 0 ? " (it may be big-endian)." : ".");
  r.wide = version > 1;
  version_ = version;
  const uint64_t tensors = r.count("the number of tensors"), pairs = r.count("the number of metadata values");
  require(pairs <= r.remaining() / 13 && tensors <= r.remaining() / 24, where, " claims ", tensors, " tensors and ",
          pairs, " metadata values, and has ", bytes.size(), " bytes.");
  const bool is_first = tensors_.empty() && metadata_.empty();
  for (uint64_t i = 0; i < pairs; ++i) {
    const std::string key = read_key(r, "the name of a metadata value");
    const size_t begin = r.offset();
    Value value = read_value(r, key);
    value.raw = bytes.subspan(begin, r.offset() - begin);
    // The parts of a split file repeat a few values; the first one's count.
    const bool is_new = metadata_.emplace(key, std::move(value)).second;
    require(is_new || !is_first, where, ": metadata '", key, "' is given twice.");
  }

  const size_t begin = tensors_.size();
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < tensors; ++i) {
    Tensor t;
    t.name = read_key(r, "the name of a tensor");
    t.file = file;
    const uint32_t rank = r.u32(str("the rank of '", t.name, "'"));
    require(rank <= kMaxRank, where, ": tensor '", t.name, "' has ", rank, " dimensions; at most ", kMaxRank,
            " are possible.");
    for (uint32_t d = 0; d < rank; ++d) {
      const uint64_t size = r.count(str("a size of '", t.name, "'"));
      require(size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()), where, ": tensor '", t.name,
              "' has a size of ", size, ".");
      t.sizes.insert(t.sizes.begin(), static_cast<int64_t>(size));
    }
    t.type = r.u32(str("the type of '", t.name, "'"));
    offsets.push_back(r.u64(str("the offset of '", t.name, "'")));
    require(by_name_.emplace(t.name, tensors_.size()).second, where, ": there are two tensors '", t.name, "'.");
    tensors_.push_back(std::move(t));
  }

  const int64_t alignment = integer("general.alignment").value_or(32);
  require(alignment > 0 && alignment <= (1 << 24), where, ": general.alignment is ", alignment, ".");
  const uint64_t a = static_cast<uint64_t>(alignment), data = (r.offset() + a - 1) / a * a;
  struct Range {
    uint64_t begin, end;
    const Tensor* tensor;
  };
  std::vector<Range> ranges;
  for (size_t i = 0; i < offsets.size(); ++i) {
    Tensor& t = tensors_[begin + i];
    const TypeInfo* type = type_info(t.type);
    if (type == nullptr)
      fail(ErrorKind::kUnsupported,
           str(where, ": tensor '", t.name, "' has type ", t.type, ", which rlx does not know."));
    const int64_t row = t.sizes.empty() ? 1 : t.sizes.back();
    require(row % type->block == 0, where, ": tensor '", t.name, "' is ", type->name, ", whose rows are multiples of ",
            type->block, ", but has rows of ", row, ".");
    int64_t size = 0;
    try {
      int64_t elements = 1;
      for (const int64_t s : t.sizes) elements = checked_mul(elements, s);
      size = checked_mul(elements / type->block, type->bytes);
    } catch (const Error&) {
      fail(ErrorKind::kInvalid, str(where, ": the sizes of tensor '", t.name, "' overflow."));
    }
    const auto n = static_cast<uint64_t>(size);
    require(offsets[i] % a == 0, where, ": tensor '", t.name, "' begins at ", offsets[i],
            ", which is not a multiple of the alignment (", alignment, ").");
    require(data <= bytes.size() && offsets[i] <= bytes.size() - data && n <= bytes.size() - data - offsets[i], where,
            ": tensor '", t.name, "' (", n, " bytes at ", offsets[i], ") ends behind the end of the file.");
    t.bytes = bytes.subspan(static_cast<size_t>(data + offsets[i]), static_cast<size_t>(n));
    if (n > 0) ranges.push_back({offsets[i], offsets[i] + n, &t});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  for (size_t i = 1; i < ranges.size(); ++i)
    require(ranges[i - 1].end <= ranges[i].begin, where, ": tensors '", ranges[i - 1].tensor->name, "' and '",
            ranges[i].tensor->name, "' overlap.");
}

const Tensor* File::find_tensor(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

const Value* File::find(std::string_view key) const {
  const auto it = metadata_.find(key);
  return it == metadata_.end() ? nullptr : &it->second;
}

void File::wrong_kind(std::string_view key, const Value& value, std::string_view expected) const {
  fail(ErrorKind::kInvalid, str(path_, ": metadata '", key, "' is ", value.kind(), ", not ", expected, "."));
}

std::optional<int64_t> File::integer(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<int64_t>(&v->data)) return *i;
  wrong_kind(key, *v, "an integer");
}

std::optional<double> File::number(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<int64_t>(&v->data)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&v->data)) return *d;
  wrong_kind(key, *v, "a number");
}

std::optional<bool> File::boolean(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (const auto* b = std::get_if<bool>(&v->data)) return *b;
  wrong_kind(key, *v, "true or false");
}

std::optional<std::string> File::text(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (const auto* t = std::get_if<std::string_view>(&v->data)) return std::string(*t);
  wrong_kind(key, *v, "a text");
}

std::vector<std::string> File::texts(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return {};
  if (const auto* list = std::get_if<Value::Strings>(&v->data)) return {list->begin(), list->end()};
  wrong_kind(key, *v, "a list of texts");
}

std::vector<int64_t> File::integers(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return {};
  if (const auto* i = std::get_if<int64_t>(&v->data)) return {*i};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&v->data)) return *list;
  wrong_kind(key, *v, "a list of integers");
}

std::vector<double> File::numbers(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<double>>(&v->data)) return *list;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&v->data)) return {list->begin(), list->end()};
  return {*number(key)};
}

std::vector<bool> File::booleans(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&v->data)) {
    std::vector<bool> out;
    for (const int64_t i : *list) out.push_back(i != 0);
    return out;
  }
  return {*boolean(key)};
}

}  // namespace rlx::gguf
