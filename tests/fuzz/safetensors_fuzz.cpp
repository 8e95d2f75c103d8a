// Any bytes as a safetensors file: tensors that lie within them, or rlx::Error; nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "import/safetensors/safetensors.h"
#include "rlx/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const rlx::safetensors::File file = rlx::safetensors::File::parse(bytes, "fuzz");
    size_t sum = 0;
    for (const rlx::safetensors::Tensor& t : file.tensors()) {
      sum += t.bytes.size();
      if (t.bytes.data() < bytes.data() || t.bytes.data() + t.bytes.size() > bytes.data() + bytes.size()) std::abort();
    }
    if (sum > size) std::abort();
  } catch (const rlx::Error&) {
  }
  return 0;
}
