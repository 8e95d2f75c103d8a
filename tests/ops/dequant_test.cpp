#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// Random bytes; every half that could be a scale is made finite by clearing an exponent bit of every byte.
Tensor packed(Rng& rng, std::vector<int64_t> sizes) {
  Tensor t(DType::U8, std::move(sizes));
  for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
  return t;
}

// x · W with W[k, n] given by a function; another loop order than the kernel's, and W in double.
template <class Weight>
void expect_matmul(const Tensor& x, const Tensor& y, int64_t k, int64_t n, const Weight& weight, double tolerance) {
  const int64_t m = x.num_elements() / k;
  ASSERT_EQ(y.num_elements(), m * n);
  std::vector<double> sums(static_cast<size_t>(m * n), 0), sizes(sums);
  for (int64_t c = 0; c < k; ++c)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        sums[static_cast<size_t>(i * n + j)] += x.at(i * k + c) * weight(c, j);
        sizes[static_cast<size_t>(i * n + j)] += std::fabs(x.at(i * k + c) * weight(c, j));
      }
  for (int64_t i = 0; i < m * n; ++i)
    EXPECT_NEAR(y.at(i), sums[static_cast<size_t>(i)], tolerance * (1e-30 + sizes[static_cast<size_t>(i)])) << i;
}

// The value of element (row, k) of packed rows, block by block.
double gguf_value(Scheme scheme, const Tensor& bytes, int64_t row, int64_t k_total, int64_t k) {
  const SchemeInfo& s = info(scheme);
  float block[256];
  const int64_t index = row * (k_total / s.block_elems) + k / s.block_elems;
  decode_block(scheme, bytes.values<uint8_t>().data() + index * s.block_bytes, block);
  return static_cast<double>(block[k % s.block_elems]);
}

constexpr Scheme kGguf[] = {Scheme::kGgufQ4_0,  Scheme::kGgufQ4_1,  Scheme::kGgufQ5_0, Scheme::kGgufQ5_1,
                            Scheme::kGgufQ8_0,  Scheme::kGgufQ8_1,  Scheme::kGgufQ2K,  Scheme::kGgufQ3K,
                            Scheme::kGgufQ4K,   Scheme::kGgufQ5K,   Scheme::kGgufQ6K,  Scheme::kGgufQ8K,
                            Scheme::kGgufIq4Nl, Scheme::kGgufIq4Xs, Scheme::kGgufF16,  Scheme::kGgufBf16};

Tensor row_of(const Tensor& x, int64_t row) {
  const int64_t k = x.sizes().back();
  return Tensor::of<float>(DType::F32, {1, k},
                           x.values<float>().subspan(static_cast<size_t>(row * k), static_cast<size_t>(k)));
}

// Elements of some blocks; halves have none, and take as many as the shortest.
int64_t elements_of(Scheme scheme, int64_t blocks) { return blocks * std::max<int64_t>(32, info(scheme).block_elems); }

}  // namespace

