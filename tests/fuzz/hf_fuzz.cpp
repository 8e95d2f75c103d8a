// Any texts as the files of a Hugging Face folder: it is refused by rlx::Error, or its model becomes a graph and its
// tokenizer one; nothing else. Zero bytes part the files, in the order below; an empty one is not there. Weights are a
// number and the header of a safetensors file, which gets so many bytes of zeros: what matters of them are sizes.
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "build_model.h"
#include "generate/language_model.h"
#include "models/hf_source.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kTexts[] = {"config.json",  "tokenizer.json",        "tokenizer_config.json",
                                  "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"};
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr uint64_t kMostZeros = 1 << 22;

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
    uint64_t zeros = 0;
    const char* const end = text.data() + text.size();
    text = {std::from_chars(text.data(), end, zeros).ptr, end};
    const uint64_t length = text.size();
    put(name, std::string(reinterpret_cast<const char*>(&length), sizeof length).append(text), zeros % kMostZeros);
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
