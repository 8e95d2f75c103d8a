#include "rlx/ops/dot_general.h"

#include <algorithm>

#include "ops/infer.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/transpose.h"

namespace rlx::ops {

namespace {

// The axes of one operand by their role.
struct Roles {
  std::vector<int64_t> batch, contracting, free;
};

Roles roles_of(const std::vector<int64_t>& batch, const std::vector<int64_t>& contracting, int64_t rank,
               std::string_view side) {
  Roles roles;
  std::vector<bool> used(static_cast<size_t>(rank), false);
  const auto take = [&](const std::vector<int64_t>& axes, std::vector<int64_t>& out) {
    for (const int64_t a : axes) {
      const int64_t axis = normalize_axis(a, rank);
      require(!used[static_cast<size_t>(axis)], "Axis (", a, ") of ", side, " is named twice.");
      used[static_cast<size_t>(axis)] = true;
      out.push_back(axis);
    }
  };
  take(batch, roles.batch);
  take(contracting, roles.contracting);
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!used[static_cast<size_t>(axis)]) roles.free.push_back(axis);
  return roles;
}

std::pair<Roles, Roles> roles_of(const DotGeneralAttrs& attrs, int64_t lhs_rank, int64_t rhs_rank) {
  require(attrs.lhs_contracting.size() == attrs.rhs_contracting.size(), "Contracting axes ", attrs.lhs_contracting,
          " and ", attrs.rhs_contracting, " do not pair up.");
  require(attrs.lhs_batch.size() == attrs.rhs_batch.size(), "Batch axes ", attrs.lhs_batch, " and ", attrs.rhs_batch,
          " do not pair up.");
  return {roles_of(attrs.lhs_batch, attrs.lhs_contracting, lhs_rank, "lhs"),
          roles_of(attrs.rhs_batch, attrs.rhs_contracting, rhs_rank, "rhs")};
}

std::vector<Dim> pick(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<Dim> dims;
  for (const int64_t axis : axes) dims.push_back(shape[axis]);
  return dims;
}

// The operand as [batch, …] matrices in the given order of roles, each role flattened to one axis; without batch axes a
// plain matrix. Transposes and reshapes that change nothing are left out.
Value flattened(const Value& x, const std::vector<const std::vector<int64_t>*>& order) {
  std::vector<int64_t> perm;
  std::vector<Dim> shape;
  for (const auto* axes : order) {
    perm.insert(perm.end(), axes->begin(), axes->end());
    if (axes == order[0] && axes->empty()) continue;
    shape.push_back(x.graph().symbols().product(pick(x.shape(), *axes)));
  }
  const Value moved = std::is_sorted(perm.begin(), perm.end()) ? x : transpose(x, {.perm = perm});
  return moved.shape() == Shape(shape) ? moved : reshape(moved, {.new_shape = shape});
}

// A known size wins over a symbol that must turn out to be equal.
Dim same_dim(const Dim& a, const Dim& b) { return a.is_static() ? a : b; }

Shape result_shape(const Shape& a, const Roles& l, const Shape& b, const Roles& r) {
  Shape shape;
  for (size_t i = 0; i < l.batch.size(); ++i) shape.push_back(same_dim(a[l.batch[i]], b[r.batch[i]]));
  for (const Dim& d : pick(a, l.free)) shape.push_back(d);
  for (const Dim& d : pick(b, r.free)) shape.push_back(d);
  return shape;
}

Types infer(const InferCall& call) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require_same_dtype(a, b);
  require(is_float(a.dtype) || is_int(a.dtype), "Matrices of dtype ", a.dtype, " have no product.");
  const auto [l, r] = roles_of(call.attrs<DotGeneralAttrs>(), a.rank(), b.rank());
  for (size_t i = 0; i < l.batch.size(); ++i) require_same_dim(a.dim(l.batch[i]), b.dim(r.batch[i]), "Batch sizes");
  for (size_t i = 0; i < l.contracting.size(); ++i)
    require_same_dim(a.dim(l.contracting[i]), b.dim(r.contracting[i]), "Contracted sizes");
  return TensorType{result_shape(a.shape, l, b.shape, r), a.dtype};
}

Values decompose(const DecomposeCall& call) {
  const Value &a = call.input(0), &b = call.input(1);
  const auto [l, r] = roles_of(call.attrs<DotGeneralAttrs>(), a.type().rank(), b.type().rank());
  const Shape shape = result_shape(a.shape(), l, b.shape(), r);
  const Value lhs = flattened(a, {&l.batch, &l.free, &l.contracting});  // in this order: arguments have none
  const Value rhs = flattened(b, {&r.batch, &r.contracting, &r.free});
  const Value product = matmul(lhs, rhs);
  return {product.shape() == shape ? product : reshape(product, {.new_shape = shape.dims()})};
}

bool mixes(const Attrs& attrs, int64_t rank, int64_t axis) {
  const auto& axes = attrs.as<DotGeneralAttrs>().lhs_contracting;
  return std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return normalize_axis(a, rank) == axis; });
}

}  // namespace

constinit const Op<DotGeneralAttrs> dot_general{
    {.name = "dot_general",
     .category = "Linear algebra",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer,
     .decompose = decompose,
     .mixes_axis = mixes,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "Contraction over paired axes; the result has the batch axes, a's free axes, b's free axes."}};

}  // namespace rlx::ops
