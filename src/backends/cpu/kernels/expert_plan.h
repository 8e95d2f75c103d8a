// Which rows go to which expert: the rows in order of their expert, in runs of one expert each.
#pragma once

#include <algorithm>
#include <span>

#include "backends/host/call.h"

namespace rlx::cpu {

class ExpertPlan {
 public:
  static int64_t bytes(int64_t rows) { return (3 * rows + 1) * static_cast<int64_t>(sizeof(int64_t)); }

  ExpertPlan(const host::IntReader& expert, int64_t rows, int64_t experts, int64_t* memory)
      : order_(memory), expert_of_(memory + rows), starts_(memory + 2 * rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t e = expert[i];
      if (e < 0 || e >= experts)
        fail(ErrorKind::kRuntime, str("Expert index (", e, ") is out of range for ", experts, " experts."));
      order_[i] = i;
    }
    // By expert, then by row. No stable_sort: that allocates.
    std::sort(order_, order_ + rows, [&](int64_t a, int64_t b) {
      const int64_t ea = expert[a], eb = expert[b];
      return ea != eb ? ea < eb : a < b;
    });
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t e = expert[order_[i]];
      if (runs_ > 0 && expert_of_[runs_ - 1] == e) continue;
      expert_of_[runs_] = e;
      starts_[runs_++] = i;
    }
    starts_[runs_] = rows;
  }

  int64_t runs() const { return runs_; }
  int64_t expert(int64_t run) const { return expert_of_[run]; }
  std::span<const int64_t> rows(int64_t run) const {
    return {order_ + starts_[run], static_cast<size_t>(starts_[run + 1] - starts_[run])};
  }

 private:
  int64_t *order_, *expert_of_, *starts_;
  int64_t runs_ = 0;
};

}  // namespace rlx::cpu
