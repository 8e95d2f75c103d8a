#include "generate/encoder.h"

#include <algorithm>
#include <numeric>

#include "generate/room.h"
#include "rlx/log.h"

namespace rlx::generate {

namespace {

// Programs are compiled for few sizes: rows in steps of half an octave, sequences in steps of two octaves.
constexpr int64_t kBatchSizes[] = {1, 4, 16, 64};
constexpr int64_t kTokensPerRun = 4096;
constexpr int kKeptPrograms = 8;

int64_t padded_length(int64_t length, int64_t most) {
  int64_t size = 8;
  while (size < length) size = size % 3 == 0 ? size / 3 * 4 : size * 3 / 2;  // 8, 12, 16, 24, 32, …
  return std::min(size, most);
}

// The largest that keeps a run small, unless fewer are left.
int64_t batch_size(int64_t rows, int64_t left) {
  int64_t out = 1;
  for (const int64_t size : kBatchSizes)
    if (size * rows <= kTokensPerRun && out < left) out = size;
  return out;
}

Executable build(models::EncoderBuilder& b, const EncoderOptions& options) {
  const Value hidden = models::find_encoder(b.source()).build(b);
  const models::Pooling pooling = options.pooling.value_or(b.config().pooling);
  require(pooling != models::Pooling::kNone, "An encoder's rows become one vector by mean, cls or last.");
  const Value pooled = b.pool(hidden, pooling);
  b.graph().output(options.normalize.value_or(b.config().normalize) ? b.normalized(pooled) : pooled, "vectors");
  require_room(b, 0, options.compile);
  CompileOptions compile_options = options.compile;
  compile_options.kept_programs = kKeptPrograms;
  Executable executable = compile(b.graph(), compile_options);
  for (const auto& [name, tensor] : b.weights()) executable.set_param(name, tensor);
  return executable;
}

int64_t length_of(int64_t asked, int64_t context, const std::string& path) {
  require(asked >= 0 && asked <= context, path, ": the model takes up to ", context, " tokens, not ", asked, ".");
  return asked > 0 ? asked : context;
}

}  // namespace

Encoder::Encoder(const models::ModelSource& source, const EncoderOptions& options)
    : builder_(source, models::read_encoder_config(source)),
      max_length_(length_of(options.max_length, builder_.config().context, source.path())),
      executable_(build(builder_, options)) {}

Tensor Encoder::embed(std::span<const std::vector<int32_t>> texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    require(!texts[i].empty(), "Text ", i, " has no tokens.");
    for (const int32_t t : texts[i])
      require(t >= 0 && t < vocabulary(), "Token ", t, " of text ", i, " is not between 0 and ", vocabulary() - 1, ".");
  }
  Tensor out(DType::F32, {static_cast<int64_t>(texts.size()), width()});
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Longest first: what the first run takes is the most that any takes.
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return texts[a].size() > texts[b].size(); });
  for (size_t done = 0; done < order.size();) {
    const auto longest = std::min(static_cast<int64_t>(texts[order[done]].size()), max_length_);
    const int64_t rows = padded_length(longest, max_length_);
    const int64_t batch = batch_size(rows, static_cast<int64_t>(order.size() - done));
    const size_t count = std::min(static_cast<size_t>(batch), order.size() - done);
    run(texts, std::span(order).subspan(done, count), rows, batch, out.mutable_values<float>());
    done += count;
    progress("embedding texts", static_cast<double>(done) / static_cast<double>(order.size()));
  }
  return out;
}

void Encoder::run(std::span<const std::vector<int32_t>> texts, std::span<const size_t> chosen, int64_t rows,
                  int64_t batch, std::span<float> vectors) {
  // In the order of the graph's inputs; types stay 0, and the sequences that fill a batch have one token.
  std::vector<Tensor> inputs = {Tensor(DType::I32, {batch, rows}), Tensor(DType::I32, {rows}),
                                Tensor(DType::I32, {batch})};
  if (executable_.inputs().size() > inputs.size()) inputs.emplace_back(DType::I32, std::vector<int64_t>{batch, rows});
  const auto tokens = inputs[0].mutable_values<int32_t>(), positions = inputs[1].mutable_values<int32_t>(),
             lengths = inputs[2].mutable_values<int32_t>();
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::fill(lengths, 1);
  for (size_t s = 0; s < chosen.size(); ++s) {
    const std::vector<int32_t>& text = texts[chosen[s]];
    const size_t length = std::min(text.size(), static_cast<size_t>(max_length_));
    const std::span<int32_t> row = tokens.subspan(s * static_cast<size_t>(rows), length);
    std::copy_n(text.begin(), length, row.begin());
    row.back() = text.back();
    lengths[s] = static_cast<int32_t>(length);
  }
  const auto results = executable_.run_slots(inputs)[0].values<float>();
  const auto n = static_cast<size_t>(width());
  for (size_t s = 0; s < chosen.size(); ++s)
    std::ranges::copy(results.subspan(s * n, n), vectors.begin() + static_cast<ptrdiff_t>(chosen[s] * n));
}

}  // namespace rlx::generate
