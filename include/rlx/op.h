// OpDef: what an op means. A record, not an enum value: nobody can switch over ops (style: "how one op lives in the
// tree").
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/attrs.h"
#include "rlx/error.h"
#include "rlx/shape.h"

namespace rlx {

struct OpDef;
class DecomposeCall;
class Value;
using Values = std::vector<Value>;

// The result types of a node; a single type converts.
struct Types : std::vector<TensorType> {
  using std::vector<TensorType>::vector;
  Types(TensorType type) : std::vector<TensorType>{std::move(type)} {}
};

// What a type rule sees. It throws Error when operands or attributes do not fit; it never guesses.
class InferCall {
 public:
  InferCall(const OpDef& op, std::span<const TensorType> inputs, const Attrs& attrs, SymbolTable& table,
            std::span<const TensorType> declared = {})
      : symbols(table), op_(op), inputs_(inputs), attrs_(attrs), declared_(declared) {}

  const OpDef& op() const { return op_; }
  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  const TensorType& input(int64_t i) const { return inputs_[static_cast<size_t>(i)]; }
  std::span<const TensorType> inputs() const { return inputs_; }
  template <class A>
  const A& attrs() const {
    return attrs_.as<A>();
  }
  // The types the node declares; only leaves and Custom ask, everything else is inferred.
  std::span<const TensorType> declared() const { return declared_; }

  SymbolTable& symbols;  // arithmetic on dims goes through it

 private:
  const OpDef& op_;
  std::span<const TensorType> inputs_;
  const Attrs& attrs_;
  std::span<const TensorType> declared_;
};

// A contiguous part of operand 0's bytes: the value of a view.
struct ViewOf {
  int64_t offset_elems = 0;
};

// An executable may be compiled for more rows than a run has: a "bucket". Only the first rows of the bucket axis (the
// sizes that carry one symbol, CompileOptions::bucket_symbol) are in use then, the active extent. How a step behaves
// (spec 40, 5):
enum class ExtentRule {
  kRows,      // safe where the bucket axis is the outermost one of every operand that has it, and is kept
  kOwnBound,  // the kernel loops over the axis as its own bound: attention, rope, scans, kv_append
  kFull,      // runs the full extent and counts as safe: fft, log_mel, welch_peaks, im2col
  kNever,     // backward ops, splats, kNN
};

// Which operands result 0 may overwrite: bit i is operand i. The kernel reads an element of it only to write the
// element at the same place, or owns a whole row and reads no element after writing it (spec 20, 2.4).
using InPlaceMask = uint32_t;

// What passes, planner and printers ask of an op.
struct Traits {
  bool elementwise = false;    // result element i depends on element i of the (broadcast) operands only, not on i
  bool commutative = false;    // of its first two operands
  bool compute_heavy = false;  // "blas" (spec 10, 3.3)
  bool fusion_boundary = false;
  bool reduction = false;
  bool leaf = false;         // input, param, constant, state, dim_value
  InPlaceMask in_place = 0;  // result 0 may take these operands' bytes
  // Result `state_result` (-1: none) is the new value of operand `state_operand`: it may take its bytes, and padded
  // rows of an active extent never enter it (spec 10, 3.8).
  int state_operand = -1;
  int state_result = -1;
  ExtentRule extent = ExtentRule::kRows;
};

inline constexpr int kVariadic = 1 << 20;

struct OpDef {
  std::string_view name;      // "softmax": in text, tables, traces and reports
  std::string_view category;  // the catalogue's section: "Reductions"
  int min_inputs = 0;
  int max_inputs = 0;  // kVariadic: no bound
  const AttrsType* attrs = &attrs_type<NoAttrs>;
  Types (*infer)(const InferCall&) = nullptr;
  // Exact definition in terms of other ops. The oracle runs it; other backends may (spec 20, 1.6).
  Values (*decompose)(const DecomposeCall&) = nullptr;
  // When result 0 lies inside operand 0's bytes: where (spec 20, 2.2). Types are bound.
  std::optional<ViewOf> (*view)(const InferCall&) = nullptr;
  // Does the op mix elements along this axis of operand 0 (reduce, softmax, concat along it)?
  bool (*mixes_axis)(const Attrs&, int64_t rank, int64_t axis) = nullptr;
  Traits traits = {};
  std::string_view doc;
};

// Every op of the catalogue, sorted by name (src/ops/all_ops.cpp).
std::span<const OpDef* const> all_ops();
const OpDef* find_op(std::string_view name);  // null when there is none

}  // namespace rlx
