// Models in GGUF files.
#include "models/gguf_source.h"
#include "import/gguf/gguf.h"
#include "rlx/error.h"

namespace rlx::models {

GgufSource::GgufSource(const std::string& path) : GgufSource(gguf::File::open(path)) {}

GgufSource::GgufSource(gguf::File file) : file_(std::move(file)) {
  const std::optional<std::string> name = file_.text("general.architecture");
  require(name.has_value(), path(), ": metadata 'general.architecture' is missing: it is not a model.");
  architecture_ = *name;
}

// Metadata of the model stand behind its architecture's name.
std::string GgufSource::full(std::string_view key) const { return str(architecture_, ".", key); }

std::optional<int64_t> GgufSource::integer(std::string_view key) const { return file_.integer(full(key)); }
std::optional<double> GgufSource::number(std::string_view key) const { return file_.number(full(key)); }
std::optional<bool> GgufSource::boolean(std::string_view key) const { return file_.boolean(full(key)); }
std::optional<std::string> GgufSource::text(std::string_view key) const { return file_.text(full(key)); }
std::vector<int64_t> GgufSource::integers(std::string_view key) const { return file_.integers(full(key)); }
std::vector<double> GgufSource::numbers(std::string_view key) const { return file_.numbers(full(key)); }

std::optional<Weight> GgufSource::find(const std::string& name) const {
  const gguf::Tensor* t = file_.find_tensor(name);
  if (t == nullptr) return std::nullopt;
  const auto plain = [&](DType dtype) {
    return Weight{t->sizes, std::nullopt, Tensor::borrow(dtype, t->sizes, t->bytes, t->file)};
  };
  switch (t->type) {
    case 0: return plain(DType::F32);
    case 1: return plain(DType::F16);
    case 30: return plain(DType::BF16);
    case 24: return plain(DType::I8);
    case 25: return plain(DType::I16);
    case 26: return plain(DType::I32);
    case 27: return plain(DType::I64);
    case 28: return plain(DType::F64);
    default: break;
  }
  const std::optional<Scheme> scheme = scheme_of_ggml_code(static_cast<int>(t->type));
  if (!scheme)
    fail(ErrorKind::kUnsupported, str(path(), ": tensor '", name, "' is of type ", gguf::type_info(t->type)->name,
                                      ", which rlx does not read yet."));
  const auto bytes = static_cast<int64_t>(t->bytes.size());
  return Weight{t->sizes, scheme, Tensor::borrow(DType::U8, {bytes}, t->bytes, t->file)};
}

std::unique_ptr<ModelSource> open_gguf_source(const std::string& path) { return std::make_unique<GgufSource>(path); }

}  // namespace rlx::models
