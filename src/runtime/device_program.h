// What the runtime asks of a backend. Everything is by index: the manifest of a graph fixes the order of inputs,
// params, states and outputs, so that a backend never looks up a name in a run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"
#include "rlx/runtime.h"

namespace rlx {

// The interface of a graph: its leaves by kind, in declaration order. Params of regions count too.
struct Manifest {
  std::vector<Port> inputs, params, states, outputs;
};
Manifest manifest_of(const Graph& graph);

// A graph compiled for a device, for one binding.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;

  // The tensor's bytes are read during every run until it is replaced; its type has been checked. An input that is the
  // same in the next run need not be set again.
  virtual void set_param(size_t index, const Tensor& value) = 0;
  virtual void set_input(size_t index, const Tensor& value) = 0;
  // After each run the input takes the output's value; set_input is not needed any more.
  virtual void set_feed(size_t output, size_t input) = 0;

  // nullopt: all rows. Otherwise the sizes of all symbols with the bucket symbol at its actual size. Returns whether
  // every step honours it.
  virtual bool set_active_sizes(const std::optional<DimBinding>& sizes) = 0;

  // `trace` takes an entry per step, as RunOptions says. `wanted`: by output, those that somebody will read; null: all.
  virtual void run(std::vector<StepTrace>* trace = nullptr, const std::vector<bool>* wanted = nullptr) = 0;
  virtual const Tensor& output(size_t index) = 0;  // valid until the next run
  virtual Tensor read_input(size_t index) = 0;     // a copy of what a feed left there

  virtual Tensor read_state(size_t index) = 0;
  virtual void set_state(size_t index, const Tensor& value) = 0;

  // Does it have the state's bytes in common with a program that it was compiled beside?
  virtual bool shares_state(size_t index, const DeviceProgram& with) const = 0;

  // Is its device gone? Then no other program can take anything of it.
  virtual bool is_lost() const { return false; }

  virtual PlanInfo plan() const = 0;
  virtual DeviceStats device_stats() const { return {}; }
};

// A program that a new one is compiled beside: the new one has its weights, and shares them on the device with what was
// computed of them, so that whoever gives one of them other weights gives them to both.
struct Sibling {
  const DeviceProgram* program = nullptr;
  bool shares_states = true;  // those whose types are the same
};

// A row of the table of backends (src/runtime/backends.cpp).
struct Backend {
  std::string_view name;
  std::string_view description;
  // Why it cannot be used on this machine; nullopt when it can.
  std::optional<std::string> (*unavailable)(const WebGpuOptions& options);
  // Why "auto" does not take it although it is available. Null: it does.
  std::optional<std::string> (*not_by_default)(const WebGpuOptions& options) = nullptr;
  std::vector<DeviceDetail> (*details)(const WebGpuOptions& options) = nullptr;  // null: there is but one
  // Does it run such a node with a kernel of its own, rather than as the op's definition? Asked by the passes, with
  // sizes that may be symbols. Null: no pass runs, the graph is executed as it is.
  bool (*claims)(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                 std::span<const TensorType> outputs, const CompileOptions& options);
  bool reduces_any_axes = false;  // else passes put the reduced axes side by side
  // `symbolic` is the graph before its sizes were bound: it tells which sizes carry the bucket symbol.
  // `manifest` is the interface of the graph as the user made it; passes may have removed leaves that nothing uses.
  // `sibling`: none, or a program of the same graph.
  std::unique_ptr<DeviceProgram> (*compile)(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
                                            const CompileOptions& options, const Sibling& sibling);
};

// The graph as the backend's passes leave it (src/runtime/optimize.cpp).
struct OptimizedGraph {
  Graph graph;
  CompileReport report;
};
OptimizedGraph optimize_for(const Backend& backend, const Graph& graph, const CompileOptions& options);

std::span<const Backend> backends();  // best first
const Backend& choose_backend(const CompileOptions& options);
// The options with "webgpu:1" split into the device and its adapter, and "auto" replaced by what it is.
CompileOptions with_device(CompileOptions options);

}  // namespace rlx
