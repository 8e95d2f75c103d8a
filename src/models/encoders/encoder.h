// Encoders: every token sees every other one, rows become one vector. A name and a function each, a file per family.
//
// The graph runs `rows` tokens of each of `batch` sequences, of which the first `lengths` count:
//   inputs   tokens I32 [batch, rows], types I32 [batch, rows] (where the model has them), positions I32 [rows]
//            (0, 1, 2 …), lengths I32 [batch], each at least 1
//   output   [batch, width], or the rows themselves [batch, rows, width]; those behind a sequence's end mean nothing
#pragma once

#include <optional>
#include <string_view>

#include "models/config.h"
#include "models/parts.h"
#include "rlx/ops/activation.h"

namespace rlx::models {

enum class Pooling { kNone, kMean, kCls, kLast };

struct EncoderConfig {
  std::string architecture;
  int64_t layers = 0, width = 0, heads = 0, head_dim = 0, vocabulary = 0;
  int64_t context = 0;  // tokens of a sequence at most
  float norm_eps = 1e-12f;
  ops::ActivationKind activation = ops::ActivationKind::kGelu;
  RopeConfig rope;                   // dims 0: positions are learned
  RopeConfig window_rope;            // of layers with a window
  int64_t window = 0;                // keys seen on each side; 0: there are no such layers
  std::vector<bool> windowed;        // which layers those are
  Pooling pooling = Pooling::kMean;  // what the model was made for
  bool normalize = false;
};
EncoderConfig read_encoder_config(const ModelSource& source);
bool is_encoder(const ModelSource& source);

class EncoderBuilder : public ModelParts {
 public:
  EncoderBuilder(const ModelSource& source, EncoderConfig config);

  const EncoderConfig& config() const { return config_; }
  const Value& tokens() const { return tokens_; }
  const Value& positions() const { return positions_; }
  const Value& types();

  // Self-attention of layer i over h, with the output's projection: from attn_q, attn_k and attn_v or from attn_qkv.
  Value attention(const Value& h, int64_t i);
  // down(act(up)), with a gate where the file has one; `fused`: up is [act's half, the other half].
  Value feed_forward(const Value& x, const std::string& layer, bool fused);

  // [batch, rows, width] to [batch, width].
  Value pool(const Value& hidden, Pooling pooling);
  Value normalized(const Value& x);

 private:
  Value rotated(const Value& x, bool windowed);
  const Value& window_mask();

  EncoderConfig config_;
  Dim batch_, rows_;
  Value tokens_, positions_, lengths_;
  std::optional<Value> types_, mask_;
  struct Tables {
    Value cos, sin;
  };
  std::optional<Tables> tables_[2];  // of full and of windowed layers
};

struct EncoderArchitecture {
  std::string_view name;  // of GGUF's general.architecture
  Value (*build)(EncoderBuilder& b);
};
const EncoderArchitecture& find_encoder(const ModelSource& source);

// Families: one file each.
Value build_bert(EncoderBuilder& b);
Value build_modern_bert(EncoderBuilder& b);

}  // namespace rlx::models
