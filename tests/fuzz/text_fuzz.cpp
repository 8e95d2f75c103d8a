// Any bytes as the text of a graph: a valid graph whose text is stable under print and parse, or rlx::Error, nothing
// else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rlx/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string printed;
  try {
    printed = rlx::print(rlx::parse(text, "fuzz"));
  } catch (const rlx::Error& e) {
    if (e.kind() == rlx::ErrorKind::kInternal) std::abort();
    return 0;
  }
  // What was accepted is printed as a text that is accepted: no Error may come from here.
  if (rlx::print(rlx::parse(printed, "printed")) != printed) std::abort();
  return 0;
}
