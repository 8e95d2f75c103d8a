#include "import/session.h"

#include <ctime>
#include <fstream>

#include "import/onnx/elem_type.h"

namespace rlx::test {

std::unique_ptr<Session> open(const std::string& model, const std::string& folder, const Sizes& sizes) {
  const auto bytes = std::make_shared<const std::string>(model);
  CompileOptions options;
  options.device = "cpu";
  options.threads = 1;
  return std::make_unique<Session>(onnx::parse_source(*bytes, bytes, folder, "test"), options, sizes);
}

HostValue host(const Tensor& t) { return {onnx::elem_of(t.dtype()), t}; }

std::vector<HostValue> run_values(Session& session, const std::map<std::string, HostValue>& inputs) {
  return session.run(inputs);
}

std::vector<Tensor> run(Session& session, const NamedTensors& inputs) {
  std::map<std::string, HostValue> given;
  for (const auto& [name, tensor] : inputs) given[name] = host(tensor);
  std::vector<Tensor> outputs;
  for (const HostValue& v : session.run(given)) {
    require(v.kind == HostValue::Kind::kTensor, "An output is not a tensor.");
    outputs.push_back(v.tensor);
  }
  return outputs;
}

std::vector<Tensor> run(const std::string& model, const NamedTensors& inputs) { return run(*open(model), inputs); }

std::optional<std::map<std::string, HostValue>> random_inputs(const Session& session, Rng& rng) {
  constexpr int64_t kMostElements = 100'000;
  std::map<std::string, HostValue> inputs;
  for (const onnx::ModelPort& port : session.inputs()) {
    if (!port.tensor) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const Dim& d : port.tensor->shape) sizes.push_back(d.is_static() ? d.value() : 2);
    const auto elements = Shape(sizes).try_elements();
    if (!elements || *elements > kMostElements) return std::nullopt;
    inputs[port.name] = {port.type.elem, rng.tensor(sizes, port.tensor->dtype)};
  }
  return inputs;
}

namespace {

double processor_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The most memory of this process since clear_peak(), in MiB.
int64_t peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  return 0;
}
void clear_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSeconds = 10;
constexpr int64_t kMib = 512;  // freed memory is kept for a while
#else
constexpr double kSeconds = 1;
constexpr int64_t kMib = 64;
#endif

}  // namespace

void expect_cheap_error(const std::function<void()>& work, std::string_view text) {
  clear_peak();
  const int64_t memory = peak_mib();
  const double begin = processor_seconds();
  std::string said = "nothing";
  try {
    work();
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
    said = e.what();
  } catch (const std::exception& e) {
    said = str("not an rlx::Error: ", e.what());
  }
  EXPECT_NE(said.find(text), std::string::npos) << "it says: " << said;
  EXPECT_LT(processor_seconds() - begin, kSeconds);
  EXPECT_LT(peak_mib() - memory, kMib);
}

}  // namespace rlx::test
