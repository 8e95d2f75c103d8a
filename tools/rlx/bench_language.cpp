#include "bench_language.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "language.h"
#include "model_store.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

bool is_language_model(const std::string& path) {
  if (path.ends_with(".onnx") || path.ends_with(".rlx")) return false;
  std::error_code ignored;
  return path.ends_with(".gguf") || path.ends_with(".safetensors") || std::filesystem::is_directory(path, ignored) ||
         !std::filesystem::exists(path, ignored);
}

int bench_language(const BenchLanguageArgs& args, std::string& out) {
  require(args.prompt >= 0 && args.answer >= 0, "--pp (", args.prompt, ") and --tg (", args.answer,
          ") must not be negative.");
  require(args.prompt + args.answer > 0, "--pp and --tg are both 0: there is nothing to measure.");
  Clock::time_point start = Clock::now();
  const generate::LanguageModel model = generate::open_language_model(find_model(args.path));
  const double load_ms = ms_since(start);
  start = Clock::now();
  SamplingArgs greedy;
  greedy.sampling.temperature = 0;
  LanguageArgs language{.model = args.path,
                        .target = args.target,
                        .context = std::max<int64_t>(args.prompt, 1) + args.answer + 1,
                        .cache = args.cache};
  generate::Generator generator(*model.source, generator_options(language, greedy));
  const double compile_ms = ms_since(start);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < std::max<int64_t>(args.prompt, 1); ++i)
    prompt.push_back(static_cast<int32_t>((i * 7919 + 13) % generator.vocabulary()));
  std::vector<double> prompt_ms, answer_ms;
  for (int64_t run = 0; run <= args.runs; ++run) {  // the first one prepares weights and programs
    progress("measuring", static_cast<double>(run) / static_cast<double>(args.runs + 1));
    generator.truncate(0, 0);
    start = Clock::now();
    int32_t next = generator.feed(prompt);
    if (run > 0) prompt_ms.push_back(ms_since(start));
    if (run == 0 && args.answer > 0) next = generator.feed(std::span(&next, 1));
    start = Clock::now();
    for (int64_t i = 0; i < args.answer - (run == 0 ? 1 : 0); ++i) next = generator.feed(std::span(&next, 1));
    if (run > 0) answer_ms.push_back(ms_since(start));
  }
  const auto rate = [](int64_t tokens, double ms) { return ms > 0 ? static_cast<double>(tokens) / ms * 1e3 : 0; };
  const double pp = args.prompt > 0 ? rate(args.prompt, median(prompt_ms)) : 0,
               tg = rate(args.answer, median(answer_ms));
  if (args.json) {
    out += dump({{"model", args.path},
                 {"device", generator.executable().device()},
                 {"pp", args.prompt},
                 {"tg", args.answer},
                 {"runs", args.runs},
                 {"cache_type", args.cache},
                 {"pp_tokens_per_s", pp},
                 {"tg_tokens_per_s", tg},
                 {"load_ms", load_ms},
                 {"compile_ms", compile_ms}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  if (args.prompt > 0) rows.push_back({str("prompt of ", args.prompt), str(number_text(pp), " tokens/s")});
  if (args.answer > 0) rows.push_back({str("answer of ", args.answer), str(number_text(tg), " tokens/s")});
  rows.push_back({"device", generator.executable().device()});
  out += table_text(rows, 0);
  return 0;
}

}  // namespace rlx::cli
