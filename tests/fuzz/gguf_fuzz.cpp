// Any bytes as a GGUF file: it is refused by rlx::Error, or its model becomes a graph; nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "models/architectures.h"
#include "models/gguf_source.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const models::GgufSource source(gguf::File::parse(std::as_bytes(std::span(data, size)), "fuzz"));
    const models::Architecture& architecture = models::find_architecture(source);
    models::DecoderConfig config = models::read_decoder_config(source);
    architecture.configure(source, config);
    const int64_t batch = size % 2 == 0 ? 1 : 2;
    models::DecoderBuilder b(source, std::move(config), {.batch = batch, .context = 16, .capacity = 32});
    b.graph().output(models::logits_of(b, architecture.build(b)), "scores");
    verify(b.graph());
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInternal) {
      std::fprintf(stderr, "an internal error: %s\n", e.what());
      std::abort();
    }
  }
  return 0;
}
