#pragma once

#include "import/gguf/gguf.h"
#include "models/source.h"

namespace rlx::models {

class GgufSource : public ModelSource {
 public:
  explicit GgufSource(const std::string& path);
  explicit GgufSource(gguf::File file);

  const gguf::File& file() const { return file_; }
  const std::string& path() const override { return file_.path(); }
  std::string architecture() const override { return architecture_; }
  bool pairs_are_adjacent() const override { return true; }
  std::optional<int64_t> integer(std::string_view key) const override;
  std::optional<double> number(std::string_view key) const override;
  std::optional<bool> boolean(std::string_view key) const override;
  std::optional<std::string> text(std::string_view key) const override;
  std::vector<int64_t> integers(std::string_view key) const override;
  std::vector<double> numbers(std::string_view key) const override;
  std::optional<Weight> find(const std::string& name) const override;

 private:
  std::string full(std::string_view key) const;

  gguf::File file_;
  std::string architecture_;
};

}  // namespace rlx::models
