#include "models/source.h"

#include "rlx/error.h"

namespace rlx::models {

int64_t ModelSource::require_integer(std::string_view key) const {
  const std::optional<int64_t> value = integer(key);
  require(value.has_value(), path(), ": the model's '", key, "' (architecture ", architecture(), ") is missing.");
  return *value;
}

Weight ModelSource::require_weight(const std::string& name) const {
  std::optional<Weight> weight = find(name);
  require(weight.has_value(), path(), ": tensor '", name, "' (architecture ", architecture(), ") is missing.");
  return std::move(*weight);
}

}  // namespace rlx::models
