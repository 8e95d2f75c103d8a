#include "import/gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/thread_pool.h"
#include "core/write_file.h"
#include "import/gguf/gguf.h"
#include "rlx/error.h"
#include "rlx/log.h"
#include "rlx/scheme.h"

namespace rlx::gguf {

namespace {

// What a file's weights are made of, as general.file_type counts it.
struct Target {
  const char* name;
  uint32_t code;       // of tensors
  uint32_t file_type;  // of ggml
  uint32_t otherwise;  // where rows are no multiples of 256
};
constexpr Target kTargets[] = {
    {"F32", 0, 0, 0},    {"F16", 1, 1, 1},    {"BF16", 30, 32, 30}, {"Q4_0", 2, 2, 2},      {"Q4_1", 3, 3, 3},
    {"Q5_0", 6, 8, 6},   {"Q5_1", 7, 9, 7},   {"Q8_0", 8, 7, 8},    {"Q2_K", 10, 10, 20},   {"Q3_K", 11, 12, 20},
    {"Q4_K", 12, 15, 6}, {"Q5_K", 13, 17, 7}, {"Q6_K", 14, 18, 8},  {"IQ4_NL", 20, 25, 20}, {"IQ4_XS", 23, 30, 20},
};

const Target& find_target(std::string name) {
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string known;
  for (const Target& t : kTargets) {
    if (name == t.name) return t;
    known += str(known.empty() ? "" : ", ", t.name);
  }
  fail(ErrorKind::kInvalid, str("There is no type '", name, "' to quantise to; there are: ", known, "."));
}

bool is_plain(uint32_t code) { return code == 0 || code == 1 || code == 30; }

// Matrices that tokens are multiplied by, and tables; not norms, and not what is better left exact.
bool is_changed(const Tensor& t) {
  if (t.sizes.size() < 2 || !t.name.ends_with(".weight")) return false;
  if (t.name.find("_norm") != std::string::npos || t.name.find("ffn_gate_inp") != std::string::npos) return false;
  if (t.name.find("ssm_conv1d") != std::string::npos || t.name.find("rope_freqs") != std::string::npos) return false;
  if (t.name == "position_embd.weight" || t.name == "token_types.weight") return false;
  return is_plain(t.type) || scheme_of_ggml_code(static_cast<int>(t.type)).has_value();
}

constexpr uint32_t kQ8_0 = 8, kQ6K = 14;

// What the vocabulary's scores are computed with: the head, or the embeddings where they serve as one.
bool is_head(const File& file, const Tensor& t) {
  return t.name == "output.weight" || (t.name == "token_embd.weight" && file.find_tensor("output.weight") == nullptr);
}

uint32_t new_type(const File& file, const Tensor& t, const Target& target) {
  if (!is_changed(t)) return t.type;
  const int64_t row = t.sizes.back();
  // Its few bits cost more than those of all layers, so that llama.cpp keeps it finer, too.
  if (is_head(file, t) && !is_plain(target.code) && target.code != kQ8_0 && row % 32 == 0)
    return row % 256 == 0 ? kQ6K : kQ8_0;
  const uint32_t wanted = row % type_info(target.code)->block == 0 ? target.code : target.otherwise;
  return row % type_info(wanted)->block == 0 ? wanted : t.type;
}

int64_t rows_of(const Tensor& t) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < t.sizes.size(); ++i) rows *= t.sizes[i];
  return rows;
}

int64_t row_bytes(uint32_t type, int64_t row) { return row / type_info(type)->block * type_info(type)->bytes; }

void decode_row(uint32_t type, const std::byte* bytes, std::span<float> out) {
  const auto half = [&](size_t i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, 2);
    return bits;
  };
  if (type == 0)
    std::memcpy(out.data(), bytes, out.size_bytes());
  else if (type == 1)
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(f16_to_double(half(i)));
  else if (type == 30)
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(bf16_to_double(half(i)));
  else
    decode_blocks(*scheme_of_ggml_code(static_cast<int>(type)), reinterpret_cast<const uint8_t*>(bytes),
                  static_cast<int64_t>(out.size()), out.data());
}

void encode_row(uint32_t type, std::span<const float> x, std::byte* out) {
  if (type == 0) {
    std::memcpy(out, x.data(), x.size_bytes());
  } else if (type == 1 || type == 30) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]);
      const uint16_t bits = type == 1 ? f16_from_double(v) : bf16_from_double(v);
      std::memcpy(out + 2 * i, &bits, 2);
    }
  } else {
    encode_blocks(*scheme_of_ggml_code(static_cast<int>(type)), x.data(), static_cast<int64_t>(x.size()),
                  reinterpret_cast<uint8_t*>(out));
  }
}

