#include "core/npy.h"
#include "generate/encoder.h"
#include "language.h"
#include "model_store.h"

namespace rlx::cli {

namespace {

struct EmbedArgs {
  std::string model, file, pool, out;
  TargetArgs target;
  std::vector<std::string> texts;
  bool normalize = false, json = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

int embed(const EmbedArgs& args, std::string& out) {
  require(args.texts.empty() != args.file.empty(), "Give texts, or a file of lines with -f, one of them.");
  const std::vector<std::string> texts = args.file.empty() ? args.texts : lines_of(prompt_text(std::nullopt, args.file));
  require(!texts.empty(), "File '", args.file, "' has no lines.");
  const generate::LanguageModel model = generate::open_language_model(find_model(args.model));
  generate::EncoderOptions options{.compile = CompileOptions::from_environment()};
  if (!args.target.device.empty()) options.compile.device = args.target.device;
  if (args.target.threads > 0) options.compile.threads = args.target.threads;
  if (args.pool == "mean") options.pooling = models::Pooling::kMean;
  if (args.pool == "cls") options.pooling = models::Pooling::kCls;
  if (args.pool == "last") options.pooling = models::Pooling::kLast;
  if (args.normalize) options.normalize = true;
  generate::Encoder encoder(*model.source, options);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : texts) ids.push_back(model.tokenizer.encode(text, {.add_special = true}));
  const Tensor vectors = encoder.embed(ids);
  const auto values = vectors.values<float>();
  const auto width = static_cast<size_t>(encoder.width());
  if (!args.out.empty()) write_npy(args.out, vectors);
  if (args.json) {
    Json rows = Json::array();
    for (size_t i = 0; i < texts.size(); ++i)
      rows.push_back(std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(i * width),
                                        values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)));
    out += dump({{"vectors", rows}, {"device", encoder.executable().device()}});
  } else if (args.out.empty()) {
    for (size_t i = 0; i < texts.size(); ++i) {
      for (size_t j = 0; j < width; ++j) out += str(j > 0 ? " " : "", number_text(static_cast<double>(values[i * width + j])));
      out += "\n";
    }
  } else {
    out += str(args.out, ": ", texts.size(), " x ", width, " on ", encoder.executable().device(), "\n");
  }
  return 0;
}

}  // namespace

void add_embed(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("embed", "texts as vectors, with an encoder");
  auto args = std::make_shared<EmbedArgs>();
  sub->add_option("MODEL", args->model, str("a Hugging Face folder, a .gguf file, or a name: ", short_names()))->required();
  sub->add_option("TEXT", args->texts, "the texts, one vector each");
  sub->add_option("-f,--file", args->file, "a file with a text in each line; -: standard input");
  sub->add_option("--pool", args->pool, "how a text's rows become one: mean, cls, last; by default as the model says")
      ->check(CLI::IsMember({"mean", "cls", "last"}));
  sub->add_flag("--normalize", args->normalize, "vectors of length 1");
  sub->add_option("--out", args->out, "write them to a .npy file instead of standard output");
  sub->add_flag("--json", args->json, "write JSON");
  add_target_options(*sub, args->target);
  sub->footer("Examples:\n  rlx embed minilm \"a sentence\" \"another one\" --normalize --out x.npy\n  rlx embed minilm -f lines.txt --json");
  sub->callback([&work, args] { work = [args](std::string& out) { return embed(*args, out); }; });
}

}  // namespace rlx::cli
