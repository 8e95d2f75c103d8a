// Runs the rlx binary as a user does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "support/temp_folder.h"

namespace rlx::test {

struct ToolResult {
  int code = -1;  // 128 + signal when it was killed
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }  // throws when it is none: the test fails
};

// The arguments as a shell reads them: quote what needs it.
ToolResult run_tool(const std::string& args);
ToolResult run_shell(const std::string& command);

// %x [?0, 4] f32 and scalar %n i64, param %w [4], state %s [4]; outputs c = softmax(x + w) * x, probs, n; s becomes
// s + w.
extern const char* const kToyGraph;

}  // namespace rlx::test
