#include "feed.h"

#include <algorithm>
#include <charconv>

#include "core/npy.h"
#include "random.h"
#include "runtime/device_program.h"

namespace rlx::cli {

namespace {

// 2x3x4, or scalar.
std::vector<int64_t> parse_sizes(std::string_view text) {
  std::vector<int64_t> sizes;
  if (text == "scalar") return sizes;
  for (std::string_view rest = text;;) {
    const size_t x = rest.find('x');
    const std::string_view part = rest.substr(0, x);
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    require(error == std::errc() && end == part.data() + part.size() && size >= 0, "Shape '", text,
            "' is not sizes like 2x3x4, nor 'scalar'.");
    sizes.push_back(size);
    if (x == rest.npos) return sizes;
    rest.remove_prefix(x + 1);
  }
}

uint64_t parse_seed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  require(error == std::errc() && end == text.data() + text.size(), "Seed '", text, "' is not a whole number from 0.");
  return seed;
}

bool fits(const TensorType& declared, const std::vector<int64_t>& sizes) {
  bool ok = declared.rank() == static_cast<int64_t>(sizes.size());
  for (int64_t i = 0; ok && i < declared.rank(); ++i)
    ok = !declared.dim(i).is_static() || declared.dim(i).is(sizes[static_cast<size_t>(i)]);
  return ok;
}

// random:SHAPE[:seed]
Tensor random_of(std::string_view spec, const Port& port, std::string_view kind) {
  const size_t colon = spec.find(':');
  const std::vector<int64_t> sizes = parse_sizes(spec.substr(0, colon));
  const uint64_t seed = colon == spec.npos ? 0 : parse_seed(spec.substr(colon + 1));
  // Before the numbers are made: a wrong size may be a large one.
  require(fits(port.type, sizes), kind, " '", port.name, "' is ", port.type, ", which random:", spec, " is not.");
  return random_tensor(seed, port.name, port.type.dtype, sizes);
}

// file.npz:key, or file.npz when it holds one array.
Tensor array_of(const std::string& path, const std::optional<std::string>& key) {
  std::map<std::string, Tensor> arrays = read_npz(path);
  std::string known;
  for (const auto& [name, tensor] : arrays) known += str(known.empty() ? "" : ", ", "'", name, "'");
  if (!key) {
    require(arrays.size() == 1, "File '", path, "' holds ", arrays.size(), " arrays; name one as ", path,
            ":NAME. There are: ", known, ".");
    return arrays.begin()->second;
  }
  const auto it = arrays.find(*key);
  require(it != arrays.end(), "File '", path, "' holds no array '", *key, "'; there are: ", known, ".");
  return it->second;
}

// NumPy has no bf16: rlx writes it as f4, and takes it back from f4.
Tensor as_declared(Tensor tensor, const Port& port) {
  if (port.type.dtype == DType::BF16 && tensor.dtype() == DType::F32) return tensor.cast(DType::BF16);
  return tensor;
}

Tensor tensor_of(const std::string& spec, const Port& port, std::string_view kind) {
  constexpr std::string_view kRandom = "random:";
  if (spec.starts_with(kRandom)) return random_of(std::string_view(spec).substr(kRandom.size()), port, kind);
  if (const size_t at = spec.rfind(".npz:"); at != spec.npos)
    return as_declared(array_of(spec.substr(0, at + 4), spec.substr(at + 5)), port);
  if (spec.ends_with(".npz")) return as_declared(array_of(spec, std::nullopt), port);
  return as_declared(read_npy(spec), port);
}

NamedTensors read_all(std::string_view option, const std::vector<std::string>& given, const std::vector<Port>& ports,
                      std::string_view kind, std::string_view title) {
  NamedTensors out;
  for (const std::string& text : given) {
    const auto [name, spec] = split_name(option, text);
    const Port& port = find_port(ports, name, kind);
    require(!out.contains(name), title, " '", name, "' is given twice.");
    out[name] = tensor_of(spec, port, title);
  }
  return out;
}

// Random values for the ports that have none. All their sizes are known by now, or it is an error.
void fill(const Graph& graph, const std::vector<Port>& ports, const DimBinding& sizes, uint64_t seed,
          std::string_view title, NamedTensors& tensors) {
  for (const Port& port : ports) {
    if (tensors.contains(port.name)) continue;
    const Shape shape = port.type.shape.bind(sizes);
    if (!shape.is_static()) {
      std::string unknown;
      for (const uint32_t id : shape.dynamic_symbols())
        unknown += str(unknown.empty() ? "" : ", ", symbol_text(graph, id));
      fail(ErrorKind::kInvalid, str(title, " '", port.name, "' (", port.type, ") cannot be random without a size for ",
                                    unknown, "; give it with --dim."));
    }
    tensors[port.name] = random_tensor(seed, port.name, port.type.dtype, shape.sizes());
  }
}

}  // namespace

void add_feed_options(CLI::App& app, FeedArgs& args) {
  add_repeated(app, "--input", args.inputs, "NAME=SOURCE",
               "an input: FILE.npy, FILE.npz:KEY or random:SHAPE[:SEED]; repeatable");
  add_repeated(app, "--param", args.params, "NAME=SOURCE", "a param, from the same sources; wins over --params");
  add_value(app, "--params", args.params_file, "FILE.npz", "params by name, all arrays of the archive");
  add_dim_option(app, args.dims);
}

Feed make_feed(const Graph& graph, const FeedArgs& args) {
  const Manifest manifest = manifest_of(graph);
  Feed feed;
  feed.inputs = read_all("--input", args.inputs, manifest.inputs, "input", "Input");

  DimBinding dims = parse_dims(graph, args.dims);
  std::map<std::string, std::vector<int64_t>> input_sizes;
  for (const auto& [name, tensor] : feed.inputs) input_sizes[name] = tensor.sizes();
  const DimBinding inferred = infer_binding(graph, input_sizes);
  for (const auto& [id, size] : inferred.sizes()) {
    const auto given = dims.find(id);
    require(!given || *given == size, "Symbol ", symbol_text(graph, id), " is ", given.value_or(0), " by --dim and ",
            size, " by the inputs.");
    dims.set(id, size);
  }
  const DimBinding sizes = graph.symbols().complete(dims);
  if (args.random_inputs) fill(graph, manifest.inputs, sizes, *args.random_inputs, "Input", feed.inputs);

  feed.params = read_all("--param", args.params, manifest.params, "param", "Param");
  if (!args.params_file.empty())
    for (auto& [name, tensor] : read_npz(args.params_file)) {
      try {
        const Port& port = find_port(manifest.params, name, "param");
        feed.params.emplace(name, as_declared(tensor, port));  // keeps what --param gave
      } catch (Error& e) {
        e.add_context(str("taking the params of ", args.params_file));
        throw;
      }
    }
  if (args.random_params) fill(graph, manifest.params, sizes, *args.random_params, "Param", feed.params);

  const bool has_inputs = feed.inputs.size() == manifest.inputs.size();
  const std::vector<uint32_t> used = graph.dynamic_symbols();
  const bool is_bound = std::all_of(used.begin(), used.end(), [&](uint32_t id) { return sizes.find(id).has_value(); });
  if (has_inputs || is_bound) feed.dims = dims;
  return feed;
}

}  // namespace rlx::cli
