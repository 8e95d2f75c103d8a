// rlx test-onnx: runs test cases in ONNX's layout and compares results with those stored beside the models.
#include <fnmatch.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "common.h"
#include "core/mapped_file.h"
#include "import/onnx/elem_type.h"
#include "import/onnx/session.h"
#include "model_access.h"

namespace rlx::cli {

namespace {

namespace fs = std::filesystem;
using onnx::HostValue;

struct Options {
  std::string folder, filter = "*";
  TargetArgs target;
  double rtol = 1e-3, atol = 1e-5;
  bool json = false;
};

struct Outcome {
  std::string name;
  enum class Kind { kPassed, kFailed, kSkipped } kind = Kind::kPassed;
  std::string why;
  double largest_difference = 0;
  bool staged = false;
  int64_t host_steps = 0;  // that the cpu runs for a GPU, in the runs of all data sets
};

HostValue read_data(const fs::path& path, const onnx::TypeProto& type) {
  const auto file = std::filesystem::file_size(path) == 0 ? nullptr : MappedFile::open(path.string());
  std::string_view bytes;
  if (file) bytes = {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
  const onnx::TensorSource source(file, "");
  return source.value(onnx::parse_data(bytes, type), type);
}

// What is wrong with `got`; empty when nothing is.
std::string compare_values(const HostValue& got, const HostValue& want, const Options& o, double& largest) {
  if (got.kind != want.kind) return "it is another kind of value";
  if (want.kind == HostValue::Kind::kStrings)
    return got.strings == want.strings ? "" : "the strings or their shape differ";
  if (want.kind == HostValue::Kind::kSequence) {
    if (got.items.size() != want.items.size())
      return str("it has ", got.items.size(), " items instead of ", want.items.size());
    for (size_t i = 0; i < got.items.size(); ++i)
      if (std::string why = compare_values(got.items[i], want.items[i], o, largest); !why.empty())
        return str("item ", i, ": ", why);
    return "";
  }
  if (want.kind != HostValue::Kind::kTensor) return "";
  if (got.elem != want.elem) return str("it is ", onnx::name(got.elem), " instead of ", onnx::name(want.elem));
  if (got.tensor.sizes() != want.tensor.sizes())
    return str("its shape is ", got.tensor.sizes(), " instead of ", want.tensor.sizes());
  const bool exact = is_int(want.tensor.dtype()) && !onnx::is_code(want.elem);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.tensor.num_elements(); ++i) {
    const double a = got.tensor.at(i), b = want.tensor.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double difference = std::abs(a - b);
    if (!(difference <= largest)) largest = difference;
    const bool close =
        std::isfinite(difference) && difference <= o.atol + o.rtol * std::abs(b) && !(exact && difference >= 1);
    if (close) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return "";
  return str(wrong, " of ", want.tensor.num_elements(), " elements differ, the largest difference is ",
             number_text(largest), "; element ", first, " is ", number_text(got.tensor.at(first)), " instead of ",
             number_text(want.tensor.at(first)));
}

// Steps of the schedules in which the GPU waits for the cpu.
int64_t host_steps(const std::vector<ModelStage>& stages) {
  int64_t n = 0;
  for (const ModelStage& stage : stages) {
    if (stage.executable->device() != "webgpu") continue;
    for (const StepInfo& step : stage.executable->plan().steps) n += step.kernel.starts_with("webgpu/") ? 0 : 1;
  }
  return n;
}

void run_data_set(onnx::Session& session, const fs::path& folder, const Options& o, Outcome& outcome) {
  std::map<std::string, HostValue> inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const fs::path path = folder / str("input_", i, ".pb");
    if (!fs::exists(path)) break;
    const onnx::ModelPort& port = session.inputs()[i];
    HostValue value = read_data(path, port.type);
    inputs[port.name] = std::move(value);
  }
  std::vector<ModelStage> stages;
  const std::vector<HostValue> outputs = session.run(inputs, {.stages = &stages});
  outcome.host_steps += host_steps(stages);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const fs::path path = folder / str("output_", i, ".pb");
    if (!fs::exists(path)) continue;
    const HostValue want = read_data(path, session.outputs()[i].type);
    const std::string why = compare_values(outputs[i], want, o, outcome.largest_difference);
    if (why.empty()) continue;
    outcome.kind = Outcome::Kind::kFailed;
    outcome.why = str("Output '", session.outputs()[i].name, "': ", why, ".");
    return;
  }
}

Outcome run_case(const fs::path& folder, const Options& o) {
  Outcome outcome{folder.filename().string()};
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set")) sets.push_back(entry);
  if (sets.empty()) {
    outcome.kind = Outcome::Kind::kSkipped;
    outcome.why = "It has no data to compare with.";
    return outcome;
  }
  std::sort(sets.begin(), sets.end());
  try {
    onnx::Session session(onnx::open_model((folder / "model.onnx").string()), options_of(o.target), {});
    outcome.staged = session.graph() == nullptr;
    for (const fs::path& set : sets) run_data_set(session, set, o, outcome);
  } catch (const Error& e) {
    outcome.kind = Outcome::Kind::kFailed;
    outcome.why = e.what();
  }
  return outcome;
}

int test_onnx(const Options& o, std::string& out) {
  require(fs::is_directory(o.folder), "Folder '", o.folder, "' does not exist.");
  require(o.rtol >= 0 && o.atol >= 0, "The tolerances (--rtol ", number_text(o.rtol), ", --atol ", number_text(o.atol),
          ") are not numbers from 0 on.");
  const bool is_on_gpu = choose_backend(options_of(o.target)).name == "webgpu";  // one that is there
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(o.folder))
    if (entry.path().filename() == "model.onnx" &&
        fnmatch(o.filter.c_str(), entry.path().parent_path().filename().c_str(), 0) == 0)
      cases.push_back(entry.path().parent_path());
  std::sort(cases.begin(), cases.end());
  require(!cases.empty(), "Folder '", o.folder, "' holds no model.onnx",
          o.filter == "*" ? "" : " that the filter lets pass", ".");
  int64_t counts[3] = {}, steps = 0, with_steps = 0;
  Json list = Json::array();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (terminal) std::fprintf(stderr, "\r%zu of %zu", i + 1, cases.size());
    const Outcome outcome = run_case(cases[i], o);
    ++counts[static_cast<size_t>(outcome.kind)];
    steps += outcome.host_steps;
    with_steps += outcome.host_steps > 0 ? 1 : 0;
    constexpr std::string_view names[] = {"passed", "failed", "skipped"};
    const std::string_view kind = names[static_cast<size_t>(outcome.kind)];
    if (o.json) {
      list.push_back({{"name", outcome.name},
                      {"result", kind},
                      {"why", outcome.why},
                      {"largest_difference", outcome.largest_difference},
                      {"staged", outcome.staged},
                      {"host_steps", outcome.host_steps}});
    } else if (outcome.kind != Outcome::Kind::kPassed) {
      std::string why = outcome.why;  // one line per case
      for (size_t at = 0; (at = why.find("\n  - ", at)) != why.npos;) why.replace(at, 5, " ");
      out += str(outcome.name, ": ", kind, ". ", why, "\n");
    }
  }
  if (terminal) std::fprintf(stderr, "\r\033[K");
  if (o.json) {
    out += dump(
        {{"passed", counts[0]}, {"failed", counts[1]}, {"skipped", counts[2]}, {"host_steps", steps}, {"cases", list}});
  } else {
    out += str(counts[0], " passed, ", counts[1], " failed, ", counts[2], " skipped\n");
    if (is_on_gpu) out += str(steps, " steps ran on the host, in ", with_steps, " cases\n");
  }
  return counts[1] == 0 ? 0 : 1;
}

}  // namespace

