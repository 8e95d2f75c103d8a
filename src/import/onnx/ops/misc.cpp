// Ops that build or rearrange tensors by position.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/random.h"

namespace rlx::onnx {

namespace {

// An index of -depth … depth - 1 puts `on` there; others leave the row `off`.
Built one_hot(OnnxNode& n) {
  Value indices = n.input(0);
  indices = cast_to(indices, DType::I64);
  const std::vector<Dim> depth = n.dims(1);
  require(depth.size() == 1, "The depth has ", depth.size(), " elements; one is expected.");
  const Value values = n.input(2);
  const int64_t rank = indices.shape().rank() + 1;
  const int64_t axis = normalize_axis(n.attr("axis", -1), rank);
  const Value size = size_as_scalar(n, depth[0]);
  const Value wrapped = ops::where(ops::lt(indices, n.scalar(0, DType::I64)), indices + size, indices);
  const Value places = along_axis(count_up(n, depth[0]), axis, rank);
  const Value hot = ops::eq(unsqueeze(wrapped, {axis}), places);
  const Value off = reshape_to(ops::narrow(values, {.axis = 0, .start = 0, .len = 1}), {});
  const Value on = reshape_to(ops::narrow(values, {.axis = 0, .start = 1, .len = 1}), {});
  return n.like(ops::where(hot, on, off), 2);
}

// column - row of the last two axes.
Value diagonal_number(OnnxNode& n, const Shape& shape) {
  const int64_t rank = shape.rank();
  require(rank >= 2, "A matrix is expected, not a tensor of rank ", rank, ".");
  const Value columns = unsqueeze(count_up(n, shape[rank - 1]), {0});
  const Value rows = unsqueeze(count_up(n, shape[rank - 2]), {1});
  return columns - rows;
}

Built trilu(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t k = n.has(1) ? n.int_value(1) : 0;
  const Value diagonal = diagonal_number(n, x.shape());
  const Value limit = n.constant(Tensor::i64({}, {k}));
  const Value kept = n.attr("upper", true) ? ops::ge(diagonal, limit) : ops::le(diagonal, limit);
  return n.like(ops::where(kept, x, n.scalar(0, x.dtype())), 0);
}

Built eye_like(OnnxNode& n) {
  const auto to = static_cast<ElemType>(n.attr("dtype", static_cast<int64_t>(n.elem(0))));
  const Value k = n.constant(Tensor::i64({}, {n.attr("k", 0)}));
  const Value ones = ops::eq(diagonal_number(n, n.input(0).shape()), k);
  return n.result(cast_to(ones, storage_of(to)), to);
}

Built depth_to_space(OnnxNode& n) {
  const Value x = n.input(0);
  require(x.shape().rank() == 4, "A tensor of rank 4 is expected, not of ", x.shape().rank(), ".");
  const Dim b = n.required_int("blocksize");
  require(b.value() > 0, "The block size is ", b, ".");
  SymbolTable& symbols = n.symbols();
  const Dim batch = x.shape()[0], h = x.shape()[2], w = x.shape()[3];
  const Dim c = symbols.div(x.shape()[1], checked_mul(b.value(), b.value()));
  const bool depth_first = n.attr("mode", "DCR") == "DCR";
  const Value apart = depth_first ? reshape_to(x, {batch, b, b, c, h, w}) : reshape_to(x, {batch, c, b, b, h, w});
  const Value moved = ops::transpose(
      apart, {.perm = depth_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3}});
  return n.like(reshape_to(moved, {batch, c, symbols.mul(h, b), symbols.mul(w, b)}), 0);
}

Built space_to_depth(OnnxNode& n) {
  const Value x = n.input(0);
  require(x.shape().rank() == 4, "A tensor of rank 4 is expected, not of ", x.shape().rank(), ".");
  const Dim b = n.required_int("blocksize");
  require(b.value() > 0, "The block size is ", b, ".");
  SymbolTable& symbols = n.symbols();
  const Dim batch = x.shape()[0], c = x.shape()[1];
  const Dim h = symbols.div(x.shape()[2], b), w = symbols.div(x.shape()[3], b);
  const Value moved = ops::transpose(reshape_to(x, {batch, c, h, b, w, b}), {.perm = {0, 3, 5, 1, 2, 4}});
  return n.like(reshape_to(moved, {batch, symbols.mul(c, checked_mul(b.value(), b.value())), h, w}), 0);
}

// Rows [batch, time] are read at an index that runs backwards as long as it is inside the sequence.
Built reverse_sequence(OnnxNode& n) {
  const Value x = n.input(0);
  const Value lengths = unsqueeze(cast_to(n.input(1), DType::I64), {1});
  const int64_t rank = x.shape().rank();
  const int64_t batch_axis = n.attr("batch_axis", 1), time_axis = n.attr("time_axis", 0);
  require(rank >= 2 && ((batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0)), "The batch axis (",
          batch_axis, ") and the time axis (", time_axis, ") are not 0 and 1.");
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (batch_axis == 1) std::swap(perm[0], perm[1]);
  const Value rows = batch_axis == 1 ? ops::transpose(x, {.perm = perm}) : x;
  const Dim batch = rows.shape()[0], time = rows.shape()[1];
  const Value t = unsqueeze(count_up(n, time), {0});
  const Value one = n.scalar(1, DType::I64);
  const Value backwards = lengths - one - t;
  const Value at = ops::where(ops::lt(t, lengths), backwards, t);
  const Value first = unsqueeze(count_up(n, batch), {1}) * size_as_scalar(n, time);
  std::vector<Dim> flat{n.symbols().mul(batch, time)};
  flat.insert(flat.end(), rows.shape().begin() + 2, rows.shape().end());
  const Value turned = ops::gather(reshape_to(rows, flat), first + at, {.axis = 0});
  return n.like(batch_axis == 1 ? ops::transpose(turned, {.perm = perm}) : turned, 0);
}

// Nothing is dropped unless the model says that it is being trained; then by the numbers of the seed.
Built dropout(OnnxNode& n) {
  const Value x = n.input(0);
  const bool has_inputs = n.opset() >= 12;
  bool training = has_inputs ? n.has(2) && n.known(2).at(0) != 0 : n.opset() < 7 && !n.attr("is_test", false);
  const double ratio = has_inputs ? (n.has(1) ? n.float_value(1) : 0.5) : n.attr("ratio", 0.5f);
  if (!has_inputs) training = false;  // inference is what old models are kept for
  const DType mask_dtype = n.opset() < 10 ? x.dtype() : DType::Bool;
  if (!training || ratio == 0)
    return std::vector<Item>{n.item(0), n.result(expand_to(n.scalar(1, mask_dtype), x.shape()))};
  require(ratio >= 0 && ratio < 1, "The ratio (", ratio, ") is not in [0, 1).");
  const std::vector<int64_t> sizes = x.shape().sizes();
  const int64_t count = product(sizes);
  require(count <= kMaxDrawn, "A tensor of ", count, " random numbers is too large.");
  NumPyRandom random(static_cast<uint32_t>(n.attr("seed", 0)));
  std::vector<double> kept(static_cast<size_t>(count));
  for (double& k : kept) k = random.uniform() >= ratio ? 1 : 0;
  const Value mask = n.constant(Tensor::from_doubles(DType::Bool, sizes, kept));
  const Value y = ops::where(mask, x * scalar_like(n, x, 1 / (1 - ratio)), scalar_like(n, x, 0));
  return Values{y, mask};
}

// The coordinates -1 … 1 of an axis: of the elements' centres, or with the first and last element at the ends.
std::vector<double> grid_coordinates(int64_t size, bool align_corners) {
  std::vector<double> at;
  for (int64_t i = 0; i < size; ++i) {
    const auto k = static_cast<double>(i), d = static_cast<double>(size);
    at.push_back(align_corners ? (size == 1 ? 0 : 2 * k / (d - 1) - 1) : (2 * k + 1) / d - 1);
  }
  return at;
}

Built affine_grid(OnnxNode& n) {
  const Value theta = n.input(0);
  const std::vector<int64_t> size = n.ints(1);
  const int64_t axes = static_cast<int64_t>(size.size()) - 2;
  require(axes == 2 || axes == 3, "A size of 4 or 5 numbers is expected, not of ", size.size(), ".");
  const std::vector<int64_t> sizes(size.begin() + 2, size.end());
  for (const int64_t s : sizes) require(s >= 0, "The size ", size, " has a negative number.");
  const int64_t points = product(sizes);
  require(points <= 1 << 24 && *std::max_element(sizes.begin(), sizes.end()) <= 1 << 24, "A grid of the size ", size,
          " is too large.");
  std::vector<std::vector<double>> coordinates;
  for (const int64_t s : sizes) {
    coordinates.push_back(grid_coordinates(s, n.attr("align_corners", false)));
  }
  std::vector<double> base;  // x, y(, z), 1 of every point
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (size_t a = sizes.size(); a-- > 0; rest /= sizes[a])
      base.push_back(coordinates[a][static_cast<size_t>(rest % sizes[a])]);
    base.push_back(1);
  }
  const Value grid = n.constant(Tensor::from_doubles(theta.dtype(), {points, axes + 1}, base));
  const Value moved = ops::matmul(grid, swap_last_two(theta));
  std::vector<Dim> shape{theta.shape()[0]};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.emplace_back(axes);
  return reshape_to(moved, shape);
}

