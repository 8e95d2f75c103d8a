#include "feed.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "core/npy.h"
#include "random.h"
#include "rlx/log.h"
#include "runtime/device_program.h"
#include "source.h"

namespace rlx::cli {

namespace {

class Feeder {
 public:
  Feeder(const Graph& graph, const std::vector<ModelPort>& inputs, const FeedArgs& args)
      : graph_(graph), inputs_(inputs), args_(args), params_(manifest_of(graph).params) {
    for (const ModelPort& port : inputs)
      if (port.type) typed_.push_back({port.name, *port.type});
  }

  Feed run() {
    feed_.dims = parse_dims(graph_, args_.dims);
    read_inputs();
    take_sizes();
    for (const auto& [port, number] : numbers_) fill_with(port, number);
    if (args_.random_inputs) fill(typed_, *args_.random_inputs, feed_.inputs);
    require_inputs();

    read_params();
    if (!args_.params_file.empty()) read_archive();
    if (args_.random_params) fill(params_, *args_.random_params, feed_.params);
    return std::move(feed_);
  }

 private:
  TensorType with_known_sizes(const TensorType& type) const {
    return {type.shape.bind(graph_.symbols().complete(feed_.dims)), type.dtype};
  }

  void read_inputs() {
    for (const std::string& text : args_.inputs) {
      const auto [name, spec] = split_name("--input", text);
      const auto port = std::find_if(inputs_.begin(), inputs_.end(), [&](const auto& p) { return p.name == name; });
      if (port == inputs_.end()) {
        std::string known;
        for (const ModelPort& p : inputs_) known += str(known.empty() ? "" : ", ", "'", p.name, "'");
        fail(ErrorKind::kInvalid,
             str("There is no input '", name, "'",
                 known.empty() ? std::string("; the model has none.") : str("; there are: ", known, ".")));
      }
      const bool is_new = seen_.insert(name).second;
      require(is_new, "Input '", name, "' is given twice.");
      if (port->type && is_number(spec)) {  // as large as the other inputs say
        numbers_.push_back({{name, *port->type}, spec});
        continue;
      }
      feed_.inputs[name] =
          port->type ? read_source(spec, {name, *port->type}, with_known_sizes(*port->type), "Input", args_.image)
                     : read_untyped_source(spec, name, port->text);
    }
  }

  void read_params() {
    for (const std::string& text : args_.params) {
      const auto [name, spec] = split_name("--param", text);
      const Port& port = find_port(params_, name, "param");
      require(!feed_.params.contains(name), "Param '", name, "' is given twice.");
      feed_.params[name] = read_source(spec, port, with_known_sizes(port.type), "Param", args_.image);
    }
  }

  void read_archive() {
    for (auto& [name, tensor] : read_npz(args_.params_file)) {
      try {
        const Port& port = find_port(params_, name, "param");
        if (!feed_.params.contains(name)) feed_.params[name] = as_declared(tensor, port, "Param");
      } catch (Error& e) {
        e.add_context(str("taking the params of ", args_.params_file));
        throw;
      }
    }
  }

  // Sizes of symbols from the inputs' sizes.
  void take_sizes() {
    std::map<std::string, std::vector<int64_t>> input_sizes;
    for (const auto& [name, tensor] : feed_.inputs) input_sizes[name] = tensor.sizes();
    const DimBinding inferred = infer_binding(graph_, input_sizes);
    for (const auto& [id, size] : inferred.sizes()) {
      const auto given = feed_.dims.find(id);
      require(!given || *given == size, "Symbol ", symbol_text(graph_, id), " is ", given.value_or(0), " by --dim and ",
              size, " by the inputs.");
      feed_.dims.set(id, size);
    }
  }

  void require_inputs() const {
    std::string missing;
    for (const ModelPort& port : inputs_)
      if (!feed_.inputs.contains(port.name))
        missing += str(missing.empty() ? "" : ", ", "'", port.name, "' (",
                       port.type ? type_text(graph_, *port.type) : port.text, ")");
    require(missing.empty(), "Inputs are not given: ", missing, "; --input NAME=SOURCE gives one",
            args_.random_inputs ? "." : ", --random-inputs all.");
  }

