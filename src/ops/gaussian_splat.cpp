#include "rlx/ops/gaussian_splat.h"

#include <algorithm>
#include <cmath>

#include "ops/infer.h"

namespace rlx::ops {

namespace {

int64_t flat_size(const TensorType& type, std::string_view what) {
  require_dtype(type, DType::F32, what);
  require_rank(type, 1, what);
  require(type.dim(0).is_static(), what, " size (", type.dim(0), ") is not known.");
  return type.dim(0).value();
}

struct SceneSize {
  int64_t splats, sh;  // sh: coefficients per splat
};

SceneSize check_scene(const InferCall& call) {
  const int64_t positions = flat_size(call.input(0), "Positions");
  require(positions % 3 == 0, "Positions size (", positions, ") is not a multiple of 3.");
  const int64_t n = positions / 3;
  static constexpr struct {
    std::string_view what;
    int64_t each;
  } kOperands[] = {{"Positions", 3}, {"Scales", 3}, {"Rotations", 4}, {"Opacities", 1}, {"Colors", 3}};
  for (int64_t i = 1; i < 5; ++i) {
    const auto& operand = kOperands[i];
    const int64_t size = flat_size(call.input(i), operand.what);
    require(size == operand.each * n, operand.what, " size (", size, ") is not ", operand.each, " for each of ", n,
            " splats.");
  }
  const int64_t sh = flat_size(call.input(5), "Spherical harmonics");
  require(n == 0 ? sh == 0 : sh % (3 * n) == 0, "Spherical harmonics size (", sh,
          ") is not a multiple of 3 for each of ", n, " splats.");
  const int64_t meta = flat_size(call.input(6), "Meta");
  require(meta == 23, "Meta size (", meta, ") is not 23.");
  return {n, n == 0 ? 0 : sh / (3 * n)};
}

// Bounds that keep every size below in 64 bits and every id in 32.
template <class A>
void check_raster(const A& a) {
  require(a.width >= 0 && a.width <= 65536, "Attribute width (", a.width, ") is not in [0, 65536].");
  require(a.height >= 0 && a.height <= 65536, "Attribute height (", a.height, ") is not in [0, 65536].");
  require(a.tile_size >= 1 && a.tile_size <= 65536, "Attribute tile_size (", a.tile_size, ") is not in [1, 65536].");
  require(a.alpha_cutoff > 0 && a.alpha_cutoff <= 1, "Attribute alpha_cutoff (", a.alpha_cutoff, ") is not in (0, 1].");
  require(a.max_splat_steps >= 0, "Attribute max_splat_steps (", a.max_splat_steps, ") is negative.");
  require(a.max_list_entries >= 0 && a.max_list_entries <= INT32_MAX, "Attribute max_list_entries (",
          a.max_list_entries, ") is not in [0, 2147483647].");
  require(a.transmittance_threshold >= 0, "Attribute transmittance_threshold (", a.transmittance_threshold,
          ") is not at least 0.");
}

template <class A>
void check_render(const A& a) {
  check_raster(a);
  require(std::isfinite(a.radius_scale) && a.radius_scale > 0, "Attribute radius_scale (", a.radius_scale,
          ") is not positive.");
  require(a.sh_band >= 0 && a.sh_band <= 3, "Attribute sh_band (", a.sh_band, ") is not in [0, 3].");
}

template <class A>
TensorType image(const A& a) {
  return {{a.width * a.height * 4}, DType::F32};
}

// Numbers of the prep result that do not depend on the splats: rays, then ten settings.
template <class A>
int64_t prep_fixed(const A& a) {
  return 3 * std::max<int64_t>(a.width * a.height, 1) + 10;
}
template <class A>
int64_t lists_fixed(const A& a) {
  const auto tiles = [&](int64_t size) { return (size + a.tile_size - 1) / a.tile_size; };
  return a.max_list_entries + 2 * tiles(a.width) * tiles(a.height);
}

Types infer_render(const InferCall& call) {
  const auto& attrs = call.attrs<GaussianSplatAttrs>();
  check_scene(call);
  check_render(attrs);
  return image(attrs);
}

Types infer_prepare(const InferCall& call) {
  const auto& attrs = call.attrs<GaussianSplatAttrs>();
  const int64_t n = std::max<int64_t>(check_scene(call).splats, 1);
  check_render(attrs);
  return {TensorType{{14 * n + prep_fixed(attrs)}, DType::F32}, TensorType{{n + lists_fixed(attrs)}, DType::U32}};
}

Types infer_rasterize(const InferCall& call) {
  const auto& attrs = call.attrs<GaussianSplatRasterizeAttrs>();
  check_raster(attrs);
  const int64_t prep = flat_size(call.input(0), "Prep"), meta = flat_size(call.input(2), "Meta");
  const int64_t n = (prep - prep_fixed(attrs)) / 14;
  require(n >= 1 && 14 * n + prep_fixed(attrs) == prep, "Prep size (", prep, ") does not fit a ", attrs.width, " x ",
          attrs.height, " image.");
  require_dtype(call.input(1), DType::U32, "Lists");
  require_shape(call.input(1), {n + lists_fixed(attrs)}, "Lists");
  require(meta == 23, "Meta size (", meta, ") is not 23.");
  return image(attrs);
}

Types infer_backward(const InferCall& call) {
  const auto& attrs = call.attrs<GaussianSplatBackwardAttrs>();
  const SceneSize scene = check_scene(call);
  check_render(attrs);
  require(attrs.loss_grad_clip >= 1e-8f, "Attribute loss_grad_clip (", attrs.loss_grad_clip, ") is less than 1e-8.");
  require_dtype(call.input(7), DType::F32, "Gradient");
  require_shape(call.input(7), image(attrs).shape, "Gradient");
  return TensorType{{scene.splats * (14 + 3 * std::max<int64_t>(scene.sh, 1))}, DType::F32};
}

Values decompose_render(const DecomposeCall& call) {
  const auto& a = call.attrs<GaussianSplatAttrs>();
  const Value prep = gaussian_splat_prepare(call.inputs(), a);
  return {gaussian_splat_rasterize(prep, prep.result(1), call.input(6),
                                   {.width = a.width,
                                    .height = a.height,
                                    .tile_size = a.tile_size,
                                    .alpha_cutoff = a.alpha_cutoff,
                                    .max_splat_steps = a.max_splat_steps,
                                    .transmittance_threshold = a.transmittance_threshold,
                                    .max_list_entries = a.max_list_entries})};
}

constexpr Traits kTraits{.fusion_boundary = true, .extent = ExtentRule::kNever};

}  // namespace

constinit const Op<GaussianSplatAttrs> gaussian_splat_render{{.name = "gaussian_splat_render",
                                                              .category = "Gaussian splatting",
                                                              .min_inputs = 7,
                                                              .max_inputs = 7,
                                                              .infer = infer_render,
                                                              .decompose = decompose_render,
                                                              .traits = kTraits,
                                                              .doc = "An image of Gaussian splats: prepare, then "
                                                                     "rasterize."}};

constinit const Op<GaussianSplatAttrs> gaussian_splat_prepare{
    {.name = "gaussian_splat_prepare",
     .category = "Gaussian splatting",
     .min_inputs = 7,
     .max_inputs = 7,
     .infer = infer_prepare,
     .traits = kTraits,
     .doc = "Projects splats, resolves their colours and sorts them into tiles by depth."}};

constinit const Op<GaussianSplatRasterizeAttrs> gaussian_splat_rasterize{
    {.name = "gaussian_splat_rasterize",
     .category = "Gaussian splatting",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_rasterize,
     .traits = kTraits,
     .doc = "Composites prepared splats front to back: rgb = max(0, colour + T * background)^2.2, alpha = 1 - T."}};

constinit const Op<GaussianSplatBackwardAttrs> gaussian_splat_render_backward{
    {.name = "gaussian_splat_render_backward",
     .category = "Gaussian splatting",
     .min_inputs = 8,
     .max_inputs = 8,
     .infer = infer_backward,
     .traits = kTraits,
     .doc = "Exact gradients of gaussian_splat_render with respect to the splats, one after the other."}};

}  // namespace rlx::ops