OP_CASES(dequant_matmul) {
  // Known values. int8: column scales per block of two rows, the last block short.
  const int8_t codes[] = {1, -2, 3, 4, -128, 127};
  const Tensor w8 = Tensor::of<int8_t>(DType::I8, {3, 2}, codes), x = Tensor::f32({1, 3}, {1, 10, 100});
  const Tensor scale = Tensor::f32({2, 2}, {0.5, 1, 2, 4}), zero = Tensor::f32({2, 2}, {1, 0.5, 2, -1});
  add({x, w8, scale, zero}, {.scheme = Scheme::kInt8, .block = 2})
      .expect({Tensor::f32({1, 2}, {0.5 + 15 - 25600, -2 + 40 + 50800})}, kExact);
  add({x, w8, scale, zero}, {.scheme = Scheme::kInt8Asym, .block = 2})
      .expect({Tensor::f32({1, 2}, {0 + 10 - 26000, -2.5 + 35 + 51200})}, kExact);
  // int4: six codes in three bytes, low nibble first, signed.
  const uint8_t nibbles[] = {0x21, 0x8F, 0x70};
  add({x, Tensor::of<uint8_t>(DType::U8, {3}, nibbles), scale, zero}, {.scheme = Scheme::kInt4, .block = 2})
      .expect({Tensor::f32({1, 2}, {0.5 - 5 + 0, 2 - 80 + 2800})}, kExact);
  // fp8: 0x38 is 1 in E4M3, 0x3C is 1 in E5M2; one scale, or one per column.
  const uint8_t fp8[] = {0x38, 0x3C, 0xB8, 0xBC};
  const Tensor wf = Tensor::of<uint8_t>(DType::U8, {2, 2}, fp8), xf = Tensor::f32({2, 2}, {1, 0, 1, 2});
  add({xf, wf, Tensor::f32({1}, {2}), Tensor::f32({1}, {9})}, {.scheme = Scheme::kFp8E4m3})
      .expect({Tensor::f32({2, 2}, {2, 3, -2, -3})}, kExact);
  add({xf, wf, Tensor::f32({2}, {2, 4}), Tensor::f32({1}, {9})}, {.scheme = Scheme::kFp8E5m2})
      .expect({Tensor::f32({2, 2}, {1, 4, -1, -4})}, kExact);
  const uint8_t nan[] = {0x7F};
  add({Tensor::f32({1, 1}, {1}), Tensor::of<uint8_t>(DType::U8, {1, 1}, nan), Tensor::f32({1}, {2}), zero},
      {.scheme = Scheme::kFp8E4m3})
      .expect({Tensor::f32({1, 1}, {NAN})});
  // nvfp4: codes 1 and 15, block scale 0x40 (2 in E4M3) times 0.25.
  const uint8_t fp4[] = {0xF1}, two[] = {0x40};
  add({Tensor::f32({1, 2}, {1, 1}), Tensor::of<uint8_t>(DType::U8, {1}, fp4),
       Tensor::of<uint8_t>(DType::U8, {1, 1}, two), Tensor::f32({1}, {0.25})},
      {.scheme = Scheme::kNvfp4})
      .expect({Tensor::f32({1, 1}, {0.25 - 3})}, kExact);

  // Every side-tensor scheme on odd sizes, leading axes flattened, against the formula of its table row.
  for (const Scheme scheme :
       {Scheme::kInt8, Scheme::kInt8Asym, Scheme::kInt4, Scheme::kFp8E4m3, Scheme::kFp8E5m2, Scheme::kNvfp4}) {
    const int64_t k = 37, n = 5, block = scheme == Scheme::kNvfp4 ? 16 : 8, blocks = (k + block - 1) / block;
    const bool fp8_scheme = scheme == Scheme::kFp8E4m3 || scheme == Scheme::kFp8E5m2;
    const Tensor w = packed(rng, info(scheme).code_bits == 8 ? std::vector<int64_t>{k, n}
                                                             : std::vector<int64_t>{weight_bytes(scheme, k, n)});
    const Tensor s = scheme == Scheme::kNvfp4 ? packed(rng, {blocks, n})
                     : fp8_scheme             ? random({n}, 0.5, 2)
                                              : random({blocks, n}, 0.5, 2);
    const Tensor z = scheme == Scheme::kNvfp4 ? random({1}, 0.5, 2) : random({blocks, n});
    add({random({2, 3, k}), w, s, z}, {.scheme = scheme, .block = block})
        .check([=](const Tensors& in, const Tensors& out) {
          EXPECT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, n}));
          const uint8_t* bytes = in[1].values<uint8_t>().data();
          expect_matmul(
              in[0], out[0], k, n,
              [&](int64_t c, int64_t j) {
                const auto code = static_cast<double>(decode_code(scheme, bytes, c * n + j));
                const int64_t at = c / block * n + j;
                if (fp8_scheme) return code * in[2].at(j);
                if (scheme == Scheme::kNvfp4)
                  return code * f8e4m3_to_double(in[2].values<uint8_t>()[static_cast<size_t>(at)]) * in[3].at(0);
                return (code - (scheme == Scheme::kInt8Asym ? in[3].at(at) : 0)) * in[2].at(at);
              },
              1e-6);
        });
  }
  // Every GGUF scheme: N from the bytes, W row by row.
  for (const Scheme scheme : kGguf) {
    const int64_t k = elements_of(scheme, 2), n = 3;
    add({random({2, k}), packed(rng, {weight_bytes(scheme, k, n)})}, {.scheme = scheme})
        .check([=](const Tensors& in, const Tensors& out) {
          EXPECT_EQ(out[0].sizes(), (std::vector<int64_t>{2, n}));
          expect_matmul(
              in[0], out[0], k, n, [&](int64_t c, int64_t j) { return gguf_value(scheme, in[1], j, k, c); }, 1e-6);
        });
  }
  // Every path of the fast kernels: rows of x around their blocks, columns around a group, K of several blocks. Judged
  // by the oracle.
  for (const Scheme scheme : kGguf)
    for (const auto& [m, blocks, n] : {std::tuple{1, 3, 37}, std::tuple{1, 2, 133}, std::tuple{3, 1, 16},
                                       std::tuple{8, 2, 5}, std::tuple{70, 1, 33}}) {
      const int64_t k = elements_of(scheme, blocks);
      add({random({m, k}), packed(rng, {weight_bytes(scheme, k, n)})}, {.scheme = scheme});
    }
  // Long rows: more than what the threads of a workgroup take at a time.
  for (const Scheme scheme : kGguf)
    add({random({1, 5376}), packed(rng, {weight_bytes(scheme, 5376, 6)})}, {.scheme = scheme});
  // Rows of halves may have any length; 1, -2, inf and NaN.
  for (const Scheme scheme : {Scheme::kGgufF16, Scheme::kGgufBf16}) {
    for (const int64_t k : {1, 7, 40, 72})
      for (const int64_t m : {1, 9})
        add({random({m, k}), packed(rng, {weight_bytes(scheme, k, 5)})}, {.scheme = scheme});
    const uint16_t f16[] = {0x3C00, 0xC000, 0x7C00, 0x7E00}, bf16[] = {0x3F80, 0xC000, 0x7F80, 0x7FC0};
    Tensor bytes(DType::U8, {8});
    std::memcpy(bytes.mutable_bytes().data(), scheme == Scheme::kGgufF16 ? f16 : bf16, 8);
    add({Tensor::f32({2, 1}, {1, 3}), bytes}, {.scheme = scheme})
        .expect({Tensor::f32({2, 4}, {1, -2, INFINITY, NAN, 3, -6, INFINITY, NAN})});
  }
  for (const Scheme scheme :
       {Scheme::kInt8, Scheme::kInt8Asym, Scheme::kInt4, Scheme::kFp8E4m3, Scheme::kFp8E5m2, Scheme::kNvfp4})
    for (const auto& [m, k, n, block] :
         {std::tuple{1, 96, 37, 32}, std::tuple{3, 75, 16, 64}, std::tuple{8, 64, 70, 96}, std::tuple{70, 132, 67, 128},
          std::tuple{3, 70, 5, 7}, std::tuple{1, 75, 133, 32}, std::tuple{1, 70, 1100, 32}, std::tuple{4, 37, 4130, 32},
          std::tuple{9, 37, 66, 16}, std::tuple{67, 35, 6, 8}}) {
      const bool one_byte = scheme == Scheme::kFp8E4m3 || scheme == Scheme::kFp8E5m2, half = scheme == Scheme::kNvfp4;
      const int64_t blocks = (k + block - 1) / block;
      const Tensor w = info(scheme).code_bits == 8 ? packed(rng, {k, n}) : packed(rng, {weight_bytes(scheme, k, n)});
      const Tensor s = half       ? packed(rng, {(k + 15) / 16, n})
                       : one_byte ? random({m == 3 ? 1 : n})
                                  : random({blocks, n});
      add({random({m, k}), w, s, half ? random({1}) : random({blocks, n})}, {.scheme = scheme, .block = block});
    }
  // Elements of all sizes in one row, from denormals to almost the largest; infinity and NaN in x and in the scales.
  for (const Scheme scheme : {Scheme::kGgufQ4_0, Scheme::kGgufQ4_1, Scheme::kGgufQ5_0, Scheme::kGgufQ5_1,
                              Scheme::kGgufQ8_0, Scheme::kGgufQ4K, Scheme::kGgufQ5K, Scheme::kGgufQ6K}) {
    const int64_t k = 256, n = 80;
    const Tensor w = packed(rng, {weight_bytes(scheme, k, n)});
    Tensor wide = random({6, k});
    auto values = wide.mutable_values<float>();
    for (int64_t c = 0; c < k; ++c) {
      values[static_cast<size_t>(c)] = std::ldexp(values[static_cast<size_t>(c)], static_cast<int>(c) - 140);
      // Small, but none so small that a GPU may take it, or its products, for 0.
      float& small = values[static_cast<size_t>(k + c)];
      small = std::copysign(std::max(std::fabs(small), 0.01f), small) * 1e-33f;
      values[static_cast<size_t>(2 * k + c)] = c % 7 == 0 ? 127.5f : c % 7 == 1 ? -255 : 0;
    }
    values[static_cast<size_t>(3 * k + 5)] = INFINITY;
    values[static_cast<size_t>(4 * k + 5)] = NAN;
    add({wide, w}, {.scheme = scheme});
    for (int64_t row = 0; row < 6; ++row) add({row_of(wide, row), w}, {.scheme = scheme});  // each judged by itself
    // One element of each 32 is far larger than the others, but its weight is 0 where a scheme has that; it alone;
    // almost the largest floats.
    Tensor uneven = random({3, k});
    auto elements = uneven.mutable_values<float>();
    std::vector<float> weights(static_cast<size_t>(n * k));
    for (float& v : weights) v = static_cast<float>(rng.uniform(-1, 1));
    for (int64_t c = 0; c < k; ++c) {
      elements[static_cast<size_t>(c)] *= c % 32 == 7 ? 50 : 1;
      elements[static_cast<size_t>(k + c)] *= c % 32 == 7 ? 50 : 0;
      elements[static_cast<size_t>(2 * k + c)] *= 1e37f;
      if (c % 32 == 7)
        for (int64_t row = 0; row < n; ++row) weights[static_cast<size_t>(row * k + c)] = 0;
    }
    Tensor without = Tensor(DType::U8, {weight_bytes(scheme, k, n)});
    encode_blocks(scheme, weights.data(), n * k, without.mutable_values<uint8_t>().data());
    for (int64_t row = 0; row < 3; ++row) add({row_of(uneven, row), without}, {.scheme = scheme});
    Tensor infinite = packed(rng, {weight_bytes(scheme, k, n)});
    infinite.mutable_values<uint8_t>()[scheme == Scheme::kGgufQ6K ? 209 : 1] = 0x7C;
    add({random({2, k}), infinite}, {.scheme = scheme});
    add({random({1, k}), infinite}, {.scheme = scheme});
  }
  // All fp8 codes, NaN and infinity among them, each alone in its column; sums that overflow before they are scaled.
  for (const Scheme scheme : {Scheme::kFp8E4m3, Scheme::kFp8E5m2}) {
    Tensor all(DType::U8, {5, 256});
    for (size_t i = 0; i < 256; ++i) all.mutable_values<uint8_t>()[2 * 256 + i] = static_cast<uint8_t>(i);
    add({random({2, 5}), all, random({256}), random({1})}, {.scheme = scheme});
    add({Tensor::f32({1, 5}, {0, 0, 1e37f, 0, 0}), all, Tensor::f32({1}, {1e-6f}), random({1})}, {.scheme = scheme});
  }
  add({random({32}), packed(rng, {2, 18})}, {.scheme = Scheme::kGgufQ4_0})
      .check([](const Tensors&, const Tensors& out) { EXPECT_EQ(out[0].sizes(), (std::vector<int64_t>{2})); });
  add({random({0, 32}), packed(rng, {2, 18})}, {.scheme = Scheme::kGgufQ4_0}).expect({Tensor(DType::F32, {0, 2})});
  add({random({2, 0}), Tensor(DType::U8, {0, 3}), Tensor(DType::F32, {0, 3}), zero}, {.scheme = Scheme::kInt8})
      .expect({Tensor(DType::F32, {2, 3})}, kExact);  // an empty sum is 0

  const auto sym = [&](Scheme s) { return ops::DequantMatmulAttrs{.scheme = s, .block = 2}; };
  add_error({x, w8}, sym(Scheme::kInt8), "Number of operands (2) of int8 is not 4");
  add_error({random({2, 32}), packed(rng, {18}), scale, zero}, sym(Scheme::kGgufQ4_0), "of gguf_q4_0 is not 2");
  add_error({random({2, 33}), packed(rng, {18})}, sym(Scheme::kGgufQ4_0), "(33) is not a multiple of the block (32)");
  add_error({random({2, 0}), packed(rng, {18})}, sym(Scheme::kGgufQ4_0), "Contraction size (0)");
  add_error({random({2, 32}), packed(rng, {19})}, sym(Scheme::kGgufQ4_0),
            "bytes (19) are not a multiple of a row (18)");
  add_error({random({2, 32}), random({18})}, sym(Scheme::kGgufQ4_0), "Packed weight dtype (f32) is not u8");
  add_error({random({2, 32}, DType::F16), packed(rng, {18})}, sym(Scheme::kGgufQ4_0), "Operand x dtype (f16)");
  add_error({random({}), packed(rng, {18})}, sym(Scheme::kGgufQ4_0), "rank 0");
  add_error({x, random({3, 2}), scale, zero}, sym(Scheme::kInt8), "Weight dtype (f32) is not u8");
  add_error({x, w8, scale, zero}, sym(Scheme::kFp8E4m3), "Weight dtype (i8) is not u8");
  add_error({random({1, 4}), w8, scale, zero}, sym(Scheme::kInt8), "Contraction sizes of weight and x");
  add_error({x, w8, random({1, 2}), zero}, sym(Scheme::kInt8), "Scale shape ([1, 2]) is not [2, 2]");
  add_error({x, w8, scale, random({1, 2})}, sym(Scheme::kInt8Asym), "Zero point shape ([1, 2]) is not [2, 2]");
  add_error({x, w8, random({2, 2}, DType::F64), zero}, sym(Scheme::kInt8), "Scale dtype (f64) is not f32");
  add_error({x, w8, scale, zero}, {.scheme = Scheme::kInt8, .block = 0}, "Block (0) is not positive");
  add_error({x, packed(rng, {4}), scale, zero}, sym(Scheme::kInt4), "Weight shape ([4]) is not 3 bytes");
  add_error({xf, wf, random({3}), zero}, sym(Scheme::kFp8E4m3), "Scale shape ([3]) is not [1] or [2]");
  add_error({xf, packed(rng, {2}), packed(rng, {1, 2}), zero}, sym(Scheme::kNvfp4), "Global scale shape");
}

