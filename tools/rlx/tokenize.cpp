#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "language.h"
#include "model_store.h"

namespace rlx::cli {

namespace {

struct TokenizeArgs {
  std::string model;
  std::optional<std::string> text;
  std::string file;
  bool special = false, bos = false, json = false;
};

int tokenize(const TokenizeArgs& args, std::string& out) {
  const std::string text = given_text(args.text, args.file, "as TEXT or with -f FILE");
  const Tokenizer tokenizer = generate::open_language_model(find_model(args.model)).tokenizer;
  const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = args.special, .add_special = args.bos});
  if (args.json) {
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(tokenizer.piece(id));
    out += dump({{"ids", ids}, {"pieces", pieces}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const int32_t id : ids) rows.push_back({str(id), str("'", tokenizer.piece(id), "'")});
  out += table_text(rows, 0) + str(ids.size(), ids.size() == 1 ? " token\n" : " tokens\n");
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("tokenize", "show a text as a model's tokens");
  auto args = std::make_shared<TokenizeArgs>();
  add_language_model(*sub, args->model);
  sub->add_option("TEXT", args->text, "the text; or --file")->option_text(" ");
  add_text_file(*sub, args->file, "a file with the text; -: standard input");
  sub->add_flag("--special", args->special, "special tokens written in the text are taken for them");
  sub->add_flag("--bos", args->bos, "add what the model adds at the start (and the end)");
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer("Examples:\n  rlx tokenize smollm2 \"Hello world\"\n  rlx tokenize minilm -f text.txt --bos --json");
  sub->callback([&work, args] { work = [args](std::string& out) { return tokenize(*args, out); }; });
}

}  // namespace rlx::cli
