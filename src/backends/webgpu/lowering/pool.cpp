#include "rlx/ops/pool.h"

#include <bit>
#include <limits>

#include "backends/webgpu/lowering/conv_problem.h"
#include "backends/webgpu/lowering/folds.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/pool.h"
#include "wgsl/pool_backward.h"
#include "wgsl/pool_indices.h"

namespace rlx::webgpu {

KernelKey fold_key(std::string kernel, DType dtype, std::string_view element) {
  KernelKey key{.kernel = std::move(kernel), .types = {{"T", std::string(element)}}};
  if (is_float(dtype)) return key;
  key.types.emplace_back("Acc", std::string(element));
  key.constants.emplace_back("BITS", static_cast<uint32_t>(std::min<size_t>(32, size_of(dtype) * 8)));
  key.includes.emplace_back("fold_float", "fold_int");
  return key;
}

namespace {

enum class Kind : uint32_t { kMax, kMin, kSum, kMean, kProd };

// clang-format off
constexpr struct { const OpDef* op; Kind kind; } kKinds[] = {
    {&ops::pool_max, Kind::kMax},
    {&ops::pool_mean, Kind::kMean},
    {&ops::pool_min, Kind::kMin},
    {&ops::pool_prod, Kind::kProd},
    {&ops::pool_sum, Kind::kSum},
};
// clang-format on

Kind kind_of(const OpDef& op) {
  for (const auto& row : kKinds)
    if (row.op == &op) return row.kind;
  fail(ErrorKind::kInternal, str("'", op.name, "' is no pool."));
}

// What the padding is, as bits of the stored element.
uint32_t identity_of(Kind kind, DType dtype) {
  if (kind == Kind::kSum || kind == Kind::kMean) return 0;
  if (is_float(dtype)) {
    if (kind == Kind::kProd) return std::bit_cast<uint32_t>(1.0f);
    const float inf = std::numeric_limits<float>::infinity();
    return std::bit_cast<uint32_t>(kind == Kind::kMax ? -inf : inf);
  }
  if (kind == Kind::kProd) return 1;
  const auto bits = static_cast<uint32_t>(std::min<size_t>(32, size_of(dtype) * 8));
  if (!is_signed(dtype)) return kind == Kind::kMax ? 0 : 0xFFFFFFFFu >> (32 - bits);
  const uint32_t half = uint32_t{1} << (bits - 1);
  return kind == Kind::kMax ? 0u - half : half - 1;
}

// Windows over the planes of x.
struct Windows {
  Space in, out, kernel, stride, dilation, padding, end;
  int64_t planes;
  Windows(const ops::Window& w, const TensorType& x, const TensorType& y)
      : in(space_of_sizes(x)),
        out(space_of_sizes(y)),
        kernel(space_of(w.kernel, w.rank(), 1)),
        stride(space_of(w.stride, w.rank(), 1)),
        dilation(space_of(w.dilation, w.rank(), 1)),
        padding(space_of(w.padding, w.rank(), 0)),
        end(space_of(w.padding_end, w.rank(), 0)),
        planes(x.dim(0).value() * x.dim(1).value()) {}
  int64_t n() const { return planes * volume(out); }
};

// The fields that kernels over windows share.
template <class P>
P window_params(const Windows& w) {
  P p{};
  p.n = to_u32(w.n());
  p.windows = to_u32(volume(w.out));
  p.out_h = to_u32(w.out[1]);
  p.out_w = to_u32(w.out[2]);
  p.in_d = to_u32(w.in[0]);
  p.in_h = to_u32(w.in[1]);
  p.in_w = to_u32(w.in[2]);
  p.k_d = to_u32(w.kernel[0]);
  p.k_h = to_u32(w.kernel[1]);
  p.k_w = to_u32(w.kernel[2]);
  p.stride_d = to_u32(w.stride[0]);
  p.stride_h = to_u32(w.stride[1]);
  p.stride_w = to_u32(w.stride[2]);
  p.dilation_d = to_u32(w.dilation[0]);
  p.dilation_h = to_u32(w.dilation[1]);
  p.dilation_w = to_u32(w.dilation[2]);
  p.pad_d = to_u32(w.padding[0]);
  p.pad_h = to_u32(w.padding[1]);
  p.pad_w = to_u32(w.padding[2]);
  return p;
}

void emit_indices(LowerCall& call, const Windows& w, Operand x, Operand y, bool in_plane, bool column_major) {
  namespace k = wgsl::pool_indices;
  KernelKey key = fold_key("pool_indices", call.input_type(0).dtype, call.element(x));
  key.constants.emplace_back("IN_PLANE", in_plane ? 1u : 0u);
  key.constants.emplace_back("COLUMN_MAJOR", column_major ? 1u : 0u);
  call.emit({.kernel = std::move(key),
             .operands = {x, y},
             .params = {window_params<k::Params>(w), {&k::Params::n}},
             .grid = {.x = {.items = w.n(), .per_group = 64, .active = true}},
             .extent_safe = !in_plane},
            in_plane ? "pool_max_indices" : "");
}

}  // namespace

bool pool_supports(const LowerSignature& s, const Device&) {
  for (int64_t i = 0; i < s.input(0).rank(); ++i)
    if (s.input(0).dim(i).is(0)) return false;
  // The identity of 64-bit integers does not fit the 32 bits that hold them: a window of padding alone is for the host.
  const bool wide = is_int(s.input(0).dtype) && size_of(s.input(0).dtype) == 8;
  if (!wide || (&s.op != &ops::pool_max && &s.op != &ops::pool_min)) return true;
  const ops::Window w = ops::window_of(s.attrs.as<ops::PoolAttrs>());
  for (int64_t i = 0; i < w.rank(); ++i) {
    const auto a = static_cast<size_t>(i);
    if (w.padding[a] >= w.extent(i) || w.padding_end[a] >= w.extent(i)) return false;
  }
  return true;
}

// The pool of many elements per window has many threads per window.
void lower_pool(LowerCall& call) {
  namespace k = wgsl::pool;
  const auto& a = call.attrs<ops::PoolAttrs>();
  const Windows w(ops::window_of(a), call.input_type(0), call.output_type(0));
  const Operand x = call.read(0), y = call.write(0);
  const DType dtype = call.input_type(0).dtype;
  const Kind kind = kind_of(call.op());
  const bool shared = volume(w.kernel) >= 128 && w.n() < 100'000;
  KernelKey key = fold_key("pool", dtype, call.element(x));
  key.constants.emplace_back("KIND", static_cast<uint32_t>(kind));
  key.constants.emplace_back("LANES", shared ? 64u : 1u);
  key.constants.emplace_back("PADDED", a.count_include_pad ? 1u : 0u);
  auto params = window_params<k::Params>(w);
  params.end_d = to_u32(w.end[0]);
  params.end_h = to_u32(w.end[1]);
  params.end_w = to_u32(w.end[2]);
  params.identity = identity_of(kind, dtype);
  call.emit({.kernel = std::move(key),
             .operands = {x, y},
             .params = {params, {&k::Params::n}},
             .grid = {.x = {.items = w.n(), .per_group = shared ? 1 : 64, .active = true}},
             .extent_safe = true});
}

void lower_pool_max_indices(LowerCall& call) {
  const auto& a = call.attrs<ops::PoolMaxIndicesAttrs>();
  const Windows w(ops::window_of(a), call.input_type(0), call.output_type(0));
  emit_indices(call, w, call.read(0), call.write(0), false, a.column_major);
}

// First where each window has its maximum, then what every element gets from the windows it is in.
void lower_max_pool2d_backward(LowerCall& call) {
  namespace k = wgsl::pool_backward;
  const Windows w(ops::window_of(call.attrs<ops::MaxPool2dBackwardAttrs>()), call.input_type(0), call.input_type(1));
  const Operand x = call.read(0), dy = call.read(1), dx = call.write(0);
  const Operand best = call.temporary(Storage::kI32, {w.n()});
  emit_indices(call, w, x, best, true, false);
  const int64_t n = w.planes * volume(w.in);
  call.emit({.kernel = {"pool_backward", {{"T", std::string(call.element(dy))}}, {}},
             .operands = {LowerCall::reading(best), dy, dx},
             .params = k::Params{.n = to_u32(n),
                                 .in_h = to_u32(w.in[1]),
                                 .in_w = to_u32(w.in[2]),
                                 .out_h = to_u32(w.out[1]),
                                 .out_w = to_u32(w.out[2]),
                                 .k_h = to_u32(w.kernel[1]),
                                 .k_w = to_u32(w.kernel[2]),
                                 .stride_h = to_u32(w.stride[1]),
                                 .stride_w = to_u32(w.stride[2]),
                                 .dilation_h = to_u32(w.dilation[1]),
                                 .dilation_w = to_u32(w.dilation[2]),
                                 .pad_h = to_u32(w.padding[1]),
                                 .pad_w = to_u32(w.padding[2])},
             .grid = {.x = {.items = n, .per_group = 64}}});
}

}  // namespace rlx::webgpu
