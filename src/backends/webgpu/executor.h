// A lowered program with its buffers, ready to run (spec 40, 5). The members are defined by concern: executor.cpp what
// the runtime asks, run.cpp a run, active_extent.cpp which steps an extent cuts.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "backends/webgpu/transfer.h"

namespace rlx::webgpu {

class WebGpuProgram : public DeviceProgram {
 public:
  // `parent`: of a region: its commands join those of the program it is in. `sibling`: what Sibling has.
  WebGpuProgram(Program program, std::shared_ptr<Device> device, const CompileOptions& options,
                Commands* parent = nullptr, const WebGpuProgram* sibling = nullptr, bool shares_states = true);

  void set_param(size_t index, const Tensor& value) override;
  void set_input(size_t index, const Tensor& value) override;
  void set_feed(size_t output, size_t input) override;
  bool set_active_sizes(const std::optional<DimBinding>& sizes) override;
  void run(std::vector<StepTrace>* trace, const std::vector<bool>* wanted) override;
  const Tensor& output(size_t index) override { return outputs_[index]; }
  Tensor read_input(size_t index) override;
  Tensor read_state(size_t index) override;
  void set_state(size_t index, const Tensor& tensor) override;
  bool shares_state(size_t index, const DeviceProgram& with) const override;
  PlanInfo plan() const override;
  DeviceStats device_stats() const override;
  bool is_lost() const override { return device_->lost(); }
  // Throws when the device is lost: no other one can read its buffers.
  void check_device() const { device_->check("taking over weights and states"); }

 private:
  // A step of a schedule: a dispatch, a loop, or a host call of the program.
  struct ReadyStep {
    Step* step = nullptr;
    int64_t dispatch = -1;  // index in dispatches_
    int64_t loop = -1;      // index in loops_
    int64_t host = -1;      // index in host_calls_
  };
  struct ReadyHostCall {
    HostCall* call;
    // By input: the item of the readback, and what is read there. Made when the device has it, or bytes that are not
    // aligned.
    std::vector<int64_t> items;
    std::vector<Tensor> read;
  };
  struct ReadyLoop {
    const Loop* loop;
    std::vector<std::unique_ptr<WebGpuProgram>> regions;
    std::vector<bool> nothing;  // no output of a region is read back
    Tensor predicate;           // of an if, read back
  };
  struct Input {
    int32_t value = -1;
    Tensor tensor;
    uint64_t fixed_id = 0;            // of the tensor
    std::vector<std::byte> retained;  // what was uploaded last, where that is little
    bool uploaded = false;            // the device has the tensor's bytes
    bool fed = false;                 // the device has what a feed left there, and the tensor is out of date
  };
  // When a run ends, `to` takes the bytes of `from`.
  struct EndCopy {
    int32_t from, to;           // values; to: -1 where a pass has removed the input
    int64_t input = -1;         // that `to` is, in the manifest; -1: a state
    bool through_host = false;  // one of them has no device bytes, or they are stored differently
    int64_t staged = -1;        // through bytes of their own, at this offset: another copy overwrites the source
    uint64_t bytes = 0;
    struct Range {
      uint64_t offset, bytes;
    };
    std::vector<Range> ranges;  // of the bytes that are copied: of a fed input the rows in use alone
    int64_t item = -1;          // of the readback, when it goes through the host
    Tensor kept;                // its bytes then
    Tensor taken;               // of a fed input: those that it has now
  };
  // A step of a traced run.
  struct Mark {
    const Step* step;
    bool once;
    int64_t begin_ns, end_ns;      // of the host's clock
    int64_t query = -1;            // of the GPU's: the first of two
    std::vector<StepTrace> inner;  // of a loop: the steps of its regions
  };

  const ProgramValue& value(int32_t v) const { return program_.values[static_cast<size_t>(v)]; }
  bool on_device(int32_t v) const { return value(v).storage != Storage::kHost; }
  int64_t elements(int32_t v) const { return value(v).type.shape.num_elements(); }
  int32_t root(int32_t v) const { return plan::root_of(program_.problem, v).value; }
  StepInfo describe(const Step& step) const;
  void count_steps(std::map<std::string, int64_t>& counts, int64_t& steps, int64_t& host) const;
  std::string schedule_text() const;
  std::string attention_alias_text() const;

  // executor.cpp
  ReadyStep ready(Step& step);
  [[noreturn]] void refuse_host_step(const Step& step, const HostCall& call) const;
  void find_host_roots();
  bool is_on_host(int32_t v) const;
  const Tensor& host_root(int32_t v) const;
  std::span<const std::byte> host_bytes(int32_t v) const;
  Tensor read_value(int32_t v);
  void read_value(int32_t v, Tensor& to);
  void take_weights(const WebGpuProgram& sibling);
  void upload_constants();
  void write_dim_values();

