// compile() a graph for a device, then run it (spec 20, 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"
#include "rlx/tensor.h"

namespace rlx {

enum class ScheduleOrder {
  kBest,    // whichever of the two below needs less memory
  kGreedy,  // among the ready steps the one that frees most bytes
  kSource,  // as the graph is written
};

// In what f32 tensors between ops are kept; sums are always f32.
enum class Precision {
  kF32,   // as the graph says
  kF16,   // half the memory traffic, three decimal digits
  kBf16,  // the same, with f32's range and two digits
};

// Which kernels run ops that have a definition in terms of others.
enum class KernelDispatch {
  kNative,  // the device's own
  kCommon,  // none: the definition runs, to find out whether a fused kernel is at fault
};

// What is looked at while a graph runs. Reports go to the log, and cost time and memory: every value is kept.
struct DebugOptions {
  bool nan_trace = false;   // after each run, the first nodes that hold NaN or an infinity
  bool dump_nodes = false;  // after each run, every node's largest magnitude and how many elements are not zero
  int64_t dump_limit = 0;   // the first nodes only; 0: all
  int64_t dump_flat = -1;   // and this element of each
  bool keeps_values() const { return nan_trace || dump_nodes; }
};

// What only the webgpu device asks for (spec 40).
struct WebGpuOptions {
  // A WebGPU library's file; empty: what RLX_WEBGPU_LIBRARY says, or else wgpu-native, where rlx finds it.
  std::string library;
  // An index of devices()'s list, a part of a name, or a type (software, say); empty: RLX_WEBGPU_ADAPTER's, or else the
  // fastest.
  std::string adapter;
#ifdef NDEBUG
  bool bounds_checks = false;  // WGSL checks every access of a kernel to a buffer
  bool check_indices =
      false;  // an index out of range is an error of the run, as on the cpu, and not clamped or skipped
#else
  bool bounds_checks = true;
  bool check_indices = true;
#endif
  bool subgroups = true;  // reductions by subgroups, where the device has them and they pass a self-check
  // Norms of long rows by workgroups that wait for each other, which read them from memory once: always, never, or
  // (unset) where tensors are large and the device is known to run such workgroups.
  std::optional<bool> read_once;
  // Products read an f16 copy of their f32 weights: half the bytes, and the weights' rounding. Without effect on
  // devices without f16, and under either of the next two: for finding out whether halves are at fault.
  bool f16_weights = false;
  bool matmul_f32_only = false;  // products read f32 alone
  bool f16_mirror = true;        // no f16 copies at all where false
  bool f32_uniform = false;  // what is not packed is stored as f32, integers but U32 too: to find a storage at fault
  bool schedule_report = false;         // log the steps of each kind and what they take
  bool attention_alias_report = false;  // log whose bytes each attention's result is computed in
  bool force_input_upload = false;      // also of inputs that have not changed
  // Attention reads q, k and v where a packed projection or a transpose in front of it left them.
  bool packed_attention = true;
  bool skip_readback = false;  // outputs stay on the device, and hold what they held: to time dispatches alone
  // What no kernel of the GPU computes is an error of compile() instead of a step on the host.
  bool no_host_steps = false;
  // Loops and branches whose regions do less (operations and bytes) run on the host: each iteration is a round trip.
  int64_t min_loop_work = 1 << 20;
  // Smaller limits than the device has, to test what large models do; 0: its own.
  int64_t max_binding_bytes = 0, max_buffer_bytes = 0;
  int64_t max_groups_per_row = 0;  // workgroups of a grid's x axis; more wrap into y
  // A folder whose .wgsl files take the place of rlx's own of the same names, with the same bindings and Params: to try
  // kernels without a build.
  std::string kernels;
};

struct CompileOptions {
  // "auto" takes the best device there is; devices() lists them. "webgpu:1" and "webgpu:NAME" choose an adapter.
  std::string device = "auto";
  WebGpuOptions webgpu;
  // Sizes of symbols. Empty for a graph with symbols: it is compiled at the first run, from the inputs' sizes.
  DimBinding dims;
  // Of a graph that is compiled at its runs: for how many sizes the programs are kept, so that they can be run again.
  // They share weights and states, and have an arena each.
  int kept_programs = 1;
  // The symbol whose rows an active extent counts; by default the only dynamic one.
  std::optional<uint32_t> bucket_symbol;

