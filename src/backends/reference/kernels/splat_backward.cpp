#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/splat_math.h"

namespace rlx::reference::splat {

namespace {

// Where the gradient of each operand starts in the packed result.
struct Packed {
  std::vector<double> values;
  double *positions, *scales, *rotations, *opacities, *colors, *sh;

  Packed(int64_t splats, int64_t stored)
      : values(static_cast<size_t>(splats * (14 + 3 * std::max<int64_t>(stored, 1))), 0),
        positions(values.data()),
        scales(positions + 3 * splats),
        rotations(scales + 3 * splats),
        opacities(rotations + 4 * splats),
        colors(opacities + splats),
        sh(colors + 3 * splats) {}
};

void add(double* to, const Vec3& v) {
  for (size_t k = 0; k < 3; ++k) to[k] += v[k];
}

// From the gradient of one hit's alpha to opacity, position, log scale and rotation. With o the offset in standard
// deviations and Q = |o|^2, alpha = opacity * exp(-Q / 2). The ray parameter t minimises Q, so Q does not change with
// it to first order and t counts as a constant.
void add_alpha(const Scene& scene, const Prepared& p, const Hit& hit, const Vec3& ray, double d_alpha, Packed& out) {
  const auto i = hit.splat;
  const double opacity = p.color_alpha[static_cast<size_t>(4 * i + 3)];
  const double given = scene.opacities[static_cast<size_t>(i)];
  if (given >= 0 && given <= 1) out.opacities[i] += d_alpha * hit.alpha / opacity;

  const double d_q = -0.5 * hit.alpha * d_alpha;
  Vec3 a;  // dQ by the point in local axes, before the division by the scales
  for (size_t k = 0; k < 3; ++k) {
    const double inv = p.inv_scale[static_cast<size_t>(3 * i) + k];
    a[k] = 2 * hit.offset[k] * 3 * inv;
    if (inv < 1e6)
      out.scales[static_cast<size_t>(3 * i) + k] += d_q * -2 * hit.offset[k] * hit.offset[k];  // not clamped
  }
  // f(v) = a · to_local(q, v) with v from the centre to the densest point: to_local(v) = v + 2 (q (v·q) - v (q·q)) +
  // 2 w v x q.
  const double* q = scene.rotations.data() + 4 * i;
  const double w = q[0];
  const Vec3 u = {q[1], q[2], q[3]}, v = scene.camera() - vec3_at(scene.positions, i) + hit.t * ray;
  const Vec3 by_v = a + 2 * (dot(a, u) * u - dot(u, u) * a) + 2 * w * cross(u, a);
  const Vec3 by_u = 2 * (dot(v, u) * a + dot(a, u) * v - 2 * dot(a, v) * u) + 2 * w * cross(a, v);
  add(out.positions + 3 * i, -d_q * by_v);
  out.rotations[4 * i] += d_q * 2 * dot(u, cross(a, v));
  add(out.rotations + 4 * i + 1, d_q * by_u);
}

// From the gradient of every splat's colour to colors, sh and, through the direction, positions.
void add_colors(const Scene& scene, const Settings& s, const std::vector<double>& d_color, Packed& out) {
  const ColorRule rule = color_rule(scene, s);
  const int64_t stored = scene.sh_per_splat();
  for (int64_t i = 0; i < scene.splats(); ++i) {
    double length = 0, basis[16];
    Vec3 slopes[16], d_direction = {};
    const Vec3 direction = sh_direction(scene, s, i, length);
    sh_basis(direction, rule.coefficients, basis, slopes);
    for (int64_t c = 0; c < 3; ++c) {
      const double d = d_color[static_cast<size_t>(3 * i + c)];
      for (int64_t k = 0; k < rule.coefficients; ++k) {
        if (k == 0 && rule.dc_from_colors) {
          const double color = scene.colors[static_cast<size_t>(3 * i + c)];
          if (color >= 0 && color <= 1) out.colors[3 * i + c] += d;
          continue;
        }
        const int64_t at = 3 * (i * stored + k) + c;
        out.sh[at] += d * basis[k];
        d_direction = d_direction + (d * scene.sh[static_cast<size_t>(at)]) * slopes[k];
      }
    }
    if (length == 0) continue;
    // The direction is ±(camera - position) / length.
    const Vec3 across = d_direction - dot(d_direction, direction) * direction;
    add(out.positions + 3 * i, ((s.from_eye ? 1 : -1) / length) * across);
  }
}

}  // namespace

std::vector<double> gradient(const Scene& scene, const Settings& s, std::span<const double> d_image, double clip) {
  const Prepared p = prepare(scene, s);
  const Vec3 background = scene.background();
  Packed out(scene.splats(), scene.sh_per_splat());
  std::vector<double> d_color(static_cast<size_t>(3 * scene.splats()), 0);
  for (int64_t pixel = 0; pixel < s.pixels(); ++pixel) {
    double left = 1;
    const std::vector<Hit> hits = hits_of(p, s, pixel, left);
    if (hits.empty()) continue;
    const auto color_of = [&](const Hit& hit) {
      const double* c = &p.color_alpha[static_cast<size_t>(4 * hit.splat)];
      return Vec3{c[0], c[1], c[2]};
    };
    Vec3 linear = left * background, g;
    for (const Hit& hit : hits) linear = linear + (hit.transmittance * hit.alpha) * color_of(hit);
    for (size_t c = 0; c < 3; ++c) {
      const double d = std::clamp(d_image[static_cast<size_t>(4 * pixel) + c], -clip, clip);
      g[c] = linear[c] > 0 ? d * 2.2 * std::pow(linear[c], 1.2) : 0;
    }
    double d_left = dot(g, background);  // the gradient of the transmittance behind the hit
    for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit) {
      const double seen = dot(g, color_of(*hit));
      add(&d_color[static_cast<size_t>(3 * hit->splat)], (hit->transmittance * hit->alpha) * g);
      add_alpha(scene, p, *hit, vec3_at(p.rays, pixel), hit->transmittance * (seen - d_left), out);
      d_left = hit->alpha * seen + (1 - hit->alpha) * d_left;
    }
  }
  add_colors(scene, s, d_color, out);
  return std::move(out.values);
}

}  // namespace rlx::reference::splat
