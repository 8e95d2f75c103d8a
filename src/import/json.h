// JSON that came from a file: parsed with a limit on nesting, keys that are given twice refused, one sentence for what
// is wrong with it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rlx {

using Json = nlohmann::json;

// `where` names the text in errors: a file, or a part of one.
Json parse_json(std::string_view text, const std::string& where);
Json read_json(const std::string& path);

}  // namespace rlx
