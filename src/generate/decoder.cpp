#include "generate/decoder.h"

#include <algorithm>
#include <cstdio>

#include "backends/host/memory.h"
#include "models/architectures.h"
#include "rlx/ops/leaves.h"

namespace rlx::generate {

constexpr int64_t kDefaultContext = 4096;

int64_t padded_rows(int64_t rows) {
  for (const int64_t size : kRowSizes)
    if (rows <= size) return size;
  return kMostRows;
}

namespace {

std::string gib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
  return text;
}

// Before anything is loaded: weights and caches must fit into the machine, whichever device runs them.
void require_room(const models::DecoderBuilder& b, int64_t context) {
  int64_t weights = 0, caches = 0;
  for (const auto& [name, tensor] : b.weights())
    weights = checked_add(weights, static_cast<int64_t>(tensor.bytes().size()));
  for (const Node* state : b.graph().leaves(ops::state))
    caches = checked_add(caches, state->results[0].type.size_bytes());
  const int64_t room = host::memory_bytes();
  if (checked_add(weights, caches) <= room) return;
  const int64_t per_token = std::max<int64_t>(caches / context, 1),
                fits = weights < room ? (room - weights) / per_token : 0;
  fail(ErrorKind::kMemory, str("The model needs ", gib(weights + caches), " (weights ", gib(weights), ", ", context,
                               " tokens of context ", gib(caches), "); the machine has ", gib(room), ". ",
                               fits > 0 ? str("A context of ", fits, " tokens would fit.")
                                        : "A smaller or more strongly quantised model would fit."));
}

}  // namespace

Decoder make_decoder(const models::ModelSource& source, const DecoderOptions& options) {
  require(options.batch >= 1 && options.batch <= 4096, "The number of sequences (", options.batch,
          ") is not between 1 and 4096.");
  require(options.context >= 0 && options.context <= (1 << 24), "The context (", options.context,
          ") is not between 1 and ", 1 << 24, " tokens.");
  const models::Architecture& architecture = models::find_architecture(source);
  models::DecoderConfig config = models::read_decoder_config(source);
  if (architecture.configure) architecture.configure(source, config);
  const int64_t context = options.context > 0 ? options.context : std::min(config.context, kDefaultContext);
  // Rows of sequences of different lengths are padded, and the padding is written behind them. A part's size must fit,
  // be the context ever so short.
  const int64_t capacity = std::max(context, padded_rows(context)) + (options.batch > 1 ? kMostRows : 0);
  auto builder = std::make_unique<models::DecoderBuilder>(
      source, std::move(config),
      models::CacheOptions{.batch = options.batch, .context = context, .capacity = capacity, .type = options.cache});
  const Value hidden = architecture.build(*builder);
  require_room(*builder, context);
  return {std::move(builder), hidden, context};
}

Executable compile_decoder(models::DecoderBuilder& builder, CompileOptions options) {
  options.kept_programs = static_cast<int>(std::size(kRowSizes));
  options.bucket_symbol = symbols::kSeq;
  Executable executable = compile(builder.graph(), options);
  for (const auto& [name, tensor] : builder.weights()) executable.set_param(name, tensor);
  return executable;
}

}  // namespace rlx::generate
