#include "backends/reference/kernels/splat_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "rlx/error.h"

namespace rlx::reference::splat {

namespace {

Vec3 normalized(const Vec3& v) {
  const double length = std::sqrt(dot(v, v));
  return length <= 1e-8 ? Vec3{0, 0, 1} : (1 / length) * v;
}

struct Camera {
  Vec3 position, right, up, forward;
  double fx, fy, cx, cy, far;

  Camera(const std::vector<double>& meta, const Settings& s) : position(vec3_at(meta, 0)), far(meta[11]) {
    forward = normalized(vec3_at(meta, 1) - position);
    right = normalized(cross(vec3_at(meta, 2), forward));
    up = normalized(cross(forward, right));
    fy = 0.5 * static_cast<double>(s.height) / std::tan(meta[9] * std::numbers::pi / 360);
    fx = fy;
    cx = static_cast<double>(s.width) / 2;
    cy = static_cast<double>(s.height) / 2;
  }

  Vec3 rotate(const Vec3& v) const { return {dot(right, v), dot(up, v), dot(forward, v)}; }

  Vec3 ray(int64_t x, int64_t y) const {
    const double u = (static_cast<double>(x) + 0.5 - cx) / fx, v = (static_cast<double>(y) + 0.5 - cy) / fy;
    return normalized(u * right + v * up + forward);
  }
};

// Where a splat appears: an ellipse a*x^2 + 2b*xy + c*y^2 <= 1 about (x, y) in pixels.
struct Outline {
  bool visible = false;
  double x = 0, y = 0, radius = 0, depth = 0, a = 0, b = 0, c = 0;
};

bool sphere_in_view(const Camera& cam, const Settings& s, const Vec3& center, double radius) {
  const auto width = static_cast<double>(s.width), height = static_cast<double>(s.height);
  if (!(center[2] + radius > 1e-4) || !(center[2] - radius < cam.far)) return false;
  const Vec3 planes[] = {
      {cam.fx, 0, cam.cx}, {-cam.fx, 0, width - cam.cx}, {0, cam.fy, cam.cy}, {0, -cam.fy, height - cam.cy}};
  return std::all_of(std::begin(planes), std::end(planes),
                     [&](const Vec3& plane) { return dot(plane, center) >= -radius * std::sqrt(dot(plane, plane)); });
}

// The ellipse that the outline of an ellipsoid is in the image: its dual conic is K (Sigma - c c^T) K^T. Written about
// the principal point, where less cancels. False where the ellipsoid reaches behind the eye. An ellipse too thin for
// its determinant to be positive is refused later, with the other thin ones.
bool project_ellipsoid(const Camera& cam, const Vec3& center, const Vec3 axes[3], Outline& out) {
  double m[3][3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      m[i][j] = -center[i] * center[j];
      for (int k = 0; k < 3; ++k) m[i][j] += axes[k][i] * axes[k][j];
    }
  if (!(m[2][2] < 0) || !(center[2] > 0)) return false;
  const double ux = cam.fx * m[0][2] / m[2][2], uy = cam.fy * m[1][2] / m[2][2];
  const double e11 = ux * ux - cam.fx * cam.fx * m[0][0] / m[2][2], e22 = uy * uy - cam.fy * cam.fy * m[1][1] / m[2][2];
  const double e12 = ux * uy - cam.fx * cam.fy * m[0][1] / m[2][2], det = e11 * e22 - e12 * e12;
  const double mean = (e11 + e22) / 2, spread = std::hypot((e11 - e22) / 2, e12);
  out.x = ux + cam.cx;
  out.y = uy + cam.cy;
  out.a = e22 / det;
  out.b = -e12 / det;
  out.c = e11 / det;
  out.radius = std::sqrt(mean + spread);
  return true;
}

Outline outline_of(const Scene& scene, const Settings& s, const Camera& cam, int64_t splat, double opacity) {
  Outline out;
  if (!(opacity >= s.alpha_cutoff)) return out;
  const Vec3 offset = vec3_at(scene.positions, splat) - cam.position, center = cam.rotate(offset);
  const double support = std::sqrt(std::max(0.0, -2 * std::log(s.alpha_cutoff / opacity)));
  const double* q = scene.rotations.data() + 4 * splat;
  const Vec3 columns[3] = {to_local(q, {1, 0, 0}), to_local(q, {0, 1, 0}), to_local(q, {0, 0, 1})};
  Vec3 axes[3];
  double largest = 0;
  for (int k = 0; k < 3; ++k) {
    const double r =
        std::max(std::exp(scene.scales[static_cast<size_t>(3 * splat + k)]) * s.radius_scale * support, 1e-6);
    axes[k] = r * cam.rotate({columns[0][k], columns[1][k], columns[2][k]});
    largest = std::max(largest, r);
  }
  if (!sphere_in_view(cam, s, center, largest)) return out;

  const auto width = static_cast<double>(s.width), height = static_cast<double>(s.height);
  if (project_ellipsoid(cam, center, axes, out)) {
    const double det = out.a * out.c - out.b * out.b, half_x = std::sqrt(out.c / det), half_y = std::sqrt(out.a / det);
    if (out.x + half_x < 0 || out.x - half_x > width || out.y + half_y < 0 || out.y - half_y > height) return out;
    out.radius = std::max(out.radius + 1, 1.0);
  } else {  // the eye is inside, or the outline reaches behind it: the whole screen
    const double radius = std::max(width, height);
    out = {.x = width / 2,
           .y = height / 2,
           .radius = std::max(radius + 1, 1.0),
           .a = 1 / (radius * radius),
           .b = 0,
           .c = 1 / (radius * radius)};
  }
  out.depth = std::sqrt(dot(offset, offset));
  const double dx = out.x - std::clamp(out.x, 0.0, width), dy = out.y - std::clamp(out.y, 0.0, height);
  out.visible = center[2] > 1e-4 && std::isfinite(out.depth) && dx * dx + dy * dy <= out.radius * out.radius;
  return out;
}

// Does the box hold a point of the ellipse? Coordinates about the ellipse's centre.
bool box_meets(const Outline& o, double x0, double x1, double y0, double y1) {
  if (x0 <= 0 && x1 >= 0 && y0 <= 0 && y1 >= 0) return true;
  const auto value = [&](double x, double y) { return o.a * x * x + 2 * o.b * x * y + o.c * y * y; };
  double least = INFINITY;
  for (const double x : {x0, x1}) least = std::min(least, value(x, std::clamp(-o.b * x / o.c, y0, y1)));
  for (const double y : {y0, y1}) least = std::min(least, value(std::clamp(-o.b * y / o.a, x0, x1), y));
  return least <= 1 + 1e-6;
}

// The tiles of a splat in the order they enter the list.
std::vector<int64_t> tiles_of(const Outline& o, const Settings& s) {
  const double det = o.a * o.c - o.b * o.b, tile = static_cast<double>(s.tile_size);
  // The specification refuses det <= 1e-12, which drops every outline of more than 1e6 square pixels, the full-screen
  // one of an image 1000 pixels wide among them. What is meant is an outline that has no area for its size.
  if (!std::isfinite(o.a) || !std::isfinite(o.b) || !std::isfinite(o.c) || o.a <= 1e-10 || o.c <= 1e-10 ||
      det <= 1e-12 * o.a * o.c)
    return {};
  const double mean = (o.a + o.c) / 2, spread = std::hypot((o.a - o.c) / 2, o.b);
  const double long_axis = 1 / std::sqrt(det / (mean + spread)), short_axis = 1 / std::sqrt(mean + spread);
  if (long_axis > 2 * std::max(o.radius, 1.0) + tile / 2 || short_axis < 0.125) return {};

  const auto first = [&](double edge, int64_t count) {
    return static_cast<int64_t>(std::clamp(std::floor(edge / tile), 0.0, static_cast<double>(count)));
  };
  const auto last = [&](double edge, int64_t count) {
    return static_cast<int64_t>(std::clamp(std::ceil(edge / tile), 0.0, static_cast<double>(count)));
  };
  const double extent_x = std::clamp(std::sqrt(o.c / det), 1e-4, o.radius), reach_x = extent_x + tile / 2;
  const double extent_y = std::clamp(std::sqrt(o.a / det), 1e-4, o.radius), reach_y = extent_y + tile / 2;
  const int64_t x0 = first(o.x - reach_x, s.tiles_x()), x1 = last(o.x + reach_x, s.tiles_x());
  const int64_t y0 = first(o.y - reach_y, s.tiles_y()), y1 = last(o.y + reach_y, s.tiles_y());

  const auto meets = [&](int64_t tx, int64_t ty) {
    const double left = static_cast<double>(tx) * tile - o.x, top = static_cast<double>(ty) * tile - o.y;
    return box_meets(o, left, left + tile, top, top + tile);
  };
  // An ellipse is convex, so the tiles it meets in a line are contiguous; the direction only decides the order.
  const bool by_columns = extent_x != extent_y ? extent_x > extent_y : x1 - x0 > y1 - y0;
  std::vector<int64_t> tiles;
  for (int64_t u = by_columns ? x0 : y0; u < (by_columns ? x1 : y1); ++u)
    for (int64_t v = by_columns ? y0 : x0; v < (by_columns ? y1 : x1); ++v) {
      const int64_t tx = by_columns ? u : v, ty = by_columns ? v : u;
      if (meets(tx, ty)) tiles.push_back(ty * s.tiles_x() + tx);
    }
  return tiles;
}

void bin(const std::vector<Outline>& outlines, const Settings& s, Prepared& p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < outlines.size(); ++i)
    if (outlines[i].visible) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return outlines[i].depth < outlines[j].depth; });

  const auto limit = static_cast<size_t>(s.max_list_entries);
  std::vector<std::pair<int64_t, uint32_t>> entries;  // tile, splat
  for (const size_t i : order) {
    if (entries.size() >= limit) break;
    for (const int64_t tile : tiles_of(outlines[i], s))
      if (entries.size() < limit) entries.emplace_back(tile, static_cast<uint32_t>(i));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  p.ids.assign(limit, 0);
  p.ranges.assign(static_cast<size_t>(2 * s.tiles_x() * s.tiles_y()), 0);
  for (size_t tile = 0; tile < p.ranges.size(); tile += 2) p.ranges[tile] = kEmptyTile;
  for (size_t i = 0; i < entries.size(); ++i) {
    p.ids[i] = entries[i].second;
    uint32_t* range = &p.ranges[static_cast<size_t>(2 * entries[i].first)];
    if (range[0] == kEmptyTile) range[0] = static_cast<uint32_t>(i);
    range[1] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace

Vec3 to_local(const double* q, const Vec3& v) {
  const Vec3 axis = {q[1], q[2], q[3]};
  return v + 2 * cross(cross(v, axis) + q[0] * v, axis);
}

Vec3 sh_direction(const Scene& scene, const Settings& settings, int64_t splat, double& length) {
  const Vec3 away = scene.camera() - vec3_at(scene.positions, splat);
  length = std::sqrt(dot(away, away));
  if (length <= 1e-8) {
    length = 0;
    return {0, 0, 1};
  }
  return ((settings.from_eye ? -1 : 1) / length) * away;
}

ColorRule color_rule(const Scene& scene, const Settings& settings) {
  const int64_t stored = scene.sh_per_splat();
  ColorRule rule;
  rule.dc_from_colors = stored < 16;
  for (int64_t i = 0; rule.dc_from_colors && stored > 0 && i < scene.splats(); ++i)
    for (int64_t c = 0; c < 3; ++c)
      if (!(std::fabs(scene.sh[static_cast<size_t>(3 * i * stored + c)]) <= 1e-8)) rule.dc_from_colors = false;
  for (int64_t band = 1; band <= settings.sh_band && (band + 1) * (band + 1) <= stored; ++band)
    rule.coefficients = (band + 1) * (band + 1);
  return rule;
}

void sh_basis(const Vec3& d, int64_t count, double* values, Vec3* slopes) {
  const double x = d[0], y = d[1], z = d[2], xx = x * x, yy = y * y, zz = z * z;
  const auto set = [&](int i, double factor, double value, const Vec3& slope) {
    values[i] = factor * value;
    slopes[i] = factor * slope;
  };
  set(0, kC0, 1, {0, 0, 0});
  if (count < 4) return;
  constexpr double kC1 = 0.4886025119029199;
  set(1, -kC1, y, {0, 1, 0});
  set(2, kC1, z, {0, 0, 1});
  set(3, -kC1, x, {1, 0, 0});
  if (count < 9) return;
  set(4, 1.0925484305920792, x * y, {y, x, 0});
  set(5, -1.0925484305920792, y * z, {0, z, y});
  set(6, 0.31539156525252005, 2 * zz - xx - yy, {-2 * x, -2 * y, 4 * z});
  set(7, -1.0925484305920792, x * z, {z, 0, x});
  set(8, 0.5462742152960396, xx - yy, {2 * x, -2 * y, 0});
  if (count < 16) return;
  set(9, -0.5900435899266435, y * (3 * xx - yy), {6 * x * y, 3 * xx - 3 * yy, 0});
  set(10, 2.890611442640554, x * y * z, {y * z, x * z, x * y});
  set(11, -0.4570457994644658, y * (4 * zz - xx - yy), {-2 * x * y, 4 * zz - xx - 3 * yy, 8 * y * z});
  set(12, 0.3731763325901154, z * (2 * zz - 3 * xx - 3 * yy), {-6 * x * z, -6 * y * z, 6 * zz - 3 * xx - 3 * yy});
  set(13, -0.4570457994644658, x * (4 * zz - xx - yy), {4 * zz - 3 * xx - yy, -2 * x * y, 8 * x * z});
  set(14, 1.445305721320277, z * (xx - yy), {2 * x * z, -2 * y * z, xx - yy});
  set(15, -0.5900435899266435, x * (xx - 3 * yy), {3 * xx - 3 * yy, -6 * x * y, 0});
}

Prepared prepare(const Scene& scene, const Settings& s) {
  const Camera cam(scene.meta, s);
  const int64_t splats = scene.splats(), stored = scene.sh_per_splat();
  const auto n = static_cast<size_t>(std::max<int64_t>(splats, 1));
  Prepared p;
  p.color_alpha.assign(4 * n, 0);
  p.pos_local.assign(3 * n, 0);
  p.inv_scale.assign(3 * n, 0);
  p.quaternion.assign(4 * n, 0);
  p.valid.assign(n, 0);
  p.rays.assign(static_cast<size_t>(3 * std::max<int64_t>(s.pixels(), 1)), 0);
  for (int64_t i = 0; i < s.pixels(); ++i) {
    const Vec3 ray = cam.ray(i % s.width, i / s.width);
    std::copy(ray.begin(), ray.end(), p.rays.begin() + 3 * i);
  }

  const ColorRule rule = color_rule(scene, s);
  std::vector<Outline> outlines;
  for (int64_t i = 0; i < splats; ++i) {
    double length = 0, basis[16];
    Vec3 slopes[16];
    sh_basis(sh_direction(scene, s, i, length), rule.coefficients, basis, slopes);
    for (int64_t c = 0; c < 3; ++c) {
      double color = 0.5;
      for (int64_t k = 0; k < rule.coefficients; ++k)
        color += k == 0 && rule.dc_from_colors
                     ? std::clamp(scene.colors[static_cast<size_t>(3 * i + c)], 0.0, 1.0) - 0.5
                     : basis[k] * scene.sh[static_cast<size_t>(3 * (i * stored + k) + c)];
      p.color_alpha[static_cast<size_t>(4 * i + c)] = color;
    }
    const double opacity = std::clamp(scene.opacities[static_cast<size_t>(i)], 0.0, 1.0);
    p.color_alpha[static_cast<size_t>(4 * i + 3)] = opacity;
    const double* q = scene.rotations.data() + 4 * i;
    std::copy(q, q + 4, p.quaternion.begin() + 4 * i);
    const Vec3 local = to_local(q, cam.position - vec3_at(scene.positions, i));
    for (int64_t k = 0; k < 3; ++k) {
      const auto at = static_cast<size_t>(3 * i + k);
      p.inv_scale[at] = 1 / std::max(std::exp(scene.scales[at]) * s.radius_scale * 3, 1e-6);
      p.pos_local[at] = local[static_cast<size_t>(k)] * p.inv_scale[at];
    }
    outlines.push_back(outline_of(scene, s, cam, i, opacity));
    p.valid[static_cast<size_t>(i)] = outlines.back().visible ? 1 : 0;
  }
  bin(outlines, s, p);
  return p;
}

std::vector<Hit> hits_of(const Prepared& p, const Settings& s, int64_t pixel, double& left) {
  left = 1;
  std::vector<Hit> hits;
  const int64_t tile = pixel / s.width / s.tile_size * s.tiles_x() + pixel % s.width / s.tile_size;
  const uint32_t begin = p.ranges[static_cast<size_t>(2 * tile)], end = p.ranges[static_cast<size_t>(2 * tile + 1)];
  if (begin >= end) return hits;
  if (end > p.ids.size())
    fail(ErrorKind::kRuntime, str("The range of a tile ends at ", end, " of ", p.ids.size(), " list entries."));
  const Vec3 ray = vec3_at(p.rays, pixel);
  for (uint32_t entry = begin; entry < end; ++entry) {
    const uint32_t id = p.ids[entry];
    if (id >= p.valid.size())
      fail(ErrorKind::kRuntime, str("Splat id (", id, ") is out of range for ", p.valid.size(), " splats."));
    if (p.valid[id] == 0) continue;
    // Distances in standard deviations. The support radius of 30, 16.5 cancels everywhere but in the test for rays
    // that do not move through the splat.
    const double opacity = p.color_alpha[4 * static_cast<size_t>(id) + 3];
    const double support_squared = std::max(0.0, -2 * std::log(s.alpha_cutoff / opacity));
    const Vec3 turned = to_local(p.quaternion.data() + 4 * static_cast<size_t>(id), ray);
    Vec3 o, d;
    for (size_t k = 0; k < 3; ++k) {
      o[k] = 3 * p.pos_local[3 * static_cast<size_t>(id) + k];
      d[k] = 3 * turned[k] * p.inv_scale[3 * static_cast<size_t>(id) + k];
    }
    if (!(dot(d, d) > 1e-10 * support_squared)) continue;
    Hit hit{.splat = id, .transmittance = left, .t = -dot(d, o) / dot(d, d)};
    if (!(hit.t > 0)) continue;
    hit.offset = o + hit.t * d;
    hit.alpha = opacity * std::exp(-0.5 * dot(hit.offset, hit.offset));
    if (!(hit.alpha >= s.alpha_cutoff)) continue;
    left *= 1 - hit.alpha;
    hits.push_back(hit);
    if (left < s.transmittance_threshold) break;
    if (s.max_splat_steps > 0 && static_cast<int64_t>(hits.size()) >= s.max_splat_steps) break;
  }
  return hits;
}

std::vector<double> rasterize(const Prepared& p, const Vec3& background, const Settings& s) {
  std::vector<double> image;
  for (int64_t pixel = 0; pixel < s.pixels(); ++pixel) {
    double left = 1;
    Vec3 color = {};
    for (const Hit& hit : hits_of(p, s, pixel, left))
      for (size_t c = 0; c < 3; ++c)
        color[c] += hit.transmittance * hit.alpha * p.color_alpha[static_cast<size_t>(4 * hit.splat) + c];
    for (size_t c = 0; c < 3; ++c) image.push_back(std::pow(std::max(0.0, color[c] + left * background[c]), 2.2));
    image.push_back(1 - left);
  }
  return image;
}

}  // namespace rlx::reference::splat
