// The maths of Gaussian splatting in double (spec 30, 16). The ops round its results to f32; tests difference it
// directly.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rlx::reference::splat {

using Vec3 = std::array<double, 3>;

struct Settings {
  int64_t width = 64, height = 64, tile_size = 16;
  double radius_scale = 1.6, alpha_cutoff = 1.0 / 255;
  int64_t max_splat_steps = 32;
  double transmittance_threshold = 0.01;
  int64_t max_list_entries = 576;
  int64_t sh_band = 1;
  bool from_eye = false;

  int64_t pixels() const { return width * height; }
  int64_t tiles_x() const { return (width + tile_size - 1) / tile_size; }
  int64_t tiles_y() const { return (height + tile_size - 1) / tile_size; }
};

// Operands 0 to 6 of the ops.
struct Scene {
  std::vector<double> positions, scales, rotations, opacities, colors, sh, meta;

  int64_t splats() const { return static_cast<int64_t>(opacities.size()); }
  int64_t sh_per_splat() const { return splats() == 0 ? 0 : static_cast<int64_t>(sh.size()) / (3 * splats()); }
  Vec3 camera() const { return {meta[0], meta[1], meta[2]}; }
  Vec3 background() const { return {meta[12], meta[13], meta[14]}; }
};

// The results of gaussian_splat_prepare.
struct Prepared {
  std::vector<double> color_alpha, pos_local, inv_scale, quaternion, rays;
  std::vector<uint32_t> valid, ids, ranges;
};
Prepared prepare(const Scene& scene, const Settings& settings);

inline constexpr uint32_t kEmptyTile = 0xFFFFFFFFu;  // start of a tile without splats; its end is 0

// One splat that a pixel sees.
struct Hit {
  int64_t splat = 0;
  double alpha = 0;
  double transmittance = 1;  // before it
  double t = 0;              // along the ray, where the splat is densest
  Vec3 offset = {};          // from the centre to there, in standard deviations of the splat's axes
};
// Front to back; `left` is the transmittance behind the last one. Throws when a list names a splat that does not exist.
std::vector<Hit> hits_of(const Prepared& p, const Settings& settings, int64_t pixel, double& left);

// RGBA of every pixel.
std::vector<double> rasterize(const Prepared& p, const Vec3& background, const Settings& settings);

// The gradient of sum(image * d_image) with respect to positions, scales, rotations, opacities, colors and sh, packed
// in this order; the rgb parts of d_image are clamped to ±clip, alpha is ignored. Lists and cut-offs are constants.
std::vector<double> gradient(const Scene& scene, const Settings& settings, std::span<const double> d_image,
                             double clip);

// World to the axes of a splat: v rotated by the inverse of q = (w, x, y, z).
Vec3 to_local(const double* q, const Vec3& v);

// How the colour of a splat follows from its operands.
struct ColorRule {
  bool dc_from_colors = false;  // sh0 of every splat is (clamp(color) - 0.5) / C0
  int64_t coefficients = 1;     // of spherical harmonics that count: 1, 4, 9 or 16
};
ColorRule color_rule(const Scene& scene, const Settings& settings);
// The direction of a splat's colour, and its length before normalisation (0 where there is no direction).
Vec3 sh_direction(const Scene& scene, const Settings& settings, int64_t splat, double& length);
// The first `count` (1, 4, 9, 16) basis functions at a unit direction, and their derivatives by x, y, z.
void sh_basis(const Vec3& direction, int64_t count, double* values, Vec3* slopes);

inline double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline Vec3 operator+(const Vec3& a, const Vec3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Vec3 operator-(const Vec3& a, const Vec3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Vec3 operator*(double s, const Vec3& v) { return {s * v[0], s * v[1], s * v[2]}; }
inline Vec3 vec3_at(const std::vector<double>& values, int64_t index) {
  const double* v = values.data() + 3 * index;
  return {v[0], v[1], v[2]};
}

inline constexpr double kC0 = 0.28209479177387814;

}  // namespace rlx::reference::splat
