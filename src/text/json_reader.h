// Typed access to a JSON value whose errors say where in the file it stands.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/error.h"

namespace rlx::text {

using Json = nlohmann::json;

// Throws one sentence where the text is no JSON.
Json parse_json(std::string_view text, std::string_view what);

class JsonReader {
 public:
  JsonReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const Json& json() const { return *json_; }
  const std::string& path() const { return path_; }

  bool has(const char* key) const { return json_->is_object() && json_->contains(key) && !(*json_)[key].is_null(); }
  JsonReader at(const char* key) const;  // throws where it is missing
  std::optional<JsonReader> find(const char* key) const { return has(key) ? std::optional(at(key)) : std::nullopt; }
  JsonReader element(size_t i) const { return {(*json_)[i], str(path_, "[", i, "]")}; }
  size_t array_size() const;  // throws where it is no array

  std::string string() const;
  bool boolean() const;
  int64_t integer() const;
  double number() const;
  std::string type() const { return at("type").string(); }

  std::string string_or(const char* key, std::string_view otherwise) const;
  bool boolean_or(const char* key, bool otherwise) const { return has(key) ? at(key).boolean() : otherwise; }
  int64_t integer_or(const char* key, int64_t otherwise) const { return has(key) ? at(key).integer() : otherwise; }

  [[noreturn]] void unsupported(std::string_view kind) const;

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace rlx::text
