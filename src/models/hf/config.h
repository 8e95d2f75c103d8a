// config.json of a Hugging Face folder, in the words of GGUF.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "import/json.h"

namespace rlx::models::hf {

using KeyValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>>;
using KeyValues = std::map<std::string, KeyValue, std::less<>>;

struct Config {
  std::string model_type;         // Hugging Face's: mixtral
  std::string architecture;       // GGUF's: llama
  KeyValues values;               // block_count and so on, as ModelSource gives them
  bool ties_head = false;         // the file's lm_head, if it has one, is not used
  int64_t skipped_positions = 0;  // rows of the position table that no token has (RoBERTa)
  // Factors per rotary pair, the tensors that GGUF keeps them in: rope_freqs.weight, rope_factors_long.weight, …
  std::map<std::string, std::vector<float>, std::less<>> factors;
};

// `where` names the file in errors. Error(kUnsupported) names the model types that there are.
Config read_config(const Json& json, const std::string& where);

}  // namespace rlx::models::hf
