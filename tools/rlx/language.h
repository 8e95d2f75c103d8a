// What the subcommands of language models share: their options, and the model behind them.
#pragma once

#include <optional>
#include <string>

#include "common.h"
#include "generate/answer.h"
#include "generate/language_model.h"
#include "model_access.h"

namespace rlx::cli {

struct LanguageArgs {
  std::string model;
  TargetArgs target;
  int64_t context = 0;
  std::string cache = "f32";
};
void add_language_options(CLI::App& app, LanguageArgs& args);
CLI::Option* add_language_model(CLI::App& app, std::string& model);                     // MODEL
CLI::Option* add_text_file(CLI::App& app, std::string& file, const std::string& what);  // -f

struct SamplingArgs {
  generate::SamplingOptions sampling;
  std::optional<uint64_t> seed;
};
void add_sampling_options(CLI::App& app, SamplingArgs& args);

generate::GeneratorOptions generator_options(const LanguageArgs& args, const SamplingArgs& sampling);

// "12.3 tokens/s": of the prompt and of the answer, the device.
std::string stats_text(const generate::Answer& answer, const generate::Generator& generator);

// Text to standard output at once. False: nobody reads it any more.
bool write_now(std::string_view text);

// The text given on the command line, or that of a file ("-": standard input). `how` says how it is given, where it is
// not exactly one of them: "with -p TEXT or with -f FILE".
std::string given_text(const std::optional<std::string>& text, const std::string& file, std::string_view how);
// A text that is not UTF-8 would become other characters than it was meant for.
void require_utf8(std::string_view text, std::string_view what);

// "The context (512 tokens) is full; …" where that is why an answer ended.
void say_if_full(const generate::Answer& answer, const generate::Generator& generator);

// While it lives, Ctrl-C sets a flag instead of ending the program.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  static bool pressed();
  static void clear();
};

}  // namespace rlx::cli
