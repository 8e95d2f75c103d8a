// The special tokens that a tokenizer.json puts around a text.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "text/json_reader.h"
#include "text/vocabulary.h"

namespace rlx::text {

using PostProcessor = std::function<void(std::vector<int32_t>&)>;

std::vector<PostProcessor> read_post_processors(const JsonReader& json, const Vocabulary& vocabulary);

}  // namespace rlx::text
