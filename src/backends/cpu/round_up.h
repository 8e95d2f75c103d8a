#pragma once

#include <cstdint>

namespace rlx::cpu {

constexpr int64_t div_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t round_up(int64_t n, int64_t to) { return div_up(n, to) * to; }

}  // namespace rlx::cpu
