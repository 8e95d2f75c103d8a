#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common.h"
#include "core/npy.h"
#include "model_access.h"
#include "plan_text.h"
#include "rlx/log.h"
#include "times.h"

namespace rlx::cli {

namespace {

struct RunArgs {
  std::string path, save;
  TargetArgs target;
  FeedArgs feed;
  std::vector<std::string> outputs;
  int64_t repeat = 0;
  bool plan = false, json = false;
};

constexpr int64_t kFirst = 8;  // values shown of each output

// Of the values that are not NaN; of complex ones the absolute values.
struct Summary {
  double min = 0, max = 0, mean = 0;
  int64_t nan = 0, counted = 0;
};

Summary summarize(const Tensor& t) {
  Summary s;
  double sum = 0;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double x = is_complex(t.dtype())
                         ? std::abs(std::complex<double>(t.values<std::complex<float>>()[static_cast<size_t>(i)]))
                         : t.at(i);
    if (std::isnan(x)) {
      ++s.nan;
      continue;
    }
    s.min = s.counted == 0 ? x : std::min(s.min, x);
    s.max = s.counted == 0 ? x : std::max(s.max, x);
    sum += x;
    ++s.counted;
  }
  if (s.counted > 0) s.mean = sum / static_cast<double>(s.counted);
  return s;
}

// Integers whole, whatever their size; other numbers with six digits.
std::string real_text(const Tensor& t, double x) {
  const bool is_whole = !is_float(t.dtype()) && !is_complex(t.dtype()) && std::abs(x) < 0x1p63;
  return is_whole ? str(static_cast<int64_t>(x)) : number_text(x);
}

std::string value_text(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::I64) return str(t.values<int64_t>()[static_cast<size_t>(i)]);  // a double holds 53 bits
  if (t.dtype() == DType::U64) return str(t.values<uint64_t>()[static_cast<size_t>(i)]);
  if (!is_complex(t.dtype())) return real_text(t, t.at(i));
  const std::complex<float> z = t.values<std::complex<float>>()[static_cast<size_t>(i)];
  const std::string im = number_text(z.imag());
  return str(number_text(z.real()), im[0] == '-' ? "" : "+", im, "i");
}

// JSON has no NaN and no infinity: they are null.
Json value_json(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::I64) return t.values<int64_t>()[static_cast<size_t>(i)];
  if (t.dtype() == DType::U64) return t.values<uint64_t>()[static_cast<size_t>(i)];
  if (!is_complex(t.dtype())) return is_float(t.dtype()) ? Json(t.at(i)) : Json(static_cast<int64_t>(t.at(i)));
  const std::complex<float> z = t.values<std::complex<float>>()[static_cast<size_t>(i)];
  return Json::array({z.real(), z.imag()});
}

std::string output_text(const std::string& name, const Tensor& t) {
  const int64_t shown = std::min(t.num_elements(), kFirst);
  std::string values;
  for (int64_t i = 0; i < shown; ++i) values += str(i > 0 ? ", " : "", value_text(t, i));
  if (shown < t.num_elements()) values += ", ...";
  const Summary s = summarize(t);
  std::string out = str(name, ": ", t.type(), "\n  [", values, "]\n");
  if (s.counted > 0)
    out += str("  min ", real_text(t, s.min), ", max ", real_text(t, s.max), ", mean ", number_text(s.mean), ", ");
  else
    out += "  ";
  return out + str("NaN ", s.nan, " of ", t.num_elements(), "\n");
}

Json output_json(const std::string& name, const Tensor& t) {
  Json first = Json::array();
  for (int64_t i = 0; i < std::min(t.num_elements(), kFirst); ++i) first.push_back(value_json(t, i));
  const Summary s = summarize(t);
  Json out = {{"name", name}};
  out.update(type_json(t.type()));
  out["first"] = first;
  out["min"] = s.counted > 0 ? Json(s.min) : Json();
  out["max"] = s.counted > 0 ? Json(s.max) : Json();
  out["mean"] = s.counted > 0 ? Json(s.mean) : Json();
  out["nan"] = s.nan;
  return out;
}

std::string file_name(const std::string& output) {
  std::string out = output;
  for (char& c : out) {
    const bool kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    if (!kept) c = '_';
  }
  return out + ".npy";
}

// Before the run: it may be a long one.
void prepare_folder(const std::string& folder, const std::vector<std::string>& outputs) {
  std::map<std::string, std::string> files;
  for (const std::string& name : outputs) {
    const auto [it, is_new] = files.emplace(file_name(name), name);
    require(is_new, "Outputs '", it->second, "' and '", name, "' would both be saved as ", it->first,
            "; choose one with --output.");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::kUnavailable, str("Folder '", folder, "' cannot be made (", error.message(), ")."));
}

