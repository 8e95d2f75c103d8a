#include "language.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <system_error>

#include "model_store.h"
#include "rlx/error.h"
#include "rlx/log.h"
#include "text/unicode.h"

namespace rlx::cli {

namespace {

std::atomic<bool> interrupted = false;
void (*old_handler)(int) = SIG_DFL;

std::string one_decimal(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

}  // namespace

CLI::Option* add_language_model(CLI::App& app, std::string& model) {
  return app
      .add_option("MODEL", model,
                  str("a .gguf file, a Hugging Face folder, or the name of a model to fetch: ", short_names()))
      ->required()
      ->option_text(" ");
}

CLI::Option* add_text_file(CLI::App& app, std::string& file, const std::string& what) {
  return app.add_option("-f,--file", file, what)->option_text("FILE");
}

void add_language_options(CLI::App& app, LanguageArgs& args) {
  add_language_model(app, args.model);
  add_target_options(app, args.target);
  app.add_option("--ctx", args.context, "tokens of the context; by default the model's own, at most 4096")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->option_text("N");
  app.add_option("--cache-type", args.cache, "how keys and values are kept: f32 (the default), f16 or q8_0")
      ->check(CLI::IsMember({"f32", "f16", "q8_0"}))
      ->option_text("TYPE");
}

void add_sampling_options(CLI::App& app, SamplingArgs& args) {
  generate::SamplingOptions& s = args.sampling;
  app.add_option("--temp", s.temperature, "temperature; 0 takes the likeliest token, always")->capture_default_str();
  app.add_option("--top-k", s.top_k, "the likeliest tokens to draw from; 0: all")->capture_default_str();
  app.add_option("--top-p", s.top_p, "draw from the likeliest tokens with this probability in all; 1: all")
      ->capture_default_str();
  app.add_option("--min-p", s.min_p, "no token less likely than this part of the likeliest one; 0: all")
      ->capture_default_str();
  app.add_option("--repeat-penalty", s.repetition_penalty, "divides the score of recent tokens; 1: none")
      ->capture_default_str();
  app.add_option("--presence-penalty", s.presence_penalty, "subtracted from the score of recent tokens; 0: nothing")
      ->capture_default_str();
  app.add_option("--repeat-last-n", s.penalty_window, "how many tokens are recent")->capture_default_str();
  app.add_option("--seed", args.seed, "of the draws; by default another one each time")->option_text("N");
}

generate::GeneratorOptions generator_options(const LanguageArgs& args, const SamplingArgs& sampling) {
  generate::GeneratorOptions out;
  out.compile = CompileOptions::from_environment();
  if (!args.target.device.empty()) out.compile.device = args.target.device;
  if (args.target.threads > 0) out.compile.threads = args.target.threads;
  out.context = args.context;
  out.cache = models::cache_type(args.cache);
  out.sampling = sampling.sampling;
  out.sampling.seed = sampling.seed ? *sampling.seed : std::random_device{}();
  return out;
}

std::string stats_text(const generate::Answer& a, const generate::Generator& g) {
  return str("prompt ", a.prompt_tokens, " tokens", a.reused_tokens > 0 ? str(" (", a.reused_tokens, " known)") : "",
             ", ", one_decimal(a.prompt_tokens_per_s()), " tokens/s; answer ", a.ids.size(), " tokens, ",
             one_decimal(a.tokens_per_s()), " tokens/s; first after ", one_decimal(a.prompt_s * 1e3), " ms; on ",
             g.executable().device());
}

bool write_now(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void require_utf8(std::string_view text, std::string_view what) {
  for (size_t at = 0; at < text.size();) {
    const text::Character c = text::first_character(text.substr(at));
    require(c.valid, what, " is not UTF-8: its byte number ", at + 1, " (",
            static_cast<unsigned>(static_cast<uint8_t>(text[at])), ") belongs to no character.");
    at += c.size;
  }
}

std::string given_text(const std::optional<std::string>& text, const std::string& file, std::string_view how) {
  require(text.has_value() != !file.empty(), "Give the text ", how, ", one of them.");
  if (text) {
    require_utf8(*text, "The text");
    return *text;
  }
  // Not mapped: it may be a pipe.
  std::FILE* in = file == "-" ? stdin : std::fopen(file.c_str(), "rb");
  const auto why = [] { return std::generic_category().message(errno); };
  if (in == nullptr) fail(ErrorKind::kUnavailable, str("File '", file, "' cannot be opened (", why(), ")."));
  std::string out;
  char buffer[65536];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, in)) out.append(buffer, n);
  const std::string error = std::ferror(in) ? why() : "";
  if (in != stdin) std::fclose(in);
  const std::string what = file == "-" ? "Standard input" : str("File '", file, "'");
  if (!error.empty()) fail(ErrorKind::kUnavailable, str(what, " cannot be read (", error, ")."));
  require_utf8(out, what);
  return out;
}

void say_if_full(const generate::Answer& answer, const generate::Generator& generator) {
  if (answer.reason == generate::StopReason::kContext)
    log(LogLevel::kWarning,
        str("The context (", generator.context(), " tokens) is full, which ends the answer; --ctx makes it larger."));
}

Interrupt::Interrupt() {
  clear();
  old_handler = std::signal(SIGINT, [](int) { interrupted = true; });
}
Interrupt::~Interrupt() { std::signal(SIGINT, old_handler); }
bool Interrupt::pressed() { return interrupted; }
void Interrupt::clear() { interrupted = false; }

}  // namespace rlx::cli
