// Texts by number: those that are equal have the same, of all that one table is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace rlx::host {

class Interned {
 public:
  int64_t operator()(std::string text) {
    return numbers_.emplace(std::move(text), static_cast<int64_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace rlx::host