  Precision precision = Precision::kF32;
  int threads = 0;  // of the cpu device, the caller included; 0: as many as the machine has
  // Passes to leave out, by name (spec 20, 1.2): to find out whether one is at fault.
  std::vector<std::string> skip_passes;
  int64_t attention_block_rows = 64;  // batch times sequence up to which an attention block becomes one node
  bool batch_single_kernel = true;    // equal work on consecutive slices of a batch runs as one kernel, not one each
  bool verbose = false;               // log each compilation: what passes changed and how long they took, steps, bytes
  bool fusion_report = false;         // log what the passes fused, and why they did not fuse what looks alike
  bool dispatch_report = false;       // log which kernel runs each op, and what falls back to the reference's
  std::string ir_dump;                // a folder: the graph is written there after each pass that changes it
  std::string trace_file;             // every run is added to it, step by step, for Perfetto or Chrome
  DebugOptions debug;
  KernelDispatch kernel_dispatch = KernelDispatch::kNative;

  int64_t arena_alignment = 64;
  ScheduleOrder schedule = ScheduleOrder::kBest;
  bool no_reuse = false;     // every value its own bytes: to find out whether the memory plan is at fault
  bool in_place = true;      // results may overwrite operands that are not needed any more
  bool verify_plan = false;  // check the plan's invariants after planning
  bool poison = false;       // fill memory with NaN before a run and after a value's last use

