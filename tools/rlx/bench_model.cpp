#include "bench_model.h"

#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "ir/text.h"
#include "rlx/log.h"
#include "times.h"

namespace rlx::cli {

namespace {

constexpr int64_t kFewestRuns = 5, kMostRuns = 100'000;  // when nobody says how many

// The most memory that this process has had at once, everything included.
int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return int64_t{usage.ru_maxrss} * 1024;
#endif
}

// How far we are: by the number of runs, or by the time.
double done(const BenchModelArgs& args, int64_t runs, double ms) {
  if (args.runs > 0) return static_cast<double>(runs) / static_cast<double>(args.runs);
  return std::min(ms / (args.seconds * 1e3), static_cast<double>(runs) / kFewestRuns);
}

Times measure(Session& session, const BenchModelArgs& args) {
  for (int64_t i = 0; i < args.warmup; ++i) {
    progress("warming up", static_cast<double>(i) / static_cast<double>(args.warmup));
    session.run_again();
  }
  Times times;
  const Stopwatch all;
  const auto count = [&] { return static_cast<int64_t>(times.count()); };
  const auto is_enough = [&] {
    return args.runs > 0 ? count() >= args.runs
                         : count() >= kMostRuns || (count() >= kFewestRuns && all.ms() >= args.seconds * 1e3);
  };
  while (!is_enough()) {
    progress("measuring", done(args, count(), all.ms()));
    const Stopwatch watch;
    session.run_again();
    times.add(watch.ms());
  }
  return times;
}

}  // namespace

int bench_model(BenchModelArgs args, std::string& out) {
  args.feed.random_inputs = args.feed.random_params = args.seed;
  ModelFile model(args.path, args.target, args.feed);
  Json inputs = Json::array();
  std::string inputs_text;
  for (const auto& [name, tensor] : model.feed().inputs) {
    Json input = {{"name", name}};
    input.update(type_json(tensor.type()));
    inputs.push_back(input);
    inputs_text += str(inputs_text.empty() ? "" : ", ", name, " ", tensor.type());
  }
  Session session(model);
  const Stopwatch first;
  session.run_again();
  double first_ms = first.ms(), compile_ms = session.compile_ms();
  if (model.graph() == nullptr) {  // it was compiled on the way: that is what the first run takes longer
    const Stopwatch second;
    session.run_again();
    compile_ms = std::max(0.0, first_ms - second.ms());
    first_ms -= compile_ms;
  }
  const Times times = measure(session, args);
  const double per_s = 1e3 / times.median();
  double flops = 0;
  for (const ModelStage& stage : session.stages())
    if (const auto cost = cost_of_graph(bind(stage.executable->graph(), model.options().dims))) flops += cost->flops;

  if (args.json) {
    out += dump({{"model", args.path},
                 {"device", session.device()},
                 {"threads", session.threads()},
                 {"inputs", inputs},
                 {"stages", session.stages().size()},
                 {"warmup", args.warmup},
                 {"runs", times.count()},
                 {"load_ms", model.load_ms()},
                 {"compile_ms", compile_ms},
                 {"first_run_ms", first_ms},
                 {"median_ms", times.median()},
                 {"p90_ms", times.p90()},
                 {"min_ms", times.min()},
                 {"runs_per_s", per_s},
                 {"flops", flops},
                 {"gflop_per_s", flops * per_s * 1e-9},
                 {"peak_bytes", peak_bytes()},
                 {"arena_bytes", session.arena_bytes()}});
    return 0;
  }
  out +=
      str(args.path, " on ", session.device(), ", ", session.threads(), session.threads() == 1 ? " thread" : " threads",
          session.stages().size() > 1 ? str(", in ", session.stages().size(), " stages") : std::string(), "\n");
  const auto ms = [](double x) { return number_text(x) + " ms"; };
  out += table_text(
      {{"inputs", inputs_text.empty() ? "none" : inputs_text},
       {"load", ms(model.load_ms())},
       {"compile", ms(compile_ms)},
       {"first run", ms(first_ms)},
       {"median", str(ms(times.median()), " of ", times.count(), times.count() == 1 ? " run" : " runs")},
       {"p90", ms(times.p90())},
       {"min", ms(times.min())},
       {"throughput", str(number_text(per_s), " runs/s, ", number_text(flops * per_s * 1e-9), " GFLOP/s")},
       {"peak memory", str(bytes_text(peak_bytes()), ", ", bytes_text(session.arena_bytes()), " of it the arena")}});
  return 0;
}

}  // namespace rlx::cli
