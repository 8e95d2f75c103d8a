#include "import/onnx/tensor_proto.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/convert.h"
#include "import/onnx/elem_type.h"
#include "import/onnx/protobuf.h"
#include "rlx/shape.h"

namespace rlx::onnx {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// The fields of a TensorProto that hold elements.
struct Elements {
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  // int32_data, int64_data, uint64_data: the low bits count
  std::vector<std::string_view> strings;
};

template <class Packed, class Single, class T>
void read_numbers(pbf_reader& r, Packed packed, Single single, std::vector<T>& out) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (const auto x : packed(r)) out.push_back(static_cast<T>(x));
  } else {
    out.push_back(static_cast<T>(single(r)));
  }
}

Elements read_elements(std::string_view message) {
  Elements e;
  pbf_reader r(message.data(), message.size());
  while (r.next()) switch (r.tag()) {
      case 4:
        read_numbers(
            r, [](auto& x) { return x.get_packed_float(); }, [](auto& x) { return x.get_float(); }, e.floats);
        break;
      case 5:
        read_numbers(
            r, [](auto& x) { return x.get_packed_int32(); }, [](auto& x) { return x.get_int32(); }, e.ints);
        break;
      case 6: {
        const protozero::data_view view = r.get_view();
        e.strings.emplace_back(view.data(), view.size());
        break;
      }
      case 7:
        read_numbers(
            r, [](auto& x) { return x.get_packed_int64(); }, [](auto& x) { return x.get_int64(); }, e.ints);
        break;
      case 9: {
        const protozero::data_view view = r.get_view();
        e.raw = {view.data(), view.size()};
        break;
      }
      case 10:
        read_numbers(
            r, [](auto& x) { return x.get_packed_double(); }, [](auto& x) { return x.get_double(); }, e.doubles);
        break;
      case 11:
        read_numbers(
            r, [](auto& x) { return x.get_packed_uint64(); }, [](auto& x) { return x.get_uint64(); }, e.ints);
        break;
      default: r.skip();
    }
  return e;
}

std::string_view label(const TensorProto& proto) { return proto.name.empty() ? "(without a name)" : proto.name; }

int64_t count_of(const TensorProto& proto) {
  for (const int64_t d : proto.dims)
    require(d >= 0, "Tensor '", label(proto), "' has a negative size (", d, ") in ", proto.dims, ".");
  return product(proto.dims);
}

size_t packed_bytes(int64_t count, int bits) {
  return static_cast<size_t>(checked_add(checked_mul(count, bits), 7) / 8);
}

void require_count(const TensorProto& proto, size_t given, int64_t count) {
  require(given == static_cast<size_t>(count), "Tensor '", label(proto), "' has ", given, " elements, but its sizes ",
          proto.dims, " say ", count, ".");
}

// Elements of less than a byte, the first in the low bits, one per byte.
Tensor unpack(const TensorProto& proto, std::span<const std::byte> packed, int64_t count) {
  const int bits = bits_per_element(proto.elem);
  const DType dtype = storage_of(proto.elem);
  const int per_byte = 8 / bits;
  Tensor t(dtype, proto.dims);
  for (int64_t i = 0; i < count; ++i) {
    const int shift = static_cast<int>(i % per_byte) * bits;
    int code = (static_cast<int>(packed[static_cast<size_t>(i / per_byte)]) >> shift) & ((1 << bits) - 1);
    if (dtype == DType::I8 && (code >> (bits - 1)) != 0) code -= 1 << bits;
    t.mutable_bytes()[static_cast<size_t>(i)] = static_cast<std::byte>(code);
  }
  return t;
}

Tensor from_bytes(const TensorProto& proto, std::span<const std::byte> bytes, int64_t count,
                  std::shared_ptr<const void> owner) {
  const int bits = bits_per_element(proto.elem);
  const size_t expected = packed_bytes(count, bits);
  require(bytes.size() == expected, "Tensor '", label(proto), "' (", name(proto.elem), ") has ", bytes.size(),
          " bytes of data, but its sizes ", proto.dims, " need ", expected, ".");
  if (bits < 8) return unpack(proto, bytes, count);
  const Tensor borrowed = Tensor::borrow(storage_of(proto.elem), proto.dims, bytes, std::move(owner));
  const auto is_wrong_bool = [](std::byte b) { return b > std::byte{1}; };
  if (proto.elem != ElemType::kBool || std::none_of(bytes.begin(), bytes.end(), is_wrong_bool)) return borrowed;
  Tensor t = borrowed.clone();  // kernels rely on 0 and 1
  for (std::byte& b : t.mutable_bytes()) b = std::min(b, std::byte{1});
  return t;
}

