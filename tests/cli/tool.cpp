#include "tool.h"

#include <sys/wait.h>

#include <cstdio>

namespace rlx::test {

ToolResult run_tool(const std::string& args) { return run_shell(str(RLX_TOOL, " ", args)); }

ToolResult run_shell(const std::string& command) {
  const TempFolder folder;
  // RLX_… switches of whoever runs the tests must not change what the tool does.
  const std::string whole =
      str("unset RLX_DEVICE RLX_THREADS RLX_PRECISION RLX_SKIP_PASSES RLX_SCHEDULE RLX_NO_REUSE RLX_NO_IN_PLACE "
          "RLX_VERIFY_PLAN RLX_POISON; (",
          command, ") 2>", folder.path("err"));
  FILE* pipe = ::popen(whole.c_str(), "r");
  if (pipe == nullptr) fail(ErrorKind::kUnavailable, "popen failed.");
  ToolResult result;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = read_whole_file(folder.path("err"));
  return result;
}

const char* const kToyGraph = R"(graph @toy {
  symbol ?0 = "batch"
  %x = input() : [?0, 4] f32
  %n = input() : [] i64
  %w = param() : [4] f32
  %s = state() : [4] f32
  %a = add(%x, %w) : [?0, 4] f32
  %b = softmax(%a) : [?0, 4] f32
  %c = mul(%b, %x) : [?0, 4] f32
  %d = add(%s, %w) : [4] f32
  update %s = %d
  return %c, probs=%b, %n
}
)";

}  // namespace rlx::test
