#pragma once

namespace rlx {

// The 16 levels of IQ4_NL and IQ4_XS.
inline constexpr int kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace rlx
