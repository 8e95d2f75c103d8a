#include "rlx/kv_pages.h"

#include <limits>

#include "rlx/error.h"

namespace rlx {

KvPages::KvPages(int64_t pages, int64_t tokens_per_page) : tokens_per_page_(tokens_per_page) {
  require(pages >= 0 && pages <= std::numeric_limits<int32_t>::max(), "The number of pages (", pages,
          ") is not within 0 … 2^31 - 1.");
  require(tokens_per_page >= 1, "Tokens of a page (", tokens_per_page, ") are less than 1.");
  owners_.resize(static_cast<size_t>(pages));
  for (int32_t page = 0; page < pages; ++page) free_.insert(free_.end(), page);
}

const KvPages::Entry& KvPages::entry(Sequence sequence) const {
  const auto it = sequences_.find(sequence);
  require(it != sequences_.end(), "Sequence ", sequence, " is not open: it was released, or never opened.");
  return it->second;
}
KvPages::Entry& KvPages::entry(Sequence sequence) {
  return const_cast<Entry&>(static_cast<const KvPages&>(*this).entry(sequence));
}

KvPages::Sequence KvPages::open() {
  sequences_.emplace(next_, Entry{});
  return next_++;
}

KvPages::Sequence KvPages::fork(Sequence sequence) {
  const Entry& from = entry(sequence);
  for (const int32_t page : from.pages) ++owners_[static_cast<size_t>(page)];
  sequences_.emplace(next_, from);
  return next_++;
}

void KvPages::release(Sequence sequence) {
  for (const int32_t page : entry(sequence).pages) drop(page);
  sequences_.erase(sequence);
}

int32_t KvPages::take() {
  const int32_t page = *free_.begin();
  free_.erase(free_.begin());
  owners_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvPages::drop(int32_t page) {
  RLX_ASSERT(owners_[static_cast<size_t>(page)] > 0 && "a page is freed twice");
  if (--owners_[static_cast<size_t>(page)] == 0) free_.insert(page);
}

std::optional<std::vector<KvPages::Copy>> KvPages::extend(Sequence sequence, int64_t tokens) {
  Entry& own = entry(sequence);
  require(tokens >= 0, "A sequence cannot be extended by ", tokens, " tokens.");
  // The page that the next token goes to, if it has tokens already, is written to.
  const bool is_partial = tokens > 0 && own.length % tokens_per_page_ != 0;
  const bool copies = is_partial && owners_[static_cast<size_t>(own.pages.back())] > 1;
  const auto has = static_cast<int64_t>(own.pages.size());
  const int64_t needs = (own.length + tokens + tokens_per_page_ - 1) / tokens_per_page_;
  if (needs - has + (copies ? 1 : 0) > free_pages()) return std::nullopt;
  std::vector<Copy> list;
  if (copies) {
    const int32_t from = own.pages.back();
    own.pages.back() = take();
    drop(from);
    list.push_back({from, own.pages.back()});
  }
  for (int64_t i = has; i < needs; ++i) own.pages.push_back(take());
  own.length += tokens;
  return list;
}

int64_t KvPages::length(Sequence sequence) const { return entry(sequence).length; }
std::span<const int32_t> KvPages::pages(Sequence sequence) const { return entry(sequence).pages; }

Tensor KvPages::table(std::span<const Sequence> sequences, int64_t columns) const {
  Tensor table(DType::I32, {static_cast<int64_t>(sequences.size()), columns});
  auto cells = table.mutable_values<int32_t>();
  for (size_t b = 0; b < sequences.size(); ++b) {
    const auto& own = entry(sequences[b]).pages;
    require(static_cast<int64_t>(own.size()) <= columns, "Sequence ", sequences[b], " has ", own.size(),
            " pages, more than a table of ", columns, " columns holds.");
    std::copy(own.begin(), own.end(), cells.begin() + static_cast<std::ptrdiff_t>(b) * columns);
  }
  return table;
}

Tensor KvPages::lengths(std::span<const Sequence> sequences) const {
  Tensor lengths(DType::I32, {static_cast<int64_t>(sequences.size())});
  for (size_t b = 0; b < sequences.size(); ++b)
    lengths.mutable_values<int32_t>()[b] = static_cast<int32_t>(length(sequences[b]));
  return lengths;
}

}  // namespace rlx
