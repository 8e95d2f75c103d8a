// Measures ops beside what the machine can do at best: the shapes of real models, and the cases of the tests.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/cpu/peaks.h"
#include "backends/host/pool.h"
#include "bench_language.h"
#include "bench_model.h"
#include "bench_shapes.h"
#include "common.h"
#include "core/npy.h"
#include "model_access.h"
#include "ops/cost.h"
#include "random.h"
#include "rlx/log.h"
#include "rlx/ops.h"

namespace rlx::cli {

namespace {

struct BenchArgs {
  std::string op, cases;
  TargetArgs target;
  double seconds = 0.3;
  bool no_cases = false, json = false;
};

struct Measured {
  std::string op, label, types, kernel;
  double best_ms = 0, median_ms = 0;
  Cost cost;
};

// The one op of a case; null when the graph has none.
const Node* last_op(const Graph& graph) {
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
    if (!node->op->traits.leaf) return &*node;
  return nullptr;
}

Tensor random_operand(const std::string& name, const TensorType& type, int64_t index_limit) {
  Tensor t = random_tensor(1, name, type.dtype, type.shape.sizes());
  if (!is_index(type.dtype)) return t;
  const Tensor wide = random_tensor(2, name, DType::F32, type.shape.sizes());
  std::vector<double> values;
  for (const double v : wide.to_doubles())
    values.push_back(std::floor(std::fmod(std::fabs(v) * 1e4, static_cast<double>(index_limit))));
  return Tensor::from_doubles(type.dtype, type.shape.sizes(), values);
}

Measured measure(Graph graph, const std::string& label, const NamedTensors& given, int64_t index_limit,
                 const BenchArgs& args) {
  const Node* node = last_op(graph);
  RLX_ASSERT(node != nullptr);
  Measured m{.op = std::string(node->op->name), .label = label};
  std::vector<TensorType> in, results;
  for (const ValueId id : node->inputs) {
    in.push_back(graph.type(id));
    m.types += str(m.types.empty() ? "" : ", ", in.back());
  }
  for (const Result& r : node->results) results.push_back(r.type);
  m.cost = cost_of(*node->op, node->attrs, in, results);

  Executable exe = compile(std::move(graph), options_of(args.target));
  const auto value = [&](const Port& port) {
    const auto it = given.find(port.name);
    if (it == given.end()) return random_operand(port.name, port.type, index_limit);
    if (it->second.dtype() == port.type.dtype) return it->second;
    return it->second.cast(port.type.dtype);  // a .npz has no BF16
  };
  for (const Port& port : exe.params()) exe.set_param(port.name, value(port));
  std::vector<Tensor> inputs;
  for (const Port& port : exe.inputs()) inputs.push_back(value(port));

  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  exe.run_slots(inputs);
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  while (times.size() < 3 || (since(begin) < args.seconds && times.size() < 1000)) {
    const auto start = Clock::now();
    exe.run_slots(inputs);
    times.push_back(since(start) * 1e3);
  }
  std::sort(times.begin(), times.end());
  m.best_ms = times.front();
  m.median_ms = times[times.size() / 2];
  for (const StepInfo& s : exe.plan().steps) m.kernel += str(m.kernel.empty() ? "" : " + ", s.kernel);
  return m;
}

// A folder that goes with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rlx-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail(ErrorKind::kUnavailable, str("Folder '", name, "' cannot be made (", std::strerror(errno), ")."));
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Lets the test program write the cases of the op. False: it is not built.
bool write_cases(const std::string& op, const std::string& folder) {
  for (const char* program : {RLX_OP_TESTS}) {
    if (!std::filesystem::exists(program)) continue;
    const std::string command = str("'", program, "' --gtest_filter=Ops.", op == "all" ? "*" : op, " --write_cases='",
                                    folder, "' >/dev/null 2>&1");
    if (std::system(command.c_str()) != 0)
      fail(ErrorKind::kUnavailable, str("The tests' cases cannot be written; this failed: ", command));
    return true;
  }
  return false;
}

// The cases that `op_tests --write_cases=DIR` wrote: OP-N.rlx, and its operands in OP-N.npz.
void measure_cases(const std::string& folder, const BenchArgs& args, std::vector<Measured>& out) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".rlx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const std::string name = file.stem().string();
    if (args.op != "all" && name.substr(0, name.rfind('-')) != args.op) continue;
    Graph graph = load(file.string());
    if (last_op(graph) == nullptr) continue;
    const NamedTensors given = read_npz(std::filesystem::path(file).replace_extension(".npz").string());
    out.push_back(measure(std::move(graph), name, given, 10, args));
  }
}