std::string find_output(const ModelFile& model, const std::string& name) {
  std::string known;
  for (const ModelPort& p : model.outputs()) {
    if (p.name == name) return name;
    known += str(known.empty() ? "" : ", ", "'", p.name, "'");
  }
  fail(ErrorKind::kInvalid, str("There is no output '", name, "'; there are: ", known, "."));
}

// The tensors of an output: one, or those of a sequence.
std::vector<std::string> tensors_of(const std::string& output, const NamedTensors& results) {
  if (results.contains(output)) return {output};
  std::vector<std::string> items;
  while (results.contains(str(output, "/", items.size()))) items.push_back(str(output, "/", items.size()));
  return items;
}

int run(const RunArgs& args, std::string& out) {
  ModelFile model(args.path, args.target, args.feed);
  Session session(model);

  // In the order asked for, each once.
  std::vector<std::string> outputs;
  if (args.outputs.empty())
    for (const ModelPort& p : model.outputs()) outputs.push_back(p.name);
  for (const std::string& name : args.outputs)
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) outputs.push_back(find_output(model, name));
  if (!args.save.empty()) prepare_folder(args.save, outputs);

  NamedTensors results;
  Times times;
  const int64_t repeat = std::max<int64_t>(args.repeat, 1);
  for (int64_t i = 0; i < repeat; ++i) {
    progress("running", repeat > 1 ? static_cast<double>(i) / static_cast<double>(repeat) : -1);
    const Stopwatch watch;
    results = session.run({.outputs = outputs});
    times.add(watch.ms());
  }

  Json json = {{"model", args.path}, {"device", session.device()}, {"outputs", Json::array()}};
  std::string text;
  std::vector<std::string> names;
  for (const std::string& output : outputs) {
    const std::vector<std::string> tensors = tensors_of(output, results);
    if (tensors.empty()) text += str(output, ": empty\n");
    names.insert(names.end(), tensors.begin(), tensors.end());
  }
  for (const std::string& name : names) {
    const Tensor& t = results.at(name);
    Json entry = output_json(name, t);
    if (args.save.empty()) {
      text += output_text(name, t);
    } else {
      const std::string file = (std::filesystem::path(args.save) / file_name(name)).string();
      write_npy(file, t);
      text += str(name, ": ", t.type(), " saved as ", file, "\n");
      entry["file"] = file;
    }
    json["outputs"].push_back(entry);
  }
  if (args.repeat > 0) {
    json["times_ms"] = times.all();
    text += str("time: ", times.count(), times.count() == 1 ? " run" : " runs", ", best ", number_text(times.min()),
                " ms, median ", number_text(times.median()), " ms\n");
  }
  if (args.plan) {
    Json plans = Json::array();
    for (const ModelStage& stage : session.stages()) {
      plans.push_back(plan_json(stage.executable->plan()));
      text += plan_text(stage.executable->plan(), session.device());
    }
    json["plan"] = plans.size() == 1 ? plans[0] : plans;
  }
  out += args.json ? dump(json) : text;
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("run", "run a model and show or save its outputs");
  auto args = std::make_shared<RunArgs>();
  add_model_option(*sub, args->path);
  add_feed_options(*sub, args->feed);
  add_seed(*sub, "--random-inputs", args->feed.random_inputs, "every input not given is random");
  add_seed(*sub, "--random-params", args->feed.random_params, "every param not given is random");
  add_repeated(*sub, "--output", args->outputs, "NAME", "an output to show or save; repeatable; by default all");
  add_value(*sub, "--save", args->save, "DIR",
            "write each output to DIR/NAME.npy instead of showing it; what is not A-Z a-z 0-9 . - in a name is a _");
  add_target_options(*sub, args->target);
  sub->add_option("--repeat", args->repeat, "run N times (states move on) and show the times")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->option_text("N");
  sub->add_flag("--plan", args->plan, "show the memory plan and the schedule");
  sub->add_flag("--json", args->json, "write JSON; NaN and infinity are null");
  sub->footer(str(kFeedHelp,
                  "A name ends at the first '='. bf16 is read from and saved as f4, which NumPy has.\n"
                  "\n"
                  "Examples:\n"
                  "  rlx run examples/mlp.rlx --random-inputs --random-params --dim batch=4\n"
                  "  rlx run examples/mlp.rlx --input x=x.npy --params weights.npz --save out\n"
                  "  rlx run examples/mlp.rlx --input x=random:4x16:7 --random-params 1 --repeat 100 --json"));
  sub->callback([&work, args] { work = [args](std::string& out) { return run(*args, out); }; });
}

}  // namespace rlx::cli
