#include "rlx/ops/grid_sample.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_grid(const InferCall& call) {
  const TensorType &x = call.input(0), &grid = call.input(1);
  const auto& attrs = call.attrs<GridSampleAttrs>();
  require_float(grid, "Grid");
  require(is_float(x.dtype) || attrs.mode == GridSampleMode::kNearest, "Operand dtype (", x.dtype,
          ") cannot be interpolated (", name_of(attrs.mode), "); cast it.");
  require(x.rank() >= 3 && x.rank() <= 5, "Operand rank (", x.rank(), ") is not 3, 4 or 5.");
  require_rank(grid, x.rank(), "Grid");
  require_same_dim(x.dim(0), grid.dim(0), "Batch sizes of x and grid");
  const int64_t space = x.rank() - 2;
  require_same_dim(grid.dim(grid.rank() - 1), space, "Last size of the grid and number of spatial axes");
  TensorType y{{x.dim(0), x.dim(1)}, x.dtype};
  for (int64_t a = 0; a < space; ++a) {
    require(!x.dim(a + 2).is(0), "Axis ", a + 2, " of the operand has no elements.");
    y.shape.push_back(grid.dim(a + 1));
  }
  return y;
}

static Types infer_roi(const InferCall& call) {
  const TensorType &x = call.input(0), &rois = call.input(1), &batch = call.input(2);
  const auto& attrs = call.attrs<RoiAlignAttrs>();
  require_float(x);
  require_same_dtype(x, rois);
  require_index(batch, "Batch indices");
  require_rank(x, 4, "Operand");
  require_rank(rois, 2, "Regions");
  require_rank(batch, 1, "Batch indices");
  require_same_dim(rois.dim(1), 4, "Numbers of a region");
  require_same_dim(rois.dim(0), batch.dim(0), "Numbers of regions and batch indices");
  for (const int64_t axis : {2, 3}) require(!x.dim(axis).is(0), "Axis ", axis, " of the operand has no elements.");
  require(attrs.output_height >= 1 && attrs.output_width >= 1, "Output size (", attrs.output_height, ", ",
          attrs.output_width, ") is less than 1.");
  require(attrs.sampling_ratio >= 0, "sampling_ratio (", attrs.sampling_ratio, ") is negative.");
  return TensorType{{rois.dim(0), x.dim(1), attrs.output_height, attrs.output_width}, x.dtype};
}

constinit const Op<GridSampleAttrs> grid_sample{
    {.name = "grid_sample",
     .category = "Convolution",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_grid,
     .mixes_axis = [](const Attrs&, int64_t, int64_t axis) { return axis >= 1; },
     .doc = "x [N, C, …] at the places of a grid [N, …, axes], whose last axis holds coordinates from -1 to 1, that of "
            "the last axis of x first."}};

constinit const Op<RoiAlignAttrs> roi_align{
    {.name = "roi_align",
     .category = "Convolution",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_roi,
     .mixes_axis = [](const Attrs&, int64_t, int64_t) { return true; },
     .doc = "Regions [R, 4] (x1, y1, x2, y2) of the images x [N, C, H, W], in bins of which each is the mean or the "
            "largest of interpolated points."}};

}  // namespace rlx::ops
