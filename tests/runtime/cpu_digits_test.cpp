// The cpu's products with packed weights take activations as three signed digits: the largest of a block must fit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx::test {

TEST(CpuDigits, TheLargestOfABlockMayBeAnyNumber) {
  constexpr int64_t kRows = 64, kK = 64, kN = 16;
  Tensor w(DType::U8, {weight_bytes(Scheme::kGgufQ8_0, kK, kN)});
  for (int64_t b = 0; b < kK / 32 * kN; ++b) {
    uint8_t* block = w.mutable_values<uint8_t>().data() + 34 * b;
    block[0] = 0, block[1] = 0x3C;  // a scale of 1
    for (int j = 0; j < 32; ++j) block[2 + j] = static_cast<uint8_t>(b * 7 + j * 5 - 90);
  }
  Graph g;
  const Value x = g.input("x", {{kRows, kK}, DType::F32});
  g.output(ops::dequant_matmul(x, g.param("w", w.type()), {.scheme = Scheme::kGgufQ8_0}), "y");
  Executable cpu = compile(g, {.device = "cpu"}), oracle = compile(g, {.device = "reference"});
  for (Executable* e : {&cpu, &oracle}) e->set_param("w", w);
  // Mantissas around those where a digit carries into the next: 0x7E, 0x7F and all ones.
  for (const uint32_t base : {0x7E'0000u, 0x7E'7F00u, 0x7E'FD80u, 0x7E'FF00u, 0x7F'0000u, 0x7F'7F00u, 0x7F'FF80u, 0u})
    for (const bool negative : {false, true}) {
      Tensor t(DType::F32, {kRows, kK});
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t j = 0; j < kK; ++j) {
          const uint32_t mantissa = (base + static_cast<uint32_t>(r * 8)) & 0x7F'FFFF;
          const float top = std::bit_cast<float>(125u << 23 | mantissa);
          t.mutable_values<float>()[static_cast<size_t>(r * kK + j)] =
              j % 32 == 8 ? (negative ? -top : top) : top * 0.01f * static_cast<float>(j % 13 - 6);
        }
      const Tensor a = cpu.run({{"x", t}}).at("y"), b = oracle.run({{"x", t}}).at("y");
      for (int64_t i = 0; i < a.num_elements(); ++i)
        ASSERT_NEAR(a.at(i), b.at(i), 1e-4) << std::hex << base << ", element " << i;
    }
}

}  // namespace rlx::test