Built center_crop_pad(OnnxNode& n) {
  Value x = n.input(0);
  const int64_t rank = x.shape().rank();
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.attr("axes", axes);
  const std::vector<int64_t> target = n.ints(1);
  require(target.size() == axes.size(), "There are ", target.size(), " sizes for ", axes.size(), " axes.");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = normalize_axis(axes[i], rank);
    const int64_t d = x.shape()[axis].value(), want = target[i];
    require(want >= 0, "A size (", want, ") is negative.");
    if (want < d) {
      x = ops::narrow(x, {.axis = axis, .start = (d - want) / 2, .len = want});
    } else {
      const int64_t before = (want - d) / 2;
      x = pad_axis(n, x, axis, before, want - d - before);
    }
  }
  return n.like(x, 0);
}

}  // namespace

Rows misc_rows() {
  return {
      {"AffineGrid", 20, affine_grid},
      {"CenterCropPad", 18, center_crop_pad},
      {"DepthToSpace", 1, depth_to_space},
      {"Dropout", 1, dropout},
      {"EyeLike", 9, eye_like},
      {"OneHot", 9, one_hot},
      {"ReverseSequence", 10, reverse_sequence},
      {"SpaceToDepth", 1, space_to_depth},
      {"Trilu", 14, trilu},
  };
}

}  // namespace rlx::onnx
