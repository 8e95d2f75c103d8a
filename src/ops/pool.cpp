#include "rlx/ops/pool.h"

#include "ops/infer.h"
#include "ops/window.h"

namespace rlx::ops {

static Shape pooled(const TensorType& x, const Window& window, bool ceil_mode, SymbolTable& symbols) {
  require_spatial(window, x, "Input");
  Shape y{x.dim(0), x.dim(1)};
  for (int64_t i = 0; i < window.rank(); ++i) y.push_back(window_count(window, i, x.dim(i + 2), symbols, ceil_mode));
  return y;
}

template <class A>
static Shape pooled(const InferCall& call) {
  require_ordered(call.input(0));
  const auto& a = call.attrs<A>();
  return pooled(call.input(0), window_of(a), a.ceil_mode, call.symbols);
}

static Types infer(const InferCall& call) { return TensorType{pooled<PoolAttrs>(call), call.input(0).dtype}; }
static Types infer_indices(const InferCall& call) { return TensorType{pooled<PoolMaxIndicesAttrs>(call), DType::I64}; }

static Types infer_float(const InferCall& call) {
  require_float(call.input(0));
  return infer(call);
}

static Types infer_max_backward(const InferCall& call) {
  const TensorType &x = call.input(0), &dy = call.input(1);
  const auto& a = call.attrs<MaxPool2dBackwardAttrs>();
  const Window window = window_of(a);
  require(window.rank() == 2, "kernel_size (", a.kernel_size, ") does not have 2 entries.");
  require_float(x);
  require_same_dtype(x, dy);
  require_shape(dy, pooled(x, window, a.ceil_mode, call.symbols), "Gradient");
  return x;
}

static bool mixes_space(const Attrs&, int64_t, int64_t axis) { return axis >= 2; }

// An index counts the images and channels before it.
static bool mixes_all(const Attrs&, int64_t, int64_t) { return true; }

static constexpr OpDef pool(std::string_view name, Types (*rule)(const InferCall&), std::string_view doc,
                            bool (*mixes_axis)(const Attrs&, int64_t, int64_t) = mixes_space) {
  return {.name = name,
          .category = "Convolution",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = rule,
          .mixes_axis = mixes_axis,
          .doc = doc};
}

constinit const Op<PoolAttrs> pool_max{pool("pool_max", infer, "The largest element of each window; NaN wins.")};
constinit const Op<PoolMaxIndicesAttrs> pool_max_indices{
    pool("pool_max_indices", infer_indices,
         "Where the first of the largest elements of each window lies in x as one row; -1 where a window lies in the "
         "padding. NaN wins.",
         mixes_all)};
constinit const Op<PoolAttrs> pool_mean{
    pool("pool_mean", infer_float, "The mean of each window, over the padding too unless count_include_pad is off.")};
constinit const Op<PoolAttrs> pool_min{pool("pool_min", infer, "The smallest element of each window; NaN wins.")};
constinit const Op<PoolAttrs> pool_prod{pool("pool_prod", infer, "The product of each window; integers wrap.")};
constinit const Op<PoolAttrs> pool_sum{pool("pool_sum", infer, "The sum of each window; integers wrap.")};

constinit const Op<MaxPool2dBackwardAttrs> max_pool2d_backward{
    {.name = "max_pool2d_backward",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_max_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of a 2-D pool_max: each dy goes to the first maximum of its window."}};

}  // namespace rlx::ops
