// Typed access to an object of JSON. What is null is not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/json.h"
#include "rlx/error.h"

namespace rlx::models::hf {

class JsonFields {
 public:
  JsonFields(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Json* find(const char* key) const {
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
  }
  // Of 32 bits, more than any model needs: products of two do not overflow.
  std::optional<int64_t> integer(const char* key) const {
    const Json* v = find(key);
    if (v == nullptr) return std::nullopt;
    require(v->is_number_integer(), where_, ": '", key, "' is not an integer.");
    const auto value = v->get<int64_t>();
    const bool wraps = v->is_number_unsigned() && value < 0;
    require(!wraps && value >= INT32_MIN && value <= INT32_MAX, where_, ": '", key, "' (", v->dump(),
            ") does not fit 32 bits.");
    return value;
  }
  std::optional<double> number(const char* key) const {
    const Json* v = find(key);
    if (v == nullptr) return std::nullopt;
    require(v->is_number(), where_, ": '", key, "' is not a number.");
    return v->get<double>();
  }
  std::optional<bool> boolean(const char* key) const {
    const Json* v = find(key);
    if (v == nullptr) return std::nullopt;
    require(v->is_boolean(), where_, ": '", key, "' is not true or false.");
    return v->get<bool>();
  }
  std::optional<std::string> text(const char* key) const {
    const Json* v = find(key);
    if (v == nullptr) return std::nullopt;
    require(v->is_string(), where_, ": '", key, "' is not a text.");
    return v->get<std::string>();
  }
  std::vector<float> floats(const char* key) const {
    const Json* v = find(key);
    std::vector<float> out;
    if (v == nullptr) return out;
    require(v->is_array(), where_, ": '", key, "' is not a list.");
    for (const Json& item : *v) {
      require(item.is_number(), where_, ": '", key, "' holds something that is no number.");
      out.push_back(static_cast<float>(item.get<double>()));
    }
    return out;
  }
  std::vector<std::string> texts(const char* key) const {
    const Json* v = find(key);
    std::vector<std::string> out;
    if (v == nullptr) return out;
    require(v->is_array(), where_, ": '", key, "' is not a list.");
    for (const Json& item : *v) {
      require(item.is_string(), where_, ": '", key, "' holds something that is no text.");
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  std::optional<JsonFields> object(const char* key) const {
    const Json* v = find(key);
    if (v == nullptr) return std::nullopt;
    require(v->is_object(), where_, ": '", key, "' is not an object.");
    return JsonFields(*v, where_);
  }

 private:
  const Json* json_;
  std::string where_;
};

}  // namespace rlx::models::hf
