#include "language.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>

#include "core/mapped_file.h"
#include "model_store.h"
#include "rlx/error.h"

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

void add_language_options(CLI::App& app, LanguageArgs& args) {
  app.add_option("MODEL", args.model, str("a .gguf file, a Hugging Face folder, or a name: ", short_names()))
      ->required();
  add_target_options(app, args.target);
  app.add_option("--ctx", args.context, "tokens of the context; by default the model's own, at most 4096")
      ->check(CLI::PositiveNumber);
  app.add_option("--cache-type", args.cache, "how keys and values are kept: f32, f16, q8_0")
      ->check(CLI::IsMember({"f32", "f16", "q8_0"}));
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
  app.add_option("--seed", args.seed, "of the draws; by default another one each time");
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

std::string prompt_text(const std::optional<std::string>& text, const std::string& file) {
  require(text.has_value() != !file.empty(), "Give the prompt with -p TEXT or with -f FILE, one of them.");
  if (text) return *text;
  if (file != "-") {
    const auto mapped = MappedFile::open(file);
    return {reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()};
  }
  std::string out;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) out.append(buffer, n);
  return out;
}

Interrupt::Interrupt() {
  clear();
  old_handler = std::signal(SIGINT, [](int) { interrupted = true; });
}
Interrupt::~Interrupt() { std::signal(SIGINT, old_handler); }
bool Interrupt::pressed() { return interrupted; }
void Interrupt::clear() { interrupted = false; }

}  // namespace rlx::cli
