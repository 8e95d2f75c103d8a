// A Hugging Face folder as a model: config.json and safetensors, under GGUF's names.
#pragma once

#include <map>

#include "import/safetensors/safetensors.h"
#include "models/hf/config.h"
#include "models/hf/names.h"
#include "models/source.h"

namespace rlx::models {

class HfSource : public ModelSource {
 public:
  explicit HfSource(const std::string& folder);

  const safetensors::File& file() const { return file_; }
  const std::string& path() const override { return folder_; }
  std::string architecture() const override { return config_.architecture; }
  bool pairs_are_adjacent() const override { return false; }
  std::optional<int64_t> integer(std::string_view key) const override;
  std::optional<double> number(std::string_view key) const override;
  std::optional<bool> boolean(std::string_view key) const override;
  std::optional<std::string> text(std::string_view key) const override;
  std::vector<int64_t> integers(std::string_view key) const override;
  std::vector<double> numbers(std::string_view key) const override;
  std::optional<Weight> find(const std::string& name) const override;

 private:
  template <class T>
  const T* value(std::string_view key, std::string_view kind) const;
  void read_sentence_config();
  Tensor tensor(const std::string& name) const;
  Tensor changed(const hf::Place& place, const std::string& name) const;
  Tensor stacked(const std::string& pattern) const;
  Tensor rows_of_groups(const Tensor& all, bool gate) const;

  std::string folder_;
  hf::Config config_;
  safetensors::File file_;
  std::string prefix_;
  mutable std::map<std::string, Tensor>
      made_;  // weights that are not as the file has them, made when they are asked for
};

}  // namespace rlx::models
