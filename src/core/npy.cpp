#include "core/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/byte_reader.h"
#include "core/mapped_file.h"
#include "core/npy_array.h"
#include "core/write_file.h"
#include "rlx/error.h"

namespace rlx {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 65'535;  // all that version 1 can say; plain arrays never need more
constexpr int64_t kMaxRank = 64;       // NumPy's own limit

struct ElementType {
  std::string_view code;  // as in descr, without the byte order
  DType dtype;
  size_t part;  // bytes that are reversed together in the other byte order
};
constexpr ElementType kElementTypes[] = {
    {"f4", DType::F32, 4}, {"f2", DType::F16, 2},  {"f8", DType::F64, 8}, {"i1", DType::I8, 1},  {"i2", DType::I16, 2},
    {"i4", DType::I32, 4}, {"i8", DType::I64, 8},  {"u1", DType::U8, 1},  {"u2", DType::U16, 2}, {"u4", DType::U32, 4},
    {"u8", DType::U64, 8}, {"b1", DType::Bool, 1}, {"c8", DType::C64, 4},
};

struct Header {
  const ElementType* element = nullptr;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> sizes;
};

// Reads the header's dict. It is Python source, but only the literals that NumPy writes are accepted.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted("key");
      expect(':');
      if (key == "descr") {
        once(key, has_descr);
        descr(header);
      } else if (key == "fortran_order") {
        once(key, has_order);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(key, has_shape);
        header.sizes = shape();
      } else {
        bad(str("key '", printable(key), "' is unknown"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) bad("something follows the dict");
    if (!has_descr) bad("key 'descr' is missing");
    if (!has_order) bad("key 'fortran_order' is missing");
    if (!has_shape) bad("key 'shape' is missing");
    return header;
  }

 private:
  [[noreturn]] void bad(std::string_view what) const {
    fail(ErrorKind::kInvalid, str("The .npy header is malformed at character ", at_, ": ", what, "."));
  }

  // Headers come from anywhere; a message should not carry control characters to a terminal, or kilobytes.
  static std::string printable(std::string_view text) {
    std::string out(text.substr(0, 40));
    for (char& c : out)
      if (c < ' ' || c > '~') c = '?';
    return out;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(str("'", c, "' is expected"));
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void once(std::string_view key, bool& seen) const {
    if (seen) bad(str("key '", key, "' is repeated"));
    seen = true;
  }

  std::string_view quoted(std::string_view what) {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') bad(str("a quoted ", what, " is expected"));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad(str("the quoted ", what, " does not end"));
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    if (inner.find('\\') != std::string_view::npos) bad(str("the quoted ", what, " holds a backslash"));
    at_ = end + 1;
    return inner;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) bad("True or False is expected");
    return false;
  }

  int64_t size() {
    skip_space();
    const size_t first = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        bad("a size does not fit 64 bits");
    if (at_ == first) bad("a size is expected");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      if (static_cast<int64_t>(sizes.size()) == kMaxRank) bad(str("the shape has more than ", kMaxRank, " sizes"));
      sizes.push_back(size());
      if (accept(',')) continue;
      expect(')');
      if (sizes.size() == 1) bad("the shape is a number, not a tuple");  // (3) is 3 in Python, (3,) is the tuple
      break;
    }
    return sizes;
  }

