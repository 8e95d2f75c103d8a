#include "generate/generator.h"

#include <algorithm>

#include "models/architectures.h"
#include "rlx/log.h"
#include "rlx/ops.h"

namespace rlx::generate {

namespace {

Executable compile_generator(const Decoder& decoder, const GeneratorOptions& options) {
  check(options.sampling);
  models::DecoderBuilder& b = *decoder.builder;
  // The last row of each sequence, by its place among all rows.
  const Value last = b.graph().input("last", {{options.batch}, DType::I32});
  const Value flat = ops::reshape(decoder.hidden, {.new_shape = {-1, decoder.hidden.shape()[2]}});
  const Value scores = models::logits_of(b, ops::gather(flat, last, {.axis = 0}));
  b.graph().output(sample(b.graph(), scores, options.sampling), "token");
  if (options.keep_scores) b.graph().output(scores, "scores");
  return compile_decoder(b, options.compile);
}

}  // namespace

Generator::Generator(const models::ModelSource& source, const GeneratorOptions& options)
    : options_(options),
      decoder_(make_decoder(source, {.context = options.context, .batch = options.batch, .cache = options.cache})),
      sequences_(static_cast<size_t>(options.batch)),
      read_again_(static_cast<size_t>(options.batch), false),
      given_(static_cast<size_t>(options.batch)),
      parts_(static_cast<size_t>(options.batch)),
      next_(static_cast<size_t>(options.batch)),
      executable_(compile_generator(decoder_, options)) {
  for (auto& tokens : sequences_) tokens.reserve(static_cast<size_t>(context()));
}

int32_t Generator::feed(std::span<const int32_t> tokens) {
  require(batch() == 1, "There are ", batch(), " sequences, tokens are given for one.");
  given_[0].assign(tokens.begin(), tokens.end());
  feed_given();
  return next_[0];
}

std::vector<int32_t> Generator::feed(std::span<const std::vector<int32_t>> tokens) {
  require(tokens.size() == sequences_.size(), "There are ", sequences_.size(), " sequences, tokens are given for ",
          tokens.size(), ".");
  for (size_t s = 0; s < tokens.size(); ++s) given_[s].assign(tokens[s].begin(), tokens[s].end());
  feed_given();
  return next_;
}

// Allocates nothing when it is one token per sequence again.
void Generator::feed_given() {
  for (size_t s = 0; s < given_.size(); ++s) {
    require(!given_[s].empty(), "Sequence ", s, " is given no tokens.");
    const auto length = static_cast<int64_t>(sequences_[s].size() + given_[s].size());
    require(length <= context(), "Sequence ", s, " would have ", length, " tokens; the context has ", context(), ".");
    for (const int32_t t : given_[s])
      require(t >= 0 && t < vocabulary(), "Token ", t, " is not between 0 and ", vocabulary() - 1, ".");
  }
  for (size_t s = 0; s < given_.size(); ++s) {
    if (!read_again_[s]) continue;
    given_[s].insert(given_[s].begin(), sequences_[s].begin(), sequences_[s].end());
    sequences_[s].clear();
    read_again_[s] = false;
  }
  for (size_t s = 0; s < given_.size() && options_.sampling.has_penalties(); ++s)
    sampling_is_set_ &= given_[s].size() == 1 && given_[s][0] == next_[s];  // else `recent` does not know them
  // Rows of a part are computed together: the longest sequence says how many parts there are, and all end in the last,
  // whose draws alone count.
  size_t longest = 0;
  for (const auto& list : given_) longest = std::max(longest, list.size());
  for (size_t left = longest; left > 0;) {
    const size_t part = std::min(left, static_cast<size_t>(kMostRows));
    for (size_t s = 0; s < given_.size(); ++s) {
      const size_t of = given_[s].size(), from = of - std::min(left, of), to = of - std::min(left - part, of);
      parts_[s] = std::span(given_[s]).subspan(from, to - from);
    }
    if (longest > static_cast<size_t>(kMostRows))
      progress("reading the prompt", static_cast<double>(longest - left) / static_cast<double>(longest));
    left -= part;
    if (left == 0 && !sampling_is_set_) set_sampling();
    run(parts_);
    sampling_is_set_ = left == 0;
    for (size_t s = 0; s < given_.size(); ++s)
      sequences_[s].insert(sequences_[s].end(), parts_[s].begin(), parts_[s].end());
  }
  next_ = drawn_;
  ++draws_;
}

// Before the last part is run.
void Generator::set_sampling() {
  std::vector<std::vector<int32_t>> all = sequences_;
  std::vector<std::span<const int32_t>> recent;
  for (size_t s = 0; s < all.size(); ++s) all[s].insert(all[s].end(), parts_[s].begin(), parts_[s].end());
  for (const auto& list : all) recent.emplace_back(list);
  begin_sampling(executable_, options_.sampling, recent, draws_);
}

void Generator::run(const std::vector<std::span<const int32_t>>& parts) {
  size_t rows = 0;
  for (const auto& p : parts) rows = std::max(rows, p.size());
  const int64_t size = padded_rows(static_cast<int64_t>(rows)), batch = this->batch();
  const bool says_which = has_recurrent_states() && batch > 1;  // rows count
  if (inputs_.empty() || inputs_[0].sizes()[1] != size) {
    inputs_ = {Tensor(DType::I32, {batch, size}), Tensor(DType::I32, {batch, size}), Tensor(DType::I32, {batch})};
    if (says_which) inputs_.emplace_back(DType::F32, std::vector<int64_t>{batch, size});
    inputs_.emplace_back(DType::I32, std::vector<int64_t>{batch});
  }
  const auto tokens = inputs_[0].mutable_values<int32_t>(), positions = inputs_[1].mutable_values<int32_t>(),
             past = inputs_[2].mutable_values<int32_t>(), last = inputs_.back().mutable_values<int32_t>();
  for (size_t s = 0; s < parts.size(); ++s) {
    const auto length = static_cast<int32_t>(sequences_[s].size());
    past[s] = length;
    const size_t valid = parts[s].size();
    last[s] = static_cast<int32_t>(s * static_cast<size_t>(size) + (valid == 0 ? 0 : valid - 1));
    for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
      const size_t at = s * static_cast<size_t>(size) + i;
      tokens[at] = i < valid ? parts[s][i] : 0;
      positions[at] = i < valid ? length + static_cast<int32_t>(i) : 0;
      if (says_which) inputs_[3].mutable_values<float>()[at] = i < valid ? 1.0f : 0.0f;
    }
  }
  const bool cut = batch == 1;  // the rows behind the prompt's end are not computed
  const int64_t full_runs = executable_.stats().full_extent_runs;
  executable_.set_active_extent(cut ? static_cast<int64_t>(rows) : size, size);
  const std::span<const Tensor> results = executable_.run_slots(inputs_);
  RLX_ASSERT(executable_.stats().full_extent_runs == full_runs);  // attention counts on the rows being cut
  const auto token = results[0].values<int32_t>();
  drawn_.assign(token.begin(), token.end());
  if (options_.keep_scores) scores_ = results[1].clone();
}

void Generator::truncate(int64_t sequence, int64_t length) {
  auto& tokens = sequences_[static_cast<size_t>(sequence)];
  require(length >= 0 && length <= static_cast<int64_t>(tokens.size()), "Sequence ", sequence, " has ", tokens.size(),
          " tokens, not ", length, ".");
  // A recurrent state cannot go back: what is left is read again with the next tokens.
  if (has_recurrent_states() && length != static_cast<int64_t>(tokens.size()))
    read_again_[static_cast<size_t>(sequence)] = true;
  sampling_is_set_ &= length == static_cast<int64_t>(tokens.size());
  tokens.resize(static_cast<size_t>(length));
}

Tensor Generator::scores() {
  require(options_.keep_scores, "The generator was made without keep_scores.");
  return scores_;
}

}  // namespace rlx::generate
