// Any bytes as a GGUF file: it is refused by rlx::Error, or its model becomes a graph and its vocabulary a tokenizer;
// nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "generate/language_model.h"
#include "models/architectures.h"
#include "models/encoders/encoder.h"
#include "models/gguf_source.h"

namespace {

using namespace rlx;

void build_encoder(const models::GgufSource& source) {
  models::EncoderBuilder b(source, models::read_encoder_config(source));
  const Value pooled = b.pool(models::find_encoder(source).build(b), b.config().pooling);
  b.graph().output(b.config().normalize ? b.normalized(pooled) : pooled, "vectors");
  verify(b.graph());
}

void build_decoder(const models::GgufSource& source, int64_t batch, models::CacheType cache) {
  const models::Architecture& architecture = models::find_architecture(source);
  models::DecoderConfig config = models::read_decoder_config(source);
  architecture.configure(source, config);
  models::DecoderBuilder b(source, std::move(config), {.batch = batch, .context = 16, .capacity = 32, .type = cache});
  b.graph().output(models::logits_of(b, architecture.build(b)), "scores");
  verify(b.graph());
}

void tokenize(const models::GgufSource& source) {
  const Tokenizer tokenizer = Tokenizer::from_gguf(generate::vocabulary_of(source.file()));
  const std::vector<int32_t> ids =
      tokenizer.encode("Hello, wörld 12 <s>\n", {.parse_special = true, .add_special = true});
  for (const int32_t id : ids)
    if (id < 0 || id >= tokenizer.size()) std::abort();
  tokenizer.decode(ids);
}

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try_step([&] {
    const models::GgufSource source(gguf::File::parse(std::as_bytes(std::span(data, size)), "fuzz"));
    try_step([&] { tokenize(source); });
    if (models::is_encoder(source))
      build_encoder(source);
    else
      build_decoder(source, size % 2 == 0 ? 1 : 2, static_cast<models::CacheType>(size / 2 % 3));
  });
  return 0;
}