std::string rate(double amount, double ms) { return ms > 0 ? number_text(amount / ms * 1e-6) : "-"; }
std::string percent(double amount, double ms, double peak) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", ms > 0 && peak > 0 ? amount / ms * 1e-6 / peak * 100 : 0.0);
  return text;
}

int bench(const BenchArgs& args, std::string& out) {
  if (args.op != "all" && find_op(args.op) == nullptr)
    fail(ErrorKind::kInvalid, str("There is no op '", args.op, "'; 'rlx ops' lists them."));
  require(args.cases.empty() || std::filesystem::is_directory(args.cases), "Folder '", args.cases,
          "' is not there; op_tests --write_cases=", args.cases, " fills one.");
  const CompileOptions options = options_of(args.target);
  const std::string device(choose_backend(options).name);
  std::optional<cpu::Peaks> peaks;  // of the processor: of a GPU nobody knows them
  if (device != "webgpu") peaks = cpu::measure_peaks(*host::shared_pool(options.threads));
  std::vector<Measured> all;
  for (const BenchShape& shape : bench_shapes()) {
    if (args.op != "all" && shape.op->name != args.op) continue;
    Graph graph("bench");
    graph.output(shape.build(graph), "y");
    all.push_back(measure(std::move(graph), std::string(shape.label), {}, shape.index_limit, args));
  }
  if (!args.cases.empty()) {
    measure_cases(args.cases, args, all);
  } else if (!args.no_cases) {
    const TempFolder folder;
    if (write_cases(args.op, folder.path()))
      measure_cases(folder.path(), args, all);
    else
      log(LogLevel::kWarning, "The tests' cases are not measured: op_tests is not built ('./dev build dev' does).");
  }
  require(!all.empty(), "There is no shape of op '", args.op, "' to measure; give the tests' cases with --cases.");

  if (args.json) {
    Json rows = Json::array();
    for (const Measured& m : all)
      rows.push_back({{"op", m.op},
                      {"case", m.label},
                      {"operands", m.types},
                      {"kernel", m.kernel},
                      {"best_ms", m.best_ms},
                      {"median_ms", m.median_ms},
                      {"gflops", m.cost.flops / m.best_ms * 1e-6},
                      {"gb_per_s", m.cost.bytes / m.best_ms * 1e-6}});
    Json json = {{"device", device}};
    if (peaks)
      json["peaks"] = {{"gflops", peaks->gflops},
                       {"copy_gb_per_s", peaks->copy_gbs},
                       {"read_gb_per_s", peaks->read_gbs},
                       {"simd", peaks->target}};
    json["ops"] = std::move(rows);
    out += dump(json);
    return 0;
  }
  if (peaks)
    out += str("peaks (", peaks->target, "): ", number_text(peaks->gflops), " GFLOP/s f32, copy ",
               number_text(peaks->copy_gbs), " GB/s, read ", number_text(peaks->read_gbs), " GB/s\n");
  std::vector<std::vector<std::string>> rows = {
      {"op", "case", "best ms", "median", "GFLOP/s", "of peak", "GB/s", "of copy", "kernel"}};
  for (const Measured& m : all)
    rows.push_back({m.op, m.label, number_text(m.best_ms), number_text(m.median_ms), rate(m.cost.flops, m.best_ms),
                    peaks ? percent(m.cost.flops, m.best_ms, peaks->gflops) : "", rate(m.cost.bytes, m.best_ms),
                    peaks ? percent(m.cost.bytes, m.best_ms, peaks->copy_gbs) : "", m.kernel});
  if (!peaks)
    for (std::vector<std::string>& row : rows) {
      row.erase(row.begin() + 7);
      row.erase(row.begin() + 5);
    }
  out += table_text(rows);
  return 0;
}

// An option that says nothing about what is measured is a mistake.
[[noreturn]] void refuse(const CLI::Option& option, std::string_view what) {
  throw CLI::ValidationError(str("Option ", option.get_name(), " is not for ", what, "."));
}
void allow(const CLI::App& app, std::initializer_list<std::string_view> names, std::string_view what) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && std::find(names.begin(), names.end(), option->get_name()) == names.end())
      refuse(*option, what);
}

}  // namespace