  // The defaults with the environment's switches applied: RLX_DEVICE, RLX_THREADS, RLX_PRECISION (f32, f16, bf16),
  // RLX_SKIP_PASSES (names with commas between), RLX_FUSE_ATTN_THRESHOLD, RLX_FK_BATCH_SINGLE_KERNEL, RLX_VERBOSE,
  // RLX_FUSION_REPORT, RLX_DISPATCH_REPORT, RLX_IR_DUMP, RLX_SCHEDULE
  // (best, greedy, source), RLX_NO_REUSE, RLX_NO_IN_PLACE, RLX_VERIFY_PLAN, RLX_POISON, RLX_TRACE_PERFETTO,
  // RLX_KERNEL_DISPATCH (native, common), RLX_WGPU_NAN_TRACE, RLX_WGPU_DUMP_NODES, RLX_WGPU_DUMP_NODES_LIMIT,
  // RLX_WGPU_DUMP_FLAT; of WebGpuOptions: RLX_WEBGPU_LIBRARY, RLX_WEBGPU_ADAPTER, RLX_WGPU_BOUNDS_CHECKS,
  // RLX_WGPU_CHECK_INDICES, RLX_WGPU_NO_SUBGROUPS, RLX_WGPU_READ_ONCE, RLX_WGPU_F16_WEIGHTS, RLX_WGPU_MATMUL_F32_ONLY,
  // RLX_WGPU_NO_F16_SHADOW, RLX_WGPU_F32_UNIFORM, RLX_WGPU_SCHEDULE, RLX_WGPU_DEBUG_ATTN_ALIAS,
  // RLX_WGPU_FORCE_INPUT_UPLOAD, RLX_WGPU_KERNELS, RLX_WGPU_NO_PACKED_BSHD_ATTN, RLX_WGPU_NO_HOST_STEPS,
  // RLX_BENCH_DISPATCH_ONLY. The environment is read once per process.
  static CompileOptions from_environment();
};

// A named tensor of an executable's interface; sizes may be symbols.
struct Port {
  std::string name;
  TensorType type;
};

// One step of the schedule, in the order of execution.
struct StepInfo {
  std::string node;    // %7
  std::string origin;  // the node of the model file it comes from, and the passes that made it of that; may be empty
  std::string op;      // softmax
  std::string kernel;  // the backend whose kernel runs it, and which one: cpu/packed
  TensorType result;
  int64_t offset_bytes = -1;  // of the result in the arena; -1 when it lies elsewhere
  std::string name;           // the step's in reports and traces: conv2d, fft_host; the op's where it has no other
};

struct PlanInfo {
  std::vector<StepInfo> steps;
  std::vector<StepInfo> static_steps;  // run once, when weights are set: transposed, concatenated or packed weights
  int64_t static_bytes = 0;            // what their results take
  int64_t arena_bytes = 0;             // what activations take
  int64_t largest_live_bytes = 0;      // the most that is live at one step: a lower bound for this order of steps
  int64_t unshared_bytes = 0;          // what they would take without reuse
  int64_t persistent_bytes = 0;        // outputs and states
  int64_t param_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t in_place_results = 0;
  int64_t views = 0;  // values that are a part of another value and need no bytes
};

// What the compiler's passes did (spec 20, 1.7). Empty for the reference, which runs graphs as they are.
struct PassInfo {
  std::string name;
  bool changed = false;
  double ms = 0;  // verification of the result included
  int64_t nodes_before = 0, nodes_after = 0;
};
struct MissedFusion {
  std::string pass, node, op;
  std::string guard;  // the condition that failed: MultiConsumer
  std::string hint;   // a sentence
};
struct CompileReport {
  std::vector<PassInfo> passes;
  std::map<std::string, int64_t> ops_before, ops_after;  // how often each op occurs
  std::vector<MissedFusion> missed;
};
std::string fusion_text(const CompileReport& report);
// One compilation: steps, bytes, what each pass changed.
std::string compile_text(const CompileReport& report, const PlanInfo& plan, const std::string& device);
// Which kernel runs each op, how often; ops that passes replaced; steps on the reference's kernels.
std::string dispatch_text(const CompileReport& report, const PlanInfo& plan);

// What a GPU was asked to do since the program was compiled.
struct DeviceStats {
  int64_t submits = 0, dispatches = 0, host_steps = 0;
  int64_t bytes_up = 0, bytes_down = 0;
  int64_t parameter_writes = 0, pipelines = 0, buffers = 0;
};

struct RunStats {
  int64_t runs = 0;
  int64_t compiles = 0;          // 1 for a fixed graph; one more for each binding that has no program
  int64_t full_extent_runs = 0;  // runs with an active extent that had to use the full one
  DeviceStats device;            // of the program in use; zeros on the host
};

// One step of a run as it was executed, for traces.
struct StepTrace {
  StepInfo step;
  bool once = false;                 // it prepares weights, and runs again only when they change
  double flops = 0, bytes = 0;       // a multiply-add counts two; operands and results count once
  int threads = 1;                   // that its kernel may use, the caller included
  int64_t begin_ns = 0, end_ns = 0;  // of std::chrono::steady_clock
};

struct RunOptions {
  std::vector<std::string> outputs;         // which ones to return; empty: all
  std::vector<StepTrace>* trace = nullptr;  // takes an entry for each step that runs, in that order
};

// Where a run stops being finite.
struct NonFiniteNode {
  std::string node, op, origin;
  int64_t element = 0;  // the first of them, by flat index
  double value = 0;
  int64_t count = 0;             // how many
  std::string last_finite_node;  // of floats, before it; may be empty
  double last_finite_low = 0, last_finite_high = 0;
};

// A compiled graph with its weights and states.
//
// Threads: an Executable may be used from any thread, but by one at a time (a second one gets an Error, not a race).
// Different executables, clones too, run at the same time; clones share the weights.
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  const std::string& device() const;
  std::vector<Port> inputs() const;
  std::vector<Port> outputs() const;
  std::vector<Port> params() const;
  std::vector<Port> states() const;

