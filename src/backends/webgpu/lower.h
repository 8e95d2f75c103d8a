// What a lowering sees of its node, and the table of lowerings.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "backends/webgpu/program.h"
#include "rlx/op.h"

namespace rlx::webgpu {

class ProgramBuilder;

class LowerCall {
 public:
  LowerCall(ProgramBuilder& builder, const Node& node, std::span<const TensorType> inputs, bool is_static);

  template <class A>
  const A& attrs() const {
    return node_.attrs.template as<A>();
  }
  const OpDef& op() const { return *node_.op; }
  const Attrs& raw_attrs() const { return node_.attrs; }
  const Device& device() const;
  const CompileOptions& options() const;

  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(node_.results.size()); }
  const TensorType& input_type(int64_t i) const { return inputs_[static_cast<size_t>(i)]; }
  const TensorType& output_type(int64_t i) const { return node_.results[static_cast<size_t>(i)].type; }
  bool wants(int64_t i) const;            // is result i used?
  bool is_static_input(int64_t i) const;  // a weight, or computed of weights alone
  // The axis of operand i whose size an active extent cuts (spec 40, 5); -1: none.
  int64_t bucket_axis(int64_t i) const;

  // Operand i, one element after the other: bytes that lie packed are unpacked first, once for all readers.
  Operand read(int64_t i);
  // The same as bytes in words, for kernels that decode them: of dtypes that are stored packed, or of U8 schemes.
  Operand read_packed(int64_t i);
  // Operand i where it lies, without the copies that narrows, slices, transposes and reshapes in front of it make:
  // strides per axis of its type, in elements, from the operand's first one on. Nothing where that is no other than
  // read(i).
  struct Strided {
    Operand operand;
    std::vector<int64_t> strides;
  };
  std::optional<Strided> read_strided(int64_t i);
  Operand write(int64_t i);
  // A value of its own that lives from the first dispatch of this node that writes it to the last that reads it. Of
  // weights alone if the node is.
  Operand temporary(Storage storage, std::vector<int64_t> sizes);
  // A value that is made of operand i alone (a weight in another order): its dispatches, by emit_derived, run once for
  // all runs if the operand is a weight.
  Operand derived(int64_t i, Storage storage, std::vector<int64_t> sizes);
  // A table of words that is known now (strides, offsets): uploaded once.
  Operand table(std::span<const uint32_t> words);
  // Operand i, an f32 weight, as halves: those that it was cast from, or a copy that is made once for all readers.
  // Nullopt: it is no such weight, or the options or the device do not want a copy.
  std::optional<Operand> f16_weight(int64_t i);
  // Under WebGpuOptions::check_indices: where a check of operand i notes what it finds, and which of the checks it is.
  // Nullopt: the same (`what`) is checked already, as rows of caches in every layer are.
  struct IndexErrors {
    Operand errors;
    uint32_t slot;
  };
  std::optional<IndexErrors> index_errors(
      int64_t i, std::vector<int64_t> what,
      std::function<std::string(int64_t value, int64_t position, int64_t rows)> complaint);
  // `operand` as one that is written or read.
  static Operand reading(Operand operand) { return {operand.value, false}; }
  static Operand writing(Operand operand) { return {operand.value, true}; }

  Storage storage(Operand operand) const;
  std::string_view element(Operand operand) const { return element_type(storage(operand)); }
  // Does the operand start at a multiple of so many bytes? Roots do; a view may not.
  bool starts_at_multiple_of(Operand operand, int64_t bytes) const;
  // Are both views of one value, or the same? Such operands may share a binding: they need one element type.
  bool same_root(Operand first, Operand second) const;

  // Stamps the step with the op's name, or `name`, and the node.
  void emit(Dispatch dispatch, std::string_view name = {});
  void emit_derived(int64_t i, Dispatch dispatch, std::string_view name = {});

 private:
  Operand new_temporary(Storage storage, const std::vector<int64_t>& sizes,
                        const std::optional<std::vector<int32_t>>& params);
  ValueId input_id(int64_t i) const { return node_.inputs[static_cast<size_t>(i)]; }
  ProgramBuilder& builder_;
  const Node& node_;
  std::span<const TensorType> inputs_;
  bool is_static_;
};

// A node as a row sees it before it is lowered; sizes may be symbols when passes ask.
struct LowerSignature {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const TensorType> inputs, outputs;
  const TensorType& input(int64_t i) const { return inputs[static_cast<size_t>(i)]; }
  const TensorType& output(int64_t i) const { return outputs[static_cast<size_t>(i)]; }
};

struct LoweringRow {
  const OpDef* op;
  void (*lower)(LowerCall&);
  // Can it lower this node on this device? Null: every node whose dtypes the device stores (no F64).
  bool (*supports)(const LowerSignature&, const Device&) = nullptr;
};
std::span<const LoweringRow> lowering_table();  // sorted by op name; lowerings.cpp
// Null: the node runs on the host.
const LoweringRow* find_lowering(const LowerSignature& signature, const Device& device);

uint32_t to_u32(int64_t n);  // throws kUnsupported when it does not fit

// Elements before, along and after an axis.
struct AxisSplit {
  int64_t outer, cols, inner;
};
AxisSplit split_at(const Shape& shape, int64_t axis);

}  // namespace rlx::webgpu
