#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct SampleAttrs {
  int64_t top_k = 0;               // 0: off; 1: the largest logit
  float top_p = 1;                 // 1: off
  float temperature = 1;           // up to 1e-6: the largest logit
  uint64_t seed = 0;               // where there is no rng operand
  DType index_dtype = DType::I32;  // or I64
  static constexpr auto fields =
      std::tuple{field("top_k", &SampleAttrs::top_k), field("top_p", &SampleAttrs::top_p),
                 field("temperature", &SampleAttrs::temperature), field("seed", &SampleAttrs::seed),
                 field("index_dtype", &SampleAttrs::index_dtype)};
};
extern const Op<SampleAttrs> sample;  // logits [..., V], [rng U32 [4]: seed low, seed high, step low, step high]

}  // namespace rlx::ops
