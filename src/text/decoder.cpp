#include "text/decoder.h"

#include <algorithm>

#include "text/byte_level.h"
#include "text/pattern.h"
#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

// Takes the whole characters from the start of bytes, and what can never become one as U+FFFD. The start of a character
// at the end stays, unless this is all there will be.
std::string take_characters(std::string& bytes, bool all) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Character c = first_character(rest);
    const auto lead = static_cast<uint8_t>(rest[0]);
    if (!c.valid && !all && c.size == rest.size() && lead >= 0xC2 && lead <= 0xF4) break;
    out += c.valid ? rest.substr(0, c.size) : std::string_view("\xEF\xBF\xBD");
    rest.remove_prefix(c.size);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return out;
}

class EachToken : public DecodeStep {  // a function of the token and of whether it is the first
 public:
  using Function = std::function<std::string(std::string, bool)>;
  explicit EachToken(Function function) : function_(std::move(function)) {}
  void push(Chunk chunk, const Sink& out) override {
    out({function_(std::move(chunk.text), first_), chunk.continues});
    first_ = false;
  }

 private:
  Function function_;
  bool first_ = true;
};

MakeStep each_token(EachToken::Function function) {
  return [function](bool) { return std::make_unique<EachToken>(function); };
}

class Bytes : public DecodeStep {  // joins tokens to bytes and gives characters
 public:
  Bytes(bool eager, bool byte_level) : eager_(eager), byte_level_(byte_level) {}
  void push(Chunk chunk, const Sink& out) override {
    bytes_ += byte_level_ ? characters_as_bytes(chunk.text) : chunk.text;
    if (eager_) give(take_characters(bytes_, false), out);
  }
  void finish(const Sink& out) override { give(take_characters(bytes_, true), out); }

 private:
  void give(std::string text, const Sink& out) {
    if (text.empty()) return;
    out({std::move(text), started_});
    started_ = true;
  }
  bool eager_, byte_level_, started_ = false;
  std::string bytes_;
};

class ByteFallback : public DecodeStep {  // <0xE2> <0x82> <0xAC> is €
 public:
  explicit ByteFallback(bool eager) : eager_(eager) {}
  void push(Chunk chunk, const Sink& out) override {
    if (const int byte = byte_of_piece(chunk.text); byte >= 0) {
      bytes_ += static_cast<char>(byte);
      if (!eager_) return;
      if (std::string text = take_characters(bytes_, false); !text.empty()) out({std::move(text), false});
      return;
    }
    finish(out);
    out(std::move(chunk));
  }
  void finish(const Sink& out) override {  // bytes that are no text as a whole are U+FFFD each
    if (bytes_.empty()) return;
    if (is_valid_utf8(bytes_)) {
      out({bytes_, false});
    } else {
      for (size_t i = 0; i < bytes_.size(); ++i) out({"\xEF\xBF\xBD", false});
    }
    bytes_.clear();
  }

 private:
  bool eager_;
  std::string bytes_;
};

class Fuse : public DecodeStep {
 public:
  explicit Fuse(bool eager) : eager_(eager) {}
  void push(Chunk chunk, const Sink& out) override {
    if (eager_)
      out({std::move(chunk.text), started_});
    else
      text_ += chunk.text;
    started_ = true;
  }
  void finish(const Sink& out) override {
    if (!eager_ && started_) out({std::move(text_), false});
  }

 private:
  bool eager_, started_ = false;
  std::string text_;
};