  // A weight, by name; its bytes are shared, not copied, and must not change afterwards. Throws on an unknown name,
  // another dtype or other sizes. May be called before the sizes of a deferred executable are known, and again between
  // runs.
  void set_param(std::string_view name, Tensor value);
  // The same from raw bytes, for packed weights.
  void set_param_bytes(std::string_view name, std::span<const std::byte> bytes);

  // Runs once. Every Input is given here or by a handle; unknown names, other dtypes or sizes throw. Returns copies.
  NamedTensors run(const NamedTensors& inputs, const RunOptions& options = {});
  // Inputs by declaration order; `outputs` are the indices of those to return, in that order; empty: all. The results
  // are valid until the next run: clone what is to stay. Allocates nothing once the sizes are known.
  std::span<const Tensor> run_slots(std::span<const Tensor> inputs, std::span<const size_t> outputs = {});

  // States by name (spec 10, 3.8): zeros at first.
  Tensor read_state(std::string_view name) const;
  void set_state(std::string_view name, const Tensor& value);
  void reset_states();

  // A handle supplies an Input on every run until replaced; an input given to run() wins. feed() makes it take an
  // output's value after each run.
  void bind_handle(std::string_view input, Tensor value);
  void feed(std::string_view output, std::string_view input);
  bool has_handle(std::string_view input) const;
  Tensor read_handle(std::string_view input) const;

  // The graph was compiled for `upper` rows of the bucket symbol; from now on runs use the first `actual`, and the
  // other rows of every output are undefined. Where a step cannot be cut short the run uses the full extent, which
  // stats() counts; states and dim_value never see the padded rows. (upper, upper) switches it off.
  void set_active_extent(int64_t actual, int64_t upper);

  // An executable of its own with the same weights and copies of states and handles. On the device the weights, and
  // what was computed of them, are there once, until one of the two is given others.
  Executable clone() const;

  // What a run with these inputs would compute: the first node, in the order of the optimized graph, that holds NaN or
  // an infinity; nullopt when all are finite. States stay as they are.
  std::optional<NonFiniteNode> debug_first_nan_node(const NamedTensors& inputs) const;

  const Graph& graph() const;            // as compile() was given it
  const Graph& optimized_graph() const;  // as the passes have left it, before sizes were bound

  // Of the compiled program; throws when a deferred executable has not run yet.
  PlanInfo plan() const;
  const CompileReport& report() const;
  RunStats stats() const;

  struct Impl;

 private:
  friend Executable compile(Graph graph, const CompileOptions& options);
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

Executable compile(Graph graph, const CompileOptions& options = CompileOptions::from_environment());

// One adapter of a device.
struct DeviceDetail {
  std::string name, driver, type;     // NVIDIA H200, vulkan, discrete
  std::vector<std::string> features;  // that it offers
  int64_t max_buffer_bytes = 0, max_binding_bytes = 0;
  int64_t workgroup_bytes = 0, workgroup_threads = 0, storage_bindings = 0;
  int64_t subgroup_min = 0, subgroup_max = 0;
  bool uses_f16 = false, uses_subgroups = false, uses_timestamps = false;  // that rlx will use
};

struct DeviceInfo {
  std::string name;
  std::string description;
  bool available = false;
  std::string why_not;                 // when it is not
  std::vector<DeviceDetail> adapters;  // of webgpu, best first
};
// What compile() can be asked for, best first.
std::vector<DeviceInfo> devices();

// The sizes of a graph's symbols from the inputs of a run (spec 10, 2.3). Throws when they disagree or do not suffice.
DimBinding infer_binding(const Graph& graph, const std::map<std::string, std::vector<int64_t>>& input_sizes);
// The same from numbers of elements alone: each input may have one unknown size.
DimBinding infer_binding_from_counts(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& counts);

}  // namespace rlx
