#include "bench_shapes.h"

#include "rlx/ops.h"

namespace rlx::cli {

namespace {

using namespace ops;

Value x(Graph& g, std::vector<int64_t> sizes, DType dtype = DType::F32, std::string name = "x") {
  return g.input(std::move(name), {Shape(std::move(sizes)), dtype});
}
Value w(Graph& g, std::vector<int64_t> sizes, DType dtype = DType::F32, std::string name = "w") {
  return g.param(std::move(name), {Shape(std::move(sizes)), dtype});
}

// 16 Mi elements: 64 MiB of f32, far larger than the caches.
constexpr int64_t kLarge = 16 << 20;

Value matmul_shape(Graph& g, int64_t m, int64_t k, int64_t n) { return matmul(x(g, {m, k}), w(g, {k, n})); }

Value conv_shape(Graph& g, std::vector<int64_t> image, std::vector<int64_t> weight, int64_t stride,
                 int64_t groups = 1) {
  const auto rank = weight.size() - 2;
  ConvAttrs a;
  for (size_t i = 0; i < rank; ++i) {
    a.kernel_size.push_back(weight[i + 2]);
    a.stride.push_back(stride);
    a.padding.push_back(weight[i + 2] / 2);
  }
  a.groups = groups;
  return conv(x(g, std::move(image)), w(g, std::move(weight)), a);
}

Value attention_shape(Graph& g, int64_t heads, int64_t kv_heads, int64_t sq, int64_t sk, int64_t d, MaskKind mask) {
  return attention(x(g, {1, heads, sq, d}), x(g, {1, kv_heads, sk, d}, DType::F32, "k"),
                   x(g, {1, kv_heads, sk, d}, DType::F32, "v"),
                   AttentionAttrs{.num_heads = heads, .head_dim = d, .mask_kind = mask});
}

Value gguf_shape(Graph& g, Scheme scheme, int64_t m, int64_t k, int64_t n, int64_t bytes_per_256) {
  return dequant_matmul(x(g, {m, k}), w(g, {n * k / 256 * bytes_per_256}, DType::U8), {.scheme = scheme});
}

}  // namespace

const std::vector<BenchShape>& bench_shapes() {
  static const std::vector<BenchShape> shapes = {
      {&add, "64 MiB", [](Graph& g) { return add(x(g, {kLarge}), x(g, {kLarge}, DType::F32, "y")); }},
      {&add, "64 MiB, row bias",
       [](Graph& g) {
         return add(x(g, {kLarge / 1024, 1024}), w(g, {1024}));
       }},
      {&argmax, "logits 64 x 128256",
       [](Graph& g) {
         return argmax(x(g, {64, 128256}), {.axis = -1});
       }},
      {&attention, "BERT-base, 512 tokens",
       [](Graph& g) { return attention_shape(g, 12, 12, 512, 512, 64, MaskKind::kNone); }},
      {&attention, "GPT-2, causal 1024",
       [](Graph& g) { return attention_shape(g, 12, 12, 1024, 1024, 64, MaskKind::kCausal); }},
      {&attention, "Llama-8B decode, 4096 keys, 8 kv heads",
       [](Graph& g) { return attention_shape(g, 32, 8, 1, 4096, 128, MaskKind::kNone); }},
      {&cast, "f32 to f16, 64 MiB", [](Graph& g) { return cast(x(g, {kLarge}), {.to = DType::F16}); }},
      {&concat, "2 x 32 MiB on the last axis",
       [](Graph& g) {
         return concat(Values{x(g, {8192, 1024}), x(g, {8192, 1024}, DType::F32, "y")}, {.axis = -1});
       }},
      {&conv, "ResNet-50 stem 7x7/2",
       [](Graph& g) {
         return conv_shape(g, {1, 3, 224, 224}, {64, 3, 7, 7}, 2);
       }},
      {&conv, "ResNet-50 3x3 56x56x64",
       [](Graph& g) {
         return conv_shape(g, {1, 64, 56, 56}, {64, 64, 3, 3}, 1);
       }},
      {&conv, "ResNet-50 3x3 14x14x256",
       [](Graph& g) {
         return conv_shape(g, {1, 256, 14, 14}, {256, 256, 3, 3}, 1);
       }},
      {&conv, "ResNet-50 1x1 28x28 512 to 128",
       [](Graph& g) {
         return conv_shape(g, {1, 512, 28, 28}, {128, 512, 1, 1}, 1);
       }},
      {&conv, "MobileNetV2 depthwise 56x56x144",
       [](Graph& g) {
         return conv_shape(g, {1, 144, 56, 56}, {144, 1, 3, 3}, 1, 144);
       }},
      {&conv, "Whisper conv1d 3000x80 to 384",
       [](Graph& g) {
         return conv_shape(g, {1, 80, 3000}, {384, 80, 3}, 1);
       }},
      {&conv_integer, "ResNet-50 3x3 56x56x64",
       [](Graph& g) {
         return conv_integer(x(g, {1, 64, 56, 56}, DType::U8), w(g, {64, 64, 3, 3}, DType::I8),
                             {.kernel_size = {3, 3}, .padding = {1, 1}});
       }},
      {&conv_integer, "ResNet-50 1x1 28x28 512 to 128",
       [](Graph& g) {
         return conv_integer(x(g, {1, 512, 28, 28}, DType::U8), w(g, {128, 512, 1, 1}, DType::I8),
                             {.kernel_size = {1, 1}});
       }},
      {&cumsum, "rows of 1024, 64 MiB",
       [](Graph& g) {
         return cumsum(x(g, {kLarge / 1024, 1024}), {.axis = -1});
       }},
      {&dequant_matmul, "Q4_0 4096x4096, 1 row",
       [](Graph& g) { return gguf_shape(g, Scheme::kGgufQ4_0, 1, 4096, 4096, 144); }},
      {&dequant_matmul, "Q4_0 11008x4096, 1 row",
       [](Graph& g) { return gguf_shape(g, Scheme::kGgufQ4_0, 1, 4096, 11008, 144); }},
      {&dequant_matmul, "Q4_K 4096x4096, 1 row",
       [](Graph& g) { return gguf_shape(g, Scheme::kGgufQ4K, 1, 4096, 4096, 144); }},
      {&dequant_matmul, "Q8_0 4096x4096, 1 row",
       [](Graph& g) { return gguf_shape(g, Scheme::kGgufQ8_0, 1, 4096, 4096, 272); }},
      {&dequant_matmul, "Q4_0 4096x4096, 512 rows",
       [](Graph& g) { return gguf_shape(g, Scheme::kGgufQ4_0, 512, 4096, 4096, 144); }},
      {&dequantize_linear, "per tensor, to 64 MiB",
       [](Graph& g) {
         return dequantize_linear(x(g, {kLarge}, DType::U8), w(g, {}), w(g, {}, DType::U8, "zero"), {});
       }},
      {&expand, "rows to 64 MiB",
       [](Graph& g) {
         return expand(x(g, {1, 1024}), {.target_shape = {kLarge / 1024, 1024}});
       }},
      {&fft, "1024 rows of 1024",
       [](Graph& g) {
         return fft(x(g, {1024, 1024}, DType::C64));
       }},
      {&fft, "1024 rows of 400",
       [](Graph& g) {
         return fft(x(g, {1024, 400}, DType::C64));
       }},
      {&fused_conv_bias_act, "ResNet-50 3x3 56x56x64 with a residual",
       [](Graph& g) {
         return fused_conv_bias_act(x(g, {1, 64, 56, 56}), w(g, {64, 64, 3, 3}), w(g, {64}, DType::F32, "b"),
                                    x(g, {1, 64, 56, 56}, DType::F32, "r"),
                                    {.kernel_size = {3, 3}, .padding = {1, 1}, .activation = ActivationKind::kRelu});
       }},
      {&fused_matmul_bias_act, "BERT-base FFN up, 512 tokens, gelu",
       [](Graph& g) {
         return fused_matmul_bias_act(x(g, {512, 768}), w(g, {768, 3072}), w(g, {3072}, DType::F32, "b"),
                                      {.activation = ActivationKind::kGelu});
       }},
      {&gather, "4096 rows of 4096 from 32000",
       [](Graph& g) {
         return gather(w(g, {32000, 4096}), x(g, {4096}, DType::I32));
       },
       32000},
      {&gather_elements, "rows of 1024, 64 MiB",
       [](Graph& g) {
         return gather_elements(x(g, {kLarge / 1024, 1024}), x(g, {kLarge / 1024, 1024}, DType::I32, "i"), {.axis = 1});
       },
       1024},
      {&gelu, "64 MiB", [](Graph& g) { return gelu(x(g, {kLarge})); }},
      {&layer_norm, "rows of 768, 48 MiB",
       [](Graph& g) {
         return layer_norm(x(g, {16384, 768}), w(g, {768}), w(g, {768}, DType::F32, "b"));
       }},
      {&matmul, "1024 x 1024 x 1024", [](Graph& g) { return matmul_shape(g, 1024, 1024, 1024); }},
      {&matmul, "BERT-base projection, 512 tokens", [](Graph& g) { return matmul_shape(g, 512, 768, 768); }},
      {&matmul, "Llama-8B FFN, 1 token", [](Graph& g) { return matmul_shape(g, 1, 4096, 14336); }},
      {&matmul_integer, "512 x 4096 x 4096",
       [](Graph& g) {
         return matmul_integer(x(g, {512, 4096}, DType::U8), w(g, {4096, 4096}, DType::I8),
                               x(g, {}, DType::U8, "zero"));
       }},
      {&mul, "64 MiB", [](Graph& g) { return mul(x(g, {kLarge}), x(g, {kLarge}, DType::F32, "y")); }},
      {&narrow, "half of each row, 64 MiB read as 32",
       [](Graph& g) {
         return narrow(x(g, {8192, 2048}), {.axis = 1, .start = 512, .len = 1024});
       }},
      {&pad, "one row and column around 64x256x256, 17 MiB",
       [](Graph& g) {
         return pad(x(g, {1, 64, 256, 256}), {.before = {0, 0, 1, 1}, .after = {0, 0, 1, 1}});
       }},
      {&pool_max, "ResNet-50 3x3/2",
       [](Graph& g) {
         return pool_max(x(g, {1, 64, 112, 112}), {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
       }},
      {&quantize_linear, "per tensor, of 64 MiB",
       [](Graph& g) {
         return quantize_linear(x(g, {kLarge}), w(g, {}), w(g, {}, DType::U8, "zero"), {.to = DType::U8});
       }},
      {&reduce_sum, "last axis of 1024, 64 MiB",
       [](Graph& g) {
         return reduce_sum(x(g, {kLarge / 1024, 1024}), {.axes = {1}});
       }},
      {&reduce_sum, "first axis, 64 MiB",
       [](Graph& g) {
         return reduce_sum(x(g, {kLarge / 1024, 1024}), {.axes = {0}});
       }},
      {&resize, "linear 64x128x128 to 256x256",
       [](Graph& g) {
         return resize(x(g, {1, 64, 128, 128}), {.sizes = {1, 64, 256, 256}, .mode = ResizeMode::kLinear});
       }},
      {&resize, "cubic 3x1080x1920 to 540x960",
       [](Graph& g) {
         return resize(x(g, {1, 3, 1080, 1920}), {.sizes = {1, 3, 540, 960}, .mode = ResizeMode::kCubic});
       }},
      {&resize, "nearest 64x64x64 to 256x256",
       [](Graph& g) {
         return resize(x(g, {1, 64, 64, 64}), {.sizes = {1, 64, 256, 256}});
       }},
      {&rms_norm, "rows of 4096, 64 MiB",
       [](Graph& g) {
         return rms_norm(x(g, {4096, 4096}), w(g, {4096}));
       }},
      {&scatter_elements, "add, rows of 1024, 64 MiB",
       [](Graph& g) {
         const Value updates = x(g, {kLarge / 1024, 1024}, DType::F32, "u");
         return scatter_elements(x(g, {kLarge / 1024, 1024}), x(g, {kLarge / 1024, 1024}, DType::I32, "i"), updates,
                                 {.axis = 1, .reduction = ScatterReduction::kAdd});
       },
       1024},
      {&slice, "every second column, 64 MiB read as 32",
       [](Graph& g) {
         return slice(x(g, {8192, 2048}), {.start = {0, 0}, .step = {1, 2}, .len = {8192, 1024}});
       }},
      {&softmax, "BERT-base scores",
       [](Graph& g) {
         return softmax(x(g, {12 * 512, 512}));
       }},
      {&softmax, "rows of 1024, 64 MiB",
       [](Graph& g) {
         return softmax(x(g, {kLarge / 1024, 1024}));
       }},
      {&topk, "50 of 128256, 8 rows",
       [](Graph& g) {
         return topk(x(g, {8, 128256}), {.k = 50});
       }},
      {&transpose, "4096 x 4096",
       [](Graph& g) {
         return transpose(x(g, {4096, 4096}), {.perm = {1, 0}});
       }},
      {&transpose, "NCHW to NHWC 16x256x64x64",
       [](Graph& g) {
         return transpose(x(g, {16, 256, 64, 64}), {.perm = {0, 2, 3, 1}});
       }},
  };
  return shapes;
}

}  // namespace rlx::cli
