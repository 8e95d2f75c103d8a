// Reductions, softmax, arg and top ops, cumulative sums.
#include <algorithm>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// From some opset on (13 for ReduceSum, 18 for the others) axes are an input, before that an attribute.
std::vector<int64_t> axes_of(OnnxNode& n, int64_t rank) {
  std::vector<int64_t> axes = n.attr("axes", std::vector<int64_t>());
  if (n.has(1)) axes = n.ints(1);
  if (axes.empty() && !n.attr("noop_with_empty_axes", false)) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return normalize_axes(axes, rank);
}

struct Reduction {
  Value x;
  std::vector<int64_t> axes;
  bool keep_dim;
};

Reduction reduction(OnnxNode& n) {
  const Value x = n.input(0);
  return {x, axes_of(n, x.shape().rank()), n.attr("keepdims", true)};
}

template <const Op<ops::ReduceAttrs>& op>
Value reduce(const Value& x, const Reduction& r) {
  return r.axes.empty() ? x : op(x, {.axes = r.axes, .keep_dim = r.keep_dim});
}

template <const Op<ops::ReduceAttrs>& op>
Built plain(OnnxNode& n) {
  const Reduction r = reduction(n);
  if (r.x.dtype() != DType::Bool) return reduce<op>(r.x, r);
  return cast_to(reduce<op>(cast_to(r.x, DType::U8), r), DType::Bool);
}

Built reduce_l1(OnnxNode& n) {
  const Reduction r = reduction(n);
  return reduce<ops::reduce_sum>(magnitude(r.x), r);
}

// A function of floats; integers are F64 meanwhile, as ONNX's definitions have it.
Value as_float(const Value& x, Value (*f)(const Value&)) {
  return is_float(x.dtype()) ? f(x) : cast_to(f(cast_to(x, DType::F64)), x.dtype());
}

Built reduce_l2(OnnxNode& n) {
  const Reduction r = reduction(n);
  return as_float(reduce<ops::reduce_sum>(r.x * r.x, r), [](const Value& sum) { return ops::sqrt(sum); });
}

Built reduce_log_sum(OnnxNode& n) {
  const Reduction r = reduction(n);
  return as_float(reduce<ops::reduce_sum>(r.x, r), [](const Value& sum) { return ops::log(sum); });
}

// max + log(sum(exp(x - max))): without overflow; -inf where all is -inf.
Built reduce_log_sum_exp(OnnxNode& n) {
  const Reduction r = reduction(n);
  if (r.axes.empty()) return r.x;
  const Value x = is_float(r.x.dtype()) ? r.x : cast_to(r.x, DType::F64);  // as ONNX's definition has it
  const Value top = ops::reduce_max(x, {.axes = r.axes, .keep_dim = true});
  const Value infinity = scalar_like(n, top, std::numeric_limits<double>::infinity());
  const Value shift = ops::where(ops::lt(ops::abs(top), infinity), top, scalar_like(n, top, 0));
  const Value sum = ops::reduce_sum(ops::exp(x - shift), {.axes = r.axes, .keep_dim = true});
  const Value y = cast_to(ops::log(sum) + shift, r.x.dtype());
  return r.keep_dim ? y : squeeze(y, r.axes);
}

Built reduce_sum_square(OnnxNode& n) {
  const Reduction r = reduction(n);
  return reduce<ops::reduce_sum>(r.x * r.x, r);
}

// log(softmax(x)) as x - max - log(sum(exp(x - max))).
Value log_softmax_of(const Value& x, int64_t axis) {
  const Value shifted = x - ops::reduce_max(x, {.axes = {axis}, .keep_dim = true});
  return shifted - ops::log(ops::reduce_sum(ops::exp(shifted), {.axes = {axis}, .keep_dim = true}));
}

Value softmax_of(const Value& x, int64_t axis) { return ops::softmax(x, {.axis = axis}); }

// Before opset 13 the axes from `axis` on are one.
template <Value (*f)(const Value&, int64_t)>
Built on_matrix(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t axis = n.attr("axis", 1);
  const int64_t rank = x.shape().rank();
  if (rank > 0 && (axis == rank - 1 || axis == -1)) return f(x, -1);
  return reshape_to(f(as_matrix(n.graph(), x, axis), -1), x.shape().dims());
}