void add_bench(CLI::App& app, Work& work) {
  CLI::App* sub =
      app.add_subcommand("bench", "measure a model, a language model, or single ops beside the processor's peaks");
  auto args = std::make_shared<BenchArgs>();
  auto model = std::make_shared<BenchModelArgs>();
  CLI::Option* path = add_model_option(*sub, model->path)->required(false);
  path->description(
      "the model, FILE.onnx or FILE.rlx (a graph as text); or a language model, as 'rlx generate' takes it, of which "
      "prompt and answer are measured");
  CLI::Option* op = add_value(*sub, "--op", args->op, "NAME", "instead of a model, an op, or 'all'")->excludes(path);
  add_feed_options(*sub, model->feed);
  sub->add_option("--seed", model->seed, "of the inputs and params that are not given; by default 0")->option_text("N");
  sub->add_option("--warmup", model->warmup, "runs that are not measured, after the first; by default 1")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->option_text("N");
  sub->add_option("--runs", model->runs, "how many runs to measure; by default as many as fit into --seconds")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->option_text("N");
  CLI::Option* seconds =
      sub->add_option("--seconds", args->seconds, "how long to measure: a model 3, each case of an op 0.3 by default")
          ->option_text("S");
  add_target_options(*sub, model->target);
  auto language = std::make_shared<BenchLanguageArgs>();
  CLI::Option* pp =
      sub->add_option("--pp", language->prompt, "of a language model: tokens of the prompt; by default 512")
          ->option_text("N");
  CLI::Option* tg =
      sub->add_option("--tg", language->answer, "of a language model: tokens of the answer; by default 128")
          ->option_text("N");
  CLI::Option* cache =
      sub->add_option("--cache-type", language->cache,
                      "of a language model: how keys and values are kept: f32 (the default), f16 or q8_0")
          ->check(CLI::IsMember({"f32", "f16", "q8_0"}))
          ->option_text("TYPE");
  add_value(*sub, "--cases", args->cases, "DIR",
            "of ops: take the tests' cases from here, as op_tests --write_cases=DIR writes them")
      ->needs(op);
  sub->add_flag("--no-cases", args->no_cases, "of ops: measure the shapes of real models only")
      ->excludes("--cases")
      ->needs(op)
      ->option_text(" ");
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer(
      "A model's times are those of whole runs; the first run, which prepares weights, stands apart. p90 is what nine\n"
      "runs of ten stay within, throughput follows from the median, and peak memory is all that the process has had.\n"
      "An op's times are the best of all repetitions and their median. GFLOP/s count a multiply-add as two; GB/s "
      "count\n"
      "every operand and result once. On the processor its peaks are measured first: multiply-adds in registers, "
      "memcpy "
      "and\n"
      "reads of 256 MiB; times on a GPU stand without any.\n"
      "Measured are the op's shapes in real models, and the cases of its tests: op_tests of this build tree (or else "
      "of\n"
      "build/dev) writes them into a folder that is removed afterwards.\n"
      "\n"
      "Examples:\n"
      "  rlx bench examples/mlp.rlx --dim batch=64\n"
      "  rlx bench examples/mlp.rlx --input x=x.npy --warmup 10 --runs 1000 --json\n"
      "  rlx bench smollm2 --pp 512 --tg 128\n"
      "  rlx bench --op softmax\n"
      "  rlx bench --op all --no-cases --threads 1 --json");
  sub->callback([=, &work] {
    if (path->count() == 0 && op->count() == 0) throw CLI::RequiredError("MODEL, or --op NAME,");
    if (path->count() > 0 && (pp->count() > 0 || tg->count() > 0 || is_language_model(model->path))) {
      allow(*sub, {"MODEL", "--pp", "--tg", "--cache-type", "--runs", "--device", "--threads", "--json"},
            "a language model");
      language->path = model->path;
      language->target = model->target;
      language->json = args->json;
      if (model->runs > 0) language->runs = model->runs;
      work = [language](std::string& out) { return bench_language(*language, out); };
      return;
    }
    if (path->count() > 0) {
      if (cache->count() > 0) refuse(*cache, "a model that is no language model");
      model->json = args->json;
      if (seconds->count() > 0) model->seconds = args->seconds;
      work = [model](std::string& out) { return bench_model(*model, out); };
      return;
    }
    allow(*sub, {"--op", "--seconds", "--cases", "--no-cases", "--device", "--threads", "--json"}, "ops");
    args->target = model->target;
    work = [args](std::string& out) { return bench(*args, out); };
  });
}

}  // namespace rlx::cli
