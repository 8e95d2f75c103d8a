#include "generate/scorer.h"

#include <algorithm>
#include <cmath>

#include "models/architectures.h"
#include "rlx/log.h"
#include "rlx/ops.h"

namespace rlx::generate {

namespace {

constexpr int64_t kRows = 128;  // scored at a time: their scores of the whole vocabulary are in memory

}  // namespace

Scorer::Scorer(const models::ModelSource& source, const CompileOptions& options, const DecoderOptions& decoder)
    : decoder_(make_decoder(source, decoder)), executable_([&] {
        models::DecoderBuilder& b = *decoder_.builder;
        const Value targets = b.graph().input("targets", {{b.rows()}, DType::I32});
        const Value rows = ops::reshape(decoder_.hidden, {.new_shape = {b.rows(), decoder_.hidden.shape()[2]}});
        b.graph().output(ops::softmax_cross_entropy_with_logits(models::logits_of(b, rows), targets), "surprise");
        return compile_decoder(b, options);
      }()) {
  require(decoder.batch == 1, "A scorer takes one sequence at a time.");
}

std::vector<float> Scorer::surprises(std::span<const int32_t> tokens) {
  require(static_cast<int64_t>(tokens.size()) <= context(), "The text has ", tokens.size(), " tokens; the context has ",
          context(), ".");
  std::vector<float> out;
  for (int64_t at = 0; at + 1 < static_cast<int64_t>(tokens.size()); at += kRows) {
    const int64_t rows = std::min(kRows, static_cast<int64_t>(tokens.size()) - 1 - at), size = padded_rows(rows);
    std::vector<int32_t> ids(static_cast<size_t>(size)), positions(ids.size()), targets(ids.size());
    for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
      ids[i] = tokens[static_cast<size_t>(at) + i];
      targets[i] = tokens[static_cast<size_t>(at) + i + 1];
      positions[i] = static_cast<int32_t>(at) + static_cast<int32_t>(i);
    }
    executable_.set_active_extent(rows, size);
    const int64_t full_runs = executable_.stats().full_extent_runs;
    const NamedTensors results = executable_.run({{"tokens", Tensor::i32({1, size}, ids)},
                                                  {"positions", Tensor::i32({1, size}, positions)},
                                                  {"past", Tensor::i32({1}, {static_cast<int32_t>(at)})},
                                                  {"targets", Tensor::i32({size}, targets)}});
    RLX_ASSERT(executable_.stats().full_extent_runs == full_runs);  // attention counts on the rows being cut
    const auto values = results.at("surprise").values<float>();
    out.insert(out.end(), values.begin(), values.begin() + rows);
  }
  return out;
}

Perplexity perplexity(Scorer& scorer, std::span<const int32_t> tokens, std::optional<int32_t> bos) {
  const int64_t context = scorer.context(), pieces = static_cast<int64_t>(tokens.size()) / context;
  require(pieces >= 1, "The text has ", tokens.size(), " tokens; at least a whole context (", context, ") is needed.");
  double sum = 0, squares = 0;
  Perplexity out{.pieces = pieces};
  for (int64_t p = 0; p < pieces; ++p) {
    progress("scoring the text", static_cast<double>(p) / static_cast<double>(pieces));
    const std::span<const int32_t> whole =
        tokens.subspan(static_cast<size_t>(p * context), static_cast<size_t>(context));
    std::vector<int32_t> piece(whole.begin(), whole.end());
    if (bos) piece[0] = *bos;
    const std::vector<float> surprises = scorer.surprises(piece);
    for (size_t i = static_cast<size_t>(context / 2); i < surprises.size(); ++i) {
      const double s = static_cast<double>(surprises[i]);
      sum += s;
      squares += s * s;
      ++out.tokens;
    }
  }
  require(out.tokens > 0, "A context of ", context, " tokens is too short to score anything.");
  const auto n = static_cast<double>(out.tokens);
  const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
  out.value = std::exp(mean);
  out.error = out.tokens > 1 ? std::sqrt(variance / (n - 1)) * out.value : 0;
  return out;
}

}  // namespace rlx::generate