OP_CASES(dequant_grouped_matmul) {
  for (const Scheme scheme : {Scheme::kGgufQ4_0, Scheme::kGgufQ6K, Scheme::kGgufIq4Xs})
    for (const DType index : {DType::I32, DType::I64}) {
      const int64_t k = info(scheme).block_elems, n = 3, experts = 4;
      add({random({5, k}), packed(rng, {experts, weight_bytes(scheme, k, n)}), integers({5}, 0, experts - 1, index)},
          {.scheme = scheme, .n = n})
          .check([=](const Tensors& in, const Tensors& out) {
            ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{5, n}));
            for (int64_t i = 0; i < 5; ++i) {
              const auto expert = static_cast<int64_t>(in[2].at(i));
              for (int64_t j = 0; j < n; ++j) {
                double sum = 0, size = 0;
                for (int64_t c = k - 1; c >= 0; --c) {
                  const double term = in[0].at(i * k + c) * gguf_value(scheme, in[1], expert * n + j, k, c);
                  sum += term, size += std::fabs(term);
                }
                EXPECT_NEAR(out[0].at(i * n + j), sum, 1e-6 * size);
              }
            }
          });
    }
  // Many rows for one expert, experts without rows, columns beyond a group.
  for (const Scheme scheme : kGguf) {
    const int64_t k = elements_of(scheme, 2), n = 19, experts = 9;
    Tensor choice = integers({75}, 0, experts - 1);
    for (int64_t i = 0; i < 40; ++i) choice.mutable_values<int32_t>()[static_cast<size_t>(i)] = 4;
    add({random({75, k}), packed(rng, {experts * weight_bytes(scheme, k, n)}), choice}, {.scheme = scheme, .n = n});
  }
  // Rows enough for tiles of those that share an expert: two tiles, no row, and a few.
  for (const Scheme scheme : kGguf) {
    const int64_t k = elements_of(scheme, 3), n = 70, experts = 4;
    Tensor choice = integers({150}, 0, 1);
    for (int64_t i = 0; i < 70; ++i) choice.mutable_values<int32_t>()[static_cast<size_t>(2 * i)] = 3;
    add({random({150, k}), packed(rng, {experts * weight_bytes(scheme, k, n)}), choice}, {.scheme = scheme, .n = n});
  }
  const Tensor w = packed(rng, {36});
  const ops::DequantGroupedMatmulAttrs one{.scheme = Scheme::kGgufQ4_0, .n = 1};
  add({random({0, 32}), w, Tensor::i32({0}, {})}, one).expect({Tensor(DType::F32, {0, 1})});
  add_error({random({1, 32}), w, Tensor::i32({1}, {2})}, one, "Expert index (2) is out of range for 2 experts");
  add_error({random({1, 32}), w, Tensor::i32({1}, {-1})}, one, "Expert index (-1) is out of range");
  add_error({random({2, 32}), w, Tensor::i32({1}, {0})}, one, "Rows of x and expert indices");
  add_error({random({1, 32}), w, random({1})}, one, "Expert index dtype (f32)");
  add_error({random({1, 32}), w, Tensor::i32({1}, {0})}, {.scheme = Scheme::kGgufQ4_0, .n = 0},
            "n (0) is not positive");
  add_error({random({1, 32}), w, Tensor::i32({1}, {0})}, {.scheme = Scheme::kGgufQ4_0, .n = 4},
            "bytes (36) are not a multiple of an expert's (72)");
  add_error({random({1, 32}), w, Tensor::i32({1}, {0})}, {.scheme = Scheme::kInt8, .n = 1}, "not a GGUF scheme");
}

