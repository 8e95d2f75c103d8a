// rlx: runs, measures, inspects and checks models from the command line.
//
// Exit codes: 0 fine, 1 bad input or a failed check (one message on stderr), 2 wrong usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "common.h"
#include "progress_bar.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

// What CLI11 does not do by itself. It takes the value of a flag only as --flag=value: "--random-inputs 7" is joined,
// "--random-inputs model.rlx" not. And several values after one option ("--output a b") become an option each, when the
// model stands before them: else nobody could tell it from a value.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> args;
  std::string option;  // whose value was last
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const bool is_number = !arg.empty() && arg.find_first_not_of("0123456789") == arg.npos;
    const bool is_option = arg.starts_with("-");
    if (is_number && !args.empty() && (args.back() == "--random-inputs" || args.back() == "--random-params")) {
      args.back() += str("=", arg);
      continue;
    }
    const bool may_repeat =
        option == "--output" ||
        ((option == "--input" || option == "--param" || option == "--dim") && arg.find('=') != arg.npos);
    const bool is_value = !args.empty() && args.back().starts_with("--");
    if (!is_option && !is_value && may_repeat && !args[1].starts_with("-")) args.push_back(option);
    if (is_option) option = arg;
    args.emplace_back(arg);
  }
  return args;
}

int report(std::string_view message) {
  std::fprintf(stderr, "rlx: %.*s\n", static_cast<int>(message.size()), message.data());
  return 1;
}

// A reader that has seen enough (rlx info g.rlx | head -1) is no error; a full disk is.
int write_out(const std::string& text, int code) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return code;
  if (errno == EPIPE) return code;
  return report(str("Standard output cannot be written (", std::strerror(errno), ")."));
}

// With a progress bar, which is gone when the results are written.
int do_work(const Work& work, std::string& out) {
  ProgressBar bar;
  set_log([&bar](LogLevel level, std::string_view text) {
    if (level == LogLevel::kInfo && CompileOptions::from_environment().verbose) bar.write(str("rlx: ", text, "\n"));
    if (level == LogLevel::kWarning) bar.write(str("rlx: warning: ", text, "\n"));
    if (level == LogLevel::kReport) bar.write(text);
  });
  struct NoLog {
    ~NoLog() { set_log({}); }
  } const no_log;
  return work(out);
}

int run_tool(int argc, char** argv) {
  Work work;
  CLI::App app("rlx: compiles and runs ML models.", "rlx");
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("Positionals", "Arguments");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", "rlx " RLX_VERSION, "print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 fine, 1 bad input or a failed check, 2 wrong usage. 'rlx COMMAND --help' says more.\n"
      "Environment: RLX_DEVICE, RLX_THREADS, RLX_PRECISION (f32, f16, bf16), RLX_SKIP_PASSES, RLX_SCHEDULE (best, "
      "greedy,\n"
      "source) and, as 0 or 1, RLX_NO_REUSE, RLX_NO_IN_PLACE, RLX_VERIFY_PLAN and RLX_POISON change how models are\n"
      "compiled; RLX_VERBOSE=1, RLX_FUSION_REPORT=1, RLX_DISPATCH_REPORT=1 and RLX_IR_DUMP=DIR show how.\n"
      "RLX_TRACE_PERFETTO=FILE records every run; RLX_WGPU_NAN_TRACE=1 and RLX_WGPU_DUMP_NODES=1 show values, on any\n"
      "device. RLX_WEBGPU_LIBRARY=FILE and RLX_WEBGPU_ADAPTER (index, part of a name, type) choose the GPU;\n"
      "RLX_WGPU_SCHEDULE=1, RLX_WGPU_NO_HOST_STEPS=1, RLX_WGPU_BOUNDS_CHECKS=1 and more, in rlx/runtime.h, are its "
      "own.\n"
      "\n"
      "Examples:\n"
      "  rlx run examples/mlp.rlx --random-inputs --random-params --dim batch=4 --plan\n"
      "  rlx info examples/mlp.rlx --ops --graph mlp.html\n"
      "  rlx bench examples/mlp.rlx --dim batch=64\n"
      "  rlx check examples/mlp.rlx --dim batch=4");
  add_run(app, work);
  add_embed(app, work);
  add_generate(app, work);
  add_chat(app, work);
  add_tokenize(app, work);
  add_perplexity(app, work);
  add_quantize(app, work);
  add_info(app, work);
  add_check(app, work);
  add_bench(app, work);
  add_trace(app, work);
  add_ops(app, work);
  add_devices(app, work);
  add_test_onnx(app, work);

  std::vector<std::string> args = arguments(argc, argv);
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return write_out(chosen.empty() ? app.help() : chosen[0]->help("rlx"), 0);
  } catch (const CLI::CallForVersion& e) {
    return write_out(str(e.what(), "\n"), 0);
  } catch (const CLI::ParseError& e) {
    const auto chosen = app.get_subcommands();
    // CLI11 says only that a command is needed.
    const bool is_unknown = chosen.empty() && argc > 1 && argv[1][0] != '-';
    report(is_unknown ? str("There is no command '", argv[1], "'.") : std::string(e.what()));
    std::fprintf(stderr, "'rlx %s%s--help' lists what there is.\n", chosen.empty() ? "" : chosen[0]->get_name().c_str(),
                 chosen.empty() ? "" : " ");
    return 2;
  }
  std::string out;
  const int code = do_work(work, out);
  return write_out(out, code);
}

}  // namespace

}  // namespace rlx::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen by write_out
  try {
    return rlx::cli::run_tool(argc, argv);
  } catch (const rlx::Error& e) {
    return rlx::cli::report(e.what());
  } catch (const std::bad_alloc&) {
    return rlx::cli::report("There is not enough memory.");
  } catch (const std::exception& e) {
    return rlx::cli::report(rlx::str("Something went wrong that rlx did not expect (", e.what(), ")."));
  }
}
