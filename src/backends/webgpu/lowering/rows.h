// How kernels on rows (kernels/rows.wgsl) go over a tensor [outer, cols, inner], and what their lowerings share.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/webgpu/lower.h"
#include "rlx/ops/reduce.h"

namespace rlx::webgpu {

struct RowPlan {
  int64_t outer = 1, cols = 0, inner = 1;  // cols in loads
  int64_t chunks = 1, chunk = 0;           // parts of a row, loads in each
  uint32_t lanes = 1;                      // threads of a row
  bool by_columns = false;
  uint32_t kept = 0;  // loads in a thread's registers; 0: the kernel streams

  static constexpr uint32_t kThreads = 256;  // of a workgroup: every device has them
  uint32_t threads = kThreads;
  int64_t rows() const { return outer * chunks * inner; }
  std::vector<std::pair<std::string, uint32_t>> constants() const;
  Grid grid() const { return {.x = {.items = rows(), .per_group = threads / lanes, .active = true}}; }
  template <class P>
  P params() const {
    P p{};
    p.rows = to_u32(rows());
    p.cols = to_u32(cols);
    p.inner = to_u32(inner);
    p.chunks = to_u32(chunks);
    p.chunk = to_u32(chunk);
    return p;
  }
};

// For kernels that hold a row, or a chunk of it, in registers. `most_threads`: of a workgroup, for long rows.
RowPlan plan_kept(const AxisSplit& split, bool vector, uint32_t most_threads = RowPlan::kThreads);
uint32_t row_threads(const LowerCall& call);  // for that
// For kernels that read a row once and keep one number. `may_cut`: a long row may become chunks, whose results another
// pass brings together.
RowPlan plan_streaming(const AxisSplit& split, bool vector, bool may_cut);

// How kernels/streamed.wgsl goes over a tensor: workgroups have rows or columns that they do not hold, and read them
// twice.
struct StreamPlan {
  AxisSplit split{};  // cols of rows, inner of columns in loads
  bool rows = false, vector = false;
  uint32_t threads = 512, columns = 1, kept = 8, step = 8;  // kept: for norms a multiple of step

  bool whole() const { return split.cols <= int64_t{threads / columns} * kept; }
  int64_t groups() const { return split.outer * ((split.inner + columns - 1) / columns); }
  std::vector<std::pair<std::string, uint32_t>> constants() const;
  Grid grid() const { return {.x = {.items = groups(), .active = true}}; }
  template <class P>
  P params() const {
    P p{};
    p.outer = to_u32(split.outer);
    p.cols = to_u32(split.cols);
    p.inner = to_u32(split.inner);
    return p;
  }
};
// None where too few workgroups would have work.
std::optional<StreamPlan> plan_streamed(const LowerCall& call, const AxisSplit& split, Operand in, Operand out);

using Includes = std::vector<std::pair<std::string, std::string>>;
Includes stream_includes(const LowerCall& call, const StreamPlan& plan);
// Reductions over a workgroup: by subgroups where the device has them. And loads of one or four elements.
Includes row_includes(const LowerCall& call, bool vector);
// T, or vec4<T>.
std::string load_type(std::string_view element, bool vector);
// May the operands be read four elements at a time along rows of `cols` elements, side by side?
bool loads_by_four(const LowerCall& call, const AxisSplit& split, std::initializer_list<Operand> operands);

// A reduction over the middle axis of [outer, cols, inner], in one or two dispatches.
struct Reduction {
  Operand in, out;
  ops::ReduceKind kind = ops::ReduceKind::kSum;
  DType dtype = DType::F32;
  AxisSplit split{};
  bool extent_safe = false;
  std::string step = "reduce";  // what its steps are called
};
void emit_reduction(LowerCall& call, const Reduction& reduction);
// Its first pass alone: a sum or product per chunk of the plan.
void emit_reduced_chunks(LowerCall& call, const Reduction& reduction, const RowPlan& plan);

// Index of the largest or smallest element along the middle axis; NaN has the key `nan_key` (kernels/key.wgsl).
struct ArgSearch {
  Operand in, out;
  DType dtype = DType::F32;
  AxisSplit split{};
  bool largest = true;
  uint32_t nan_key = UINT32_MAX;
  bool extent_safe = false;
};
void emit_arg(LowerCall& call, const ArgSearch& search);

// The first k of every row of [outer, cols, inner] in order, with their places; NaN counts as the largest.
struct Selection {
  Operand in, values, ids;
  DType dtype = DType::F32;
  AxisSplit split{};
  int64_t k = 0;
  bool largest = true, extent_safe = false;
};
void emit_topk(LowerCall& call, const Selection& selection, std::string_view step = {});  // topk.cpp

// kernels/combine.wgsl for the elements of an operand: the kernel's part of the key, and the bits of what changes
// nothing.
struct Combine {
  Includes includes;
  std::vector<std::pair<std::string, std::string>> types;  // E, T, Acc
  std::vector<std::pair<std::string, uint32_t>> constants;
  uint32_t identity = 0;
  Storage partial = Storage::kF32;  // of a value between two passes
  bool may_cut = true;              // else its values between two passes would not be elements
};
Combine combine_for(const LowerCall& call, Operand in, Operand out, ops::ReduceKind kind, DType dtype, bool empty);

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace rlx::webgpu
