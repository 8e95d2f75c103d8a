// How long runs took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rlx::cli {

class Times {
 public:
  void add(double ms) { ms_.push_back(ms); }
  size_t count() const { return ms_.size(); }
  const std::vector<double>& all() const { return ms_; }  // in order, milliseconds

  // Of at least one run.
  double min() const { return *std::min_element(ms_.begin(), ms_.end()); }
  double median() const {
    const std::vector<double> ms = sorted();
    const size_t half = ms.size() / 2;
    return ms.size() % 2 == 1 ? ms[half] : (ms[half - 1] + ms[half]) / 2;
  }
  // The least time that nine runs of ten stay within.
  double p90() const { return sorted()[(ms_.size() * 9 + 9) / 10 - 1]; }

 private:
  std::vector<double> sorted() const {
    std::vector<double> ms = ms_;
    std::sort(ms.begin(), ms.end());
    return ms;
  }
  std::vector<double> ms_;
};

}  // namespace rlx::cli
