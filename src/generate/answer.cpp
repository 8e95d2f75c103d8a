#include "generate/answer.h"

#include <algorithm>
#include <chrono>

#include "rlx/error.h"

namespace rlx::generate {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Text as it comes, held back while it may be the beginning of a stop text.
class StopFilter {
 public:
  explicit StopFilter(const std::vector<std::string>& stops) : stops_(stops) {}

  // What can be shown now. `stopped` is set when a stop text is complete.
  std::string push(const std::string& text, bool& stopped) {
    held_ += text;
    size_t first = std::string::npos;
    for (const std::string& s : stops_)
      if (!s.empty()) first = std::min(first, held_.find(s));
    if (first != std::string::npos) {
      stopped = true;
      return held_.substr(0, first);
    }
    size_t keep = 0;
    for (const std::string& s : stops_)
      for (size_t n = std::min(s.size(), held_.size()); n > keep; --n)
        if (held_.ends_with(std::string_view(s).substr(0, n))) keep = n;
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return out;
  }
  std::string rest() { return std::move(held_); }

 private:
  const std::vector<std::string>& stops_;
  std::string held_;
};

}  // namespace

std::string_view name_of(StopReason reason) {
  constexpr std::string_view names[] = {"end", "stop", "length", "context", "interrupted"};
  return names[static_cast<size_t>(reason)];
}

double Answer::prompt_tokens_per_s() const {
  return prompt_s > 0 ? static_cast<double>(prompt_tokens - reused_tokens) / prompt_s : 0;
}
double Answer::tokens_per_s() const {
  return decode_s > 0 && ids.size() > 1 ? static_cast<double>(ids.size() - 1) / decode_s : 0;
}

void check_prompt(const Generator& generator, const std::vector<int32_t>& prompt) {
  require(!prompt.empty(), "The prompt is empty: there is nothing to go on from.");
  require(static_cast<int64_t>(prompt.size()) <= generator.context(), "The prompt has ", prompt.size(),
          " tokens; the context has ", generator.context(), ": shorten it, or make the context larger (--ctx).");
}

Answer answer(Generator& generator, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
              const AnswerOptions& options, const std::function<bool(std::string_view)>& on_text) {
  check_prompt(generator, prompt);
  const auto size = static_cast<int64_t>(prompt.size());
  Answer out;
  out.prompt_tokens = size;
  if (options.max_tokens == 0) return out;

  // The last token is always fed: its row says what comes next.
  const std::vector<int32_t>& known = generator.tokens(0);
  const auto common = std::ranges::mismatch(known, prompt).in1 - known.begin();
  out.reused_tokens = std::min<int64_t>(common, size - 1);
  generator.truncate(0, out.reused_tokens);
  generator.restart_sampling();
  Clock::time_point start = Clock::now();
  int32_t next = generator.feed(std::span(prompt).subspan(static_cast<size_t>(out.reused_tokens)));
  out.prompt_s = seconds_since(start);

  start = Clock::now();
  StreamDecoder decoder(tokenizer, prompt, !options.special);
  StopFilter filter(options.stops);
  const auto show = [&](const std::string& text) {
    out.text += text;
    return text.empty() || !on_text || on_text(text);
  };
  while (true) {
    if (!options.ignore_end && tokenizer.is_end(next)) {
      out.reason = StopReason::kEnd;
      break;
    }
    out.ids.push_back(next);
    out.decode_s = seconds_since(start);
    bool stopped = false;
    if (!show(filter.push(decoder.push(next), stopped))) {
      out.reason = StopReason::kInterrupted;
      return out;
    }
    if (stopped) {
      out.reason = StopReason::kStopText;
      return out;
    }
    if (static_cast<int64_t>(out.ids.size()) == options.max_tokens) break;
    if (static_cast<int64_t>(generator.tokens(0).size()) == generator.context()) {
      out.reason = StopReason::kContext;
      break;
    }
    next = generator.feed(std::span(&next, 1));
  }
  bool stopped = false;
  show(filter.push(decoder.finish(), stopped));
  if (!stopped) show(filter.rest());
  return out;
}

}  // namespace rlx::generate