class Strip : public DecodeStep {
 public:
  Strip(std::string content, int64_t start, int64_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  void push(Chunk chunk, const Sink& out) override {
    if (!chunk.continues) {
      finish(out);
      left_ = start_;
    }
    std::string_view text = chunk.text;
    for (; left_ > 0 && text.starts_with(content_); --left_) text.remove_prefix(content_.size());
    if (!text.empty()) left_ = 0;
    if (stop_ == 0)
      out({std::string(text), chunk.continues});
    else
      held_ += text;
  }
  void finish(const Sink& out) override {
    if (stop_ == 0 || held_.empty()) return;
    for (int64_t i = 0; i < stop_ && held_.ends_with(content_); ++i) held_.resize(held_.size() - content_.size());
    out({std::exchange(held_, {}), false});
  }

 private:
  std::string content_, held_;
  int64_t start_, stop_, left_ = 0;
};

class EndOfWord : public DecodeStep {  // a suffix ends words; the last one has no space behind it
 public:
  explicit EndOfWord(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(Chunk chunk, const Sink& out) override {
    if (waiting_) out({replace_all(held_, suffix_, " "), false});
    held_ = std::move(chunk.text);
    waiting_ = true;
  }
  void finish(const Sink& out) override {
    if (waiting_) out({replace_all(held_, suffix_, ""), false});
  }

 private:
  std::string suffix_, held_;
  bool waiting_ = false;
};

std::string clean_up(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replace_all(text, from, to);
  return text;
}

void read(const JsonReader& json, std::vector<MakeStep>& steps) {
  const std::string type = json.type();
  if (type == "Sequence") {
    const JsonReader parts = json.at("decoders");
    for (size_t i = 0; i < parts.array_size(); ++i) read(parts.element(i), steps);
  } else if (type == "ByteLevel") {
    steps.push_back(byte_level_step());
  } else if (type == "ByteFallback") {
    steps.push_back(byte_fallback_step());
  } else if (type == "Fuse") {
    steps.push_back(fuse_step());
  } else if (type == "Strip") {
    steps.push_back(strip_step(json.at("content").string(), json.at("start").integer(), json.at("stop").integer()));
  } else if (type == "Replace") {
    const Pattern pattern(json.at("pattern"));
    const std::string content = json.at("content").string();
    steps.push_back(each_token([=](std::string text, bool) { return pattern.replace(text, content); }));
  } else if (type == "WordPiece") {
    const std::string prefix = json.string_or("prefix", "##");
    const bool cleans = json.boolean_or("cleanup", true);
    steps.push_back(each_token([=](std::string text, bool first) {
      if (!first) text = text.starts_with(prefix) ? text.substr(prefix.size()) : ' ' + text;
      return cleans ? clean_up(std::move(text)) : text;
    }));
  } else if (type == "Metaspace") {
    const std::string mark = json.string_or("replacement", "▁");
    const bool prepends = read_prepend_scheme(json) != Prepend::kNever;
    steps.push_back(each_token(
        [=](std::string text, bool first) { return replace_all(text, mark, first && prepends ? "" : " "); }));
  } else if (type == "BPEDecoder") {
    const std::string suffix = json.string_or("suffix", "</w>");
    steps.push_back([suffix](bool) { return std::make_unique<EndOfWord>(suffix); });
  } else {
    json.unsupported("decoder");
  }
}

}  // namespace

MakeStep byte_level_step() {
  return [](bool eager) { return std::make_unique<Bytes>(eager, true); };
}
MakeStep utf8_step() {
  return [](bool eager) { return std::make_unique<Bytes>(eager, false); };
}
MakeStep byte_fallback_step() {
  return [](bool eager) { return std::make_unique<ByteFallback>(eager); };
}
MakeStep fuse_step() {
  return [](bool eager) { return std::make_unique<Fuse>(eager); };
}
MakeStep strip_step(std::string content, int64_t start, int64_t stop) {
  require(first_character(content).size == content.size(), "What a decoder strips ('", content,
          "') is not one character.");
  require(start >= 0 && stop >= 0, "A decoder strips a negative number of characters.");
  return [=](bool) { return std::make_unique<Strip>(content, start, stop); };
}
MakeStep replace_step(std::string from, std::string to) {
  return each_token([=](std::string text, bool) { return replace_all(text, from, to); });
}
MakeStep clean_up_step() {
  return each_token([](std::string text, bool) { return clean_up(std::move(text)); });
}

std::vector<MakeStep> read_decoder(const JsonReader& json) {
  std::vector<MakeStep> steps;
  if (json.json().is_null())
    steps.push_back(each_token([](std::string text, bool first) { return first ? text : ' ' + text; }));
  else
    read(json, steps);
  return steps;
}

DecodeRun::DecodeRun(const std::vector<MakeStep>& steps, bool eager) {
  for (const MakeStep& make : steps) steps_.push_back(make(eager));
}

void DecodeRun::feed(size_t step, Chunk chunk, std::string& out) {
  if (step == steps_.size()) {
    out += chunk.text;
    return;
  }
  steps_[step]->push(std::move(chunk), [&](Chunk next) { feed(step + 1, std::move(next), out); });
}

std::string DecodeRun::push(std::string_view piece) {
  std::string out;
  feed(0, {std::string(piece), false}, out);
  return out;
}

std::string DecodeRun::finish() {
  std::string out;
  for (size_t i = 0; i < steps_.size(); ++i)
    steps_[i]->finish([&, i](Chunk next) { feed(i + 1, std::move(next), out); });
  return out;
}

}  // namespace rlx::text
