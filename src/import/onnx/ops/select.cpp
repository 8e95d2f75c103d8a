// Ops whose result's size depends on data. Their operands are known when they are imported (session.h), so what they
// select is computed here.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

Value int_matrix(OnnxNode& n, std::vector<int64_t> sizes, std::vector<int64_t> values) {
  return n.constant(Tensor::i64(std::move(sizes), std::move(values)));
}

Built non_zero(OnnxNode& n) {
  const Tensor x = n.known(0);
  const int64_t rank = x.rank();
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.num_elements(); ++i)
    if (x.at(i) != 0) found.push_back(i);
  const auto count = static_cast<int64_t>(found.size());
  std::vector<int64_t> places(static_cast<size_t>(rank * count));  // one row per axis
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = found[static_cast<size_t>(k)];
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      const int64_t size = x.sizes()[static_cast<size_t>(axis)];
      places[static_cast<size_t>(axis * count + k)] = rest % size;
      rest /= size;
    }
  }
  return int_matrix(n, {rank, count}, std::move(places));
}

Built compress(OnnxNode& n) {
  const Tensor condition = n.known(1);
  Value x = n.input(0);
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = normalize_axis(n.attr("axis", 0), x.shape().rank());
  } else {
    x = reshape_to(x, {n.symbols().product(x.shape().dims())});
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition.num_elements(); ++i)
    if (condition.at(i) != 0) kept.push_back(i);
  return n.like(ops::gather(x, n.ints_constant(kept), {.axis = axis}), 0);
}

// ---- Unique

struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

// Items 0 … count - 1 grouped by equality; groups in ascending order, or in the order of their first items.
Groups group(int64_t count, bool sorted, const std::function<int(int64_t, int64_t)>& compare) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Groups g;
  g.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      g.first.push_back(order[i]);  // stable: the first of its group
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(g.first.size()) - 1;
  }
  if (sorted) return g;
  std::vector<size_t> by_first(g.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(), [&](size_t a, size_t b) { return g.first[a] < g.first[b]; });
  Groups out;
  std::vector<int64_t> place(by_first.size());
  for (size_t i = 0; i < by_first.size(); ++i) {
    place[by_first[i]] = static_cast<int64_t>(i);
    out.first.push_back(g.first[by_first[i]]);
    out.counts.push_back(g.counts[by_first[i]]);
  }
  for (const int64_t i : g.inverse) out.inverse.push_back(place[static_cast<size_t>(i)]);
  return out;
}

// NaNs are one value, after all others.
template <class T>
int order_of(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  }
  return a < b ? -1 : (b < a ? 1 : 0);
}

// Slices of `values` along an axis, compared element by element.
template <class T>
Groups group_slices(const std::vector<T>& values, const std::vector<int64_t>& sizes, int64_t axis, bool sorted) {
  const auto a = static_cast<size_t>(axis);
  const int64_t count = sizes[a];
  const int64_t outer = product(std::span(sizes).first(a)), inner = product(std::span(sizes).subspan(a + 1));
  return group(count, sorted, [&](int64_t x, int64_t y) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int c = order_of<T>(values[static_cast<size_t>((o * count + x) * inner + i)],
                                  values[static_cast<size_t>((o * count + y) * inner + i)]);
        if (c != 0) return c;
      }
    return 0;
  });
}

std::vector<Item> with_groups(OnnxNode& n, Item y, const Groups& g) {
  return {std::move(y), n.result(n.ints_constant(g.first)), n.result(n.ints_constant(g.inverse)),
          n.result(n.ints_constant(g.counts))};
}

