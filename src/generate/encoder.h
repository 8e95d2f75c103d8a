// Encoder: texts, as lists of tokens, to one vector each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/encoders/encoder.h"
#include "rlx/runtime.h"

namespace rlx::generate {

struct EncoderOptions {
  CompileOptions compile;
  std::optional<models::Pooling> pooling;  // absent: as the model's folder says, else the mean
  std::optional<bool> normalize;           // vectors of length 1; absent: as the folder says, else not
  int64_t max_length = 0;                  // tokens of a text; 0: what the model was made for
};

class Encoder {
 public:
  Encoder(const models::ModelSource& source, const EncoderOptions& options);

  int64_t width() const { return builder_.config().width; }
  int64_t vocabulary() const { return builder_.config().vocabulary; }
  int64_t max_length() const { return max_length_; }

  // [texts, width]. Lists have what the model's tokenizer puts around a text ([CLS] and [SEP]). Longer ones than
  // max_length() lose tokens before their last, as tokenizers cut them. Texts of similar length run together.
  Tensor embed(std::span<const std::vector<int32_t>> texts);

  const Executable& executable() const { return executable_; }

 private:
  void run(std::span<const std::vector<int32_t>> texts, std::span<const size_t> chosen, int64_t rows, int64_t batch,
           std::span<float> vectors);

  models::EncoderBuilder builder_;
  int64_t max_length_;
  Executable executable_;
};

}  // namespace rlx::generate