  // A symbol that nobody gives a size is 1 where the numbers are made up anyway. Derived ones follow those they are
  // made of.
  void choose_size(uint32_t id) {
    if (const auto it = graph_.symbols().derived().find(id); it != graph_.symbols().derived().end()) {
      for (const Dim& d : {it->second.lhs, it->second.rhs})
        if (!d.is_static()) choose_size(d.symbol_id());
      return;
    }
    if (feed_.dims.find(id)) return;
    const std::string* name = graph_.symbols().find_name(id);
    log(LogLevel::kWarning, str("Size ", symbol_text(graph_, id), " is not given and taken as 1; --dim ",
                                name ? *name : str("'?", id, "'"), "=N sets it."));
    feed_.dims.set(id, 1);
  }

  void fill_with(const Port& port, const std::string& number) {
    for (const uint32_t id : port.type.shape.dynamic_symbols()) choose_size(id);
    feed_.inputs[port.name] = filled(number, port, with_known_sizes(port.type).shape.sizes(), "Input");
  }

  // Random values for the ports that have none.
  void fill(const std::vector<Port>& ports, uint64_t seed, NamedTensors& tensors) {
    for (const Port& port : ports)
      if (!tensors.contains(port.name))
        for (const uint32_t id : port.type.shape.dynamic_symbols()) choose_size(id);
    const DimBinding sizes = graph_.symbols().complete(feed_.dims);
    for (const Port& port : ports)
      if (!tensors.contains(port.name))
        tensors[port.name] = random_tensor(seed, port.name, port.type.dtype, port.type.shape.bind(sizes).sizes());
  }

  const Graph& graph_;
  const std::vector<ModelPort>& inputs_;
  const FeedArgs& args_;
  std::vector<Port> typed_, params_;  // inputs whose type is known
  std::vector<std::pair<Port, std::string>> numbers_;
  std::set<std::string> seen_;
  Feed feed_;
};

}  // namespace

const char* const kFeedHelp =
    "SOURCE is one of\n"
    "  FILE.npy               as NumPy saves it; floats are taken as the input's floats, integers as its integers\n"
    "  FILE.npz[:KEY]         without KEY the only array, or the one that is called like the input\n"
    "  FILE.png .jpg .bmp     a picture for [N, C, H, W], [N, H, W, C], either without N, or [H, W]; C is 1, 3 or 4. "
    "It\n"
    "                         is stretched to H and W if the model fixes them. Floats are 0 to 1, integers 0 to 255,\n"
    "                         red first; --scale, --mean, --std and --bgr change that: (pixel * scale - mean) / std\n"
    "  FILE.wav               samples for [N], [1, N] or [1, 1, N], channels mixed; floats are -1 to 1, i16 as they "
    "are.\n"
    "                         The sample rate is not changed\n"
    "  NUMBER                 every element, in the size that the other inputs or --dim say\n"
    "  random:SHAPE[:SEED]    SHAPE is 2x3x4 or 'scalar'. Floats are normal, integers 0 to 9, Bool 0 or 1; the same\n"
    "                         seed (by default 0) gives the same values\n";

void add_input_options(CLI::App& app, FeedArgs& args) {
  add_repeated(app, "--input", args.inputs, "NAME=SOURCE",
               "an input: a .npy, .npz, .png, .jpg, .bmp or .wav file, a number or random:SHAPE[:SEED], as 'rlx run "
               "--help' says; repeatable");
  add_dim_option(app, args.dims);
  add_image_options(app, args.image);
}

void add_feed_options(CLI::App& app, FeedArgs& args) {
  add_input_options(app, args);
  add_repeated(app, "--param", args.params, "NAME=SOURCE",
               "a param of a .rlx graph, from the same sources; wins over --params");
  add_value(app, "--params", args.params_file, "FILE.npz", "params by name, all arrays of the archive");
}

Feed make_feed(const Graph& graph, const std::vector<ModelPort>& inputs, const FeedArgs& args) {
  return Feeder(graph, inputs, args).run();
}

}  // namespace rlx::cli
