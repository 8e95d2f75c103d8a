// What rlx computes with a model, for the scripts that compare it with others.
//
//   model_tool logits MODEL DEVICE IDS.json OUT.npy    scores behind every token: one by one, then the last row of all
//   at once model_tool rows   MODEL DEVICE IDS.json OUT.npy    hidden rows of an encoder [texts, longest, width], 0
//   behind an end model_tool embed  MODEL DEVICE IDS.json OUT.npy [mean|cls|last] [raw|unit]
//
// IDS is a list of lists of tokens; logits takes the first.
#include <cstdio>
#include <string>

#include "core/npy.h"
#include "generate/encoder.h"
#include "generate/generator.h"
#include "import/json.h"

namespace {

using namespace rlx;

std::vector<std::vector<int32_t>> read_ids(const std::string& path) {
  std::vector<std::vector<int32_t>> out;
  for (const Json& list : read_json(path)) out.push_back(list.get<std::vector<int32_t>>());
  return out;
}

CompileOptions on(const std::string& device) {
  CompileOptions options = CompileOptions::from_environment();
  options.device = device;
  return options;
}

Tensor logits(const models::ModelSource& source, const std::string& device, const std::vector<int32_t>& ids) {
  generate::GeneratorOptions options;
  options.compile = on(device);
  options.context = static_cast<int64_t>(ids.size());
  options.sampling.temperature = 0;
  options.keep_scores = true;
  generate::Generator generator(source, options);
  const int64_t width = generator.vocabulary();
  Tensor out(DType::F32, {static_cast<int64_t>(ids.size()) + 1, width});
  const auto put = [&](size_t row) {
    const Tensor scores = generator.scores();
    std::ranges::copy(scores.values<float>(),
                      out.mutable_values<float>().begin() + static_cast<ptrdiff_t>(row) * width);
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    generator.feed(std::span(&ids[i], 1));
    put(i);
  }
  generator.truncate(0, 0);
  generator.feed(ids);
  put(ids.size());
  return out;
}

Tensor hidden_rows(const models::ModelSource& source, const std::string& device,
                   const std::vector<std::vector<int32_t>>& ids) {
  models::EncoderBuilder b(source, models::read_encoder_config(source));
  b.graph().output(models::find_encoder(source).build(b), "rows");
  Executable executable = compile(b.graph(), on(device));
  for (const auto& [name, tensor] : b.weights()) executable.set_param(name, tensor);
  size_t rows = 0;
  for (const auto& list : ids) rows = std::max(rows, list.size());
  const auto batch = static_cast<int64_t>(ids.size()), longest = static_cast<int64_t>(rows);
  NamedTensors inputs = {{"tokens", Tensor(DType::I32, {batch, longest})},
                         {"positions", Tensor(DType::I32, {longest})},
                         {"lengths", Tensor(DType::I32, {batch})}};
  for (size_t i = 0; i < rows; ++i) inputs.at("positions").mutable_values<int32_t>()[i] = static_cast<int32_t>(i);
  for (size_t s = 0; s < ids.size(); ++s) {
    inputs.at("lengths").mutable_values<int32_t>()[s] = static_cast<int32_t>(ids[s].size());
    std::ranges::copy(ids[s], inputs.at("tokens").mutable_values<int32_t>().begin() + static_cast<ptrdiff_t>(s * rows));
  }
  if (executable.inputs().size() > 3) inputs.emplace("types", Tensor(DType::I32, {batch, longest}));
  Tensor out = executable.run(inputs).at("rows").clone();
  const size_t width = out.bytes().size() / 4 / (ids.size() * rows);
  for (size_t s = 0; s < ids.size(); ++s)
    std::ranges::fill(
        out.mutable_values<float>().subspan((s * rows + ids[s].size()) * width, (rows - ids[s].size()) * width), 0.0f);
  return out;
}

Tensor embed(const models::ModelSource& source, const std::string& device, const std::vector<std::vector<int32_t>>& ids,
             const std::string& pooling, const std::string& length) {
  generate::EncoderOptions options;
  options.compile = on(device);
  if (pooling == "mean") options.pooling = models::Pooling::kMean;
  if (pooling == "cls") options.pooling = models::Pooling::kCls;
  if (pooling == "last") options.pooling = models::Pooling::kLast;
  if (!length.empty()) options.normalize = length == "unit";
  return generate::Encoder(source, options).embed(ids);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: model_tool logits|rows|embed MODEL DEVICE IDS.json OUT.npy [POOLING] [raw|unit]\n");
    return 2;
  }
  try {
    const std::string what = argv[1], device = argv[3];
    const auto source = models::open_source(argv[2]);
    const auto ids = read_ids(argv[4]);
    require(!ids.empty(), argv[4], " holds no lists.");
    const auto result = [&]() {
      if (what == "logits") return logits(*source, device, ids[0]);
      if (what == "rows") return hidden_rows(*source, device, ids);
      return embed(*source, device, ids, argc > 6 ? argv[6] : "", argc > 7 ? argv[7] : "");
    };
    write_npy(argv[5], result());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "model_tool: %s\n", e.what());
    return 1;
  }
  return 0;
}
