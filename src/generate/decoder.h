// A decoder's graph from a model file, up to its hidden rows: what generating and scoring begin with.
#pragma once

#include <memory>

#include "models/builder.h"
#include "rlx/runtime.h"

namespace rlx::generate {

// Prompts run in parts of at most so many rows; a part is padded to the next size, and the padding is not computed.
inline constexpr int64_t kRowSizes[] = {1, 8, 32, 128, 512};
inline constexpr int64_t kMostRows = 512;
int64_t padded_rows(int64_t rows);

struct DecoderOptions {
  int64_t context = 0;  // tokens of a sequence; 0: what the model was made for, at most 4096
  int64_t batch = 1;    // sequences
  models::CacheType cache = models::CacheType::kF32;
};

struct Decoder {
  std::unique_ptr<models::DecoderBuilder> builder;
  Value hidden;  // [batch, rows, width]
  int64_t context = 0;
};
Decoder make_decoder(const models::ModelSource& source, const DecoderOptions& options);

// Compiles the graph for parts of all sizes, and gives it its weights.
Executable compile_decoder(models::DecoderBuilder& builder, CompileOptions options);

}  // namespace rlx::generate
