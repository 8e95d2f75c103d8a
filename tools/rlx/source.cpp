#include "source.h"

#include <charconv>

#include "core/npy.h"
#include "random.h"
#include "sound.h"

namespace rlx::cli {

namespace {

// 2x3x4, or scalar.
std::vector<int64_t> parse_sizes(std::string_view text) {
  std::vector<int64_t> sizes;
  if (text == "scalar") return sizes;
  for (std::string_view rest = text;;) {
    const size_t x = rest.find('x');
    const std::string_view part = rest.substr(0, x);
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    require(error == std::errc() && end == part.data() + part.size() && size >= 0, "Shape '", text,
            "' is not sizes like 2x3x4, nor 'scalar'.");
    sizes.push_back(size);
    if (x == rest.npos) return sizes;
    rest.remove_prefix(x + 1);
  }
}

uint64_t parse_seed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  require(error == std::errc() && end == text.data() + text.size(), "Seed '", text, "' is not a whole number from 0.");
  return seed;
}

bool fits(const TensorType& declared, const std::vector<int64_t>& sizes) {
  bool ok = declared.rank() == static_cast<int64_t>(sizes.size());
  for (int64_t i = 0; ok && i < declared.rank(); ++i)
    ok = !declared.dim(i).is_static() || declared.dim(i).is(sizes[static_cast<size_t>(i)]);
  return ok;
}

// random:SHAPE[:seed]
Tensor random_of(std::string_view spec, const Port& port, std::string_view kind) {
  const size_t colon = spec.find(':');
  const std::vector<int64_t> sizes = parse_sizes(spec.substr(0, colon));
  const uint64_t seed = colon == spec.npos ? 0 : parse_seed(spec.substr(colon + 1));
  // Before the numbers are made: a wrong size may be a large one.
  require(fits(port.type, sizes), kind, " '", port.name, "' is ", port.type, ", which random:", spec, " is not.");
  return random_tensor(seed, port.name, port.type.dtype, sizes);
}

// file.npz:key; without a key the only array, or the one with the port's name.
Tensor array_of(const std::string& path, const std::optional<std::string>& key, const std::string& port) {
  std::map<std::string, Tensor> arrays = read_npz(path);
  std::string known;
  for (const auto& [name, tensor] : arrays) known += str(known.empty() ? "" : ", ", "'", name, "'");
  if (!key && arrays.size() == 1) return arrays.begin()->second;
  const auto it = arrays.find(key.value_or(port));
  if (!key)
    require(it != arrays.end(), "File '", path, "' holds ", arrays.size(), " arrays, none of them '", port,
            "'; name one as ", path, ":NAME. There are: ", known, ".");
  require(it != arrays.end(), "File '", path, "' holds no array '", key.value_or(port), "'; there are: ", known, ".");
  return it->second;
}

}  // namespace

Tensor as_declared(Tensor tensor, const Port& port, std::string_view kind) {
  const DType from = tensor.dtype(), to = port.type.dtype;
  if (from == to) return tensor;
  if (is_float(from) && is_float(to)) return tensor.cast(to);  // bf16 as well, which NumPy does not have
  if (!is_int(from) || !is_int(to)) return tensor;
  Tensor out = tensor.cast(to);
  require(out.cast(from) == tensor, kind, " '", port.name, "' is ", port.type,
          ", which does not hold all of the values given (", tensor.type(), ").");
  return out;
}

namespace {

template <class T>
std::optional<T> parse_as(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool is_number(const std::string& spec) { return parse_as<double>(spec).has_value(); }

Tensor filled(const std::string& number, const Port& port, std::vector<int64_t> sizes, std::string_view kind) {
  const auto count = static_cast<size_t>(product(sizes));
  if (is_float(port.type.dtype) || is_complex(port.type.dtype))
    return Tensor::from_doubles(port.type.dtype, std::move(sizes),
                                std::vector<double>(count, *parse_as<double>(number)));
  const auto whole = parse_as<int64_t>(number);  // all 64 bits of it, which a double does not hold
  require(whole.has_value(), kind, " '", port.name, "' (", port.type, ") cannot be ", number, ".");
  const Tensor wide = Tensor::i64(std::move(sizes), std::vector<int64_t>(count, *whole));
  return port.type.dtype == DType::Bool ? wide.cast(DType::Bool) : as_declared(wide, port, kind);
}

Tensor read_untyped_source(const std::string& spec, const std::string& input, const std::string& text) {
  if (const size_t at = spec.rfind(".npz:"); at != spec.npos)
    return array_of(spec.substr(0, at + 4), spec.substr(at + 5), input);
  if (spec.ends_with(".npz")) return array_of(spec, std::nullopt, input);
  require(spec.ends_with(".npy"), "Input '", input, "' is ", text,
          " and takes .npy and .npz files only, because the model does not say its shape.");
  return read_npy(spec);
}

Tensor read_source(const std::string& spec, const Port& port, const TensorType& known, std::string_view kind,
                   const ImageArgs& image) {
  constexpr std::string_view kRandom = "random:";
  if (spec.starts_with(kRandom)) return random_of(std::string_view(spec).substr(kRandom.size()), port, kind);
  if (const size_t at = spec.rfind(".npz:"); at != spec.npos)
    return as_declared(array_of(spec.substr(0, at + 4), spec.substr(at + 5), port.name), port, kind);
  if (spec.ends_with(".npz")) return as_declared(array_of(spec, std::nullopt, port.name), port, kind);
  if (is_image(spec)) return read_image(spec, port.name, known, image);
  if (is_sound(spec)) return read_sound(spec, port.name, known);
  return as_declared(read_npy(spec), port, kind);
}

}  // namespace rlx::cli
