#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "generate/scorer.h"
#include "language.h"
#include "model_store.h"

namespace rlx::cli {

namespace {

constexpr int64_t kContext = 512;  // as llama.cpp has it

struct PerplexityArgs {
  LanguageArgs language;
  std::string file;
  bool json = false;
};

int score(const PerplexityArgs& args, std::string& out) {
  const std::string text = given_text(std::nullopt, args.file, "with -f FILE");
  const generate::LanguageModel model = generate::open_language_model(find_model(args.language.model));
  const std::vector<int32_t> ids = model.tokenizer.encode(text, {.add_special = true});
  const generate::GeneratorOptions options = generator_options(args.language, {});
  const int64_t usual = std::min<int64_t>(model.source->integer("context_length").value_or(kContext), kContext);
  generate::Scorer scorer(*model.source, options.compile,
                          {.context = options.context > 0 ? options.context : usual, .cache = options.cache});
  const bool begins = model.tokenizer.adds_bos() && model.tokenizer.bos();
  const generate::Perplexity p =
      generate::perplexity(scorer, ids, begins ? model.tokenizer.bos() : std::optional<int32_t>());
  if (args.json)
    out += dump({{"perplexity", p.value},
                 {"error", p.error},
                 {"tokens", p.tokens},
                 {"pieces", p.pieces},
                 {"context", scorer.context()}});
  else
    out += str("perplexity ", number_text(p.value), " +- ", number_text(p.error), " (", p.tokens, " tokens of ",
               p.pieces, p.pieces == 1 ? " piece" : " pieces", " of ", scorer.context(), ")\n");
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("perplexity", "how well a language model foresees a text");
  auto args = std::make_shared<PerplexityArgs>();
  add_language_options(*sub, args->language);
  sub->get_option("--ctx")->description(str("tokens of the context, and of a piece of the text; by default ", kContext,
                                            ", or the model's own if that is less"));
  add_text_file(*sub, args->file, "the text, which is needed; -: standard input")->required();
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer(
      "The text is cut into pieces of a whole context (--ctx), and the second half of each counts, as llama.cpp does "
      "it.\n"
      "Shown are the perplexity (lower is better) and its standard error.\n\nExample:\n  rlx perplexity smollm2 -f "
      "book.txt --ctx 512");
  sub->callback([&work, args] { work = [args](std::string& out) { return score(*args, out); }; });
}

}  // namespace rlx::cli
