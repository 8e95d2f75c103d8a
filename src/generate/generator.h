// Generator: a decoder with its caches, which takes tokens of several sequences and draws the next ones.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "generate/decoder.h"
#include "generate/sampling.h"

namespace rlx::generate {

struct GeneratorOptions {
  CompileOptions compile;
  int64_t context = 0;  // tokens of a sequence; 0: what the model was made for, at most 4096
  int64_t batch = 1;    // sequences
  models::CacheType cache = models::CacheType::kF32;
  SamplingOptions sampling;
  bool keep_scores = false;  // scores() can be asked for
};

class Generator {
 public:
  Generator(const models::ModelSource& source, const GeneratorOptions& options);

  int64_t context() const { return decoder_.context; }
  int64_t batch() const { return static_cast<int64_t>(sequences_.size()); }
  int64_t vocabulary() const { return decoder_.builder->config().vocabulary; }
  const std::vector<int32_t>& tokens(int64_t sequence) const { return sequences_[static_cast<size_t>(sequence)]; }

  // Appends tokens to the sequences (one list per sequence, none empty) and returns each one's next token, which is not
  // appended: the next call does. Error(kInvalid) when a sequence would exceed the context; nothing has changed then.
  std::vector<int32_t> feed(std::span<const std::vector<int32_t>> tokens);
  int32_t feed(std::span<const int32_t> tokens);  // of the only sequence

  // Forgets what stands behind the first `length` tokens: the caches keep those. Models with recurrent states read them
  // again.
  void truncate(int64_t sequence, int64_t length);
  // Draws of a new answer: the same seed gives the same tokens again.
  void restart_sampling() {
    draws_ = 0;
    sampling_is_set_ = false;
  }

  // Of the last feed: [batch, vocabulary].
  Tensor scores();
  const Executable& executable() const { return executable_; }

 private:
  bool has_recurrent_states() const { return decoder_.builder->has_recurrent_states(); }
  void feed_given();
  void set_sampling();
  void run(const std::vector<std::span<const int32_t>>& parts);

  GeneratorOptions options_;
  Decoder decoder_;
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<bool> read_again_;                 // by sequence: its states are not those of its tokens
  std::vector<std::vector<int32_t>> given_;      // of one feed: the tokens,
  std::vector<std::span<const int32_t>> parts_;  // those of one run,
  std::vector<int32_t> next_;                    // and what follows
  Executable executable_;
  std::vector<Tensor> inputs_;  // of the last size, in the graph's order
  std::vector<int32_t> drawn_;
  Tensor scores_;
  int64_t draws_ = 0;
  bool sampling_is_set_ = false;  // the executable's states of sampling are those for the next draw
};

}  // namespace rlx::generate
