// A graph lowered to host steps: what the oracle and the cpu backend run. After lowering nothing knows an op.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/host/call.h"
#include "backends/host/extent.h"
#include "plan/plan.h"
#include "rlx/graph.h"
#include "runtime/device_program.h"

namespace rlx::host {

// A kernel table of a backend; tables are tried in order, so that an op falls back from cpu to reference.
struct KernelTable {
  std::string_view backend;
  std::span<const KernelRow> rows;  // sorted by op name
};

enum class Source : uint8_t { kStep, kStatic, kInput, kParam, kConstant, kState, kDimValue };

struct ProgramValue {
  TensorType type;      // bound
  TensorType symbolic;  // as the graph declares it
  Source source = Source::kStep;
  int32_t index = -1;  // of an input, param or state in the manifest
  Tensor constant;
  Dim dim;  // of a dim_value
};

struct ProgramStep {
  const OpDef* op = nullptr;
  Attrs attrs;
  Kernel kernel = nullptr;
  std::string kernel_name;               // backend, or backend/name of the row
  std::string node;                      // its label, for traces and errors
  std::string origin;                    // the node's
  std::vector<int32_t> inputs, outputs;  // values; an output nobody uses is -1
  std::vector<int32_t> params;           // of a static step: the params (manifest indices) it depends on, sorted
  std::vector<TensorType> results;       // bound types, of unused outputs too
  int64_t graph_node = 0;                // its index in Program::symbolic
  int64_t scratch_bytes = 0;
  bool is_packing = false;  // a static step that packs an operand of the node
};

struct Program {
  Graph symbolic;      // decomposed, before its sizes were bound
  DimBinding binding;  // completed: derived symbols too
  Manifest manifest;
  std::vector<ProgramValue> values;
  std::vector<ProgramStep> steps;
  std::vector<ProgramStep> static_steps;  // compute weights of weights: run once, and again when a param changes
  std::vector<int32_t> outputs;           // values, in manifest order
  std::vector<plan::Update> updates;
  std::vector<int32_t> state_values;  // by manifest index; -1: a pass has removed it
  plan::Problem problem;              // same values and steps
  std::vector<ProgramView> views;
};

// `manifest` is that of the graph as the user made it.
Program lower(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
              std::span<const KernelTable> tables, int threads);

// A program of the host, which may be part of another one: a region of control flow, a step between those of a GPU.
class InnerProgram : public DeviceProgram {
 public:
  // The input is read where these bytes lie, until it is set again. They are aligned for its dtype; null where it is
  // empty.
  virtual void lend_input(size_t index, const std::byte* bytes) = 0;
};

std::unique_ptr<InnerProgram> make_program(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
                                           std::span<const KernelTable> tables, const CompileOptions& options,
                                           const Sibling& sibling = {});

// The row that runs a node, and whose it is; a null row when no table has one.
struct KernelChoice {
  const KernelRow* row = nullptr;
  std::string_view backend;
};
KernelChoice choose_kernel(std::span<const KernelTable> tables, const OpDef& op, const Signature& signature);

}  // namespace rlx::host
