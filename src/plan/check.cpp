// An independent look at a finished plan. It recomputes lives and ranges from the problem and trusts nothing of
// plan.cpp.
#include <algorithm>
#include <set>

#include "plan/plan.h"
#include "rlx/error.h"

namespace rlx::plan {

namespace {

struct Range {
  int64_t begin, end;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool empty() const { return begin == end; }
};

class Checker {
 public:
  Checker(const Problem& problem, const Plan& plan, const Options& options)
      : problem_(problem), plan_(plan), options_(options), n_(static_cast<int32_t>(problem.values.size())) {}

  std::vector<std::string> run() {
    order();
    if (!faults_.empty()) return faults_;
    lives();
    slots();
    roots_apart();
    steps();
    totals();
    return faults_;
  }

 private:
  template <class... Parts>
  void fault(const Parts&... parts) {
    faults_.push_back(str(parts...));
  }
  const Value& value(int32_t v) const { return problem_.values[static_cast<size_t>(v)]; }
  Range range(int32_t v) const {
    const Slot& s = plan_.slots[static_cast<size_t>(v)];
    return {s.offset, s.offset + s.size};
  }
  int32_t root(int32_t v) const { return root_of(problem_, v).value; }
  bool shares(int32_t written, int32_t read) const { return shared_.contains({written, root(read)}); }

  void order() {
    std::vector<bool> seen(problem_.steps.size());
    for (const int32_t s : plan_.order) {
      if (s < 0 || s >= static_cast<int32_t>(seen.size()) || seen[static_cast<size_t>(s)]) {
        fault("the order is not a permutation of the steps");
        return;
      }
      seen[static_cast<size_t>(s)] = true;
    }
    if (plan_.order.size() != problem_.steps.size())
      fault("the order has ", plan_.order.size(), " of ", problem_.steps.size(), " steps");
    for (const auto& [written, read] : plan_.shared) shared_.insert({written, root(read)});
  }

  void lives() {
    birth_.assign(static_cast<size_t>(n_), -1);
    death_.assign(static_cast<size_t>(n_), -1);
    const auto end = static_cast<int32_t>(plan_.order.size());
    for (int32_t t = 0; t < end; ++t) {
      const Step& step = problem_.steps[static_cast<size_t>(plan_.order[static_cast<size_t>(t)])];
      for (const int32_t v : step.reads) {
        const auto r = static_cast<size_t>(root(v));
        if (value(root(v)).region == Region::kActivation && birth_[r] < 0)  // M5
          fault("step ", plan_.order[static_cast<size_t>(t)], " reads value ", v, " before it is written");
        death_[r] = std::max(death_[r], t);
      }
      for (const int32_t v : step.writes) {
        const auto r = static_cast<size_t>(root(v));
        if (birth_[r] < 0) birth_[r] = t;
        death_[r] = std::max(death_[r], t);
      }
    }
    for (const int32_t v : problem_.outputs) death_[static_cast<size_t>(root(v))] = end;
    for (const Update& u : problem_.updates) death_[static_cast<size_t>(root(u.value))] = end;
  }

  void slots() {
    for (int32_t v = 0; v < n_; ++v) {
      const Root r = root_of(problem_, v);
      const Region region = value(r.value).region;
      if (region == Region::kExternal) continue;
      if (region == Region::kActivation && birth_[static_cast<size_t>(r.value)] < 0) continue;  // nobody writes it
      const Slot& slot = plan_.slots[static_cast<size_t>(v)];
      if (slot.size < value(v).size_bytes) fault("the slot of value ", v, " is smaller than the value");  // M3, M11
      if (v == r.value && slot.offset % options_.alignment != 0) fault("value ", v, " is not aligned");
      const int64_t limit = region == Region::kActivation ? plan_.arena_bytes : plan_.persistent_bytes;
      if (slot.offset < 0 || slot.offset + slot.size > limit) fault("value ", v, " lies outside its region");
      const Range whole = range(r.value), own = range(v);
      if (own.begin < whole.begin || own.end > whole.end) fault("view ", v, " lies outside its root ", r.value);  // M4
    }
  }

