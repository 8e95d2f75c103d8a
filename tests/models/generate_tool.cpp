// Runs a model on lists of token ids: the scores behind tokens, and the likeliest continuations, as JSON.
// Reads {model, device, context, batch, cache, prompts: [[ids]], prefill, steps} from stdin. Of each prompt the first
// `prefill` tokens are read at once (0: all of them), the others one by one; the scores behind each reading come back.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "generate/generator.h"
#include "models/source.h"
#include "rlx/log.h"

namespace rlx {
namespace {

using nlohmann::json;

std::vector<float> row_of(const Tensor& scores) {
  const auto values = scores.values<float>();
  return {values.begin(), values.end()};
}

json run(const json& request) {
  const auto source = models::open_source(request.at("model").get<std::string>());
  generate::GeneratorOptions options;
  options.compile.device = request.value("device", "cpu");
  options.context = request.value("context", 0);
  options.cache = models::cache_type(request.value("cache", "f32"));
  options.sampling.temperature = 0;
  options.keep_scores = true;
  generate::Generator generator(*source, options);
  json out{{"scores", json::array()}, {"greedy", json::array()}};
  for (const json& given : request.at("prompts")) {
    const auto prompt = given.get<std::vector<int32_t>>();
    generator.truncate(0, 0);
    size_t done = static_cast<size_t>(request.value("prefill", 0));
    if (done == 0) done = prompt.size();
    int32_t next = generator.feed(std::span(prompt).first(std::min(done, prompt.size())));
    json scores = json::array({row_of(generator.scores())});
    for (; done < prompt.size(); ++done) {
      next = generator.feed(std::span(prompt).subspan(done, 1));
      scores.push_back(row_of(generator.scores()));
    }
    json greedy = json::array();
    for (int i = 0; i < request.value("steps", 0); ++i) {
      greedy.push_back(next);
      next = generator.feed(std::span(&next, 1));
    }
    out["scores"].push_back(std::move(scores));
    out["greedy"].push_back(std::move(greedy));
  }
  return out;
}

}  // namespace
}  // namespace rlx

int main() try {
  rlx::set_log([](rlx::LogLevel, std::string_view text) { std::cerr << text << "\n"; });
  std::cout << rlx::run(nlohmann::json::parse(std::cin)) << "\n";
  return 0;
} catch (const std::exception& e) {
  std::cerr << "generate_tool: " << e.what() << "\n";
  return 1;
}