Tensor from_elements(const TensorProto& proto, const Elements& e, int64_t count) {
  const DType dtype = storage_of(proto.elem);
  switch (proto.elem) {
    case ElemType::kFloat: require_count(proto, e.floats.size(), count); return Tensor::f32(proto.dims, e.floats);
    case ElemType::kDouble:
      require_count(proto, e.doubles.size(), count);
      return Tensor::of<double>(dtype, proto.dims, e.doubles);
    case ElemType::kComplex64: {
      require_count(proto, e.floats.size(), checked_mul(count, 2));
      Tensor t(dtype, proto.dims);
      if (count > 0) std::memcpy(t.mutable_bytes().data(), e.floats.data(), t.bytes().size());
      return t;
    }
    default: break;
  }
  if (bits_per_element(proto.elem) < 8) {
    const size_t bytes = packed_bytes(count, bits_per_element(proto.elem));
    require(e.ints.size() == bytes, "Tensor '", label(proto), "' has ", e.ints.size(), " packed bytes, but its sizes ",
            proto.dims, " need ", bytes, ".");
    std::vector<std::byte> packed;
    for (const int64_t i : e.ints) packed.push_back(static_cast<std::byte>(i));
    return unpack(proto, packed, count);
  }
  require_count(proto, e.ints.size(), count);
  Tensor t(dtype, proto.dims);
  std::byte* out = t.mutable_bytes().data();
  const size_t size = size_of(dtype);  // halves are bit patterns in the low bytes; integers keep their low bytes
  for (size_t i = 0; i < e.ints.size(); ++i) {
    const int64_t value = dtype == DType::Bool ? int64_t{e.ints[i] != 0} : e.ints[i];
    std::memcpy(out + i * size, &value, size);
  }
  return t;
}

uint64_t parse_number(std::string_view text, std::string_view what) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  require(error == std::errc() && end == text.data() + text.size(), "External data's ", what, " ('", text,
          "') is not a number.");
  return n;
}

}  // namespace

TensorSource::TensorSource(std::shared_ptr<const void> owner, std::string folder)
    : owner_(std::move(owner)), folder_(std::move(folder)) {}

std::span<const std::byte> TensorSource::external_bytes(const TensorProto& proto, size_t expected,
                                                        std::shared_ptr<const void>& owner) const {
  std::string_view location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& [key, value] : proto.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = parse_number(value, key);
    if (key == "length") length = parse_number(value, key);
  }
  require(!location.empty(), "Tensor '", label(proto), "' has external data without a location.");
  require(location.find('\0') == std::string_view::npos, "Tensor '", label(proto),
          "' has a zero byte in its location.");
  require(!folder_.empty(), "Tensor '", label(proto), "' has external data, but the model is not a file.");
  const std::filesystem::path path{std::string(location)};
  bool inside = path.is_relative();
  for (const auto& part : path) inside &= part != "..";
  const std::filesystem::path full = std::filesystem::path(folder_) / path;
  std::error_code missing, no_root;
  const auto real = std::filesystem::canonical(full, missing), root = std::filesystem::canonical(folder_, no_root);
  if (inside && !missing && !no_root) {  // a link may lead outside as well; what is missing is said when it is opened
    const auto relative = real.lexically_relative(root);
    inside = !relative.empty() && *relative.begin() != "..";
  }
  require(inside, "Tensor '", label(proto), "' has its data in '", location,
          "', which is not inside the model's folder.");
  auto& file = files_[full.string()];
  if (!file) file = MappedFile::open(full.string());
  const std::span<const std::byte> bytes = file->bytes();
  const uint64_t wanted = length.value_or(expected);
  require(offset <= bytes.size() && wanted <= bytes.size() - offset, "Tensor '", label(proto), "' wants ", wanted,
          " bytes at offset ", offset, " of '", location, "', which has ", bytes.size(), ".");
  owner = file;
  return bytes.subspan(offset, wanted);
}

HostValue TensorSource::value(const TensorProto& proto) const {
  const int64_t count = count_of(proto);
  try {
    if (proto.is_external) {
      std::shared_ptr<const void> owner;
      const size_t expected = packed_bytes(count, bits_per_element(proto.elem));
      const std::span<const std::byte> bytes = external_bytes(proto, expected, owner);
      return {proto.elem, from_bytes(proto, bytes, count, owner)};
    }
    const Elements e = read_elements(proto.message);
    if (proto.elem == ElemType::kString) {
      require_count(proto, e.strings.size(), count);
      return HostValue(Strings{proto.dims, {e.strings.begin(), e.strings.end()}});
    }
    if (e.raw) {
      const auto bytes = std::as_bytes(std::span(e.raw->data(), e.raw->size()));
      return {proto.elem, from_bytes(proto, bytes, count, owner_)};
    }
    return {proto.elem, from_elements(proto, e, count)};
  } catch (const protozero::exception& e) {
    fail(ErrorKind::kInvalid, str("Tensor '", label(proto), "' is not a valid protobuf message (", e.what(), ")."));
  }
}

HostValue TensorSource::value(const DataProto& data, const TypeProto& type) const {
  static const TypeProto unknown;
  const TypeProto& inner = type.inner ? *type.inner : unknown;
  if (type.kind == TypeProto::Kind::kOptional) {
    if (!data.present) return {};
    require(!data.tensors.empty() || !data.items.empty(), "The data is not an optional.");
    return data.tensors.empty() ? value(data.items[0], inner) : value(data.tensors[0]);
  }
  if (type.kind == TypeProto::Kind::kSequence) {
    std::vector<HostValue> items;
    for (const TensorProto& t : data.tensors) items.push_back(value(t));
    for (const DataProto& d : data.items) items.push_back(value(d, inner));
    return HostValue(std::move(items));
  }
  require(data.tensors.size() == 1, "The data is not one tensor.");
  return value(data.tensors[0]);
}

}  // namespace rlx::onnx
