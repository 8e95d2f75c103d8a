// A program while its nodes are lowered: values in all their forms, steps, and what the plan must know of both.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& symbolic, const Graph& bound, const Manifest& manifest, const Device& device,
                 const CompileOptions& options);

  // The program, its steps in order and its outputs pinned. `nested`: a region of a loop.
  Program finish(bool nested);

  const Graph& symbolic() const { return symbolic_; }
  const Graph& bound() const { return bound_; }
  const Device& device() const { return device_; }
  const CompileOptions& options() const { return options_; }
  Program& program() { return program_; }
  const Program& program() const { return program_; }

  // ---- the node being lowered ----

  void begin_node(size_t index);
  const Node& node() const { return *node_; }
  const Node& symbolic_node() const { return symbolic_.nodes()[static_cast<size_t>(node_index_)]; }
  const std::string& label() const { return label_; }
  // The params it depends on, if on nothing else: it runs once for all runs then.
  const std::optional<std::vector<int32_t>>& node_params() const { return node_params_; }
  void set_node_params(std::optional<std::vector<int32_t>> params) { node_params_ = std::move(params); }

  // ---- values ----

  const std::unordered_set<ValueId>& used() const { return used_; }
  bool wants(ValueId id) const { return used_.contains(id); }
  int32_t value_of(ValueId id) const { return value_.at(id); }
  const ProgramValue& value(int32_t v) const { return program_.values[static_cast<size_t>(v)]; }
  int32_t root_of(int32_t v) const { return plan::root_of(program_.problem, v).value; }
  int64_t view_offset_bytes(int32_t v) const { return plan::root_of(program_.problem, v).offset_bytes; }

  int32_t new_value(const TensorType& type, const TensorType& symbolic, Storage storage, Source source,
                    std::string label);
  // Result `r` of the node.
  int32_t add_result(size_t r, Storage storage, Source source);
  // `v` lies in the bytes of `of`, from `offset_bytes` on.
  void add_view(int32_t v, int32_t of, int64_t offset_bytes);
  Operand add_table(std::span<const uint32_t> words);

  // Values that depend on weights alone, and on which params; null: others.
  const std::vector<int32_t>* static_params(int32_t v) const;
  bool is_static(int32_t v) const { return static_params(v) != nullptr; }
  void make_static(int32_t v, std::vector<int32_t> params);

  // ---- forms of a value, made by a kernel where it has not that form ----

  // An element in each place, as kernels see it; once for all readers.
  int32_t unpacked(int32_t v);
  // The same, the first element at a multiple of four bytes: what can be copied to where a step puts its results.
  int32_t plain(int32_t v);
  // An f32 weight as halves, rounded to nearest even; once for all readers.
  int32_t f16_copy(int32_t v);
  // The same in bytes of its own; once for all readers.
  int32_t copied(int32_t v);
  // What a kernel writes of a result: the result itself, or a form of it that convert_written() converts when the
  // node's steps are there.
  int32_t written(int32_t v);
  void convert_written();

  // ---- steps ----

  // A dispatch of the node, called by its op's step name unless it has one of its own.
  void emit(Dispatch dispatch, std::string_view name, bool is_static);
  // A step of the node that the host runs or drives.
  void add_host_step(std::variant<Dispatch, HostCall, Loop> work, std::string name);
  std::optional<LowerCall::IndexErrors> add_index_check(
      int32_t indices, std::vector<int64_t> what,
      std::function<std::string(int64_t value, int64_t position, int64_t rows)> complaint);

 private:
  Storage kernel_storage(int32_t v) const;
  Storage computed_storage(int32_t v) const;
  int32_t new_form(int32_t v, Storage to, std::string_view how);
  int32_t convert(int32_t v, Storage to);
  int32_t unpack(int32_t v, Storage to);
  template <class P>
  void emit_form(int32_t v, int32_t out, KernelKey kernel, std::string_view name);
  void emit_convert(int32_t v, int32_t out);
  void separate_types(Dispatch& dispatch, bool is_static);

  Step make_step(std::variant<Dispatch, HostCall, Loop> work, std::string name) const;
  void append(Step step, bool is_static, bool is_of_node, bool in_place);
  void add_sharing(plan::Step& planned) const;
  void add_poison();
  void drop_unread_steps();
  void pin_outputs();

  const Graph& symbolic_;
  const Graph& bound_;
  const Device& device_;
  const CompileOptions& options_;
  std::unordered_set<ValueId> used_;

  const Node* node_ = nullptr;
  int64_t node_index_ = 0;
  std::string label_;
  std::optional<std::vector<int32_t>> node_params_;

  std::unordered_map<ValueId, int32_t> value_;
  std::vector<std::optional<std::vector<int32_t>>> static_params_;  // by value
  std::unordered_map<int32_t, int32_t> unpacked_, f16_copies_, copies_;
  std::map<int32_t, int32_t> written_;  // of the node: results, and what kernels write of them
  std::set<std::pair<int32_t, std::vector<int64_t>>> index_checks_;  // values, and what is checked of them
  Program program_;
};

}  // namespace rlx::webgpu
