// Writes what a model's time is spent on as a trace that Perfetto and Chrome show.
//
// The format is Chrome's "trace events" (an object with a list of them), which https://ui.perfetto.dev opens: slices
// with begin and duration in microseconds; a slice inside another one's time is its child.
#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "core/write_file.h"
#include "model_access.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

struct TraceArgs {
  std::string path, file;
  TargetArgs target;
  FeedArgs feed;
  uint64_t seed = 0;
  int64_t runs = 3;
};

constexpr int kProcess = 1, kThread = 1;

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

class TraceFile {
 public:
  TraceFile() : start_ns_(now_ns()) {}

  void name(const std::string& process, const std::string& thread) {
    const auto add = [&](const char* what, const std::string& is) {
      events_.push_back({{"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", kThread}, {"args", {{"name", is}}}});
    };
    add("process_name", process);
    add("thread_name", thread);
  }

  void slice(const std::string& name, const char* category, int64_t begin_ns, int64_t end_ns, Json args = {}) {
    Json event = {{"name", name},
                  {"cat", category},
                  {"ph", "X"},
                  {"ts", static_cast<double>(begin_ns - start_ns_) * 1e-3},
                  {"dur", static_cast<double>(end_ns - begin_ns) * 1e-3},
                  {"pid", kProcess},
                  {"tid", kThread}};
    if (!args.is_null()) event["args"] = std::move(args);
    events_.push_back(std::move(event));
  }

  size_t slices() const { return events_.size() - 2; }

  void write(const std::string& path) const {
    const Json json = {{"displayTimeUnit", "ms"}, {"traceEvents", events_}};
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    write_file(path, {std::as_bytes(std::span(text))});
  }

 private:
  int64_t start_ns_;
  Json events_ = Json::array();
};

// The passes say how long each took; one follows the other.
void add_compile(TraceFile& trace, const CompileReport& report, int64_t begin_ns, int64_t end_ns) {
  trace.slice("compile", "compile", begin_ns, end_ns);
  int64_t at = begin_ns;
  for (const PassInfo& pass : report.passes) {
    const int64_t end = std::min(end_ns, at + static_cast<int64_t>(pass.ms * 1e6));
    trace.slice(pass.name, "pass", at, end,
                {{"changed", pass.changed}, {"nodes_before", pass.nodes_before}, {"nodes_after", pass.nodes_after}});
    at = end;
  }
  trace.slice("lower and plan", "compile", at, end_ns);
}

void add_steps(TraceFile& trace, const std::vector<StepTrace>& steps) {
  for (const StepTrace& s : steps) {
    const auto ns = static_cast<double>(std::max<int64_t>(1, s.end_ns - s.begin_ns));
    trace.slice(s.step.name, s.once ? "prepare" : "step", s.begin_ns, s.end_ns,
                {{"node", s.step.node},
                 {"origin", s.step.origin},
                 {"op", s.step.op},
                 {"kernel", s.step.kernel},
                 {"result", str(s.step.result)},
                 {"flops", s.flops},
                 {"bytes", s.bytes},
                 {"gflop_per_s", s.flops / ns},
                 {"gb_per_s", s.bytes / ns},
                 {"threads", s.threads}});
  }
}

int trace_model(TraceArgs args, std::string& out) {
  args.feed.random_inputs = args.feed.random_params = args.seed;
  TraceFile trace;
  trace.name("rlx", "main");
  int64_t begin = now_ns();
  ModelFile model(args.path, args.target, args.feed);
  trace.slice("load", "load", begin, now_ns(), {{"model", args.path}, {"ms_of_the_model", model.load_ms()}});
  begin = now_ns();
  Session session(model);
  if (model.graph() != nullptr) add_compile(trace, session.stages()[0].executable->report(), begin, now_ns());

  size_t steps = 0;
  for (int64_t i = 0; i < args.runs; ++i) {
    progress("running", static_cast<double>(i) / static_cast<double>(args.runs));
    std::vector<StepTrace> ran;
    begin = now_ns();
    session.run({.trace = &ran});
    trace.slice(str("run ", i), "run", begin, now_ns(),
                {{"device", session.device()}, {"steps", ran.size()}, {"stages", session.stages().size()}});
    add_steps(trace, ran);
    steps = ran.size();
  }
  trace.write(args.file);
  out += str("trace of ", args.path, " on ", session.device(), ": ", args.runs, args.runs == 1 ? " run" : " runs",
             " of ", steps, " steps, ", trace.slices(), " slices in ", args.file,
             "; https://ui.perfetto.dev and chrome://tracing open it\n");
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("trace", "record where a model's time goes, for Perfetto or Chrome");
  auto args = std::make_shared<TraceArgs>();
  add_model_option(*sub, args->path);
  sub->add_option("OUT", args->file, "the trace, a .json file")->required()->option_text(" ");
  add_feed_options(*sub, args->feed);
  sub->add_option("--seed", args->seed, "of the inputs and params that are not given; by default 0")->option_text("N");
  sub->add_option("--runs", args->runs, "how many runs to record; by default 3")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->option_text("N");
  add_target_options(*sub, args->target);
  sub->footer(
      "Slices: load, read inputs, compile with one per pass, then each run with one per step, which says its op, "
      "node,\n"
      "kernel, result, bytes, flops and threads. Steps of category 'prepare' stand in the first run alone: they pack\n"
      "weights. All slices are on the calling thread; a step's kernel may use more. On webgpu steps are timed by the\n"
      "GPU's own clock where it has one.\n"
      "\n"
      "Examples:\n"
      "  rlx trace examples/mlp.rlx mlp.json --dim batch=64\n"
      "  rlx trace examples/mlp.rlx mlp.json --input x=x.npy --params weights.npz --runs 10");
  sub->callback([&work, args] { work = [args](std::string& out) { return trace_model(*args, out); }; });
}

}  // namespace rlx::cli
