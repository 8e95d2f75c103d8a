// Any texts as the files of a Hugging Face folder: it is refused by rlx::Error, or its model becomes a graph and its
// tokenizer one; nothing else. Zero bytes part the files, in the order below; an empty one is not there. Weights are
// zeros, and written as {"name": ["F32", [2, 3]], …}: where each one lies follows, so that a size can change alone.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "build_model.h"
#include "generate/language_model.h"
#include "import/json.h"
#include "models/hf_source.h"

namespace {

namespace fs = std::filesystem;
using rlx::Json;

constexpr const char* kTexts[] = {"config.json",  "tokenizer.json",        "tokenizer_config.json",
                                  "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"};
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr uint64_t kMostZeros = 1 << 22;

constexpr auto kReplace = Json::error_handler_t::replace;

// More than kMostZeros where the sizes are such, or none.
uint64_t bytes_of(const std::string& dtype, const Json& shape) {
  uint64_t bytes = dtype.ends_with("8") ? 1 : dtype.ends_with("16") ? 2 : dtype.ends_with("64") ? 8 : 4;
  bool empty = false;
  for (const Json& size : shape) {
    if (!size.is_number_unsigned()) return 0;
    empty |= size == 0;
    bytes = std::min(bytes * std::min(size.get<uint64_t>(), kMostZeros + 1), kMostZeros + 1);
  }
  return empty ? 0 : bytes;
}

// A folder that goes with the process.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rlx-hf-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    fs::create_directory(root_ / "1_Pooling");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string path() const { return root_.string(); }

  void put(const char* name, std::string_view content, uint64_t zeros = 0) {
    if (content.empty()) {
      fs::remove(root_ / name);
      return;
    }
    std::ofstream(root_ / name, std::ios::binary) << content;
    if (zeros > 0) fs::resize_file(root_ / name, content.size() + zeros);
  }
  void put_weights(const char* name, std::string_view text) {
    if (text.empty()) return put(name, "");
    Json header = Json::parse(text, nullptr, false);
    uint64_t end = 0;
    if (header.is_object())
      for (auto& [tensor, entry] : header.items()) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array()) continue;
        const std::string dtype = entry[0];
        const uint64_t begin = end;
        end += bytes_of(dtype, entry[1]);
        entry = {{"dtype", dtype}, {"shape", Json(entry[1])}, {"data_offsets", {begin, end}}};
      }
    const std::string written = header.is_discarded() ? std::string(text) : header.dump(-1, ' ', true, kReplace);
    const uint64_t length = written.size();
    put(name, std::string(reinterpret_cast<const char*>(&length), sizeof length) + written, std::min(end, kMostZeros));
  }

 private:
  fs::path root_;
};

// What is before the next zero byte, which is taken off.
std::string_view next_part(std::string_view& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx;
  static Folder folder;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const char* name : kTexts) folder.put(name, next_part(input));
  const std::string_view index = next_part(input), first = next_part(input), second = next_part(input);
  folder.put(kIndex, index);
  folder.put_weights("model.safetensors", index.empty() ? first : "");
  folder.put_weights("a.safetensors", index.empty() ? "" : first);
  folder.put_weights("b.safetensors", index.empty() ? "" : second);
  fuzz::try_step([&] { fuzz::build_model(models::HfSource(folder.path()), size); });
  fuzz::try_step([&] { fuzz::tokenize(generate::open_language_model(folder.path()).tokenizer); });
  return 0;
}

// Half of the changes give a number of one of the files another value: texts seldom stay JSON by chance.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  constexpr std::string_view kNumbers[] = {
      "0", "1", "3", "64", "16385", "2147483647", "144115188075855872", "9223372036854775807", "-1", "0.5", "1e300"};
  std::minstd_rand random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  const auto is_digit = [&](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  std::vector<std::vector<size_t>> files(1);  // where their numbers begin
  for (size_t i = 1; i < size; ++i) {
    if (text[i] == '\0' && !files.back().empty()) files.emplace_back();
    if (is_digit(i) && std::string_view(":[, ").find(text[i - 1]) != std::string_view::npos) files.back().push_back(i);
  }
  if (files.back().empty()) files.pop_back();
  if (random() % 2 == 0 || files.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const std::vector<size_t>& starts = files[random() % files.size()];
  const size_t begin = starts[random() % starts.size()];
  size_t end = begin;
  while (end < size && is_digit(end)) ++end;
  text.replace(begin, end - begin, kNumbers[random() % std::size(kNumbers)]);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
