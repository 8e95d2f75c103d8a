#include "import/gguf/quantize.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common.h"
#include "model_store.h"

namespace rlx::cli {

namespace {

struct QuantizeArgs {
  std::string in, out, type;
  bool json = false;
};

int quantize(const QuantizeArgs& args, std::string& out) {
  const std::string in = find_model(args.in);
  std::error_code ignored;
  require(!std::filesystem::is_directory(in, ignored), "'", in, "' is a folder; rlx quantises .gguf files.");
  require(!std::filesystem::equivalent(in, args.out, ignored), "'", args.out,
          "' is the file to read: give the new one another name.");
  const gguf::QuantizeResult r = gguf::quantize_file(in, args.out, args.type);
  const auto mib = [](int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes) / (1 << 20));
    return std::string(text);
  };
  if (args.json)
    out += dump({{"out", args.out},
                 {"changed", r.changed},
                 {"kept", r.kept},
                 {"bytes_before", r.bytes_before},
                 {"bytes_after", r.bytes_after}});
  else
    out += str(args.out, ": ", r.changed, " tensors changed, ", r.kept, " kept; ", mib(r.bytes_before), " MiB became ",
               mib(r.bytes_after), " MiB\n");
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("quantize", "write a GGUF file with its weights in another type");
  auto args = std::make_shared<QuantizeArgs>();
  sub->add_option("IN", args->in, "a .gguf file, or the name of a model to fetch: smollm2")
      ->required()
      ->option_text(" ");
  sub->add_option("OUT", args->out, "the .gguf file to write")->required()->option_text(" ");
  sub->add_option("--type", args->type,
                  "what to store weights as, which is needed: q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, "
                  "q6_k, iq4_nl, iq4_xs, f16, bf16 or f32")
      ->required()
      ->option_text("TYPE");
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer("Example:\n  rlx quantize model-f16.gguf model-q4_k.gguf --type q4_k");
  sub->callback([&work, args] { work = [args](std::string& out) { return quantize(*args, out); }; });
}

}  // namespace rlx::cli
