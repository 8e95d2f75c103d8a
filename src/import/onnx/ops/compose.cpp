#include "import/onnx/ops/compose.h"

#include <algorithm>
#include <numeric>

namespace rlx::onnx {

Value cast_to(const Value& x, DType dtype) { return x.dtype() == dtype ? x : ops::cast(x, {.to = dtype}); }

Value scalar_like(OnnxNode& n, const Value& x, double value) { return n.scalar(value, x.dtype()); }

Value magnitude(const Value& x) { return is_int(x.dtype()) && !is_signed(x.dtype()) ? x : ops::abs(x); }

Value reshape_to(const Value& x, std::vector<Dim> shape) {
  return x.shape() == Shape(shape) ? x : ops::reshape(x, {.new_shape = std::move(shape)});
}

void require_rank(const Value& x, int64_t rank, std::string_view what) {
  require(x.shape().rank() == rank, what, " has rank ", x.shape().rank(), "; ", rank, " is expected.");
}

std::vector<int64_t> normalize_axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& a : axes) a = normalize_axis(a, rank);
  std::sort(axes.begin(), axes.end());
  require(std::adjacent_find(axes.begin(), axes.end()) == axes.end(), "Axes ", axes, " name one axis twice.");
  return axes;
}

Value unsqueeze(const Value& x, std::vector<int64_t> axes) {
  const int64_t rank = x.shape().rank() + static_cast<int64_t>(axes.size());
  axes = normalize_axes(std::move(axes), rank);
  std::vector<Dim> shape;
  int64_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? Dim(1) : x.shape()[next++]);
  return reshape_to(x, std::move(shape));
}

Value squeeze(const Value& x, std::vector<int64_t> axes) {
  const int64_t rank = x.shape().rank();
  axes = normalize_axes(std::move(axes), rank);
  std::vector<Dim> shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      shape.push_back(x.shape()[i]);
    } else {
      require(!x.shape()[i].is_static() || x.shape()[i].is(1), "Axis ", i, " has size ", x.shape()[i],
              "; only an axis of size 1 can be squeezed.");
    }
  }
  return reshape_to(x, std::move(shape));
}

Value expand_to(const Value& x, const Shape& shape) {
  return x.shape() == shape ? x : ops::expand(x, {.target_shape = shape.dims()});
}

Value count_up(OnnxNode& n, const Dim& size) {
  require(!size.is_static() || size.value() >= 0, "A size (", size, ") is negative.");
  if (size.is_static() && size.value() <= 1 << 20) {  // more are counted when they are needed
    std::vector<int64_t> values(static_cast<size_t>(size.value()));
    std::iota(values.begin(), values.end(), 0);
    return n.ints_constant(values);
  }
  const Value ones = expand_to(n.constant(Tensor::i64({1}, {1})), Shape({size}));
  return ops::cumsum(ones, {.axis = 0, .exclusive = true});
}

Value swap_last_two(const Value& x) {
  std::vector<int64_t> perm(static_cast<size_t>(x.shape().rank()));
  std::iota(perm.begin(), perm.end(), 0);
  require(perm.size() >= 2, "A matrix is expected, not a tensor of rank ", perm.size(), ".");
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return ops::transpose(x, {.perm = perm});
}

Value size_as_scalar(OnnxNode& n, const Dim& dim) { return reshape_to(sizes_as_tensor(n, {dim}), {}); }

Value zeros(OnnxNode& n, const Shape& shape, DType dtype) { return expand_to(n.scalar(0, dtype), shape); }

Value pad_axis(OnnxNode& n, const Value& x, int64_t axis, int64_t before, int64_t after) {
  Values parts;
  const auto add = [&](int64_t count) {
    Shape shape = x.shape();
    shape[axis] = count;
    if (count > 0) parts.push_back(zeros(n, shape, x.dtype()));
  };
  add(before);
  parts.push_back(x);
  add(after);
  return parts.size() == 1 ? x : ops::concat(parts, {.axis = axis});
}

Value along_axis(const Value& vector, int64_t axis, int64_t rank) {
  std::vector<Dim> shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = vector.shape()[0];
  return reshape_to(vector, std::move(shape));
}

Value as_matrix(Graph& graph, const Value& x, int64_t axis) {
  require(axis >= -x.shape().rank() && axis <= x.shape().rank(), "Axis (", axis, ") is out of range for rank (",
          x.shape().rank(), ").");
  if (axis < 0) axis += x.shape().rank();
  const std::vector<Dim>& dims = x.shape().dims();
  const auto middle = dims.begin() + axis;
  SymbolTable& symbols = graph.symbols();
  const Dim rows = symbols.product(std::vector<Dim>(dims.begin(), middle));
  const Dim cols = symbols.product(std::vector<Dim>(middle, dims.end()));
  return reshape_to(x, {rows, cols});
}

}  // namespace rlx::onnx
