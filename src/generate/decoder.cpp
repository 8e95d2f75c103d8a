#include "generate/decoder.h"

#include <algorithm>

#include "generate/room.h"
#include "models/architectures.h"
#include "rlx/log.h"

namespace rlx::generate {

constexpr int64_t kDefaultContext = 4096;
constexpr int64_t kMostContext = 1 << 20;  // tables of angles are as long, whatever else fits

int64_t padded_rows(int64_t rows) {
  for (const int64_t size : kRowSizes)
    if (rows <= size) return size;
  return kMostRows;
}

Decoder make_decoder(const models::ModelSource& source, const DecoderOptions& options) {
  require(options.batch >= 1 && options.batch <= 4096, "The number of sequences (", options.batch,
          ") is not between 1 and 4096.");
  require(options.context >= 0 && options.context <= kMostContext, "The context (", options.context,
          ") is not between 1 and ", kMostContext, " tokens.");
  const models::Architecture& architecture = models::find_architecture(source);
  models::DecoderConfig config = models::read_decoder_config(source);
  if (architecture.configure) architecture.configure(source, config);
  const int64_t made_for = config.context;
  const int64_t context = options.context > 0 ? options.context : std::min(config.context, kDefaultContext);
  // Rows of sequences of different lengths are padded, and the padding is written behind them. A part's size must fit,
  // be the context ever so short.
  const int64_t capacity = std::max(context, padded_rows(context)) + (options.batch > 1 ? kMostRows : 0);
  auto builder = std::make_unique<models::DecoderBuilder>(
      source, std::move(config),
      models::CacheOptions{.batch = options.batch, .context = context, .capacity = capacity, .type = options.cache});
  const Value hidden = architecture.build(*builder);
  if (options.context > made_for)
    log(LogLevel::kWarning,
        str("The model was made for ", made_for, " tokens; what it says behind those, in a context of ",
            options.context, ", may make no sense."));
  return {std::move(builder), hidden, context};
}

Executable compile_decoder(models::DecoderBuilder& builder, CompileOptions options) {
  require_room(builder, builder.cache().context, options);
  options.kept_programs = static_cast<int>(std::size(kRowSizes));
  options.bucket_symbol = symbols::kSeq;
  Executable executable = compile(builder.graph(), options);
  for (const auto& [name, tensor] : builder.weights()) executable.set_param(name, tensor);
  return executable;
}

}  // namespace rlx::generate
