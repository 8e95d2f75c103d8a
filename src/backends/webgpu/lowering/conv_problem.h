// A convolution, forward or transposed, as the kernels see it: windows over three spatial axes that read a list of
// taps.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backends/webgpu/lower.h"
#include "ops/window.h"
#include "rlx/ops/activation.h"

namespace rlx::webgpu {

// Axes that are missing come first and have size 1.
using Space = std::array<int64_t, 3>;
int64_t volume(const Space& s);
// `list` has an entry per spatial axis of a window of `rank` axes.
Space space_of(const std::vector<int64_t>& list, int64_t rank, int64_t missing);
Space space_of_sizes(const TensorType& type);  // [N, C, spatial…]

// The results of a transposed convolution with stride s fall into s phases along an axis, each with its own taps:
// within a phase it is a convolution of stride 1. A forward convolution has one phase.
struct ConvProblem {
  int64_t batch = 1, cin = 1, cout = 1, groups = 1;
  Space in = {1, 1, 1}, out = {1, 1, 1};
  Space count = {1, 1, 1};   // windows of a phase along an axis
  Space stride = {1, 1, 1};  // elements of the input between two windows
  Space step = {1, 1, 1};    // elements of the result between two windows: one phase each
  int64_t taps = 1;          // of the kernel
  int64_t slots = 1;         // taps of the phase that has most
  // Per phase and slot: the tap, and how far from the window's start it reads; no tap: -1.
  struct Slot {
    int64_t tap = -1;
    Space at = {0, 0, 0};
  };
  std::vector<Slot> reads;
  int64_t group_stride = 0, m_stride = 0, channel_stride = 0;  // of the weight
  bool inside = false;                                         // no window reaches beyond the input

  int64_t phases() const { return volume(step); }
  int64_t windows() const { return volume(count); }  // of an image and phase
  int64_t n() const { return batch * windows(); }
  int64_t m() const { return cout / groups; }
  int64_t cin_group() const { return cin / groups; }
  int64_t k() const { return cin_group() * slots; }
  // One element per window, in the input's order.
  bool pointwise() const;
};

// x [N, Cin, …] to y [N, Cout, …], w [Cout, Cin / groups, …].
ConvProblem forward_problem(const ops::Window& window, int64_t groups, const TensorType& x, const TensorType& y);
// x [N, Cin, …] to y [N, Cout, …], w [Cin, Cout / groups, …]; the window slides over y.
ConvProblem transposed_problem(const ops::Window& window, int64_t groups, const TensorType& x, const TensorType& y);

struct ConvOperands {
  Operand x, w, y;
  std::optional<Operand> bias, residual;
  ops::ActivationKind activation = ops::ActivationKind::kNone;
  int64_t w_input = 1;  // which operand of the node w is
  bool extent_safe = true;
};

// A row of the table of kernels (style.md, 3): the first of those without tiles that fits, else the tile that is
// estimated to be fastest.
struct ConvVariant {
  std::string_view name;
  bool (*fits)(const ConvProblem&, const Limits&);
  uint32_t bm = 0, bn = 0, tm = 0, tn = 0;  // of a matrix product: a workgroup's tile, a thread's part
  double tflops = 0;                        // with a large GPU full of them (an H200)
};
std::span<const ConvVariant> conv_variants();

struct ConvChoice {
  const ConvVariant* variant;
  int64_t splits = 1;  // workgroups that share a tile, each a part of K
};
ConvChoice choose_conv(const ConvProblem& problem, const Limits& limits);

void emit_conv(LowerCall& call, const ConvProblem& problem, ConvOperands operands);

}  // namespace rlx::webgpu
