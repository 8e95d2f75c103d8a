// What opens as a model becomes a graph that verifies, or is refused by rlx::Error.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "models/architectures.h"
#include "models/encoders/encoder.h"
#include "text/tokenizer.h"

namespace rlx::fuzz {

template <class Step>
void try_step(Step step) {
  try {
    step();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInternal) {
      std::fprintf(stderr, "an internal error: %s\n", e.what());
      std::abort();
    }
  }
}

inline void build_encoder(const models::ModelSource& source) {
  models::EncoderBuilder b(source, models::read_encoder_config(source));
  const Value pooled = b.pool(models::find_encoder(source).build(b), b.config().pooling);
  b.graph().output(b.config().normalize ? b.normalized(pooled) : pooled, "vectors");
  verify(b.graph());
}

inline void build_decoder(const models::ModelSource& source, int64_t batch, models::CacheType cache) {
  const models::Architecture& architecture = models::find_architecture(source);
  models::DecoderConfig config = models::read_decoder_config(source);
  architecture.configure(source, config);
  models::DecoderBuilder b(source, std::move(config), {.batch = batch, .context = 16, .capacity = 32, .type = cache});
  b.graph().output(models::logits_of(b, architecture.build(b)), "scores");
  verify(b.graph());
}

// `variant`: any number, such as the input's size.
inline void build_model(const models::ModelSource& source, size_t variant) {
  if (models::is_encoder(source))
    build_encoder(source);
  else
    build_decoder(source, variant % 2 == 0 ? 1 : 2, static_cast<models::CacheType>(variant / 2 % 3));
}

inline void tokenize(const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids =
      tokenizer.encode("Hello, wörld 12 <s>\n", {.parse_special = true, .add_special = true});
  for (const int32_t id : ids)
    if (id < 0 || id >= tokenizer.size()) std::abort();
  tokenizer.decode(ids);
}

}  // namespace rlx::fuzz