  void descr(Header& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      fail(ErrorKind::kUnsupported, "The .npy array holds records (a structured dtype), which rlx cannot read.");
    const std::string_view text = quoted("descr");
    const std::string_view order = text.substr(0, 1);
    if (order != "<" && order != ">" && order != "|" && order != "=")
      bad(str("descr '", printable(text), "' does not begin with a byte order (one of < > | =)"));
    const std::string_view code = text.substr(1);
    if (code.starts_with('O'))
      fail(ErrorKind::kUnsupported, "The .npy array holds Python objects, which rlx does not read.");
    for (const ElementType& e : kElementTypes)
      if (e.code == code) header.element = &e;
    if (header.element == nullptr)
      fail(ErrorKind::kUnsupported,
           str("The .npy array holds elements '", printable(text), "', which no dtype of rlx can hold."));
    if (order == "|" && header.element->part > 1) bad(str("descr '", text, "' has no byte order"));
    header.big_endian = order == ">";
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Reverses every group of `part` bytes.
void swap_bytes(std::span<std::byte> bytes, size_t part) {
  for (size_t i = 0; i + part <= bytes.size(); i += part) std::reverse(&bytes[i], &bytes[i] + part);
}

// The same elements with the last index fastest instead of the first.
Tensor from_fortran_order(const Tensor& source) {
  Tensor out(source.dtype(), source.sizes());
  const auto rank = static_cast<size_t>(source.rank());
  const size_t element = size_of(source.dtype());
  const std::vector<int64_t>& sizes = source.sizes();
  std::vector<int64_t> strides(rank, 1), index(rank, 0);  // strides of the source, in elements
  for (size_t i = 1; i < rank; ++i) strides[i] = strides[i - 1] * sizes[i - 1];
  const std::byte* from = source.bytes().data();
  std::byte* to = out.mutable_bytes().data();
  int64_t at = 0;
  for (int64_t n = source.num_elements(); n > 0; --n, to += element) {
    std::memcpy(to, from + at * static_cast<int64_t>(element), element);
    for (size_t axis = rank; axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      at -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Tensor read_npy_array(const ReadBytes& read, uint64_t size) {
  uint64_t left = size;
  const auto take = [&](std::span<std::byte> into, std::string_view what) {
    require(into.size() <= left, "The .npy array ends within its ", what, ": ", into.size(), " bytes are needed, ",
            left, " are there.");
    read(into);
    left -= into.size();
  };

  std::array<std::byte, 8> start;
  take(start, "magic number");
  require(std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0,
          "This is not an .npy array: it does not begin with \\x93NUMPY.");
  const auto major = std::to_integer<int>(start[6]), minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail(ErrorKind::kUnsupported, str("The .npy version (", major, ".", minor, ") is not 1.0, 2.0 or 3.0."));

  std::array<std::byte, 4> length_bytes = {};
  take(std::span(length_bytes).first(major == 1 ? 2 : 4), "header length");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes.size(); ++i) length |= std::to_integer<size_t>(length_bytes[i]) << (8 * i);
  require(length <= kMaxHeader, "The .npy header length (", length, ") is above ", kMaxHeader, ".");
  std::string text(std::min<uint64_t>(length, left), '\0');
  require(text.size() == length, "The .npy array ends within its header: ", length, " bytes are needed, ", left,
          " are there.");
  take(std::as_writable_bytes(std::span(text)), "header");
  const Header header = HeaderParser(text).parse();

  const TensorType type{Shape(header.sizes), header.element->dtype};
  const auto needed = static_cast<uint64_t>(type.size_bytes());
  require(needed <= left, "The .npy data is truncated: ", type, " needs ", needed, " bytes, ", left, " are there.");
  require(needed == left, "The .npy data is too long: ", type, " needs ", needed, " bytes, ", left, " are there.");
  Tensor tensor(type.dtype, header.sizes);
  if (needed == 0) return tensor;
  take(tensor.mutable_bytes(), "data");
  if (header.big_endian) swap_bytes(tensor.mutable_bytes(), header.element->part);
  if (type.dtype == DType::Bool)
    for (uint8_t& b : tensor.mutable_values<uint8_t>()) b = b != 0;  // stored as 0 or 1, whatever the file had
  return header.fortran_order && tensor.rank() > 1 ? from_fortran_order(tensor) : tensor;
}

NpyArray to_npy_array(const Tensor& tensor) {
  Tensor data = tensor.dtype() == DType::BF16 ? tensor.cast(DType::F32) : tensor;
  const auto* element = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                     [&](const ElementType& e) { return e.dtype == data.dtype(); });
  RLX_ASSERT(element != std::end(kElementTypes));
  std::string dict =
      str("{'descr': '", element->part > 1 ? '<' : '|', element->code, "', 'fortran_order': False, 'shape': (");
  for (const int64_t size : data.sizes()) dict += str(size, data.rank() == 1 ? "," : ", ");
  if (data.rank() > 1) dict.resize(dict.size() - 2);
  dict += "), }";
  // Padded with spaces so that the data, which a reader may map, begins at a multiple of 64.
  const size_t before = kMagic.size() + 4;
  dict.append((64 - (before + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  require(dict.size() <= kMaxHeader, "Tensor of rank (", data.rank(), ") does not fit an .npy header.");
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return {header + dict, std::move(data)};
}

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& where) {
  try {
    ByteReader reader(bytes, where);
    return read_npy_array(
        [&](std::span<std::byte> into) {
          const auto from = reader.bytes(into.size());
          if (!into.empty()) std::memcpy(into.data(), from.data(), into.size());
        },
        bytes.size());
  } catch (Error& e) {
    e.add_context(str("reading ", where));
    throw;
  }
}

Tensor read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_npy(file->bytes(), str("'", path, "'"));
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const NpyArray array = to_npy_array(tensor);
  write_file(path, {std::as_bytes(std::span(array.header)), array.data.bytes()});
}

}  // namespace rlx
