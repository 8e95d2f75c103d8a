#include "models/hf_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "models/gguf_source.h"
#include "rlx/error.h"

namespace rlx::models {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// GGUF's numbers for how rows become one vector.
constexpr int64_t kMeanPooling = 1, kClsPooling = 2, kLastPooling = 3;

int64_t pooling_of(const Json& json, const std::string& where) {
  require(json.is_object(), where, " is not an object.");
  const auto is_set = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_boolean() && found->get<bool>();
  };
  const auto mode = json.find("pooling_mode");  // of newer files
  const std::string name = mode != json.end() && mode->is_string() ? mode->get<std::string>() : "";
  if (is_set("pooling_mode_cls_token") || name == "cls") return kClsPooling;
  if (is_set("pooling_mode_lasttoken") || name == "lasttoken") return kLastPooling;
  if (is_set("pooling_mode_mean_tokens") || name == "mean") return kMeanPooling;
  fail(ErrorKind::kUnsupported,
       str(where, ": rlx pools by mean, cls or the last token, and this file asks for none of them."));
}

Tensor transposed(const Tensor& x) {
  const int64_t rows = x.sizes()[0], columns = x.sizes()[1];
  Tensor out(x.dtype(), {columns, rows});
  const size_t size = size_of(x.dtype());
  const std::byte* from = x.bytes().data();
  std::byte* to = out.mutable_bytes().data();
  // In blocks, so that neither side jumps over the whole matrix for every element.
  constexpr int64_t kBlock = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
      for (int64_t r = r0; r < std::min(rows, r0 + kBlock); ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
          std::memcpy(to + static_cast<size_t>(c * rows + r) * size, from + static_cast<size_t>(r * columns + c) * size,
                      size);
  return out;
}

template <class F>
Tensor mapped(const Tensor& x, F f) {
  std::vector<double> values = x.to_doubles();
  for (double& v : values) v = f(v);
  return Tensor::from_doubles(DType::F32, x.sizes(), values);
}

Tensor flat(const Tensor& x) {
  std::vector<int64_t> sizes;
  for (const int64_t s : x.sizes())
    if (s != 1) sizes.push_back(s);
  return x.reshaped(sizes);
}

}  // namespace

HfSource::HfSource(const std::string& folder)
    : folder_(folder),
      config_(hf::read_config(read_json((fs::path(folder) / "config.json").string()),
                              (fs::path(folder) / "config.json").string())),
      file_(safetensors::File::open_folder(folder)) {
  const std::vector<hf::Place> tables = hf::places_of(config_.model_type, "token_embd.weight");
  bool found = false;
  for (const hf::Place& place : tables)
    for (const std::string_view prefix : hf::kPrefixes)
      if (!found && file_.find(str(prefix, place.name)) != nullptr) {
        prefix_ = prefix;
        found = true;
      }
  require(found, file_.path(), ": the token embeddings of a ", config_.model_type, " ('", tables[0].name,
          "') are missing.");
  read_sentence_config();
}

// What sentence-transformers keeps beside a model: how rows become one vector, and how many there may be.
void HfSource::read_sentence_config() {
  const fs::path root(folder_);
  const auto set = [&](const char* key, hf::KeyValue value) { config_.values.insert_or_assign(key, std::move(value)); };
  if (is_file(root / "sentence_bert_config.json")) {
    const std::string where = (root / "sentence_bert_config.json").string();
    const Json json = read_json(where);
    const auto length = json.is_object() ? json.find("max_seq_length") : json.end();
    if (json.is_object() && length != json.end() && length->is_number_integer()) {
      require(length->get<int64_t>() > 0, where, ": 'max_seq_length' is not positive.");
      set("embedding.max_length", length->get<int64_t>());
    }
  }
  if (!is_file(root / "modules.json")) {
    const fs::path pooling = root / "1_Pooling" / "config.json";
    if (is_file(pooling)) set("pooling_type", pooling_of(read_json(pooling.string()), pooling.string()));
    return;
  }
  const std::string where = (root / "modules.json").string();
  const Json modules = read_json(where);
  require(modules.is_array(), where, " is not a list.");
  set("embedding.normalize", false);
  for (const Json& module : modules) {
    require(module.is_object() && module.contains("type") && module["type"].is_string(), where,
            ": a module has no 'type'.");
    const std::string type = module["type"].get<std::string>();
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Transformer") continue;
    if (kind == "Normalize") {
      set("embedding.normalize", true);
      continue;
    }
    if (kind != "Pooling")
      fail(ErrorKind::kUnsupported,
           str(where, ": the module '", kind, "' is not supported; rlx has Pooling and Normalize."));
    require(module.contains("path") && module["path"].is_string(), where, ": the module 'Pooling' has no 'path'.");
    const std::string path = module["path"].get<std::string>();
    require(path.find("..") == std::string::npos && !path.starts_with('/'), where, ": the path '", path,
            "' leads out of the folder.");
    const std::string config = (root / path / "config.json").string();
    set("pooling_type", pooling_of(read_json(config), config));
  }
}

