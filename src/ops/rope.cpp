#include "rlx/ops/rope.h"

#include <algorithm>

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& a = call.attrs<RopeAttrs>();
  const TensorType &x = call.input(0), &cos = call.input(1), &sin = call.input(2);
  require_float(x);
  require_float(cos, "Cosine table");
  require_float(sin, "Sine table");
  require(a.head_dim >= 1, "head_dim (", a.head_dim, ") is less than 1.");
  const int64_t n_rot = a.n_rot.value_or(a.head_dim);
  require(n_rot >= 0 && n_rot % 2 == 0 && n_rot <= a.head_dim, "n_rot (", n_rot,
          ") is not an even number up to head_dim (", a.head_dim, ").");
  if (a.layout == AttentionLayout::kBshd)
    require_rank(x, 4, "Operand");
  else
    require(x.rank() >= 2, "Operand rank (", x.rank(), ") is less than 2.");
  const Dim& width = x.dim(x.rank() - 1);
  require(!width.is_static() || width.value() % a.head_dim == 0, "Last dim (", width,
          ") is not a whole number of heads of ", a.head_dim, ".");
  const int64_t axis = a.layout == AttentionLayout::kBshd ? 1 : x.rank() - 2;
  const Dim seq = x.dim(axis), batch = axis == 0 ? Dim(1) : x.dim(0);
  const bool positions = call.num_inputs() == 4;
  require_shape(sin, cos.shape, "Sine table");
  require(cos.rank() == 2 || cos.rank() == 3, "Table rank (", cos.rank(), ") is not 2 or 3.");
  require_same_dim(cos.dim(cos.rank() - 1), a.head_dim / 2, "Table width and head_dim / 2");
  if (cos.rank() == 3) {
    require(!positions, "Tables per batch (", cos.shape, ") leave nothing for positions to choose.");
    if (!cos.dim(0).is(1)) require_same_dim(cos.dim(0), batch, "Batch sizes of tables and operand");
    require_same_dim(cos.dim(1), seq, "Rows of the tables and the sequence");
  } else if (!positions && cos.dim(0).is_static() && seq.is_static()) {
    require(seq.value() <= cos.dim(0).value(), "Table rows (", cos.dim(0), ") are fewer than the sequence (", seq,
            ").");
  }
  if (positions) {
    const TensorType& p = call.input(3);
    require_index(p, "Position");
    require(p.rank() == 1 || p.rank() == 2, "Position rank (", p.rank(), ") is not 1 or 2.");
    if (p.rank() == 2 && !p.dim(0).is(1)) require_same_dim(p.dim(0), batch, "Batch sizes of positions and operand");
    require_same_dim(p.dim(p.rank() - 1), seq, "Positions and the sequence");
  }
  return x;
}

static Types infer_axial(const InferCall& call) {
  const auto& a = call.attrs<AxialRope2dAttrs>();
  const TensorType& x = call.input(0);
  require_float(x);
  require_rank(x, 3, "Operand");
  require(a.end_x >= 0 && a.end_y >= 0, "Grid (", a.end_x, " by ", a.end_y, ") has a negative size.");
  require(a.head_dim >= 4 && a.head_dim % 4 == 0, "head_dim (", a.head_dim, ") is not a multiple of 4.");
  require(a.num_heads >= 1, "num_heads (", a.num_heads, ") is less than 1.");
  const int64_t repeat = std::max<int64_t>(a.repeat_factor, 1);
  require_same_dim(x.dim(1), checked_mul(checked_mul(a.end_x, a.end_y), repeat), "Sequence and tokens of the grid");
  require_same_dim(x.dim(2), checked_mul(a.num_heads, a.head_dim), "Width and num_heads * head_dim");
  return x;
}

static constexpr OpDef rotation(std::string_view name, std::string_view category, ExtentRule extent,
                                std::string_view doc) {
  return {.name = name,
          .category = category,
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer,
          .traits = {.extent = extent},
          .doc = doc};
}

constinit const Op<RopeAttrs> rope{
    rotation("rope", "Attention", ExtentRule::kOwnBound,
             "Rotates pairs of each head by the angle of the token's position; entries beyond n_rot are copied.")};
constinit const Op<RopeAttrs> rope_backward{
    rotation("rope_backward", "Backward", ExtentRule::kNever, "Gradient of rope: the rotation by the negative angle.")};

constinit const Op<AxialRope2dAttrs> axial_rope2d{
    {.name = "axial_rope2d",
     .category = "Attention",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_axial,
     .doc = "Rotates the first half of each head by the token's column, the second half by its row."}};

}  // namespace rlx::ops
