#include "plan/plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "plan/assign.h"
#include "plan/schedule.h"
#include "rlx/error.h"
#include "rlx/shape.h"

namespace rlx::plan {

namespace {

int64_t align_up(int64_t n, int64_t alignment) { return checked_add(n, alignment - 1) / alignment * alignment; }

class Planner {
 public:
  Planner(const Facts& facts, const Options& options, std::vector<int32_t> order)
      : facts_(facts), problem_(facts.problem), options_(options), owner_(problem_.values.size()) {
    plan_.order = std::move(order);
    plan_.slots.resize(problem_.values.size());
    plan_.scratch.resize(problem_.steps.size());
    plan_.update_in_place.assign(problem_.updates.size(), 0);
    std::iota(owner_.begin(), owner_.end(), 0);
    find_lives();
  }

  Plan run() {
    if (options_.in_place && !options_.no_reuse) {
      share_states();
      share_operands();
    }
    place_persistent();
    place_activations();
    place_views();
    return std::move(plan_);
  }

 private:
  const Step& step_at(int32_t t) const {
    return problem_.steps[static_cast<size_t>(plan_.order[static_cast<size_t>(t)])];
  }
  int32_t num_steps() const { return static_cast<int32_t>(plan_.order.size()); }
  int32_t& birth(int32_t root) { return birth_[static_cast<size_t>(root)]; }
  int32_t& death(int32_t root) { return death_[static_cast<size_t>(root)]; }

  // The root whose bytes this one uses: itself, or the first of the operands that overwrote each other.
  int32_t owner(int32_t root) const { return owner_[static_cast<size_t>(root)]; }
  // `root` was written before, so its own owner is known and stays: chains never grow longer than one.
  void overwrite(int32_t root, int32_t by) {
    owner_[static_cast<size_t>(by)] = owner(root);
    plan_.shared.emplace_back(by, root);
  }

  // First and last position in the order at which each root is alive; outputs live past the last step.
  void find_lives() {
    birth_.assign(problem_.values.size(), -1);
    death_.assign(problem_.values.size(), -1);
    for (int32_t t = 0; t < num_steps(); ++t) {
      for (const int32_t v : step_at(t).writes) {
        const int32_t r = facts_.root(v);
        if (birth(r) < 0) birth(r) = t;
        death(r) = t;
      }
      for (const int32_t v : step_at(t).reads) death(facts_.root(v)) = t;
    }
    for (size_t r = 0; r < problem_.values.size(); ++r)
      if (facts_.is_output[r]) death_[r] = num_steps();
  }

  bool is_whole_root(int32_t v) const { return facts_.value(v).size_bytes == facts_.value(facts_.root(v)).size_bytes; }

  // Does the step read the root's bytes only as the whole? Then element i of every such operand is the root's element
  // i.
  bool reads_only_whole(const Step& step, int32_t root) const {
    return std::all_of(step.reads.begin(), step.reads.end(),
                       [&](int32_t v) { return facts_.root(v) != root || is_whole_root(v); });
  }

  // Every operand that lies in `root` may be overwritten by `written`: one that may not is read by other elements.
  bool may_share_all(const Step& step, int32_t written, int32_t root) const {
    return std::all_of(step.reads.begin(), step.reads.end(), [&](int32_t v) {
      return facts_.root(v) != root ||
             std::find(step.may_share.begin(), step.may_share.end(), std::pair(written, v)) != step.may_share.end();
    });
  }

  // A new state may be computed in the old one's bytes when this step is the last to read the old one and nobody asks
  // for the old value after the run.
  void share_states() {
    for (size_t u = 0; u < problem_.updates.size(); ++u) {
      const auto [state, value] = problem_.updates[u];
      if (facts_.root(value) != value || facts_.root(state) != state || facts_.is_output[static_cast<size_t>(state)] ||
          facts_.value(value).region != Region::kPersistent || owner(value) != value ||
          facts_.value(value).size_bytes != facts_.value(state).size_bytes || death(state) < 0)
        continue;
      const Step& step = step_at(death(state));
      if (birth(value) != death(state) || !reads_only_whole(step, state) || !may_share_all(step, value, state))
        continue;
      overwrite(state, value);
      plan_.update_in_place[u] = 1;
    }
  }

  // In place (spec 20, 2.4): the operand is its whole root, dies here, is not pinned, and is read in no other way.
  void share_operands() {
    for (int32_t t = 0; t < num_steps(); ++t) {
      const Step& step = step_at(t);
      std::set<int32_t> taken;
      for (const auto& [written, read] : step.may_share) {
        const int32_t root = facts_.root(read);
        if (facts_.root(written) != written || owner(written) != written) continue;
        if (!facts_.planned(written) || !facts_.planned(root) || death(root) != t) continue;
        if (birth(written) != t) continue;  // an earlier step has written a part of it, when the operand was needed
        if (facts_.value(written).size_bytes != facts_.value(root).size_bytes) continue;
        if (!reads_only_whole(step, root) || !may_share_all(step, written, root)) continue;
        if (!taken.insert(root).second) continue;
        overwrite(root, written);
      }
    }
  }

  void place_persistent() {
    int64_t at = 0;
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const Value& value = problem_.values[v];
      if (value.view_of >= 0 || value.region != Region::kPersistent || owner_[v] != static_cast<int32_t>(v)) continue;
      at = on_one_page(at, value.size_bytes);
      plan_.slots[v] = {at, value.size_bytes};
      at = align_up(checked_add(at, value.size_bytes), options_.alignment);
    }
    for (size_t v = 0; v < problem_.values.size(); ++v)
      if (problem_.values[v].region == Region::kPersistent && owner_[v] != static_cast<int32_t>(v))
        plan_.slots[v] = plan_.slots[static_cast<size_t>(owner(static_cast<int32_t>(v)))];
    plan_.persistent_bytes = at;
  }