template <Value (*f)(const Value&, int64_t)>
Built on_axis(OnnxNode& n) {
  return f(n.input(0), n.attr("axis", -1));
}

// 1 at the first maximum along the axis, 0 elsewhere.
Value hardmax_of(const Value& x, int64_t axis) {
  axis = normalize_axis(axis, x.shape().rank());
  const Value at = ops::argmax(x, {.axis = axis, .keep_dim = true, .index_dtype = DType::I64});
  const Dim size = x.shape()[axis];
  Graph& graph = x.graph();
  const Value ones = ops::expand(graph.constant(Tensor::i64({1}, {1})), {.target_shape = {size}});
  Value index = ops::cumsum(ones, {.axis = 0, .exclusive = true});
  std::vector<Dim> shape(static_cast<size_t>(x.shape().rank()), Dim(1));
  shape[static_cast<size_t>(axis)] = size;
  index = reshape_to(index, shape);
  return cast_to(ops::eq(index, at), x.dtype());
}

template <const Op<ops::ArgmaxAttrs>& op>
Built arg(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  const int64_t axis = normalize_axis(n.attr("axis", 0), rank);
  const bool keep = n.attr("keepdims", true);
  if (!n.attr("select_last_index", false)) return op(x, {.axis = axis, .keep_dim = keep, .index_dtype = DType::I64});
  // The last of equal elements is the first one counted from the end.
  std::vector<int64_t> reversed;
  const int64_t size = x.shape()[axis].value();
  require(size <= 1 << 24, "An axis of ", size, " elements is too long to be searched from its end.");
  for (int64_t i = size - 1; i >= 0; --i) reversed.push_back(i);
  const Value turned = ops::gather(x, n.ints_constant(reversed), {.axis = axis});
  const Value at = op(turned, {.axis = axis, .keep_dim = keep, .index_dtype = DType::I64});
  return n.scalar(static_cast<double>(size - 1), DType::I64) - at;
}

Built top_k(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t k = n.opset() < 10 ? n.required_int("k") : n.int_value(1);
  const Value y =
      ops::topk(x, {.k = k, .axis = n.attr("axis", -1), .largest = n.attr("largest", true), .index_dtype = DType::I64});
  return Values{y, y.result(1)};
}

template <const Op<ops::CumsumAttrs>& op>
Built cumulative(OnnxNode& n) {
  const Value x = n.input(0);
  return op(x, {.axis = normalize_axis(n.int_value(1), x.shape().rank()),
                .exclusive = n.attr("exclusive", false),
                .reverse = n.attr("reverse", false)});
}

}  // namespace

Rows reduce_rows() {
  return {
      {"ArgMax", 1, arg<ops::argmax>},
      {"ArgMin", 1, arg<ops::argmin>},
      {"CumProd", 26, cumulative<ops::cumprod>},
      {"CumSum", 11, cumulative<ops::cumsum>},
      {"Hardmax", 1, on_matrix<hardmax_of>},
      {"Hardmax", 13, on_axis<hardmax_of>},
      {"LogSoftmax", 1, on_matrix<log_softmax_of>},
      {"LogSoftmax", 13, on_axis<log_softmax_of>},
      {"ReduceL1", 1, reduce_l1},
      {"ReduceL2", 1, reduce_l2},
      {"ReduceLogSum", 1, reduce_log_sum},
      {"ReduceLogSumExp", 1, reduce_log_sum_exp},
      {"ReduceMax", 1, plain<ops::reduce_max>},
      {"ReduceMean", 1, plain<ops::reduce_mean>},
      {"ReduceMin", 1, plain<ops::reduce_min>},
      {"ReduceProd", 1, plain<ops::reduce_prod>},
      {"ReduceSum", 1, plain<ops::reduce_sum>},
      {"ReduceSumSquare", 1, reduce_sum_square},
      {"Softmax", 1, on_matrix<softmax_of>},
      {"Softmax", 13, on_axis<softmax_of>},
      {"TopK", 1, top_k},
  };
}

}  // namespace rlx::onnx
