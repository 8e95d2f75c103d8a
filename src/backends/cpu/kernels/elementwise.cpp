// Element-wise ops and regions: each is an element-wise program (elementwise/program.h).
#include <algorithm>

#include "backends/cpu/elementwise/layout.h"
#include "backends/cpu/elementwise/run.h"
#include "backends/cpu/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kMaxRank = kMaxLayoutRank - 2;

// What a program is built from: dtypes of a node before it runs, or of a call.
struct DTypes {
  std::array<DType, kMaxProgramInputs> inputs;
  int64_t count = 0;
};
bool read_dtypes(const Signature& s, DTypes& d) {
  if (s.inputs.size() > d.inputs.size() || s.output(0).rank() > kMaxRank) return false;
  for (const TensorType& t : s.inputs) d.inputs[static_cast<size_t>(d.count++)] = t.dtype;
  return true;
}
DTypes dtypes_of(const Call& call) {
  DTypes d;
  for (; d.count < call.num_inputs(); ++d.count) d.inputs[static_cast<size_t>(d.count)] = call.input(d.count).dtype;
  return d;
}

bool build_op(const OpDef& op, std::optional<DType> to, const DTypes& d, Program& program) {
  ProgramBuilder b(program);
  int values[kMaxProgramInputs];
  for (int64_t i = 0; i < d.count; ++i) values[i] = b.input(d.inputs[static_cast<size_t>(i)]);
  return b.finish(b.apply(op, {values, static_cast<size_t>(d.count)}, to));
}

// Steps that the last one does not depend on are left out.
bool build_chain(const Chain& chain, const DTypes& d, Program& program) {
  if (chain.size() > kMaxProgramSteps) return false;
  std::array<bool, kMaxProgramSteps> needed = {};
  needed[chain.size() - 1] = true;
  for (size_t s = chain.size(); s-- > 0;)
    if (needed[s])
      for (const ChainOperand& o : chain[s].operands)
        if (o.is_step) needed[static_cast<size_t>(o.index)] = true;
  ProgramBuilder b(program);
  std::array<int, kMaxProgramInputs> inputs;
  std::array<int, kMaxProgramSteps> steps;
  for (int64_t i = 0; i < d.count; ++i) inputs[static_cast<size_t>(i)] = b.input(d.inputs[static_cast<size_t>(i)]);
  for (size_t s = 0; s < chain.size(); ++s) {
    if (!needed[s]) continue;
    int operands[3];
    if (chain[s].operands.size() > std::size(operands)) return false;
    for (size_t i = 0; i < chain[s].operands.size(); ++i) {
      const ChainOperand& o = chain[s].operands[i];
      operands[i] = o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)];
    }
    steps[s] = b.apply(*chain[s].op, {operands, chain[s].operands.size()}, chain[s].to);
    if (steps[s] < 0) return false;
  }
  return b.finish(steps[chain.size() - 1]);
}

// The derivative is not a value of the graph: it stays f32 until it has been multiplied with dy.
bool build_backward(ops::ActivationKind kind, const DTypes& d, Program& program) {
  using enum ops::ActivationKind;
  if (lane_of(d.inputs[0]) != Lane::kF32) return false;
  ProgramBuilder b(program);
  const int x = b.input(d.inputs[0]), dy = b.input(d.inputs[1]);
  const DType dtype = d.inputs[0];
  const auto slope = [&](Micro micro) {
    const int both[] = {b.step(micro, {&x, 1}, DType::F32), dy};
    return b.step(Micro::kMulF, both, dtype);
  };
  const int both[] = {x, dy};
  switch (kind) {
    case kNone:
    case kRound: return b.finish(dy);
    case kRelu: return b.finish(b.step(Micro::kReluBackwardF, both, dtype));
    case kNeg: return b.finish(b.step(Micro::kNegF, {&dy, 1}, dtype));
    case kSigmoid: return b.finish(slope(Micro::kSigmoidSlopeF));
    case kTanh: return b.finish(slope(Micro::kTanhSlopeF));
    case kExp: return b.finish(slope(Micro::kExpF));
    case kLog: return b.finish(slope(Micro::kRecipF));
    case kSqrt: return b.finish(slope(Micro::kSqrtSlopeF));
    case kRsqrt: return b.finish(slope(Micro::kRsqrtSlopeF));
    case kAbs: return b.finish(slope(Micro::kSignF));
    case kGelu: return b.finish(slope(Micro::kGeluSlopeF));
    case kSilu: return b.finish(slope(Micro::kSiluSlopeF));
    case kGeluApprox: return b.finish(slope(Micro::kGeluApproxSlopeF));
    case kSin: return b.finish(slope(Micro::kCosF));
    case kCos: return b.finish(slope(Micro::kMinusSinF));
    case kTan: return b.finish(slope(Micro::kTanSlopeF));
    case kAtan: return b.finish(slope(Micro::kAtanSlopeF));
  }
  return false;
}