  void check_page(int64_t size) const {
    if (options_.page_bytes > 0 && size > options_.page_bytes)
      fail(ErrorKind::kMemory,
           str("A value of ", size, " bytes exceeds the device's largest buffer (", options_.page_bytes, ")."));
  }
  // `at`, or the start of the next page where the value would cross it.
  int64_t on_one_page(int64_t at, int64_t size) const {
    check_page(size);
    if (options_.page_bytes == 0 || at % options_.page_bytes + size <= options_.page_bytes) return at;
    return align_up(at, options_.page_bytes);
  }

  int64_t assign_blocks(std::span<Block> blocks) const {
    return options_.no_reuse ? assign_apart(blocks) : assign(blocks, largest_live(blocks));
  }
  // Page by page: what does not fit the first one is placed again, in the next.
  int64_t assign_pages(std::vector<Block>& blocks) const {
    for (const Block& b : blocks) check_page(b.size);
    const int64_t arena = assign_blocks(blocks);
    if (options_.page_bytes == 0 || arena <= options_.page_bytes) return arena;
    std::vector<size_t> rest;
    for (int64_t page = 0;; page += options_.page_bytes) {
      std::vector<Block> left;
      for (const size_t i : rest) left.push_back(blocks[i]);
      const int64_t end = page == 0 ? arena : assign_blocks(left);
      std::vector<size_t> next;
      for (size_t j = 0; j < (page == 0 ? blocks.size() : rest.size()); ++j) {
        const size_t i = page == 0 ? j : rest[j];
        if (page > 0) blocks[i].offset = left[j].offset;
        if (blocks[i].offset + blocks[i].size > options_.page_bytes)
          next.push_back(i);
        else
          blocks[i].offset += page;
      }
      if (next.empty()) return page + end;
      rest = std::move(next);
    }
  }

  int64_t block_bytes(int64_t size) const {
    return align_up(checked_add(size, options_.guard_bytes), options_.alignment);
  }

  void place_activations() {
    std::vector<Block> blocks;
    std::vector<int32_t> block_of(problem_.values.size(), -1);
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const auto id = static_cast<int32_t>(v);
      if (problem_.values[v].view_of >= 0 || !facts_.planned(id) || birth(id) < 0) continue;
      const int64_t size = block_bytes(problem_.values[v].size_bytes);
      plan_.unshared_bytes = checked_add(plan_.unshared_bytes, size);
      int32_t& block = block_of[static_cast<size_t>(owner(id))];
      if (block < 0) {
        block = static_cast<int32_t>(blocks.size());
        blocks.push_back({.size = size, .birth = birth(id), .death = death(id)});
      }
      block_of[v] = block;
      Block& b = blocks[static_cast<size_t>(block)];
      b.birth = std::min(b.birth, birth(id));
      b.death = std::max(b.death, death(id));
    }
    std::vector<int32_t> scratch_block(problem_.steps.size(), -1);
    for (int32_t t = 0; t < num_steps(); ++t) {
      if (step_at(t).scratch_bytes == 0) continue;
      const int64_t size = block_bytes(step_at(t).scratch_bytes);
      plan_.unshared_bytes = checked_add(plan_.unshared_bytes, size);
      scratch_block[static_cast<size_t>(plan_.order[static_cast<size_t>(t)])] = static_cast<int32_t>(blocks.size());
      blocks.push_back({.size = size, .birth = t, .death = t});
    }
    plan_.largest_live_bytes = largest_live(blocks);
    plan_.arena_bytes = assign_pages(blocks);
    for (size_t v = 0; v < problem_.values.size(); ++v)
      if (block_of[v] >= 0)
        plan_.slots[v] = {blocks[static_cast<size_t>(block_of[v])].offset, problem_.values[v].size_bytes};
    for (size_t s = 0; s < problem_.steps.size(); ++s)
      if (scratch_block[s] >= 0)
        plan_.scratch[s] = {blocks[static_cast<size_t>(scratch_block[s])].offset, problem_.steps[s].scratch_bytes};
  }

  void place_views() {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if (problem_.values[v].view_of < 0) continue;
      const Root& root = facts_.roots[v];
      plan_.slots[v] = {plan_.slots[static_cast<size_t>(root.value)].offset + root.offset_bytes,
                        problem_.values[v].size_bytes};
    }
  }

  const Facts& facts_;
  const Problem& problem_;
  const Options& options_;
  Plan plan_;
  std::vector<int32_t> owner_;
  std::vector<int32_t> birth_, death_;
};

}  // namespace

Plan make_plan(const Problem& problem, const Options& options) {
  require(options.alignment >= 1, "Alignment (", options.alignment, ") is not positive.");
  const Facts facts(problem);
  Plan best;
  if (options.schedule != Schedule::kGreedy) {
    std::vector<int32_t> source(problem.steps.size());
    std::iota(source.begin(), source.end(), 0);
    best = Planner(facts, options, std::move(source)).run();
  }
  if (options.schedule != Schedule::kSource) {
    Plan greedy = Planner(facts, options, greedy_order(facts)).run();
    if (options.schedule == Schedule::kGreedy || greedy.arena_bytes < best.arena_bytes) best = std::move(greedy);
  }
  if (options.verify)
    for (const std::string& fault : check(problem, best, options))
      fail(ErrorKind::kInternal, "The memory plan is wrong: " + fault);
  return best;
}

}  // namespace rlx::plan
