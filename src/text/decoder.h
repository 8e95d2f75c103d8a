// How pieces become text again. A decoder is a chain of steps that take one token after the other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_reader.h"

namespace rlx::text {

// What flows from step to step: a token's text, or (`continues`) more of the token before, once a step has joined
// tokens.
struct Chunk {
  std::string text;
  bool continues = false;
};
using Sink = std::function<void(Chunk)>;

class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual void push(Chunk chunk, const Sink& out) = 0;
  virtual void finish(const Sink&) {}
};

// Makes a step in its first state. An eager step gives text as soon as it is whole; else a step may wait for the end,
// as Hugging Face's decoders, which see all tokens at once.
using MakeStep = std::function<std::unique_ptr<DecodeStep>(bool eager)>;

// The "decoder" of a tokenizer.json; null joins tokens with spaces.
std::vector<MakeStep> read_decoder(const JsonReader& json);

MakeStep byte_level_step();
MakeStep byte_fallback_step();
MakeStep replace_step(std::string from, std::string to);
MakeStep fuse_step();
MakeStep strip_step(std::string content, int64_t start, int64_t stop);
MakeStep clean_up_step();  // no spaces before punctuation and English contractions
MakeStep utf8_step();      // whole characters; what is none as U+FFFD

class DecodeRun {
 public:
  DecodeRun(const std::vector<MakeStep>& steps, bool eager);
  std::string push(std::string_view piece);  // the text that is ready
  std::string finish();

 private:
  void feed(size_t step, Chunk chunk, std::string& out);
  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

}  // namespace rlx::text
