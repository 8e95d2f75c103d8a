#include "text/post_processor.h"

namespace rlx::text {
namespace {

int32_t read_id(const JsonReader& json, const Vocabulary& vocabulary) {
  const int64_t id = json.integer();
  require(id >= 0 && id < vocabulary.size(), "'", json.path(), "' (", id, ") is not an id of the vocabulary.");
  return static_cast<int32_t>(id);
}

// ["[SEP]", 102]
int32_t read_named_id(const JsonReader& json, const Vocabulary& vocabulary) {
  require(json.array_size() == 2, "'", json.path(), "' is not a token and its id.");
  return read_id(json.element(1), vocabulary);
}

PostProcessor around(std::vector<int32_t> before, std::vector<int32_t> after) {
  return [=](std::vector<int32_t>& ids) {
    ids.insert(ids.begin(), before.begin(), before.end());
    ids.insert(ids.end(), after.begin(), after.end());
  };
}

PostProcessor template_processing(const JsonReader& json, const Vocabulary& vocabulary) {
  std::vector<int32_t> before, after;
  bool seen = false;
  const JsonReader items = json.at("single");
  for (size_t i = 0; i < items.array_size(); ++i) {
    const JsonReader item = items.element(i);
    if (item.has("Sequence")) {
      require(!seen, "'", items.path(), "' has the text more than once.");
      seen = true;
      continue;
    }
    const std::string name = item.at("SpecialToken").at("id").string();
    const JsonReader ids = json.at("special_tokens").at(name.c_str()).at("ids");
    for (size_t k = 0; k < ids.array_size(); ++k)
      (seen ? after : before).push_back(read_id(ids.element(k), vocabulary));
  }
  require(seen, "'", items.path(), "' does not have the text.");
  return around(std::move(before), std::move(after));
}

void read(const JsonReader& json, const Vocabulary& vocabulary, std::vector<PostProcessor>& steps) {
  const std::string type = json.type();
  if (type == "Sequence") {
    const JsonReader parts = json.at("processors");
    for (size_t i = 0; i < parts.array_size(); ++i) read(parts.element(i), vocabulary, steps);
  } else if (type == "TemplateProcessing") {
    steps.push_back(template_processing(json, vocabulary));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    steps.push_back(around({read_named_id(json.at("cls"), vocabulary)}, {read_named_id(json.at("sep"), vocabulary)}));
  } else if (type != "ByteLevel") {  // that one moves offsets alone
    json.unsupported("post-processor");
  }
}

}  // namespace

std::vector<PostProcessor> read_post_processors(const JsonReader& json, const Vocabulary& vocabulary) {
  std::vector<PostProcessor> steps;
  if (!json.json().is_null()) read(json, vocabulary, steps);
  return steps;
}

}  // namespace rlx::text
