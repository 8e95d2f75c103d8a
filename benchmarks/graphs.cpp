#include "graphs.h"

#include "rlx/blocks.h"
#include "rlx/ops.h"

namespace rlx::bench {

namespace {

using namespace rlx::ops;

TensorType f32(Shape shape) { return {std::move(shape), DType::F32}; }

// Params with running names.
class Weights {
 public:
  explicit Weights(Graph& graph) : graph_(graph) {}
  Value operator()(const std::string& name, Shape shape) {
    return graph_.param(str(name, ".", next_++), f32(std::move(shape)));
  }

 private:
  Graph& graph_;
  int next_ = 0;
};

Value conv_bias(Weights& weight, const Value& x, int64_t out, int64_t kernel, int64_t step = 1) {
  const int64_t in = x.shape()[1].value();
  const Value y = conv(x, weight("conv.w", {out, in, kernel, kernel}),
                       {.kernel_size = {kernel, kernel}, .stride = {step, step}, .padding = {kernel / 2, kernel / 2}});
  return y + weight("conv.b", {out, 1, 1});
}

}  // namespace

Graph transformer_encoder(int64_t batch, int64_t seq) {
  constexpr int64_t kLayers = 12, kWidth = 768, kHeads = 12, kMlp = 3072;
  Graph g("transformer_encoder");
  Weights weight(g);
  const Value tokens = g.input("tokens", {{batch, seq}, DType::I32}), mask = g.input("mask", f32({batch, seq}));
  Value x = gather(weight("embedding", {30522, kWidth}), tokens) + weight("positions", {seq, kWidth});
  const auto norm = [&](const Value& v) { return layer_norm(v, weight("gamma", {kWidth}), weight("beta", {kWidth})); };
  const auto linear = [&](const Value& v, int64_t in, int64_t out) {
    return matmul(v, weight("w", {in, out})) + weight("b", {out});
  };
  x = norm(x);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const Value q = linear(x, kWidth, kWidth), k = linear(x, kWidth, kWidth), v = linear(x, kWidth, kWidth);
    const Value a = attention({q, k, v, mask}, {.num_heads = kHeads,
                                                .head_dim = kWidth / kHeads,
                                                .layout = AttentionLayout::kBsf,
                                                .mask_kind = MaskKind::kCustom});
    x = norm(x + linear(a, kWidth, kWidth));
    x = norm(x + linear(gelu(linear(x, kWidth, kMlp)), kMlp, kWidth));
  }
  g.output(x, "hidden");
  return g;
}

Graph transformer_decoder(int64_t batch, int64_t seq, int64_t cache) {
  constexpr int64_t kLayers = 12, kWidth = 768, kHeads = 12, kKvHeads = 4, kHead = 64, kMlp = 2048, kVocab = 32000;
  Graph g("transformer_decoder");
  Weights weight(g);
  const Value tokens = g.input("tokens", {{batch, seq}, DType::I32}),
              positions = g.input("positions", {{batch, seq}, DType::I32});
  const Value cos = weight("cos", {cache, kHead / 2}), sin = weight("sin", {cache, kHead / 2});
  const Value length = g.state("kv_len", {{batch}, DType::I32});
  const Value new_length = length + g.dim_value(seq);
  Value x = gather(weight("embedding", {kVocab, kWidth}), tokens);
  const auto norm = [&](const Value& v) { return rms_norm(v, weight("gamma", {kWidth})); };
  const auto heads = [&](const Value& v, int64_t n) {
    return reshape(matmul(v, weight("w", {kWidth, n * kHead})), {.new_shape = {batch, seq, n, kHead}});
  };
  const RopeAttrs rotary{.head_dim = kHead, .layout = AttentionLayout::kBshd};
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const Value h = norm(x);
    const Value q = rope(heads(h, kHeads), cos, sin, positions, rotary),
                k = rope(heads(h, kKvHeads), cos, sin, positions, rotary);
    const Value v = heads(h, kKvHeads);
    const Value k_cache = g.state(str("k.", layer), f32({batch, cache, kKvHeads, kHead}));
    const Value v_cache = g.state(str("v.", layer), f32({batch, cache, kKvHeads, kHead}));
    const Value keys = kv_append(k_cache, k, length), values = kv_append(v_cache, v, length);
    g.update(k_cache, keys);
    g.update(v_cache, values);
    const Value a = attention(
        {q, keys, values, new_length},
        {.num_heads = kHeads, .head_dim = kHead, .layout = AttentionLayout::kBshd, .mask_kind = MaskKind::kCausal});
    x = x + matmul(reshape(a, {.new_shape = {batch, seq, kWidth}}), weight("out", {kWidth, kWidth}));
    x = x + blocks::swiglu_ffn(norm(x), weight("up", {kWidth, kMlp}), weight("gate", {kWidth, kMlp}),
                               weight("down", {kMlp, kWidth}));
  }
  g.update(length, new_length);
  g.output(matmul(norm(x), weight("head", {kWidth, kVocab})), "logits");
  return g;
}

Graph resnet50(int64_t batch) {
  Graph g("resnet50");
  Weights weight(g);
  Value x = g.input("image", f32({batch, 3, 224, 224}));
  x = pool_max(relu(conv_bias(weight, x, 64, 7, 2)), {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage)
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t width = int64_t{64} << stage, step = block == 0 && stage > 0 ? 2 : 1;
      const Value y = conv_bias(weight, relu(conv_bias(weight, relu(conv_bias(weight, x, width, 1)), width, 3, step)),
                                4 * width, 1);
      x = relu(y + (block == 0 ? conv_bias(weight, x, 4 * width, 1, step) : x));
    }
  x = reduce_mean(x, {.axes = {2, 3}});
  g.output(matmul(x, weight("fc.w", {2048, 1000})) + weight("fc.b", {1000}), "logits");
  return g;
}

Graph unet(int64_t batch) {
  Graph g("unet");
  Weights weight(g);
  const auto pair = [&](const Value& v, int64_t channels) {
    return relu(conv_bias(weight, relu(conv_bias(weight, v, channels, 3)), channels, 3));
  };
  Value x = g.input("image", f32({batch, 3, 256, 256}));
  std::vector<Value> skips;
  for (const int64_t channels : {64, 128, 256, 512}) {
    skips.push_back(pair(x, channels));
    x = pool_max(skips.back(), {.kernel_size = {2, 2}, .stride = {2, 2}});
  }
  x = pair(x, 1024);
  for (const int64_t channels : {512, 256, 128, 64}) {
    x = conv_bias(weight, resize_nearest_2x(x), channels, 3);
    x = pair(concat(skips.back(), x, {.axis = 1}), channels);
    skips.pop_back();
  }
  g.output(conv_bias(weight, x, 2, 1), "mask");
  return g;
}

std::span<const NamedGraph> all_graphs() {
  static constexpr NamedGraph kGraphs[] = {
      {"transformer_encoder", [] { return transformer_encoder(); }},
      {"transformer_decoder", [] { return transformer_decoder(); }},
      {"resnet50", [] { return resnet50(); }},
      {"unet", [] { return unet(); }},
  };
  return kGraphs;
}

}  // namespace rlx::bench
