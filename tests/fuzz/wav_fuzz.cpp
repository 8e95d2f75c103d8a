// Any bytes as a sound: samples, no more than there are bytes, or rlx::Error; nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/wav.h"
#include "rlx/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const rlx::Wav wav = rlx::parse_wav(std::as_bytes(std::span(data, size)), "fuzz");
    if (wav.channels < 1 || wav.rate < 1 || wav.samples.size() > size) std::abort();
  } catch (const rlx::Error&) {
  }
  return 0;
}
