// ModelSource: hyper-parameters and weights of a model file, under one set of names (those of GGUF), whatever the
// file's own are. Architectures read nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/scheme.h"
#include "rlx/tensor.h"

namespace rlx::models {

// A weight as the file has it: row-major sizes, and plain numbers or the packed bytes of a scheme.
struct Weight {
  std::vector<int64_t> sizes;
  std::optional<Scheme> scheme;  // packed: `data` is U8 [bytes]
  Tensor data;                   // borrowed from the file, which it keeps open
};

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  virtual const std::string& path() const = 0;
  virtual std::string architecture() const = 0;  // llama, qwen2, …: general.architecture of GGUF
  // Does a head of q and k hold its rotary pairs side by side (GGUF's llama), rather than half a head apart?
  virtual bool pairs_are_adjacent() const = 0;

  // Hyper-parameters without the architecture in front: block_count. nullopt when the file does not say.
  virtual std::optional<int64_t> integer(std::string_view key) const = 0;
  virtual std::optional<double> number(std::string_view key) const = 0;
  virtual std::optional<bool> boolean(std::string_view key) const = 0;
  virtual std::optional<std::string> text(std::string_view key) const = 0;
  virtual std::vector<int64_t> integers(std::string_view key) const = 0;  // a value per layer, or one for all
  virtual std::vector<double> numbers(std::string_view key) const = 0;

  // nullopt: the model has no such weight. Error: it has, and rlx cannot read it.
  virtual std::optional<Weight> find(const std::string& name) const = 0;

  // What must be there, with an Error that names the file and the key.
  int64_t require_integer(std::string_view key) const;
  Weight require_weight(const std::string& name) const;
};

std::unique_ptr<ModelSource> open_gguf_source(const std::string& path);
// A .gguf file, a Hugging Face folder, or a .safetensors file in one.
std::unique_ptr<ModelSource> open_source(const std::string& path);

}  // namespace rlx::models
