#pragma once

#include <string>
#include <vector>

namespace rlx {

// Lines of cells, each column as wide as its widest cell; every line starts with `indent` spaces.
std::string table_text(const std::vector<std::vector<std::string>>& rows, int indent = 2);

}  // namespace rlx
