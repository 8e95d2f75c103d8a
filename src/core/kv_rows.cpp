#include "core/kv_rows.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"

namespace rlx {

void encode_q8_row(const float* from, int64_t width, uint32_t* to) {
  std::fill(to, to + q8_row_words(width), 0u);
  uint32_t* scales = to + width / 4;
  for (int64_t block = 0; block < width / kQ8Block; ++block) {
    const float* x = from + block * kQ8Block;
    float largest = 0;
    for (int64_t i = 0; i < kQ8Block; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = largest / 127, factor = scale > 0 ? 1 / scale : 0;
    scales[block / 2] |= static_cast<uint32_t>(f16_from_double(scale)) << (16 * (block % 2));
    for (int64_t i = 0; i < kQ8Block; ++i) {
      const auto quant = static_cast<int8_t>(std::nearbyint(std::clamp(x[i] * factor, -127.0f, 127.0f)));
      to[(block * kQ8Block + i) / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(quant)) << (8 * (i % 4));
    }
  }
}

void decode_q8_row(const uint32_t* from, int64_t width, float* to) {
  const uint32_t* scales = from + width / 4;
  for (int64_t i = 0; i < width; ++i) {
    const int64_t block = i / kQ8Block;
    const auto scale =
        static_cast<float>(f16_to_double(static_cast<uint16_t>(scales[block / 2] >> (16 * (block % 2)))));
    to[i] = scale * static_cast<float>(static_cast<int8_t>(from[i / 4] >> (8 * (i % 4))));
  }
}

}  // namespace rlx