OP_CASES(dequant_gather) {
  for (const Scheme scheme : kGguf) {
    const int64_t k = elements_of(scheme, 2), rows = 4, row_bytes = weight_bytes(scheme, k, 1);
    const auto judge = [=](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, k}));
      for (int64_t i = 0; i < 6; ++i) {
        const auto index = static_cast<int64_t>(in[1].at(i));
        for (int64_t c = 0; c < k; ++c)
          EXPECT_EQ(out[0].at(i * k + c), gguf_value(scheme, in[0], (index + rows) % rows, k, c));
      }
    };
    add({packed(rng, {rows, row_bytes}), integers({2, 3}, -rows, rows - 1)}, {.scheme = scheme}).check(judge);
    add({packed(rng, {rows * row_bytes}), integers({2, 3}, -rows, rows - 1, DType::I64)}, {.scheme = scheme, .k = k})
        .check(judge);
  }
  const Tensor table = packed(rng, {4, 18});
  const ops::DequantGatherAttrs q4{.scheme = Scheme::kGgufQ4_0};
  add({table, Tensor::i32({}, {2})}, q4).check([](const Tensors&, const Tensors& out) {
    EXPECT_EQ(out[0].sizes(), (std::vector<int64_t>{32}));
  });
  add_error({table, Tensor::i32({1}, {4})}, q4, "Index (4) is out of range for size 4");
  add_error({table, Tensor::i32({1}, {-5})}, q4, "Index (-5) is out of range for size 4");
  add_error({packed(rng, {72}), Tensor::i32({1}, {0})}, q4, "rank (1) is not 2");
  add_error({packed(rng, {4, 17}), Tensor::i32({1}, {0})}, q4, "Bytes of a row (17)");
  add_error({packed(rng, {71}), Tensor::i32({1}, {0})}, {.scheme = Scheme::kGgufQ4_0, .k = 32}, "bytes (71)");
  add_error({table, random({1})}, q4, "Index dtype (f32)");
  add_error({table, Tensor::i32({1}, {0})}, {.scheme = Scheme::kNvfp4}, "not a GGUF scheme");
}