bool build_is_inf(const Attrs& attrs, const DTypes& d, Program& program) {
  const auto& [positive, negative] = attrs.as<ops::IsInfAttrs>();
  if (lane_of(d.inputs[0]) != Lane::kF32 || (!positive && !negative)) return false;
  ProgramBuilder b(program);
  const int x = b.input(d.inputs[0]);
  const Micro micro = positive && negative ? Micro::kIsInfF : positive ? Micro::kIsPlusInfF : Micro::kIsMinusInfF;
  return b.finish(b.step(micro, {&x, 1}, DType::Bool));
}

// Gate and up are inputs 0 and 1.
bool build_swiglu(const ops::FusedSwigluAttrs& attrs, DType dtype, Program& program) {
  ProgramBuilder b(program);
  const int gate = b.input(dtype), up = b.input(dtype);
  const int both[] = {up, b.apply(ops::silu, {&gate, 1})};
  const int y = b.apply(ops::mul, both);
  return b.finish(attrs.cast_to ? b.cast(y, *attrs.cast_to) : y);
}

bool supports(const Signature& s, bool (*build)(const Attrs&, const DTypes&, Program&)) {
  DTypes d;
  Program program;
  return read_dtypes(s, d) && build(s.attrs, d, program) && program.result_dtype == s.output(0).dtype;
}
int64_t scratch(const Signature& s, int threads, bool (*build)(const Attrs&, const DTypes&, Program&)) {
  DTypes d;
  Program program;
  RLX_ASSERT(read_dtypes(s, d) && build(s.attrs, d, program));
  return threads * program.scratch_bytes();
}
void run_broadcast(const Call& call, const Program& program, int resized = -1) {
  host::View views[kMaxProgramInputs];
  const std::byte* data[kMaxProgramInputs];
  const auto n = static_cast<size_t>(call.num_inputs());
  for (size_t i = 0; i < n; ++i) {
    views[i] = call.input(static_cast<int64_t>(i));
    data[i] = views[i].data;
  }
  const Layout layout = broadcast_layout(call.output(0).sizes, {views, n}, resized);
  run_program(program, layout, data, call.output(0).data, call.pool(), call.scratch());
}

bool build_region(const Attrs& attrs, const DTypes& d, Program& program) {
  return build_chain(attrs.as<ops::ElementwiseRegionAttrs>().chain, d, program);
}
bool build_batch_region(const Attrs& attrs, const DTypes& d, Program& program) {
  DTypes slice = d;
  slice.count = 1;
  return build_chain(attrs.as<ops::BatchElementwiseRegionAttrs>().chain, slice, program);
}
bool build_activation_backward(const Attrs& attrs, const DTypes& d, Program& program) {
  return build_backward(attrs.as<ops::ActivationBackwardAttrs>().kind, d, program);
}
bool build_fused_swiglu(const Attrs& attrs, const DTypes& d, Program& program) {
  return build_swiglu(attrs.as<ops::FusedSwigluAttrs>(), d.inputs[0], program);
}
int resized_input(ops::RegionPrologue prologue, int64_t input) {
  return prologue == ops::RegionPrologue::kResizeNearest2x ? static_cast<int>(input) : -1;
}

}  // namespace

bool elementwise_op_supports(const OpDef& op, const Signature& s) {
  DTypes d;
  Program program;
  const auto to = &op == &ops::cast ? std::optional(s.attrs.as<ops::CastAttrs>().to) : std::nullopt;
  return read_dtypes(s, d) && build_op(op, to, d, program);
}

int64_t elementwise_op_scratch(const OpDef& op, const Signature& s, int threads) {
  DTypes d;
  Program program;
  const auto to = &op == &ops::cast ? std::optional(s.attrs.as<ops::CastAttrs>().to) : std::nullopt;
  RLX_ASSERT(read_dtypes(s, d) && build_op(op, to, d, program));
  return threads * program.scratch_bytes();
}

void elementwise_op(const OpDef& op, const Call& call) {
  Program program;
  const auto to = &op == &ops::cast ? std::optional(call.attrs<ops::CastAttrs>().to) : std::nullopt;
  RLX_ASSERT(build_op(op, to, dtypes_of(call), program));
  run_broadcast(call, program);
}

