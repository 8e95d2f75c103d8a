// A graph lowered to GPU steps (style.md, 3): dispatches and host calls over values. After lowering nothing knows an
// op.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "backends/host/program.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/kernel_source.h"
#include "backends/webgpu/storage.h"
#include "plan/plan.h"
#include "rlx/graph.h"
#include "runtime/device_program.h"

namespace rlx::webgpu {

// What a dispatch reads or writes.
struct Operand {
  int32_t value = -1;
  bool write = false;
};

// One axis of a grid: ceil(items / per_group) workgroups. An active one is cut to the active extent.
struct Axis {
  int64_t items = 1;
  int64_t per_group = 1;
  bool active = false;
};
struct Grid {
  Axis x = {}, y = {}, z = {};  // an x over the device's limit wraps into y, which must be 1 then
};

// The words of a kernel's Params struct, and which of them are counts that the active extent cuts.
class Params {
 public:
  Params() = default;
  Params(std::vector<uint32_t> all_words, std::vector<uint32_t> active_words)
      : words(std::move(all_words)), active(std::move(active_words)) {}
  template <class P>
  requires std::is_trivially_copyable_v<P> Params(const P& params,
                                                  std::initializer_list<uint32_t P::*> active_fields = {})
      : Params(params, std::vector(active_fields)) {}
  template <class P>
  requires std::is_trivially_copyable_v<P> Params(const P& params, const std::vector<uint32_t P::*>& active_fields)
      : words(sizeof(P) / 4) {
    static_assert(sizeof(P) % 4 == 0);
    std::memcpy(words.data(), &params, sizeof(P));
    for (const auto field : active_fields)
      active.push_back(static_cast<uint32_t>(&(params.*field) - reinterpret_cast<const uint32_t*>(&params)));
  }
  std::vector<uint32_t> words, active;
};

struct Dispatch {
  KernelKey kernel;
  std::vector<Operand> operands;  // bound in order at 0, 1, …; then the Params
  Params params;
  Grid grid;
  bool extent_safe = false;  // unless a lowering says so, a run uses the full extent
  // For ops whose extent rule is kOwnBound (attention, scans, kv_append): the active words and axes count the axis that
  // LowerCall::bucket_axis() names, and nothing else is active. Without it such an op is not cut short.
  bool own_bound = false;
  // The op's in-place traits hold for this kernel: a result may be computed in an operand's bytes.
  bool in_place = false;
  // Moves the bytes of operand 0 to operand 1: left out where the plan gives both the same place.
  bool is_copy = false;
  // Looks at the elements of operand 0 and no others (it unpacks or checks them): cut short as that value is.
  bool of_one_value = false;
};

// A node that runs on the host, as a program of one node.
struct HostCall {
  std::unique_ptr<host::InnerProgram> program;
  std::vector<int32_t> inputs, outputs;           // values; an unused output is -1
  std::vector<std::pair<size_t, size_t>> params;  // of its regions: index in the program, index in the manifest
  std::string kernel;                             // the host kernel's name
};

// Control flow that stays in the graph: the host drives it, its regions are programs of their own whose carries, which
// are states there, never leave the device (spec 40, 5.7).
struct Program;
struct Loop {
  enum class Kind : uint8_t { kIf, kWhile, kScan };
  Kind kind = Kind::kIf;
  std::vector<std::shared_ptr<Program>> regions;  // then and else; cond and body; body
  std::vector<int32_t> inputs;                    // values
  std::vector<int32_t> outputs;                   // by result; -1: nobody uses it
  int64_t trips = -1;                             // a scan's length, the most iterations of a while; -1: no bound
  int64_t carries = 0, broadcast = 0;             // a scan's operands: then rows of stacks
  std::vector<int64_t> kept;                      // the iterations after which a scan keeps its first carry
};

struct Step {
  std::variant<Dispatch, HostCall, Loop> work;
  const OpDef* op = nullptr;
  std::string name;  // the step's: the op's, or what the lowering calls it
  std::string node, origin;
  int64_t graph_node = 0;
  std::vector<int32_t> params;  // of a static step: manifest params it depends on, sorted
  std::string node_text;        // of a step of a static node: its attributes and types, in which sizes may be
  bool is_of_one_value() const {
    const auto* d = std::get_if<Dispatch>(&work);
    return d != nullptr && d->of_one_value;
  }
};

enum class Source : uint8_t { kStep, kStatic, kInput, kParam, kConstant, kState, kDimValue };

struct ProgramValue {
  TensorType type;      // bound
  TensorType symbolic;  // as the graph declares it
  Storage storage = Storage::kHost;
  Source source = Source::kStep;
  int32_t index = -1;  // of an input, param or state in the manifest
  Tensor constant;
  Dim dim;                        // of a dim_value
  std::string label;              // for errors and reports
  int64_t host_offset_bytes = 0;  // of a view without device bytes: where it starts in its root
  bool bounds_loops = false;      // what 32 bits do not hold may be the nearest that they do (loop_bounds.h)
};

struct Program {
  Graph symbolic;
  DimBinding binding;
  Manifest manifest;
  std::vector<ProgramValue> values;
  std::vector<Step> steps, static_steps;
  std::vector<int32_t> outputs;
  std::vector<plan::Update> updates;
  std::vector<int32_t> state_values;  // by manifest index; -1: a pass has removed it
  plan::Problem problem;              // same values and steps
  std::vector<host::ProgramView> views;
  std::optional<uint32_t> bucket;  // the symbol whose rows an active extent counts

  // Under WebGpuOptions::check_indices: the checks, and the words that the first to fail writes (check_indices.wgsl).
  static constexpr int64_t kIndexWords = 4;
  struct IndexCheck {
    std::string node, op, origin;
    std::function<std::string(int64_t value, int64_t position, int64_t rows)> complaint;  // about the first bad index
  };
  std::vector<IndexCheck> index_checks;
  int32_t index_errors = -1;  // the value that holds the words; -1: nothing is checked

  // Under CompileOptions::poison: what runs before every dispatch, so that no kernel finds zeros in workgroup memory.
  std::optional<Step> poison;
};

// `nested`: a region of a Loop, whose inputs and outputs are on the device, an element in each place.
Program lower(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding, const Device& device,
              const CompileOptions& options, bool nested = false);

std::unique_ptr<DeviceProgram> make_program(Program program, std::shared_ptr<Device> device,
                                            const CompileOptions& options, const Sibling& sibling = {});

}  // namespace rlx::webgpu
