// Quantisation schemes of weights (spec 10, 5): what the bytes of a packed weight mean.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

// Side-tensor schemes first (codes in one tensor, scales in another), then those whose blocks carry their scales.
enum class Scheme : int32_t {
  kInt8,
  kInt8Asym,
  kInt4,
  kFp8E4m3,
  kFp8E5m2,
  kNvfp4,
  kGgufQ4_0,
  kGgufQ4_1,
  kGgufQ5_0,
  kGgufQ5_1,
  kGgufQ8_0,
  kGgufQ8_1,
  kGgufQ2K,
  kGgufQ3K,
  kGgufQ4K,
  kGgufQ5K,
  kGgufQ6K,
  kGgufQ8K,
  kGgufIq4Nl,
  kGgufIq4Xs,
  kGgufF16,  // plain halves: a block is one element, without a scale
  kGgufBf16
};
constexpr auto names_of(Scheme) {
  return std::array<std::string_view, 22>{
      "int8",      "int8a",     "int4",       "fp8e4m3",    "fp8e5m2",  "nvfp4",    "gguf_q4_0", "gguf_q4_1",
      "gguf_q5_0", "gguf_q5_1", "gguf_q8_0",  "gguf_q8_1",  "gguf_q2k", "gguf_q3k", "gguf_q4k",  "gguf_q5k",
      "gguf_q6k",  "gguf_q8k",  "gguf_iq4nl", "gguf_iq4xs", "gguf_f16", "gguf_bf16"};
}

struct SchemeInfo {
  Scheme scheme;
  int64_t block_elems;  // elements that share a scale; 0: an attribute of the node says
  int64_t block_bytes;  // bytes of a block of a self-contained scheme, 0 for the others
  int code_bits;        // bits of one code of a side-tensor scheme, 0 for the others
  int ggml_code;        // the type number in GGUF files, -1 for the others
  int bits_x10;         // bits per weight times ten, rounded, scales of side tensors not counted
};
const SchemeInfo& info(Scheme scheme);

bool has_scale(Scheme scheme);       // scales per block of K in a tensor of their own
bool has_zero_point(Scheme scheme);  // the zero points are read, not only carried
bool scale_is_fp8(Scheme scheme);
bool is_gguf(Scheme scheme);

std::optional<Scheme> scheme_of_ggml_code(int code);

// Bytes of a weight of k x n elements, block scales of side tensors not counted. Throws when k is not a multiple of a
// GGUF block, or when the number does not fit.
int64_t weight_bytes(Scheme scheme, int64_t k, int64_t n);

// GGUF schemes: the block_elems values of one block of block_bytes bytes. Every value is rounded once, to f32.
void decode_block(Scheme scheme, const uint8_t* bytes, float* out);

// GGUF schemes: `elements` values (a multiple of the block) of consecutive blocks.
void decode_blocks(Scheme scheme, const uint8_t* bytes, int64_t elements, float* out);

// The other way, as good as the scheme allows: finite values, a multiple of the block. Throws for Q8_1 and Q8_K, which
// are for activations.
void encode_blocks(Scheme scheme, const float* values, int64_t elements, uint8_t* out);

// Side-tensor schemes: code number `index` of a weight as a number, before scale and zero point (exact in f32).
float decode_code(Scheme scheme, const uint8_t* weight, int64_t index);

void append_text(std::string& out, Scheme scheme);

}  // namespace rlx
