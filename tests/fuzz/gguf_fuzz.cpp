// Any bytes as a GGUF file: it is refused by rlx::Error, or its model becomes a graph and its vocabulary a tokenizer;
// nothing else.
#include <cstddef>
#include <cstdint>
#include <span>

#include "build_model.h"
#include "generate/language_model.h"
#include "models/gguf_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rlx;
  fuzz::try_step([&] {
    const models::GgufSource source(gguf::File::parse(std::as_bytes(std::span(data, size)), "fuzz"));
    fuzz::try_step([&] { fuzz::tokenize(Tokenizer::from_gguf(generate::vocabulary_of(source.file()))); });
    fuzz::build_model(source, size);
  });
  return 0;
}