OP_CASES(dequant_moe_weights) {
  for (const Scheme scheme : {Scheme::kGgufQ5_1, Scheme::kGgufQ4K}) {
    const int64_t experts = 2, k = info(scheme).block_elems, n = 3;
    add({packed(rng, {experts * weight_bytes(scheme, k, n)})}, {.scheme = scheme, .out_shape = {experts, k, n}})
        .check([=](const Tensors& in, const Tensors& out) {
          ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{experts, k, n}));
          for (int64_t e = 0; e < experts; ++e)
            for (int64_t i = 0; i < k; ++i)
              for (int64_t j = 0; j < n; ++j)
                EXPECT_EQ(out[0].at((e * k + i) * n + j), gguf_value(scheme, in[0], e * n + j, k, i));
        });
  }
  for (const Scheme scheme : kGguf) {
    const int64_t k = elements_of(scheme, 1);
    add({packed(rng, {3 * weight_bytes(scheme, k, 21)})}, {.scheme = scheme, .out_shape = {3, k, 21}});
  }
  add_error({packed(rng, {37})}, {.scheme = Scheme::kGgufQ4_0, .out_shape = {2, 32, 1}},
            "bytes (37) are not those of 2 experts (36)");
  add_error({packed(rng, {36})}, {.scheme = Scheme::kGgufQ4_0, .out_shape = {2, 32}}, "is not [E, K, N]");
  add_error({packed(rng, {36})}, {.scheme = Scheme::kGgufQ4_0, .out_shape = {2, 31, 1}}, "not a multiple of the block");
  add_error({packed(rng, {36})}, {.scheme = Scheme::kInt8, .out_shape = {2, 32, 1}}, "not a GGUF scheme");
}

}  // namespace rlx::test
