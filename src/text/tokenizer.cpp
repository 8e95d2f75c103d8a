#include "text/tokenizer.h"

#include "rlx/error.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace rlx {

namespace text {

void WordCache::encode(std::string_view word, std::vector<int32_t>& ids) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return model_.encode(word, ids);
  const auto found = places_.find(word);
  if (found != places_.end()) {
    const auto [start, count] = found->second;
    ids.insert(ids.end(), kept_.begin() + start, kept_.begin() + start + count);
    return;
  }
  const size_t before = ids.size();
  model_.encode(word, ids);
  places_.emplace(std::string(word),
                  std::pair(static_cast<uint32_t>(kept_.size()), static_cast<uint32_t>(ids.size() - before)));
  kept_.insert(kept_.end(), ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
}

}  // namespace text

const std::string& Tokenizer::Impl::piece(int32_t id) const {
  require(id >= 0 && id < vocabulary.size(), "The token id (", id, ") is not below the size of the vocabulary (",
          vocabulary.size(), ").");
  return vocabulary.piece(id);
}

const std::string& Tokenizer::Impl::decoded_piece(int32_t id, bool skip_special) const {
  static const std::string kNothing;
  const std::string& text = piece(id);
  if (skip_special && special.contains(id)) return kNothing;
  const auto otherwise = written.find(id);
  return otherwise == written.end() ? text : otherwise->second;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  constexpr size_t kMost = size_t{1} << 30;
  require(text.size() < kMost, "The text (", text.size(), " bytes) is longer than the ", kMost,
          " bytes that a tokenizer takes.");
  std::vector<int32_t> ids;
  impl_->encode(text, options, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  text::DecodeRun run(impl_->decoder, false);
  std::string out;
  for (const int32_t id : ids)
    if (const std::string& piece = impl_->decoded_piece(id, skip_special); !piece.empty()) out += run.push(piece);
  return out += run.finish();
}

int32_t Tokenizer::size() const { return impl_->vocabulary.size(); }
std::string_view Tokenizer::piece(int32_t id) const { return impl_->piece(id); }
std::optional<int32_t> Tokenizer::id_of(std::string_view piece) const { return impl_->vocabulary.find(piece); }
bool Tokenizer::is_special(int32_t id) const { return impl_->special.contains(id); }
bool Tokenizer::is_end(int32_t id) const { return impl_->ends.contains(id); }
std::optional<int32_t> Tokenizer::bos() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return impl_->eos; }
std::optional<int32_t> Tokenizer::pad() const { return impl_->pad; }
std::optional<int32_t> Tokenizer::unk() const { return impl_->unk; }
bool Tokenizer::adds_bos() const { return impl_->adds_bos; }

struct StreamDecoder::Impl {
  std::shared_ptr<const Tokenizer::Impl> tokenizer;
  text::DecodeRun run;
  bool skip_special;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> context, bool skip_special)
    : impl_(new Impl{tokenizer.impl_, text::DecodeRun(tokenizer.impl_->decoder, true), skip_special}) {
  for (const int32_t id : context) push(id);
}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(int32_t id) {
  const std::string& piece = impl_->tokenizer->decoded_piece(id, impl_->skip_special);
  return piece.empty() ? std::string() : impl_->run.push(piece);
}

std::string StreamDecoder::finish() { return impl_->run.finish(); }

}  // namespace rlx
