// Any bytes as an .npy and as an .npz file: a tensor that survives being written and read, or rlx::Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/npy.h"
#include "core/npy_array.h"
#include "rlx/error.h"

namespace {

void check_round_trip(const rlx::Tensor& tensor) {
  const rlx::NpyArray array = rlx::to_npy_array(tensor);
  const auto header = std::as_bytes(std::span(array.header));
  std::vector<std::byte> file(header.begin(), header.end());
  file.insert(file.end(), array.data.bytes().begin(), array.data.bytes().end());
  if (!(rlx::parse_npy(file) == tensor)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    check_round_trip(rlx::parse_npy(bytes, "fuzz"));
  } catch (const rlx::Error&) {
  }
  try {
    for (const auto& [name, tensor] : rlx::parse_npz(bytes, "fuzz")) check_round_trip(tensor);
  } catch (const rlx::Error&) {
  }
  return 0;
}
