// Rendering of Gaussian splats and its gradient (spec 10, 4.19; the maths: 30, 16).
//
// Operands 0 to 6, all flat F32: positions [3N], log scales [3N], rotations [4N] as (w, x, y, z), opacities [N] in
// [0, 1], colors [3N], spherical harmonics [N * S * 3], meta [23]: camera position, target, up, vertical field of view
// in degrees, near, far, background; the rest of meta repeats the attributes, and the attributes rule.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// The direction a colour is looked up with: eye - splat, or splat - eye as in trained 3DGS scenes.
enum class ShDirection : int32_t { kFromSplat, kFromEye };
constexpr auto names_of(ShDirection) { return std::array<std::string_view, 2>{"from_splat", "from_eye"}; }

struct GaussianSplatAttrs {
  int64_t width = 64, height = 64, tile_size = 16;
  float radius_scale = 1.6f;
  float alpha_cutoff = 1.0f / 255;
  int64_t max_splat_steps = 32;  // contributing splats of a pixel; 0: no limit
  float transmittance_threshold = 0.01f;
  int64_t max_list_entries = 576;  // of all tiles together
  int64_t sh_band = 1;
  ShDirection sh_direction = ShDirection::kFromSplat;
  static constexpr auto fields =
      std::tuple{field("width", &GaussianSplatAttrs::width),
                 field("height", &GaussianSplatAttrs::height),
                 field("tile_size", &GaussianSplatAttrs::tile_size),
                 field("radius_scale", &GaussianSplatAttrs::radius_scale),
                 field("alpha_cutoff", &GaussianSplatAttrs::alpha_cutoff),
                 field("max_splat_steps", &GaussianSplatAttrs::max_splat_steps),
                 field("transmittance_threshold", &GaussianSplatAttrs::transmittance_threshold),
                 field("max_list_entries", &GaussianSplatAttrs::max_list_entries),
                 field("sh_band", &GaussianSplatAttrs::sh_band),
                 field("sh_direction", &GaussianSplatAttrs::sh_direction)};
};
extern const Op<GaussianSplatAttrs> gaussian_splat_render;   // operands 0-6: RGBA [W * H * 4]
extern const Op<GaussianSplatAttrs> gaussian_splat_prepare;  // operands 0-6: prep F32, lists U32

struct GaussianSplatRasterizeAttrs {
  int64_t width = 64, height = 64, tile_size = 16;
  float alpha_cutoff = 1.0f / 255;
  int64_t max_splat_steps = 32;
  float transmittance_threshold = 0.01f;
  int64_t max_list_entries = 576;
  static constexpr auto fields =
      std::tuple{field("width", &GaussianSplatRasterizeAttrs::width),
                 field("height", &GaussianSplatRasterizeAttrs::height),
                 field("tile_size", &GaussianSplatRasterizeAttrs::tile_size),
                 field("alpha_cutoff", &GaussianSplatRasterizeAttrs::alpha_cutoff),
                 field("max_splat_steps", &GaussianSplatRasterizeAttrs::max_splat_steps),
                 field("transmittance_threshold", &GaussianSplatRasterizeAttrs::transmittance_threshold),
                 field("max_list_entries", &GaussianSplatRasterizeAttrs::max_list_entries)};
};
extern const Op<GaussianSplatRasterizeAttrs> gaussian_splat_rasterize;  // (prep, lists, meta): RGBA [W * H * 4]

struct GaussianSplatBackwardAttrs {
  int64_t width = 64, height = 64, tile_size = 16;
  float radius_scale = 1.6f;
  float alpha_cutoff = 1.0f / 255;
  int64_t max_splat_steps = 32;
  float transmittance_threshold = 0.01f;
  int64_t max_list_entries = 576;
  int64_t sh_band = 1;
  ShDirection sh_direction = ShDirection::kFromSplat;
  float loss_grad_clip = 1;   // the gradient of the image is clamped to this magnitude first
  float max_anisotropy = 10;  // carried for graphs of the reference; the exact gradient has no use for it
  static constexpr auto fields =
      std::tuple{field("width", &GaussianSplatBackwardAttrs::width),
                 field("height", &GaussianSplatBackwardAttrs::height),
                 field("tile_size", &GaussianSplatBackwardAttrs::tile_size),
                 field("radius_scale", &GaussianSplatBackwardAttrs::radius_scale),
                 field("alpha_cutoff", &GaussianSplatBackwardAttrs::alpha_cutoff),
                 field("max_splat_steps", &GaussianSplatBackwardAttrs::max_splat_steps),
                 field("transmittance_threshold", &GaussianSplatBackwardAttrs::transmittance_threshold),
                 field("max_list_entries", &GaussianSplatBackwardAttrs::max_list_entries),
                 field("sh_band", &GaussianSplatBackwardAttrs::sh_band),
                 field("sh_direction", &GaussianSplatBackwardAttrs::sh_direction),
                 field("loss_grad_clip", &GaussianSplatBackwardAttrs::loss_grad_clip),
                 field("max_anisotropy", &GaussianSplatBackwardAttrs::max_anisotropy)};
};
// (operands 0-6, gradient of the image [W * H * 4]): the gradients of operands 0-5 one after the other.
extern const Op<GaussianSplatBackwardAttrs> gaussian_splat_render_backward;

}  // namespace rlx::ops
