#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/npy.h"
#include "generate/encoder.h"
#include "language.h"
#include "model_store.h"
#include "rlx/log.h"
#include "text/unicode.h"

namespace rlx::cli {

namespace {

struct EmbedArgs {
  std::string model;
  std::vector<std::string> texts;
  std::string file, pool, out;
  TargetArgs target;
  bool normalize = false, json = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(std::move(line));
    begin = end + 1;
  }
  return out;
}

generate::EncoderOptions encoder_options(const EmbedArgs& args) {
  generate::EncoderOptions options;
  options.compile = CompileOptions::from_environment();
  if (!args.target.device.empty()) options.compile.device = args.target.device;
  if (args.target.threads > 0) options.compile.threads = args.target.threads;
  if (args.pool == "mean") options.pooling = models::Pooling::kMean;
  if (args.pool == "cls") options.pooling = models::Pooling::kCls;
  if (args.pool == "last") options.pooling = models::Pooling::kLast;
  if (args.normalize) options.normalize = true;
  return options;
}

// The cosines of each text with the others, where there are several: what vectors of texts are for.
std::string similarities(const Tensor& vectors, const std::vector<std::string>& texts) {
  const auto n = static_cast<size_t>(vectors.sizes()[0]), width = static_cast<size_t>(vectors.sizes()[1]);
  const auto v = vectors.values<float>();
  const auto dot = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
      sum += static_cast<double>(v[a * width + i]) * static_cast<double>(v[b * width + i]);
    return sum;
  };
  std::vector<std::vector<std::string>> rows;
  for (size_t a = 0; a < n; ++a) {
    rows.push_back({str("'", texts[a], "'")});
    for (size_t b = 0; b < n; ++b) {
      char text[16];
      std::snprintf(text, sizeof text, "%.3f", dot(a, b) / std::sqrt(std::max(dot(a, a) * dot(b, b), 1e-300)));
      rows.back().push_back(text);
    }
  }
  return table_text(rows, 0);
}

int embed(const EmbedArgs& args, std::string& out) {
  require(args.texts.empty() != args.file.empty(), "Give texts, or a file with one per line (-f FILE), one of them.");
  const std::vector<std::string> texts =
      args.file.empty() ? args.texts : lines_of(given_text(std::nullopt, args.file, "with -f FILE"));
  require(!texts.empty(), "'", args.file, "' holds no lines.");
  const generate::LanguageModel model = generate::open_language_model(find_model(args.model));
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : texts) {
    require_utf8(text, str("Text '", text::to_valid_utf8(text), "'"));
    ids.push_back(model.tokenizer.encode(text, {.add_special = true}));
  }
  generate::Encoder encoder(*model.source, encoder_options(args));
  const auto longer = std::ranges::count_if(
      ids, [&](const auto& list) { return static_cast<int64_t>(list.size()) > encoder.max_length(); });
  if (longer > 0)
    log(LogLevel::kWarning,
        str(longer, longer == 1 ? " text has" : " texts have", " more tokens than the model takes (",
            encoder.max_length(), "): the rest is left out."));
  const Tensor vectors = encoder.embed(ids);
  if (!args.out.empty()) write_npy(args.out, vectors);
  const auto width = static_cast<size_t>(encoder.width());
  if (args.json) {
    const auto v = vectors.values<float>();
    Json list = Json::array();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = v.subspan(i * width, width);
      list.push_back(std::vector<float>(row.begin(), row.end()));
    }
    out += dump({{"vectors", list}, {"ids", ids}, {"device", encoder.executable().device()}});
    return 0;
  }
  constexpr size_t kShown = 12;
  if (texts.size() <= kShown) out += similarities(vectors, texts);
  out += str(texts.size(), texts.size() == 1 ? " vector of " : " vectors of ", width, " numbers",
             args.out.empty() ? " (--out x.npy or --json keeps them)" : str(" in ", args.out), "\n");
  return 0;
}

}  // namespace

void add_embed(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("embed", "texts as vectors that are near where meanings are");
  auto args = std::make_shared<EmbedArgs>();
  add_language_model(*sub, args->model);
  sub->add_option("TEXT", args->texts, "texts, each of which gets a vector; or --file")->option_text("...");
  add_text_file(*sub, args->file, "a file with a text per line; -: standard input");
  sub->add_option(
         "--pool", args->pool,
         "how a text's tokens become one vector: mean, cls (the first one's) or last; by default as the model says")
      ->check(CLI::IsMember({"mean", "cls", "last"}))
      ->option_text("HOW");
  sub->add_flag("--normalize", args->normalize, "vectors of length 1, whatever the model says");
  sub->add_option("--out", args->out, "write the vectors to a .npy file, [texts, width]")->option_text("FILE.npy");
  add_target_options(*sub, args->target);
  sub->add_flag("--json", args->json, "write JSON, with the vectors");
  sub->footer(
      "Prints the cosines of up to 12 texts with each other.\n\nExamples:\n"
      "  rlx embed minilm \"a cat on a mat\" \"kittens like carpets\" \"interest rates rise\"\n"
      "  rlx embed minilm -f lines.txt --out vectors.npy");
  sub->callback([&work, args] { work = [args](std::string& out) { return embed(*args, out); }; });
}

}  // namespace rlx::cli
