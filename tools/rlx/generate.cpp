#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "language.h"
#include "model_store.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

struct GenerateArgs {
  LanguageArgs language;
  SamplingArgs sampling;
  std::optional<std::string> prompt;
  std::string file;
  generate::AnswerOptions answer{.max_tokens = 128};
  bool json = false, stats = false;
};

int generate_text(const GenerateArgs& args, std::string& out) {
  const std::string text = given_text(args.prompt, args.file, "with -p TEXT or with -f FILE");
  const generate::LanguageModel model = generate::open_language_model(find_model(args.language.model));
  const std::vector<int32_t> ids = model.tokenizer.encode(text, {.parse_special = true, .add_special = true});
  generate::Generator generator(*model.source, generator_options(args.language, args.sampling));
  generate::check_prompt(generator, ids);  // before its text is shown
  if (!args.json) {
    progress("", -1);
    write_now(text);
  }
  const Interrupt interrupt;
  const generate::Answer answer =
      generate::answer(generator, model.tokenizer, ids, args.answer, [&](std::string_view piece) {
        if (!args.json) progress("", -1);
        return (args.json || write_now(piece)) && !Interrupt::pressed();
      });
  if (args.json) {
    out += dump({{"prompt_ids", ids},
                 {"ids", answer.ids},
                 {"text", answer.text},
                 {"stopped_by", generate::name_of(answer.reason)},
                 {"prompt_tokens_per_s", answer.prompt_tokens_per_s()},
                 {"tokens_per_s", answer.tokens_per_s()},
                 {"time_to_first_token_ms", answer.prompt_s * 1e3},
                 {"device", generator.executable().device()},
                 {"seed", generator_options(args.language, args.sampling).sampling.seed}});
    return 0;
  }
  out += "\n";
  say_if_full(answer, generator);
  if (args.stats) out += stats_text(answer, generator) + "\n";
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("generate", "go on with a text: plain completion with a language model");
  auto args = std::make_shared<GenerateArgs>();
  add_language_options(*sub, args->language);
  sub->add_option("-p,--prompt", args->prompt, "the text to go on with; this or --file is needed")->option_text("TEXT");
  add_text_file(*sub, args->file, "a file with that text; -: standard input");
  sub->add_option("-n,--tokens", args->answer.max_tokens,
                  "tokens at most, by default 128; -1: until the context is full")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 24))
      ->option_text("N");
  add_sampling_options(*sub, args->sampling);
  sub->add_option("--stop", args->answer.stops, "a text that ends the answer; may be given several times")
      ->allow_extra_args(false)
      ->option_text("TEXT");
  sub->add_flag("--ignore-eos", args->answer.ignore_end, "go on behind the model's own end");
  sub->add_flag("--special", args->answer.special, "show special tokens");
  sub->add_flag("--stats", args->stats, "tokens per second, behind the text");
  sub->add_flag("--json", args->json, "write JSON when it is done, instead of the text as it comes");
  sub->footer(
      "Examples:\n  rlx generate smollm2 -p \"Once upon a time\" -n 64\n"
      "  rlx generate model.gguf -f prompt.txt --temp 0 --json --device webgpu");
  sub->callback([&work, args] {
    if (!args->sampling.seed) args->sampling.seed = generator_options(args->language, args->sampling).sampling.seed;
    work = [args](std::string& out) { return generate_text(*args, out); };
  });
}

}  // namespace rlx::cli
