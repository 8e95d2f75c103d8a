// Ops that read packed weights and decode them on the fly (spec 10, 4.12 and 5).
#pragma once

#include "rlx/graph.h"
#include "rlx/scheme.h"

namespace rlx::ops {

struct DequantMatmulAttrs {
  Scheme scheme = Scheme::kInt8;
  int64_t block = 32;  // rows of K that share a scale: int8, int8a, int4
  static constexpr auto fields =
      std::tuple{field("scheme", &DequantMatmulAttrs::scheme), field("block", &DequantMatmulAttrs::block)};
};
// x · W. Side-tensor schemes: (x [..., K], w, scale, zero point), W is [K, N]. GGUF: (x, packed), W is [N, K] and x is
// multiplied by its transpose; N follows from the number of bytes.
extern const Op<DequantMatmulAttrs> dequant_matmul;

struct DequantGroupedMatmulAttrs {
  Scheme scheme = Scheme::kGgufQ4_0;
  Dim n = 0;  // the bytes tell experts · N only
  static constexpr auto fields =
      std::tuple{field("scheme", &DequantGroupedMatmulAttrs::scheme), field("n", &DequantGroupedMatmulAttrs::n)};
};
// (x [M, K], packed, expert_idx [M]): row m of x by the transpose of the [N, K] slab of its expert.
extern const Op<DequantGroupedMatmulAttrs> dequant_grouped_matmul;

struct DequantGatherAttrs {
  Scheme scheme = Scheme::kGgufQ4_0;
  Dim k = 0;  // elements of a row; 0: packed is [V, bytes of a row]
  static constexpr auto fields =
      std::tuple{field("scheme", &DequantGatherAttrs::scheme), field("k", &DequantGatherAttrs::k)};
};
// (packed rows of a [V, K] table, indices): the chosen rows in f32.
extern const Op<DequantGatherAttrs> dequant_gather;

struct DequantMoeWeightsAttrs {
  Scheme scheme = Scheme::kGgufQ4_0;
  std::vector<Dim> out_shape;  // [E, K, N]
  static constexpr auto fields = std::tuple{field("scheme", &DequantMoeWeightsAttrs::scheme),
                                            field("out_shape", &DequantMoeWeightsAttrs::out_shape)};
};
// (packed, E slabs of [N, K]): all of them in f32, transposed to [E, K, N].
extern const Op<DequantMoeWeightsAttrs> dequant_moe_weights;

}  // namespace rlx::ops