template <class T>
const T* HfSource::value(std::string_view key, std::string_view kind) const {
  const auto found = config_.values.find(key);
  if (found == config_.values.end()) return nullptr;
  const T* out = std::get_if<T>(&found->second);
  require(out != nullptr, folder_, ": '", key, "' is not ", kind, ".");
  return out;
}

std::optional<int64_t> HfSource::integer(std::string_view key) const {
  const int64_t* v = value<int64_t>(key, "an integer");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<double> HfSource::number(std::string_view key) const {
  const auto found = config_.values.find(key);
  if (found != config_.values.end() && std::holds_alternative<int64_t>(found->second))
    return static_cast<double>(std::get<int64_t>(found->second));
  const double* v = value<double>(key, "a number");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<bool> HfSource::boolean(std::string_view key) const {
  const bool* v = value<bool>(key, "true or false");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<std::string> HfSource::text(std::string_view key) const {
  const std::string* v = value<std::string>(key, "a text");
  return v ? std::optional(*v) : std::nullopt;
}
std::vector<int64_t> HfSource::integers(std::string_view key) const {
  const auto found = config_.values.find(key);
  if (found != config_.values.end() && std::holds_alternative<int64_t>(found->second))
    return {std::get<int64_t>(found->second)};
  const auto* v = value<std::vector<int64_t>>(key, "a list of integers");
  return v ? *v : std::vector<int64_t>();
}
std::vector<double> HfSource::numbers(std::string_view key) const {
  const auto* v = value<std::vector<double>>(key, "a list of numbers");
  return v ? *v : std::vector<double>();
}

std::optional<Weight> HfSource::find(const std::string& name) const {
  if (const auto factors = config_.factors.find(name); factors != config_.factors.end()) {
    const auto count = static_cast<int64_t>(factors->second.size());
    return Weight{{count}, std::nullopt, Tensor::f32({count}, factors->second)};
  }
  if (name == "output.weight" && config_.ties_head) return std::nullopt;
  if (const auto made = made_.find(name); made != made_.end())
    return Weight{made->second.sizes(), std::nullopt, made->second};
  for (hf::Place place : hf::places_of(config_.model_type, name)) {
    if (!place.absolute) place.name = prefix_ + place.name;
    std::string first = place.name;
    if (const size_t at = first.find("{e}"); at != std::string::npos) first.replace(at, 3, "0");
    if (file_.find(first) == nullptr) continue;
    const Tensor data = changed(place, name);
    return Weight{data.sizes(), std::nullopt, data};
  }
  return std::nullopt;
}

Tensor HfSource::tensor(const std::string& name) const {
  const safetensors::Tensor* t = file_.find(name);
  require(t != nullptr, file_.path(), ": tensor '", name, "' is missing.");
  if (!t->dtype)
    fail(ErrorKind::kUnsupported,
         str(file_.path(), ": tensor '", name, "' is of dtype ", t->dtype_name, ", which rlx does not have."));
  // An axis of 0 lets the others be anything: loops over them would not end.
  require(!t->bytes.empty(), file_.path(), ": tensor '", name, "' (", t->sizes, ") is empty.");
  const Tensor out = Tensor::borrow(*t->dtype, t->sizes, t->bytes, t->file);
  const bool aligned = reinterpret_cast<uintptr_t>(t->bytes.data()) % size_of(*t->dtype) == 0;
  return aligned ? out : out.clone();  // a file may put its tensors anywhere
}

Tensor HfSource::changed(const hf::Place& place, const std::string& name) const {
  using hf::Change;
  const auto keep = [&](Tensor made) { return made_.emplace(name, std::move(made)).first->second; };
  if (place.change == Change::kStacked) return keep(stacked(place.name));
  const Tensor x = tensor(place.name);
  switch (place.change) {
    case Change::kTransposed: return x.rank() == 2 ? keep(transposed(x)) : x;
    case Change::kPlusOne: return keep(mapped(x, [](double v) { return v + 1; }));
    case Change::kNegativeExp: return keep(mapped(x, [](double v) { return -std::exp(v); }));
    case Change::kFlat: return flat(x);
    case Change::kQkvOfGroups: return keep(rows_of_groups(x, false));
    case Change::kGateOfGroups: return keep(rows_of_groups(x, true));
    case Change::kSkipPositions: {
      require(x.rank() == 2 && x.sizes()[0] > config_.skipped_positions, file_.path(), ": tensor '", place.name,
              "' has no rows behind its first ", config_.skipped_positions, ".");
      const int64_t rows = x.sizes()[0] - config_.skipped_positions;
      const size_t row = x.bytes().size() / static_cast<size_t>(x.sizes()[0]);
      const auto bytes = x.bytes().subspan(row * static_cast<size_t>(config_.skipped_positions));
      return Tensor::borrow(x.dtype(), {rows, x.sizes()[1]}, bytes, std::make_shared<const Tensor>(x));
    }
    case Change::kNone:
    case Change::kStacked: break;
  }
  return x;
}

// [experts, …] of one tensor each. A copy: they lie apart in the file, and kernels want them together.
Tensor HfSource::stacked(const std::string& pattern) const {
  const int64_t experts = require_integer("expert_count");
  require(experts > 0 && experts <= 4096, folder_, ": expert_count (", experts, ") is not between 1 and 4096.");
  const size_t at = pattern.find("{e}");
  std::vector<Tensor> parts;  // all of them before memory is taken: a file may claim experts that it does not have
  for (int64_t e = 0; e < experts; ++e) {
    std::string name = pattern;
    name.replace(at, 3, std::to_string(e));
    parts.push_back(tensor(name));
    require(parts[0].dtype() == parts.back().dtype() && parts[0].sizes() == parts.back().sizes(), file_.path(),
            ": tensor '", name, "' is not of its fellows' size or dtype.");
  }
  std::vector<int64_t> sizes = parts[0].sizes();
  sizes.insert(sizes.begin(), experts);
  Tensor out(parts[0].dtype(), sizes);
  std::byte* to = out.mutable_bytes().data();
  for (const Tensor& part : parts) to = std::copy(part.bytes().begin(), part.bytes().end(), to);
  return out;
}

// Per head of keys the file has rows of q, k, v and z; GGUF has all of q, k and v, and all of z.
Tensor HfSource::rows_of_groups(const Tensor& all, bool gate) const {
  const int64_t groups = require_integer("ssm.group_count"), key = require_integer("ssm.state_size");
  const int64_t value =
      require_integer("ssm.inner_size") / std::max<int64_t>(groups, 1);  // rows of a group's v, of its z
  const int64_t have = all.rank() == 2 ? all.sizes()[0] : 0;
  const auto is_part = [&](int64_t n) { return n > 0 && n <= have; };
  require(is_part(groups) && is_part(key) && is_part(value) && have % groups == 0 && have / groups == 2 * (key + value),
          folder_, ": the projection of the delta nets has ", all.sizes(), ", not ", groups, " times 2 * (", key, " + ",
          value, ") rows.");
  const int64_t rows = 2 * (key + value);
  Tensor out(all.dtype(), {gate ? groups * value : groups * (2 * key + value), all.sizes()[1]});
  const size_t row = all.bytes().size() / static_cast<size_t>(all.sizes()[0]);
  std::byte* to = out.mutable_bytes().data();
  const auto copy = [&](int64_t start, int64_t count) {
    for (int64_t g = 0; g < groups; ++g) {
      const size_t size = static_cast<size_t>(count) * row;
      std::memcpy(to, all.bytes().data() + static_cast<size_t>(g * rows + start) * row, size);
      to += size;
    }
  };
  if (gate) {
    copy(2 * key + value, value);
  } else {
    copy(0, key);
    copy(key, key);
    copy(2 * key, value);
  }
  return out;
}

std::unique_ptr<ModelSource> open_source(const std::string& path) {
  std::error_code ignored;
  const fs::path p(path);
  if (fs::is_directory(p, ignored)) {
    require(is_file(p / "config.json"), "Folder '", path, "' is no model: it has no config.json.");
    return std::make_unique<HfSource>(path);
  }
  if (p.extension() == ".gguf") return std::make_unique<GgufSource>(path);
  if (p.extension() == ".safetensors" || p.filename() == "config.json" || path.ends_with(".safetensors.index.json")) {
    if (!is_file(p)) fail(ErrorKind::kUnavailable, str("File '", path, "' does not exist."));
    const fs::path folder = p.parent_path().empty() ? fs::path(".") : p.parent_path();
    require(is_file(folder / "config.json"), path, ": there is no config.json beside it, which says what model it is.");
    return std::make_unique<HfSource>(folder.string());
  }
  if (!fs::exists(p, ignored)) fail(ErrorKind::kUnavailable, str("File '", path, "' does not exist."));
  fail(ErrorKind::kUnsupported,
       str(path, " is neither a .gguf file nor a folder with config.json and .safetensors files."));
}

}  // namespace rlx::models