void add_test_onnx(CLI::App& app, Work& work) {
  CLI::App* cmd = app.add_subcommand("test-onnx", "run test cases in ONNX's layout and compare their results");
  auto o = std::make_shared<Options>();
  cmd->add_option("DIR", o->folder,
                  "where the cases are, however deep: folders with model.onnx and test_data_set_*/{in,out}put_*.pb")
      ->required()
      ->option_text(" ");
  add_value(*cmd, "--filter", o->filter, "GLOB", "only cases whose folder's name matches, such as 'test_conv_*'");
  add_target_options(*cmd, o->target);
  cmd->add_option("--rtol", o->rtol, "how far a result may be off, as a part of what is expected; by default 0.001")
      ->option_text("X");
  cmd->add_option("--atol", o->atol, "and how far besides; by default 0.00001")->option_text("X");
  cmd->add_flag("--json", o->json, "write JSON, every case");
  cmd->footer(
      "Shown are the cases that fail or have nothing to compare with, and how many passed. Integers and strings must "
      "be\n"
      "equal. The exit code is 1 when a case fails.\n"
      "\n"
      "Examples:\n"
      "  rlx test-onnx onnx/backend/test/data/node --filter 'test_conv_*'\n"
      "  rlx test-onnx cases --device webgpu --json");
  cmd->callback([o, &work] { work = [o](std::string& out) { return test_onnx(*o, out); }; });
}

}  // namespace rlx::cli
