#include "models/architectures.h"

#include "rlx/ops.h"

namespace rlx::models {

namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", configure_llama, build_llama},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& find_architecture(const ModelSource& source) {
  const std::string name = source.architecture();
  std::string known;
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return a;
    known += str(known.empty() ? "" : ", ", a.name);
  }
  fail(ErrorKind::kUnsupported,
       str(source.path(), ": the architecture '", name, "' is not supported; rlx has: ", known, "."));
}

Value logits_of(DecoderBuilder& b, const Value& hidden) {
  const Value y = b.has("output.weight") ? b.linear(hidden, "output") : b.linear_with(hidden, "token_embd.weight");
  const std::optional<float> cap = b.config().final_softcap;
  return cap ? b.scale(ops::tanh(b.scale(y, 1 / *cap)), *cap) : y;
}

}  // namespace rlx::models
