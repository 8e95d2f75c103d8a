// The built-in custom ops (spec 10, 4.20): which they are, and their attribute bytes, little-endian; the kernels of
// all.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "rlx/custom_op.h"
#include "rlx/error.h"

namespace rlx {

bool is_built_in(const CustomOp& op);  // false where somebody has registered another of its name
// find_custom_kernel() without a copy, which may allocate; null when there is none.
std::shared_ptr<const CustomKernel> shared_custom_kernel(std::string_view op, std::string_view backend);

inline uint32_t custom_u32(std::span<const uint8_t> bytes, size_t index) {
  const uint8_t* p = bytes.data() + 4 * index;
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

// llada2.group_limited_gate
struct GateAttrs {
  int64_t n_group = 8, topk_group = 4, top_k = 8;
  float routed_scaling = 2.5f;
  int64_t num_experts = 256;

  explicit GateAttrs(std::span<const uint8_t> bytes) {
    if (bytes.size() < 20) return;
    n_group = custom_u32(bytes, 0);
    topk_group = custom_u32(bytes, 1);
    top_k = custom_u32(bytes, 2);
    const uint32_t bits = custom_u32(bytes, 3);
    std::memcpy(&routed_scaling, &bits, sizeof bits);
    num_experts = custom_u32(bytes, 4);
  }
};

// umap.knn
inline int64_t knn_k(std::span<const uint8_t> bytes) {
  require(bytes.size() >= 4, "Attribute bytes (", bytes.size(), ") do not hold k.");
  return custom_u32(bytes, 0);
}

}  // namespace rlx