  // M1 and M6: roots that live at the same time, and pinned roots always, have different bytes.
  void roots_apart() {
    std::vector<int32_t> roots;
    for (int32_t v = 0; v < n_; ++v)
      if (value(v).view_of < 0 && value(v).region != Region::kExternal && value(v).size_bytes > 0 &&
          (value(v).region == Region::kPersistent || birth_[static_cast<size_t>(v)] >= 0))
        roots.push_back(v);
    std::sort(roots.begin(), roots.end(), [&](int32_t a, int32_t b) { return range(a).begin < range(b).begin; });
    for (size_t i = 0; i < roots.size(); ++i)
      for (size_t j = i + 1; j < roots.size() && range(roots[j]).begin < range(roots[i]).end; ++j) {
        const int32_t a = roots[i], b = roots[j];
        if (value(a).region != value(b).region || !range(a).overlaps(range(b))) continue;
        if (shared_.contains({a, b}) || shared_.contains({b, a})) continue;
        const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
        const bool together = birth_[ia] <= death_[ib] && birth_[ib] <= death_[ia];
        if (value(a).region == Region::kPersistent && !in_one_chain(a, b))
          fault("pinned values ", a, " and ", b, " overlap");
        if (value(a).region == Region::kActivation && together)
          fault("values ", a, " and ", b, " live together and overlap");
      }
  }

  // Two states' new values never share; a state and its own new value do.
  bool in_one_chain(int32_t a, int32_t b) const {
    return std::any_of(problem_.updates.begin(), problem_.updates.end(), [&](const Update& u) {
      return (u.state == a && u.value == b) || (u.state == b && u.value == a);
    });
  }

  // M2 and M13.
  void steps() {
    for (size_t s = 0; s < problem_.steps.size(); ++s) {
      const Step& step = problem_.steps[s];
      const Slot& scratch = plan_.scratch[s];
      if (scratch.size < step.scratch_bytes || scratch.offset + scratch.size > plan_.arena_bytes)
        fault("the scratch of step ", s, " does not fit");
      const Range scratch_range{scratch.offset, scratch.offset + scratch.size};
      for (size_t i = 0; i < step.writes.size(); ++i) {
        const int32_t w = step.writes[i];
        const Region region = value(root(w)).region;
        if (region == Region::kExternal) fault("step ", s, " writes value ", w, ", which is not ours");
        const Range written = range(w);
        if (region == Region::kActivation && !written.empty() && scratch_range.overlaps(written))
          fault("step ", s, " writes its scratch");
        for (const int32_t r : step.reads)
          if (value(root(r)).region == region && !written.empty() && written.overlaps(range(r)) && !shares(w, r))
            fault("step ", s, " writes value ", w, " over value ", r, ", which it reads");
        for (size_t j = i + 1; j < step.writes.size(); ++j)
          if (value(root(step.writes[j])).region == region && !written.empty() &&
              written.overlaps(range(step.writes[j])))
            fault("step ", s, " writes values ", w, " and ", step.writes[j], " over each other");
      }
      for (const int32_t r : step.reads)
        if (value(root(r)).region == Region::kActivation && scratch_range.overlaps(range(r)) && !scratch_range.empty())
          fault("the scratch of step ", s, " overlaps what it reads");
    }
  }

  // The bytes at the ends of pages that nobody has, since no value may cross into the next page.
  int64_t page_ends() const {
    const int64_t page = options_.page_bytes;
    if (page == 0 || plan_.arena_bytes <= page) return 0;
    std::vector<int64_t> used(static_cast<size_t>((plan_.arena_bytes - 1) / page));  // of all pages but the last
    const auto add = [&](const Slot& s) {
      const auto index = static_cast<size_t>(s.offset / page);
      if (s.size > 0 && index < used.size()) used[index] = std::max(used[index], s.offset % page + s.size);
    };
    for (int32_t v = 0; v < n_; ++v)
      if (value(v).view_of < 0 && value(v).region == Region::kActivation) add(plan_.slots[static_cast<size_t>(v)]);
    for (const Slot& s : plan_.scratch) add(s);
    int64_t ends = 0;
    for (const int64_t bytes : used) ends += page - bytes;
    return ends;
  }

  void totals() {  // M10
    if (plan_.arena_bytes - page_ends() > plan_.unshared_bytes) fault("the arena is larger than all values apart");
    if (plan_.arena_bytes < plan_.largest_live_bytes) fault("the arena is smaller than the largest live set");
  }

  const Problem& problem_;
  const Plan& plan_;
  const Options& options_;
  int32_t n_;
  std::vector<int32_t> birth_, death_;
  std::set<std::pair<int32_t, int32_t>> shared_;  // (written, root of the operand it overwrites)
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> check(const Problem& problem, const Plan& plan, const Options& options) {
  return Checker(problem, plan, options).run();
}

}  // namespace rlx::plan
