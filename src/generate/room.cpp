#include "generate/room.h"

#include <algorithm>
#include <cstdio>

#include "backends/host/memory.h"
#include "backends/webgpu/device.h"
#include "rlx/ops/leaves.h"
#include "runtime/device_program.h"

namespace rlx::generate {

namespace {

std::string in_words(int64_t bytes) {
  char text[32];
  constexpr int64_t kGib = int64_t{1} << 30;
  if (bytes >= kGib)
    std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / kGib);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string what_fits(int64_t tokens) {
  return tokens > 0 ? str("A context of ", tokens, " tokens would fit (--ctx).")
                    : "A smaller or more strongly quantised model would fit.";
}

}  // namespace

void require_room(const models::ModelParts& model, int64_t context, const CompileOptions& options) {
  int64_t weights = 0, caches = 0, largest = 0;
  for (const auto& [name, tensor] : model.weights())
    weights = checked_add(weights, static_cast<int64_t>(tensor.bytes().size()));
  for (const Node* state : model.graph().leaves(ops::state)) {
    const int64_t bytes = state->results[0].type.size_bytes();
    caches = checked_add(caches, bytes);
    largest = std::max(largest, bytes);
  }
  const auto tokens_in = [&](int64_t room, int64_t bytes) {
    return context > 0 ? std::max<int64_t>(room, 0) / std::max<int64_t>(bytes / context, 1) : 0;
  };
  bool has_memory_of_its_own = false;
  const CompileOptions chosen = with_device(options);
  if (chosen.device == "webgpu") {
    const webgpu::AdapterFacts& gpu = webgpu::Device::open(chosen.webgpu)->facts();
    has_memory_of_its_own = gpu.type == "discrete";
    const auto bound = static_cast<int64_t>(gpu.limits.max_binding_bytes);
    if (largest > bound)
      fail(ErrorKind::kMemory,
           str(context, " tokens of context are ", in_words(largest), " in a layer; the GPU (", gpu.name,
               ") sees at most ", in_words(bound), " at once. ", what_fits(tokens_in(bound, largest))));
  }
  const int64_t room = host::memory_bytes();
  if (has_memory_of_its_own || checked_add(weights, caches) <= room) return;
  const std::string parts =
      caches > 0 ? str(" (weights ", in_words(weights), ", ", context, " tokens of context ", in_words(caches), ")")
                 : "";
  fail(ErrorKind::kMemory, str("The model needs ", in_words(weights + caches), parts, "; the machine has ",
                               in_words(room), ". ", what_fits(tokens_in(room - weights, caches))));
}

}  // namespace rlx::generate
