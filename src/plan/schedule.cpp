#include "plan/schedule.h"

#include <set>

#include "rlx/error.h"

namespace rlx::plan {

Root root_of(const Problem& problem, int32_t value) {
  Root r{value, 0};
  for (const Value* v = &problem.values[static_cast<size_t>(value)]; v->view_of >= 0;
       v = &problem.values[static_cast<size_t>(r.value)]) {
    r.offset_bytes += v->view_offset_bytes;
    r.value = v->view_of;
  }
  return r;
}

Facts::Facts(const Problem& p) : problem(p), roots(p.values.size()), is_output(p.values.size()) {
  for (size_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    if (value.view_of < 0 || value.view_of >= static_cast<int32_t>(v)) {
      roots[v] = root_of(p, static_cast<int32_t>(v));
      continue;
    }
    const Root& of = roots[static_cast<size_t>(value.view_of)];  // known already: a chain of views is not walked again
    roots[v] = {of.value, of.offset_bytes + value.view_offset_bytes};
  }
  for (const int32_t v : p.outputs) is_output[static_cast<size_t>(root(v))] = true;
  for (const Update& u : p.updates) is_output[static_cast<size_t>(root(u.value))] = true;
}

std::vector<int32_t> greedy_order(const Facts& facts) {
  const auto& steps = facts.problem.steps;
  const size_t n = steps.size();
  std::vector<std::set<int32_t>> roots_read(n);
  std::vector<std::vector<int32_t>> readers(facts.problem.values.size());  // by root
  for (size_t s = 0; s < n; ++s)
    for (const int32_t v : steps[s].reads)
      if (roots_read[s].insert(facts.root(v)).second)
        readers[static_cast<size_t>(facts.root(v))].push_back(static_cast<int32_t>(s));

  std::vector<int32_t> unread(facts.problem.values.size());  // readers that have not run
  for (size_t r = 0; r < readers.size(); ++r) unread[r] = static_cast<int32_t>(readers[r].size());
  const auto freed = [&](size_t s) {
    int64_t bytes = 0;
    for (const int32_t r : roots_read[s])
      if (facts.planned(r) && !facts.is_output[static_cast<size_t>(r)] && unread[static_cast<size_t>(r)] == 1)
        bytes += facts.value(r).size_bytes;
    for (const int32_t v : steps[s].writes)
      if (facts.planned(facts.root(v))) bytes -= facts.value(facts.root(v)).size_bytes;
    return bytes;
  };

  // Several steps may write one value, part by part or one over the other: accesses of which one writes keep their
  // order.
  std::vector<std::set<int32_t>> successors(n);
  std::vector<int32_t> writer(facts.problem.values.size(), -1);               // the last one so far, by root
  std::vector<std::vector<int32_t>> read_since(facts.problem.values.size());  // the last write
  for (size_t s = 0; s < n; ++s) {
    const auto after = [&](int32_t earlier) {
      if (earlier >= 0 && earlier != static_cast<int32_t>(s))
        successors[static_cast<size_t>(earlier)].insert(static_cast<int32_t>(s));
    };
    for (const int32_t r : roots_read[s]) {
      after(writer[static_cast<size_t>(r)]);
      read_since[static_cast<size_t>(r)].push_back(static_cast<int32_t>(s));
    }
    for (const int32_t v : steps[s].writes) {
      const auto r = static_cast<size_t>(facts.root(v));
      after(writer[r]);
      for (const int32_t reader : read_since[r]) after(reader);
      writer[r] = static_cast<int32_t>(s);
      read_since[r].clear();
    }
  }
  std::vector<int32_t> waiting(n, 0);
  for (const auto& next : successors)
    for (const int32_t s : next) ++waiting[static_cast<size_t>(s)];

  std::set<std::pair<int64_t, int32_t>> ready;  // (-freed, step)
  std::vector<int64_t> key(n, 0);
  std::vector<bool> is_ready(n), done(n);
  const auto enter = [&](size_t s) {
    key[s] = -freed(s);
    is_ready[s] = true;
    ready.emplace(key[s], static_cast<int32_t>(s));
  };
  for (size_t s = 0; s < n; ++s)
    if (waiting[s] == 0) enter(s);

  std::vector<int32_t> order;
  while (!ready.empty()) {
    const auto s = static_cast<size_t>(ready.begin()->second);
    ready.erase(ready.begin());
    done[s] = true;
    order.push_back(static_cast<int32_t>(s));
    for (const int32_t r : roots_read[s]) {
      if (--unread[static_cast<size_t>(r)] != 1) continue;
      for (const int32_t last : readers[static_cast<size_t>(r)]) {  // whoever is left now frees the value
        const auto l = static_cast<size_t>(last);
        if (done[l] || !is_ready[l]) continue;
        ready.erase({key[l], last});
        enter(l);
      }
    }
    for (const int32_t next : successors[s])
      if (--waiting[static_cast<size_t>(next)] == 0) enter(static_cast<size_t>(next));
  }
  RLX_ASSERT(order.size() == n);
  return order;
}

}  // namespace rlx::plan