Built unique(OnnxNode& n) {
  const bool sorted = n.attr("sorted", true);
  const bool by_axis = n.has_attr("axis");
  if (n.item(0).kind == Item::Kind::kStrings) {
    require(!by_axis || n.item(0).strings->sizes.size() == 1, "Slices of strings are not supported.");
    const Strings& x = *n.item(0).strings;
    const Groups g = group_slices(x.values, {static_cast<int64_t>(x.values.size())}, 0, sorted);
    Strings y{{static_cast<int64_t>(g.first.size())}, {}};
    for (const int64_t i : g.first) y.values.push_back(x.values[static_cast<size_t>(i)]);
    return with_groups(n, n.importer().item(HostValue(std::move(y))), g);
  }
  const Tensor known = n.known(0).clone();  // bytes of a file may stand at any address
  const int64_t axis = by_axis ? normalize_axis(n.attr("axis", 0), known.rank()) : 0;
  const std::vector<int64_t> sizes = by_axis ? known.sizes() : std::vector<int64_t>{known.num_elements()};
  const Groups g = [&] {
    if (known.dtype() == DType::I64) {
      const auto v = known.values<int64_t>();
      return group_slices(std::vector<int64_t>(v.begin(), v.end()), sizes, axis, sorted);
    }
    if (known.dtype() == DType::U64) {
      const auto v = known.values<uint64_t>();
      return group_slices(std::vector<uint64_t>(v.begin(), v.end()), sizes, axis, sorted);
    }
    return group_slices(known.to_doubles(), sizes, axis, sorted);
  }();
  const Value x = by_axis ? n.input(0) : reshape_to(n.input(0), {Dim(known.num_elements())});
  const Value y = ops::gather(x, n.ints_constant(g.first), {.axis = axis});
  return with_groups(n, n.like(y, 0), g);
}

// ---- NonMaxSuppression

struct Box {
  double x0, y0, x1, y1;
  double area() const { return (x1 - x0) * (y1 - y0); }
};

Box box_at(const std::vector<double>& boxes, int64_t row, bool center) {
  const double* b = boxes.data() + row * 4;
  if (center) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};  // y, x, y, x
}

double intersection_over_union(const Box& a, const Box& b) {
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(w > 0 && h > 0)) return 0;
  const double both = w * h, all = a.area() + b.area() - both;
  return a.area() > 0 && b.area() > 0 && all > 0 ? both / all : 0;
}

Built non_max_suppression(OnnxNode& n) {
  const Tensor boxes_tensor = n.known(0), scores_tensor = n.known(1);
  const int64_t limit = n.has(2) ? n.int_value(2) : 0;
  const double iou_threshold = n.has(3) ? n.float_value(3) : 0;
  const bool has_threshold = n.has(4);
  const double score_threshold = has_threshold ? n.float_value(4) : 0;
  const bool center = n.attr("center_point_box", false);
  require(boxes_tensor.rank() == 3 && boxes_tensor.sizes()[2] == 4, "Boxes have shape ", boxes_tensor.sizes(),
          "; [batch, boxes, 4] is expected.");
  const int64_t batches = boxes_tensor.sizes()[0], count = boxes_tensor.sizes()[1];
  require(scores_tensor.rank() == 3 && scores_tensor.sizes()[0] == batches && scores_tensor.sizes()[2] == count,
          "Scores have shape ", scores_tensor.sizes(), "; [", batches, ", classes, ", count, "] is expected.");
  const int64_t classes = scores_tensor.sizes()[1];
  const std::vector<double> boxes = boxes_tensor.to_doubles(), scores = scores_tensor.to_doubles();
  std::vector<int64_t> selected;
  std::vector<int64_t> order;
  std::vector<Box> kept;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = scores.data() + (b * classes + c) * count;
      order.clear();
      for (int64_t i = 0; i < count; ++i)
        if (!has_threshold || score[i] > score_threshold) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score[i] > score[j]; });
      kept.clear();
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= limit) break;
        const Box box = box_at(boxes, b * count + i, center);
        const bool hidden = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
          return intersection_over_union(box, other) > iou_threshold;
        });
        if (hidden) continue;
        kept.push_back(box);
        selected.insert(selected.end(), {b, c, i});
      }
    }
  const auto rows = static_cast<int64_t>(selected.size()) / 3;
  return int_matrix(n, {rows, 3}, std::move(selected));
}

}  // namespace

Rows select_rows() {
  return {
      {"Compress", 9, compress},
      {"NonMaxSuppression", 10, non_max_suppression},
      {"NonZero", 9, non_zero},
      {"Unique", 11, unique},
  };
}

}  // namespace rlx::onnx
