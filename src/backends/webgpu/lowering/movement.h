// Elements moved unchanged: the step that transpose, expand, narrow, slice, concat and their like share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

// For every index over `sizes`: to[to_first + sum(index * to_strides)] = from[from_first + sum(index * from_strides)].
struct Movement {
  std::vector<int64_t> sizes, from_strides, to_strides;
  int64_t from_first = 0, to_first = 0;
};

std::vector<int64_t> row_major_strides(std::span<const int64_t> sizes);
// Without axes of size 1, and with neighbours that can be one axis as one; at least one axis is left.
Movement merge_axes(Movement movement);

// What a kernel moves at once: one element, or several that lie together.
struct Unit {
  std::string type;      // of WGSL; bytes are moved, so integers do for all
  int64_t elements = 1;  // of the value
};
// The bytes of a stored element.
int64_t element_bytes_of(Storage storage);
// The widest unit that divides all `multiples` (elements: lengths of runs, distances, starts) and the operands' starts.
Unit widest_unit(const LowerCall& call, std::span<const Operand> operands, std::span<const int64_t> multiples);

// Moves elements by the fitting kernel: copies of runs, tiles where the innermost axes differ, else one by one.
// `active`: the outermost axis of both sides carries the active extent.
void emit_movement(LowerCall& call, Operand from, Operand to, Movement movement, bool active);
// The same elements in the same order; no step at all where the op's in-place traits let both share their bytes.
void emit_copy(LowerCall& call, Operand from, Operand to, int64_t elements);
// Clears a value of so many elements.
void emit_zeros(LowerCall& call, Operand to, int64_t elements);

// How many units a thread of units.wgsl computes, of so many.
int64_t units_per_thread(int64_t n);
// A grid over n units for it, and its entry in a generated kernel.
Grid unit_grid(int64_t n, bool active);
std::string unit_entry(int64_t n);

// Generated Params: a name and a word each, in order. Distances may be negative: they wrap, as the kernels' sums do.
struct ParamFields {
  std::string text;
  std::vector<uint32_t> words;
  void add(const std::string& name, int64_t value);
};

// Coordinates c<k> of the axes, the last one fastest, out of the number `r` (a var of the kernel, used up).
std::string coordinate_text(ParamFields& fields, const std::vector<int64_t>& sizes, std::span<const size_t> axes);
// " + c0 * p.<name>_s0 + …"
std::string offset_text(ParamFields& fields, std::string_view name, const std::vector<int64_t>& strides,
                        std::span<const size_t> axes);

}  // namespace rlx::webgpu