class Writer {
 public:
  template <class T>
  void number(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  void text(std::string_view s) {
    number(static_cast<uint64_t>(s.size()));
    raw(std::as_bytes(std::span(s)));
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void pad(size_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

constexpr uint32_t kU32 = 4;  // of metadata values

std::vector<std::byte> header(const File& file, const Target& target, size_t alignment) {
  Writer w;
  std::vector<const std::pair<const std::string, Value>*> kept;
  for (const auto& pair : file.metadata())
    if (!pair.first.starts_with("split.") && pair.first != "general.file_type" &&
        pair.first != "general.quantization_version")
      kept.push_back(&pair);
  w.text("");  // room for the magic number and the version
  w.number(static_cast<uint64_t>(file.tensors().size()));
  w.number(static_cast<uint64_t>(kept.size() + 2));
  for (const auto* pair : kept) {
    w.text(pair->first);
    w.raw(pair->second.raw);
  }
  w.text("general.file_type"), w.number(kU32), w.number(target.file_type);
  w.text("general.quantization_version"), w.number(kU32), w.number(uint32_t{2});
  uint64_t offset = 0;
  for (const Tensor& t : file.tensors()) {
    const uint32_t type = new_type(file, t, target);
    w.text(t.name);
    w.number(static_cast<uint32_t>(t.sizes.size()));
    for (size_t i = t.sizes.size(); i-- > 0;) w.number(static_cast<uint64_t>(t.sizes[i]));
    w.number(type);
    w.number(offset);
    const int64_t bytes = t.sizes.empty() ? type_info(type)->bytes : rows_of(t) * row_bytes(type, t.sizes.back());
    offset += (static_cast<uint64_t>(bytes) + alignment - 1) / alignment * alignment;
  }
  w.pad(alignment);
  std::vector<std::byte> out(w.bytes().begin(), w.bytes().end());
  const uint32_t magic = 0x46554747, version = 3;
  std::memcpy(out.data(), &magic, 4);
  std::memcpy(out.data() + 4, &version, 4);
  return out;
}

}  // namespace

QuantizeResult quantize_file(const std::string& in, const std::string& out, const std::string& type) {
  const Target& target = find_target(type);
  const File file = File::open(in);
  require(file.version() >= 2, in, " has GGUF version 1, whose metadata cannot be copied.");
  const auto alignment = static_cast<size_t>(file.integer("general.alignment").value_or(32));
  QuantizeResult result;
  constexpr int64_t kRowsAtOnce = 4096;  // in memory
  ThreadPool pool;
  write_file(out, [&](const WritePart& write) {
    write(header(file, target, alignment));
    const std::vector<std::byte> zeros(alignment);
    for (size_t n = 0; n < file.tensors().size(); ++n) {
      const Tensor& t = file.tensors()[n];
      progress(str("quantising ", t.name), static_cast<double>(n) / static_cast<double>(file.tensors().size()));
      const uint32_t to = new_type(file, t, target);
      int64_t written = static_cast<int64_t>(t.bytes.size());
      if (to == t.type) {
        write(t.bytes);
        ++result.kept;
      } else {
        const int64_t row = t.sizes.back(), from_bytes = row_bytes(t.type, row), to_bytes = row_bytes(to, row);
        for (int64_t begin = 0; begin < rows_of(t); begin += kRowsAtOnce) {
          const int64_t rows = std::min(kRowsAtOnce, rows_of(t) - begin);
          std::vector<std::byte> packed(static_cast<size_t>(rows * to_bytes));
          pool.parallel_for(0, rows, 1, [&](int64_t from, int64_t end) {
            std::vector<float> values(static_cast<size_t>(row));
            for (int64_t r = from; r < end; ++r) {
              decode_row(t.type, t.bytes.data() + (begin + r) * from_bytes, values);
              require(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }), in, ": tensor '", t.name,
                      "' holds numbers that are not finite, in row ", begin + r, ".");
              encode_row(to, values, packed.data() + r * to_bytes);
            }
          });
          write(packed);
        }
        written = rows_of(t) * to_bytes;
        ++result.changed;
      }
      result.bytes_before += static_cast<int64_t>(t.bytes.size());
      result.bytes_after += written;
      if (const size_t rest = static_cast<size_t>(written) % alignment; rest > 0)
        write(std::span(zeros).first(alignment - rest));
    }
  });
  return result;
}

}  // namespace rlx::gguf
