// Operands, attributes and results that a script in tests/ops/fixtures wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/npy.h"
#include "rlx/error.h"

namespace rlx::test {

class FixtureFile {
 public:
  explicit FixtureFile(const std::string& name) : arrays_(read_npz(std::string(RLX_FIXTURES "/") + name)) {}

  bool has(const std::string& name) const { return arrays_.contains(name); }
  const Tensor& operator[](const std::string& name) const {
    const auto it = arrays_.find(name);
    require(it != arrays_.end(), "Fixture '", name, "' is not there.");
    return it->second;
  }
  std::vector<int64_t> ints(const std::string& name) const {
    const Tensor& t = (*this)[name];
    std::vector<int64_t> list;
    for (int64_t i = 0; i < t.num_elements(); ++i) list.push_back(static_cast<int64_t>(t.at(i)));
    return list;
  }
  std::vector<float> floats(const std::string& name) const {
    const Tensor& t = (*this)[name];
    std::vector<float> list;
    for (int64_t i = 0; i < t.num_elements(); ++i) list.push_back(static_cast<float>(t.at(i)));
    return list;
  }
  int64_t integer(const std::string& name) const { return ints(name).at(0); }

 private:
  std::map<std::string, Tensor> arrays_;
};

}  // namespace rlx::test
