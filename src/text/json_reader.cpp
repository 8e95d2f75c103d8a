#include "text/json_reader.h"
#include "text/unicode.h"

namespace rlx::text {

Json parse_json(std::string_view text, std::string_view what) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    // The library's sentence follows its own prefix: "[json.exception.parse_error.101] parse error at line 1, ...".
    std::string_view why = e.what();
    if (const size_t end = why.find("] "); end != std::string_view::npos) why.remove_prefix(end + 2);
    fail(ErrorKind::kInvalid, str(what, " is not valid JSON: ", excerpt(why, 200), "."));
  }
}

JsonReader JsonReader::at(const char* key) const {
  require(json_->is_object(), "'", path_, "' is not an object.");
  const auto found = json_->find(key);
  require(found != json_->end(), "'", path_, "' has no '", key, "'.");
  return {*found, path_.empty() ? key : str(path_, ".", key)};
}

size_t JsonReader::array_size() const {
  require(json_->is_array(), "'", path_, "' is not an array.");
  return json_->size();
}

std::string JsonReader::string() const {
  require(json_->is_string(), "'", path_, "' is not a string.");
  return json_->get<std::string>();
}

bool JsonReader::boolean() const {
  require(json_->is_boolean(), "'", path_, "' is not true or false.");
  return json_->get<bool>();
}

int64_t JsonReader::integer() const {
  require(json_->is_number_integer(), "'", path_, "' is not an integer.");
  require(!json_->is_number_unsigned() || json_->get<uint64_t>() <= INT64_MAX, "'", path_, "' is too large.");
  return json_->get<int64_t>();
}

double JsonReader::number() const {
  require(json_->is_number(), "'", path_, "' is not a number.");
  return json_->get<double>();
}

std::string JsonReader::string_or(const char* key, std::string_view otherwise) const {
  return has(key) ? at(key).string() : std::string(otherwise);
}

void JsonReader::unsupported(std::string_view kind) const {
  fail(ErrorKind::kUnsupported, str("The ", kind, " '", type(), "' of '", path_, "' is not one that rlx knows."));
}

}  // namespace rlx::text