bool elementwise_region_supports(const Signature& s) { return supports(s, build_region); }
int64_t elementwise_region_scratch(const Signature& s, int threads) { return scratch(s, threads, build_region); }
void elementwise_region(const Call& call) {
  const auto& attrs = call.attrs<ops::ElementwiseRegionAttrs>();
  Program program;
  RLX_ASSERT(build_chain(attrs.chain, dtypes_of(call), program));
  run_broadcast(call, program, resized_input(attrs.prologue, attrs.prologue_input));
}

// Slice after slice: the inputs are many, but a program reads one of them.
bool batch_elementwise_region_supports(const Signature& s) {
  const Signature slice{s.attrs, s.inputs.first(1), s.outputs, s.static_inputs};
  return supports(slice, build_batch_region);
}
int64_t batch_elementwise_region_scratch(const Signature& s, int threads) {
  const Signature slice{s.attrs, s.inputs.first(1), s.outputs, s.static_inputs};
  return scratch(slice, threads, build_batch_region);
}
void batch_elementwise_region(const Call& call) {
  const auto& attrs = call.attrs<ops::BatchElementwiseRegionAttrs>();
  DTypes d;
  d.inputs[0] = call.input(0).dtype;
  d.count = 1;
  Program program;
  RLX_ASSERT(build_chain(attrs.chain, d, program));
  const host::View& y = call.output(0);
  RLX_ASSERT(y.rank() <= kMaxRank);
  int64_t sizes[kMaxRank];
  std::copy(y.sizes.begin(), y.sizes.end(), sizes);
  sizes[0] = 1;
  const auto rank = static_cast<size_t>(y.rank());
  const int64_t slice_bytes = y.elements() / call.num_inputs() * static_cast<int64_t>(size_of(y.dtype));
  const Layout layout =
      broadcast_layout({sizes, rank}, {&call.input(0), 1}, resized_input(attrs.prologue, attrs.prologue_input));
  for (int64_t b = 0; b < call.num_inputs(); ++b) {
    const std::byte* data = call.input(b).data;
    run_program(program, layout, &data, y.data + b * slice_bytes, call.pool(), call.scratch());
  }
}

bool activation_backward_supports(const Signature& s) { return supports(s, build_activation_backward); }
int64_t activation_backward_scratch(const Signature& s, int threads) {
  return scratch(s, threads, build_activation_backward);
}
void activation_backward(const Call& call) {
  Program program;
  RLX_ASSERT(build_backward(call.attrs<ops::ActivationBackwardAttrs>().kind, dtypes_of(call), program));
  run_broadcast(call, program);
}

bool is_inf_supports(const Signature& s) { return supports(s, build_is_inf); }
int64_t is_inf_scratch(const Signature& s, int threads) { return scratch(s, threads, build_is_inf); }
void is_inf(const Call& call) {
  Program program;
  RLX_ASSERT(build_is_inf(call.raw_attrs(), dtypes_of(call), program));
  run_broadcast(call, program);
}

static bool build_relu_backward(const Attrs&, const DTypes& d, Program& program) {
  return build_backward(ops::ActivationKind::kRelu, d, program);
}
bool relu_backward_supports(const Signature& s) { return supports(s, build_relu_backward); }
int64_t relu_backward_scratch(const Signature& s, int threads) { return scratch(s, threads, build_relu_backward); }
void relu_backward(const Call& call) {
  Program program;
  RLX_ASSERT(build_backward(ops::ActivationKind::kRelu, dtypes_of(call), program));
  run_broadcast(call, program);
}

bool fused_swiglu_supports(const Signature& s) { return supports(s, build_fused_swiglu); }
int64_t fused_swiglu_scratch(const Signature& s, int threads) { return scratch(s, threads, build_fused_swiglu); }
void fused_swiglu(const Call& call) {
  const auto& attrs = call.attrs<ops::FusedSwigluAttrs>();
  const host::View &x = call.input(0), &y = call.output(0);
  Program program;
  RLX_ASSERT(build_swiglu(attrs, x.dtype, program));
  const int64_t half = y.dim(y.rank() - 1);
  Layout layout;
  layout.rank = 2;
  layout.num_inputs = 2;
  layout.sizes[0] = y.elements() / half;
  layout.sizes[1] = half;
  for (int i = 0; i < 2; ++i) {
    layout.strides[i][0] = 2 * half;
    layout.strides[i][1] = 1;
  }
  merge_axes(layout);
  const std::byte *first = x.data, *second = x.data + half * static_cast<int64_t>(size_of(x.dtype));
  const std::byte* const data[] = {attrs.gate_first ? first : second, attrs.gate_first ? second : first};
  run_program(program, layout, data, y.data, call.pool(), call.scratch());
}

}  // namespace rlx::cpu
