#include "import/json.h"

#include <set>
#include <vector>

#include "core/mapped_file.h"
#include "rlx/error.h"

namespace rlx {

namespace {

constexpr int kMaxDepth = 64;

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string, std::less<>>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start)
      require(depth < kMaxDepth, where, ": JSON is nested more than ", kMaxDepth, " deep.");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      require(keys.back().insert(key).second, where, ": '", key, "' is given twice.");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& e) {
    // The library's sentence follows its own prefix: "[json.exception.parse_error.101] parse error at line 1, …".
    std::string_view why = e.what();
    if (const size_t end = why.find("] "); end != std::string_view::npos) why.remove_prefix(end + 2);
    fail(ErrorKind::kInvalid, str(where, " is not valid JSON: ", why.substr(0, 160), "."));
  }
}

Json read_json(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace rlx
