#include "plan/assign.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "rlx/shape.h"

namespace rlx::plan {

namespace {

int32_t steps_of(std::span<const Block> blocks) {
  int32_t n = 0;
  for (const Block& b : blocks) n = std::max(n, b.death + 1);
  return n;
}

std::vector<int64_t> live_at(std::span<const Block> blocks) {
  std::vector<int64_t> change(static_cast<size_t>(steps_of(blocks)) + 1);
  for (const Block& b : blocks) {
    change[static_cast<size_t>(b.birth)] += b.size;
    change[static_cast<size_t>(b.death) + 1] -= b.size;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

// Placed blocks, found by the steps they live at: those alive at a step stand on the path from a segment tree's root to
// that step's leaf, those born later in a list per step. Both stay short where lives are short.
class Timeline {
 public:
  explicit Timeline(int32_t steps) : born_(static_cast<size_t>(steps)) {
    while (leaves_ < static_cast<size_t>(steps)) leaves_ *= 2;
    tree_.resize(2 * leaves_);
  }

  void add(int32_t block, int32_t birth, int32_t death) {
    born_[static_cast<size_t>(birth)].push_back(block);
    size_t lo = static_cast<size_t>(birth) + leaves_, hi = static_cast<size_t>(death) + leaves_ + 1;
    for (; lo < hi; lo /= 2, hi /= 2) {
      if (lo & 1) tree_[lo++].push_back(block);
      if (hi & 1) tree_[--hi].push_back(block);
    }
  }

  template <class F>
  void for_overlapping(int32_t birth, int32_t death, const F& f) const {
    for (size_t node = static_cast<size_t>(birth) + leaves_; node >= 1; node /= 2)
      for (const int32_t b : tree_[node]) f(b);
    for (int32_t t = birth + 1; t <= death; ++t)
      for (const int32_t b : born_[static_cast<size_t>(t)]) f(b);
  }

 private:
  size_t leaves_ = 1;
  std::vector<std::vector<int32_t>> tree_;
  std::vector<std::vector<int32_t>> born_;
};

// Places the blocks in the given order, each at the lowest offset where no block of its time is.
int64_t place(std::span<Block> blocks, const std::vector<int32_t>& order) {
  Timeline timeline(steps_of(blocks));
  int64_t arena = 0;
  std::vector<std::pair<int64_t, int64_t>> busy;
  for (const int32_t i : order) {
    Block& block = blocks[static_cast<size_t>(i)];
    busy.clear();
    timeline.for_overlapping(block.birth, block.death, [&](int32_t other) {
      const Block& b = blocks[static_cast<size_t>(other)];
      busy.emplace_back(b.offset, b.offset + b.size);
    });
    std::sort(busy.begin(), busy.end());
    int64_t at = 0;
    for (const auto& [begin, end] : busy) {
      if (begin - at >= block.size) break;
      at = std::max(at, end);
    }
    block.offset = at;
    arena = std::max(arena, checked_add(at, block.size));
    timeline.add(i, block.birth, block.death);
  }
  return arena;
}

// How many pairs of blocks live at the same time: what place() looks at.
int64_t count_pairs(std::span<const Block> blocks) {
  std::vector<int64_t> born(static_cast<size_t>(steps_of(blocks)) + 1), dead(born.size());
  for (const Block& b : blocks) {
    ++born[static_cast<size_t>(b.birth)];
    ++dead[static_cast<size_t>(b.death) + 1];
  }
  int64_t alive = 0, pairs = 0;
  for (size_t t = 0; t < born.size(); ++t) {
    alive -= dead[t];
    pairs += born[t] * alive + born[t] * (born[t] - 1) / 2;
    alive += born[t];
  }
  return pairs;
}

// Free ranges of an arena that grows at its end, as a heap has them; the smallest that fits is taken.
class FreeRanges {
 public:
  int64_t take(int64_t size) {
    const auto fit = by_size_.lower_bound({size, 0});
    if (fit != by_size_.end()) {
      const auto [bytes, at] = *fit;
      erase(at, bytes);
      if (bytes > size) insert(at + size, bytes - size);
      return at;
    }
    int64_t at = end_;
    if (const auto last = by_offset_.rbegin(); last != by_offset_.rend() && last->first + last->second == end_) {
      at = last->first;  // grows the range at the end
      erase(at, last->second);
    }
    end_ = checked_add(at, size);
    return at;
  }

  void give(int64_t at, int64_t size) {
    auto next = by_offset_.lower_bound(at);
    if (next != by_offset_.end() && next->first == at + size) {
      const auto [offset, bytes] = *next;
      size += bytes;
      erase(offset, bytes);
    }
    next = by_offset_.lower_bound(at);
    if (next != by_offset_.begin()) {
      const auto [offset, bytes] = *std::prev(next);
      if (offset + bytes == at) {
        erase(offset, bytes);
        at = offset;
        size += bytes;
      }
    }
    insert(at, size);
  }

  int64_t end() const { return end_; }

 private:
  void insert(int64_t at, int64_t size) {
    by_offset_[at] = size;
    by_size_.emplace(size, at);
  }
  void erase(int64_t at, int64_t size) {
    by_offset_.erase(at);
    by_size_.erase({size, at});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// As an allocator would at run time, blocks of one step by size. Fast whatever lives how long.
int64_t place_in_time(std::span<Block> blocks) {
  std::vector<int32_t> births(blocks.size());
  std::iota(births.begin(), births.end(), 0);
  std::vector<int32_t> deaths = births;
  const auto at = [&](int32_t i) -> const Block& { return blocks[static_cast<size_t>(i)]; };
  std::stable_sort(births.begin(), births.end(), [&](int32_t a, int32_t b) {
    return at(a).birth != at(b).birth ? at(a).birth < at(b).birth : at(a).size > at(b).size;
  });
  std::stable_sort(deaths.begin(), deaths.end(), [&](int32_t a, int32_t b) { return at(a).death < at(b).death; });
  FreeRanges free;
  size_t next_dead = 0;
  for (const int32_t i : births) {
    for (; next_dead < deaths.size() && at(deaths[next_dead]).death < at(i).birth; ++next_dead)
      if (const Block& dead = at(deaths[next_dead]); dead.size > 0) free.give(dead.offset, dead.size);
    blocks[static_cast<size_t>(i)].offset = at(i).size > 0 ? free.take(at(i).size) : 0;
  }
  return free.end();
}

// Largest key first, ties in the given order.
std::vector<int32_t> sorted_by(std::span<const Block> blocks, const std::function<double(const Block&)>& key) {
  std::vector<int32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return key(blocks[static_cast<size_t>(a)]) > key(blocks[static_cast<size_t>(b)]);
  });
  return order;
}

// The fullest steps first, at each step its blocks by size: what the peak needs is placed before anything is in the
// way.
std::vector<int32_t> by_breadth(std::span<const Block> blocks) {
  const std::vector<int64_t> live = live_at(blocks);
  // levels[k][i]: the most bytes live at one of the steps i … i + 2^k - 1.
  std::vector<std::vector<int64_t>> levels = {live};
  for (size_t width = 1; 2 * width <= live.size(); width *= 2) {
    std::vector<int64_t> next(live.size() - 2 * width + 1);
    for (size_t i = 0; i < next.size(); ++i) next[i] = std::max(levels.back()[i], levels.back()[i + width]);
    levels.push_back(std::move(next));
  }
  std::vector<int64_t> fullest(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto first = static_cast<size_t>(blocks[i].birth), last = static_cast<size_t>(blocks[i].death);
    size_t level = 0;
    while ((size_t{2} << level) <= last - first + 1) ++level;
    fullest[i] = std::max(levels[level][first], levels[level][last + 1 - (size_t{1} << level)]);
  }
  std::vector<int32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
    return fullest[ia] != fullest[ib] ? fullest[ia] > fullest[ib] : blocks[ia].size > blocks[ib].size;
  });
  return order;
}

}  // namespace

int64_t largest_live(std::span<const Block> blocks) {
  int64_t most = 0;
  for (const int64_t bytes : live_at(blocks)) most = std::max(most, bytes);
  return most;
}

int64_t assign(std::span<Block> blocks, int64_t lower_bound) {
  if (blocks.empty()) return 0;
  // The orders below look at every pair of blocks that live together: half a second for this many.
  constexpr int64_t kMostPairs = 20'000'000;
  int64_t smallest = place_in_time(blocks);
  if (smallest == lower_bound || count_pairs(blocks) > kMostPairs) return smallest;
  const auto length = [](const Block& b) { return static_cast<double>(b.death - b.birth + 1); };
  const std::function<std::vector<int32_t>()> orders[] = {
      [&] { return sorted_by(blocks, [](const Block& b) { return static_cast<double>(b.size); }); },
      [&] { return by_breadth(blocks); },
      [&] { return sorted_by(blocks, [&](const Block& b) { return static_cast<double>(b.size) * length(b); }); },
      [&] { return sorted_by(blocks, length); },
      [&] { return sorted_by(blocks, [](const Block& b) { return -static_cast<double>(b.birth); }); },
  };
  std::vector<int64_t> offsets(blocks.size());
  const auto keep = [&] {
    for (size_t i = 0; i < blocks.size(); ++i) offsets[i] = blocks[i].offset;
  };
  keep();
  for (const auto& order : orders) {
    const int64_t arena = place(blocks, order());
    if (arena < smallest) {
      smallest = arena;
      keep();
    }
    if (smallest == lower_bound) break;
  }
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i].offset = offsets[i];
  return smallest;
}

int64_t assign_apart(std::span<Block> blocks) {
  int64_t at = 0;
  for (Block& b : blocks) {
    b.offset = at;
    at = checked_add(at, b.size);
  }
  return at;
}

}  // namespace rlx::plan