  // run.cpp
  void prepare_weights();
  void upload_inputs();
  void run_step(ReadyStep& step);
  void execute(ReadyStep& step);
  void run_on_host(ReadyHostCall& ready);
  void lend_inputs(ReadyHostCall& ready);
  void map_readback();
  void plan_end_copies();
  void set_end_ranges();
  Tensor output_tensor(int32_t v) const;
  void finish(const std::vector<bool>* wanted);
  void add_outputs(const std::vector<bool>* wanted);
  void encode_end_copies();
  void take(EndCopy& copy);
  void submit();
  void name_faulty_step(Error& error);
  bool notes_bad_indices(const Step& step) const {
    const auto* d = std::get_if<Dispatch>(&step.work);
    return d != nullptr && program_.index_errors >= 0 && d->operands.back().value == program_.index_errors;
  }
  void forget_weights();
  void forget_index_errors();
  void read_index_errors(Readback& readback);
  void throw_bad_index(const Readback& readback);

  // loop.cpp
  void copy_between(const WebGpuProgram& from_program, int32_t from, const WebGpuProgram& to_program, int32_t to,
                    int64_t row_of_from, int64_t row_of_to);
  void give(int32_t from, WebGpuProgram& region, size_t input, int64_t row);
  bool is_true(int32_t v, Tensor& read);
  void run_loop(ReadyLoop& ready);
  void run_if(ReadyLoop& ready);
  void run_while(ReadyLoop& ready);
  void run_scan(ReadyLoop& ready);
  bool is_used(int32_t v) const;

  // poison.cpp
  void poison_buffers();
  void poison_buffer(Commands& commands, int32_t index) const;
  void make_guards();
  void poison_arena();
  void poison_dead(size_t step);
  void poison_workgroups();
  void guard(const ReadyStep& step);
  void collect_guards(const ReadyStep& step);
  void check_guards();

  // trace.cpp
  void begin_trace();
  void run_traced(ReadyStep& step);
  void read_timestamps();
  void end_trace(std::vector<StepTrace>& trace);

  // active_extent.cpp
  std::string find_scaled(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows);
  void scale_states(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows);
  void scale_checks(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows);
  std::pair<std::vector<host::ExtentType>, std::vector<host::ExtentType>> extent_types(const Node& full,
                                                                                       const Node& node,
                                                                                       const Graph& active) const;
  std::string why_not_scaled(const Step& step, const Graph& active, const Extent& extent, bool& touches) const;
  const Graph& full_graph();

  std::shared_ptr<Device> device_;
  const Api& api_;
  CompileOptions options_;
  Limits limits_;
  Program program_;
  plan::Plan plan_;
  DeviceStats stats_;
  Memory memory_;
  Dispatches dispatches_;
  std::optional<Commands> own_commands_;
  Commands& commands_;
  bool nested_;
  Uploads uploads_;
  Readback readback_;

  std::vector<ReadyStep> static_ready_, ready_;
  std::vector<ReadyLoop> loops_;
  std::vector<ReadyHostCall> host_calls_;
  std::vector<Input> inputs_;
  std::vector<Tensor> params_;
  std::vector<bool> param_changed_;
  std::vector<bool> static_done_;  // by static step
  bool params_stale_ = true;
  std::vector<std::pair<size_t, size_t>> feeds_;  // output, input
  std::vector<EndCopy> end_copies_;
  bool end_copies_stale_ = true;
  Buffer end_staging_;
  std::optional<DimBinding> active_;
  std::optional<Graph> full_;         // at all rows; made when somebody asks
  std::unordered_set<ValueId> used_;  // of it

  std::vector<Tensor> host_;     // by value: what host steps have computed
  std::vector<bool> host_root_;  // by value: the host has its bytes
  std::vector<Tensor> host_states_, outputs_;
  std::vector<int64_t> output_items_;  // of a run: the output's item of the readback; -1: none

  struct GuardedWrite {
    const Step* step;
    int32_t value;
  };
  Buffer poison_, guards_;
  size_t poison_dispatch_ = 0;
  std::vector<std::vector<int32_t>> deaths_;  // by step: roots whose bytes nobody reads any more
  std::vector<GuardedWrite> guarded_;         // of a run
  int64_t guards_item_ = -1;
  int64_t index_errors_item_ = -1;  // of the readback of the program that all is in
  bool has_failed_ = false;         // the last run: what it has noted of indices is not the next one's

  bool is_traced_ = false, in_static_ = false;
  std::vector<Mark> marks_;
  std::vector<StepTrace>* inner_trace_ = nullptr;  // of the loop that runs
  std::vector<QuerySet> queries_;
  Buffer query_results_;
  int64_t next_query_ = 0, queries_item_ = -1;
  std::vector<uint64_t> timestamps_;  // of a run
};

}  // namespace rlx::webgpu
