// The forward against a renderer without tiles, lists or prepared data; the gradient against central differences of the
// forward in double.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "backends/reference/kernels/splat_math.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

namespace splat = reference::splat;
using splat::Scene;
using splat::Settings;

// Splats around the origin seen from z = -4; everything rounded to f32, so that ops and double code see the same scene.
Scene random_scene(Rng& rng, int64_t splats, int64_t sh) {
  Scene s;
  const auto fill = [&](std::vector<double>& to, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<double>(static_cast<float>(rng.uniform(low, high))));
  };
  fill(s.positions, 3 * splats, -1, 1);
  fill(s.scales, 3 * splats, -2.4, -1);
  for (int64_t i = 0; i < splats; ++i) {
    double q[4], norm = 0;
    for (double& v : q) v = rng.normal(), norm += v * v;
    for (const double v : q) s.rotations.push_back(static_cast<double>(static_cast<float>(v / std::sqrt(norm))));
  }
  fill(s.opacities, splats, 0.3, 0.9);
  fill(s.colors, 3 * splats, 0.1, 0.9);
  fill(s.sh, 3 * splats * sh, -0.4, 0.4);
  s.meta = {0.25, -0.125, -4, 0, 0, 0, 0, 1, 0, 40, 0.1, 100, 0.25, 0.5, 0.125, 0, 0, 0, 0, 0, 0, 0, 0};
  return s;
}

Tensor flat(const std::vector<double>& values) {
  return Tensor::from_doubles(DType::F32, {static_cast<int64_t>(values.size())}, values);
}
Tensors operands(const Scene& s) {
  return {flat(s.positions), flat(s.scales), flat(s.rotations), flat(s.opacities),
          flat(s.colors),    flat(s.sh),     flat(s.meta)};
}

ops::GaussianSplatAttrs attrs_of(const Settings& s) {
  return {.width = s.width,
          .height = s.height,
          .tile_size = s.tile_size,
          .radius_scale = static_cast<float>(s.radius_scale),
          .alpha_cutoff = static_cast<float>(s.alpha_cutoff),
          .max_splat_steps = s.max_splat_steps,
          .transmittance_threshold = static_cast<float>(s.transmittance_threshold),
          .max_list_entries = s.max_list_entries,
          .sh_band = s.sh_band,
          .sh_direction = s.from_eye ? ops::ShDirection::kFromEye : ops::ShDirection::kFromSplat};
}

struct V {
  double x, y, z;
  V operator-(const V& o) const { return {x - o.x, y - o.y, z - o.z}; }
  V operator+(const V& o) const { return {x + o.x, y + o.y, z + o.z}; }
  V operator*(double s) const { return {x * s, y * s, z * s}; }
  double dot(const V& o) const { return x * o.x + y * o.y + z * o.z; }
  V cross(const V& o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
  V unit() const { return *this * (1 / std::sqrt(dot(*this))); }
};
V at(const std::vector<double>& v, size_t i) { return {v[3 * i], v[3 * i + 1], v[3 * i + 2]}; }

// Every pixel looks at every splat, sorted by distance; Mahalanobis distances by rotation matrices; band 1 at most.
std::vector<double> brute_force(const Scene& s, const Settings& set) {
  const V eye = at(s.meta, 0), forward = (at(s.meta, 1) - eye).unit(), right = at(s.meta, 2).cross(forward).unit(),
          up = forward.cross(right);
  const double f = 0.5 * static_cast<double>(set.height) / std::tan(s.meta[9] * std::numbers::pi / 360);
  const size_t n = s.opacities.size(), sh = s.sh.size() / (3 * n);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const V a = at(s.positions, i) - eye, b = at(s.positions, j) - eye;
    return a.dot(a) < b.dot(b);
  });
  std::vector<double> image;
  for (int64_t py = 0; py < set.height; ++py)
    for (int64_t px = 0; px < set.width; ++px) {
      const double u = static_cast<double>(px) + 0.5 - static_cast<double>(set.width) / 2;
      const double v = static_cast<double>(py) + 0.5 - static_cast<double>(set.height) / 2;
      const V ray = (right * (u / f) + up * (v / f) + forward).unit();
      double left = 1, rgb[3] = {};
      int64_t steps = 0;
      for (const size_t i : order) {
        const double w = s.rotations[4 * i], x = s.rotations[4 * i + 1], y = s.rotations[4 * i + 2],
                     z = s.rotations[4 * i + 3];
        const V axes[3] = {{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
                           {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
                           {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}};
        const V from = eye - at(s.positions, i);
        double a = 0, b = 0, c = 0;  // a + 2 b t + c t^2, the squared distance at t
        for (size_t k = 0; k < 3; ++k) {
          const double sigma = std::exp(s.scales[3 * i + k]) * set.radius_scale;
          const double o = axes[k].dot(from) / sigma, d = axes[k].dot(ray) / sigma;
          a += o * o, b += o * d, c += d * d;
        }
        const double alpha = s.opacities[i] * std::exp(-0.5 * (a - b * b / c));
        if (-b / c <= 0 || alpha < set.alpha_cutoff) continue;
        const V look = (set.from_eye ? from * -1 : from).unit();
        for (size_t ch = 0; ch < 3; ++ch) {
          double color = s.colors[3 * i + ch];
          if (sh > 0) {
            const auto term = [&](size_t k) { return s.sh[3 * (sh * i + k) + ch]; };
            color = 0.5 + 0.28209479177387814 * term(0);
            if (set.sh_band >= 1 && sh >= 4)
              color += 0.4886025119029199 * (-look.y * term(1) + look.z * term(2) - look.x * term(3));
          }
          rgb[ch] += left * alpha * color;
        }
        left *= 1 - alpha;
        if (left < set.transmittance_threshold || ++steps == set.max_splat_steps) break;
      }
      for (size_t ch = 0; ch < 3; ++ch) image.push_back(std::pow(std::max(0.0, rgb[ch] + left * s.meta[12 + ch]), 2.2));
      image.push_back(1 - left);
    }
  return image;
}

void expect_near(std::span<const double> actual, std::span<const double> expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double top = 0;
  for (const double e : expected) top = std::max(top, std::fabs(e));
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance * top) << "at " << i;
}

std::vector<Settings> settings() {
  return {{.width = 19, .height = 13, .tile_size = 4, .max_list_entries = 4000},
          {.width = 19, .height = 13, .tile_size = 16, .max_splat_steps = 2, .max_list_entries = 4000},
          {.width = 12,
           .height = 17,
           .tile_size = 5,
           .radius_scale = 0.75,
           .alpha_cutoff = 0.05,
           .max_splat_steps = 0,
           .transmittance_threshold = 0.3,
           .max_list_entries = 4000,
           .from_eye = true}};
}

// One splat at the origin, opacity 0.5, colour (1, 0.5, 0), in the middle of an image with an odd number of pixels.
Scene one_splat() {
  Scene s;
  s.positions = {0, 0, 0};
  s.scales = {-2, -2, -2};
  s.rotations = {1, 0, 0, 0};
  s.opacities = {0.5};
  s.colors = {1, 0.5, 0};
  s.meta = {0, 0, -4, 0, 0, 0, 0, 1, 0, 40, 0.1, 100, 0.25, 0.5, 0.125, 0, 0, 0, 0, 0, 0, 0, 0};
  return s;
}

}  // namespace

OP_CASES(gaussian_splat_render) {
  const Settings small{.width = 5, .height = 5, .tile_size = 4};
  const auto gamma = [](double v) { return std::pow(v, 2.2); };
  const std::vector<double> middle = {gamma(0.5 + 0.125), gamma(0.25 + 0.25), gamma(0.0625), 0.5};
  add(operands(one_splat()), attrs_of(small)).check([=](const Tensors&, const Tensors& out) {
    for (int64_t c = 0; c < 4; ++c) EXPECT_NEAR(out[0].at(4 * 12 + c), middle[static_cast<size_t>(c)], 1e-6);
  });
  // Nothing to see: N = 0, a splat behind the eye, one that is too faint. The background, and alpha 0.
  Scene none, behind = one_splat(), faint = one_splat();
  none.meta = behind.meta;
  behind.positions = {0, 0, -9};
  faint.opacities = {1.0 / 256};
  for (const Scene& scene : {none, behind, faint})
    add(operands(scene), attrs_of(small)).check([=](const Tensors&, const Tensors& out) {
      ASSERT_EQ(out[0].num_elements(), 100);
      for (int64_t i = 0; i < 25; ++i)
        for (int64_t c = 0; c < 4; ++c)
          EXPECT_NEAR(out[0].at(4 * i + c), c == 3 ? 0 : gamma(none.meta[static_cast<size_t>(12 + c)]), 1e-6);
    });
  // The nearer of two splats in line is drawn first, and alone when one step is allowed.
  Scene two = one_splat();
  two.positions = {0, 0, 1, 0, 0, 0};
  two.scales.resize(6, -2);
  two.rotations = {1, 0, 0, 0, 1, 0, 0, 0};
  two.opacities = {0.5, 0.5};
  two.colors = {0, 0, 1, 1, 0.5, 0};
  for (const int64_t steps : {1, 2}) {
    Settings s = small;
    s.max_splat_steps = steps;
    add(operands(two), attrs_of(s)).check([=](const Tensors&, const Tensors& out) {
      const double left = steps == 1 ? 0.5 : 0.25;
      EXPECT_NEAR(out[0].at(48), gamma(0.5 + left * 0.25), 1e-6);
      EXPECT_NEAR(out[0].at(50), gamma((steps == 1 ? 0 : 0.25) + left * 0.125), 1e-6);
      EXPECT_NEAR(out[0].at(51), 1 - left, 1e-6);
    });
  }
  // An eye inside a splat sees it on the whole screen.
  Scene inside = one_splat();
  inside.positions = {0, 0, -3.5};
  inside.scales = {0, 0, 0};
  // … of a wide one too, whose full-screen outline has a tiny determinant in pixels.
  Settings wide = small;
  wide.width = 1500;
  wide.height = 2;
  wide.max_list_entries = 4000;
  add(operands(inside), attrs_of(wide)).check([](const Tensors&, const Tensors& out) {
    for (const int64_t pixel : {0, 749, 1499}) EXPECT_GT(out[0].at(4 * pixel + 3), 0) << pixel;
  });
  add(operands(inside), attrs_of(small)).check([](const Tensors&, const Tensors& out) {
    for (int64_t i = 0; i < 25; ++i) EXPECT_GT(out[0].at(4 * i + 3), 0.3);
  });
  // A list that is cut keeps the nearest splats; none at all shows the background.
  Settings cut = small;
  cut.tile_size = 8;
  for (const int64_t entries : {0, 1}) {
    cut.max_list_entries = entries;
    add(operands(two), attrs_of(cut)).check([=](const Tensors&, const Tensors& out) {
      EXPECT_NEAR(out[0].at(51), entries == 0 ? 0 : 0.5, 1e-6);
      EXPECT_NEAR(out[0].at(48), gamma(entries == 0 ? 0.25 : 0.625), 1e-6);
    });
  }
  // Random scenes against the renderer without tiles.
  for (const Settings& s : settings())
    for (const int64_t sh : {0, 1, 4}) {
      const Scene scene = random_scene(rng, 9, sh);
      add(operands(scene), attrs_of(s)).check([=](const Tensors&, const Tensors& out) {
        expect_near(splat::rasterize(splat::prepare(scene, s), scene.background(), s), brute_force(scene, s), 1e-9);
        expect_near(out[0].to_doubles(), brute_force(scene, s), 1e-5);
      });
    }
  add(operands(one_splat()), {.width = 0, .height = 5}).expect({Tensor(DType::F32, {0})});

  Tensors bad = operands(one_splat());
  const auto with = [&](size_t i, Tensor t) {
    Tensors copy = bad;
    copy[i] = std::move(t);
    return copy;
  };
  add_error(with(0, random({4})), {}, "Positions size (4) is not a multiple of 3");
  add_error(with(1, random({2})), {}, "Scales size (2) is not 3 for each of 1 splats");
  add_error(with(2, random({3})), {}, "Rotations size (3) is not 4 for each of 1 splats");
  add_error(with(3, random({2})), {}, "Opacities size (2) is not 1 for each of 1 splats");
  add_error(with(4, random({3}, DType::F64)), {}, "Colors dtype (f64) is not f32");
  add_error(with(5, random({4})), {}, "Spherical harmonics size (4)");
  add_error(with(6, random({22})), {}, "Meta size (22) is not 23");
  add_error(with(6, random({1, 23})), {}, "Meta rank (2) is not 1");
  add_error(bad, {.width = -1}, "Attribute width (-1) is not in [0, 65536]");
  add_error(bad, {.tile_size = 0}, "Attribute tile_size (0) is not in [1, 65536]");
  add_error(bad, {.radius_scale = 0}, "Attribute radius_scale (0) is not positive");
  add_error(bad, {.alpha_cutoff = 0}, "Attribute alpha_cutoff (0) is not in (0, 1]");
  add_error(bad, {.max_splat_steps = -1}, "Attribute max_splat_steps (-1) is negative");
  add_error(bad, {.transmittance_threshold = -1}, "Attribute transmittance_threshold (-1)");
  add_error(bad, {.max_list_entries = -1}, "Attribute max_list_entries (-1)");
  add_error(bad, {.sh_band = 4}, "Attribute sh_band (4) is not in [0, 3]");
}

OP_CASES(gaussian_splat_prepare) {
  // The layout of both results, by hand: n = 1, a 5 x 5 image, 2 x 2 tiles of 4, the splat in all of them.
  Scene scene = one_splat();
  scene.scales = {-1, -1, -3};
  add(operands(scene), {.width = 5, .height = 5, .tile_size = 4, .max_list_entries = 6})
      .check([](const Tensors&, const Tensors& out) {
        const Tensor &prep = out[0], &lists = out[1];
        ASSERT_EQ(prep.sizes(), (std::vector<int64_t>{14 + 75 + 10}));
        ASSERT_EQ(lists.sizes(), (std::vector<int64_t>{1 + 6 + 8}));
        const double colors[] = {1, 0.5, 0, 0.5};
        for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(prep.at(i), colors[i], 1e-6);
        for (int64_t i = 0; i < 3; ++i) {
          const double inv = 1 / (std::exp(i == 2 ? -3.0 : -1.0) * 1.6 * 3);
          EXPECT_NEAR(prep.at(7 + i), inv, 1e-5);
          EXPECT_NEAR(prep.at(4 + i), i == 2 ? -4 * inv : 0, 1e-4);
        }
        for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(prep.at(10 + i), i == 0 ? 1 : 0);
        for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(prep.at(14 + 3 * 12 + i), i == 2 ? 1 : 0, 1e-6);  // the middle ray
        const double tail[] = {5, 5, 4, 2, 1.0 / 255, 0.01, 0.25, 0.5, 0.125, 32};
        for (int64_t i = 0; i < 10; ++i) EXPECT_NEAR(prep.at(89 + i), tail[i], 1e-6);
        const double expected[] = {1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4};
        for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(lists.at(i), expected[i]);
      });
  // A small splat in one corner: the other tiles are empty.
  Scene corner = one_splat();
  corner.positions = {-1.2, -1.2, 0};
  corner.scales = {-4, -4, -4};
  add(operands(corner), {.width = 40, .height = 40, .tile_size = 20, .max_list_entries = 3})
      .check([](const Tensors&, const Tensors& out) {
        const double expected[] = {1, 0, 0, 0, 0, 1, 4294967295.0, 0, 4294967295.0, 0, 4294967295.0, 0};
        for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(out[1].at(i), expected[i]) << i;
      });
  // Tiles list valid splats by depth; that they list all that are seen is what the images of render show.
  for (const Settings& s : settings()) {
    const Scene many = random_scene(rng, 12, 0);
    add(operands(many), attrs_of(s)).check([=](const Tensors&, const Tensors& out) {
      const auto depth = [&](int64_t i) {
        const V d = at(many.positions, static_cast<size_t>(i)) - at(many.meta, 0);
        return d.dot(d);
      };
      const int64_t ranges = 12 + s.max_list_entries;
      for (int64_t tile = 0; tile < s.tiles_x() * s.tiles_y(); ++tile) {
        const auto begin = static_cast<int64_t>(out[1].at(ranges + 2 * tile)),
                   end = static_cast<int64_t>(out[1].at(ranges + 2 * tile + 1));
        for (int64_t e = begin; e < end; ++e) {
          const auto id = static_cast<int64_t>(out[1].at(12 + e));
          EXPECT_EQ(out[1].at(id), 1);
          if (e == begin) continue;
          EXPECT_LE(depth(static_cast<int64_t>(out[1].at(12 + e - 1))), depth(id));
        }
      }
    });
  }
  add_error({random({3}), random({3}), random({4}), random({1}), random({3}), random({0}), random({5})}, {},
            "Meta size (5)");
}

OP_CASES(gaussian_splat_rasterize) {
  const ops::GaussianSplatRasterizeAttrs attrs{.width = 5, .height = 5, .tile_size = 4, .max_list_entries = 6};
  const Tensors scene = operands(one_splat());
  const Tensors prep =
      run(ops::gaussian_splat_prepare, scene, {.width = 5, .height = 5, .tile_size = 4, .max_list_entries = 6});
  const Tensor image = run(ops::gaussian_splat_render, scene, {.width = 5, .height = 5, .tile_size = 4})[0];
  add({prep[0], prep[1], scene[6]}, attrs).expect({image}, kExact);
  // An invalid splat is skipped: the background of meta remains.
  Tensor invalid = prep[1].clone();
  invalid.mutable_values<uint32_t>()[0] = 0;
  add({prep[0], invalid, scene[6]}, attrs).check([](const Tensors&, const Tensors& out) {
    for (int64_t i = 0; i < 25; ++i) {
      EXPECT_NEAR(out[0].at(4 * i + 1), std::pow(0.5, 2.2), 1e-6);
      EXPECT_EQ(out[0].at(4 * i + 3), 0);
    }
  });
  // Lists that lie throw instead of reading past the splats.
  Tensor bad_id = prep[1].clone(), bad_range = prep[1].clone();
  bad_id.mutable_values<uint32_t>()[1] = 1;
  bad_range.mutable_values<uint32_t>()[8] = 7;
  add_error({prep[0], bad_id, scene[6]}, attrs, "Splat id (1) is out of range for 1 splats");
  add_error({prep[0], bad_range, scene[6]}, attrs, "The range of a tile ends at 7 of 6 list entries");
  add_error({random({98}), prep[1], scene[6]}, attrs, "Prep size (98) does not fit a 5 x 5 image");
  add_error({prep[0], integers({14}, 0, 1, DType::U32), scene[6]}, attrs, "Lists shape ([14]) is not [15]");
  add_error({prep[0], random({15}), scene[6]}, attrs, "Lists dtype (f32) is not u32");
  add_error({prep[0], prep[1], random({3})}, attrs, "Meta size (3) is not 23");
}

namespace {

// The packed gradient by central differences of the whole renderer in double.
std::vector<double> differences(const Scene& scene, const Settings& s, const std::vector<double>& d_image) {
  const auto loss = [&](const Scene& at) {
    const std::vector<double> image = splat::rasterize(splat::prepare(at, s), at.background(), s);
    double sum = 0;
    for (size_t i = 0; i < image.size(); ++i)
      if (i % 4 != 3) sum += image[i] * d_image[i];
    return sum;
  };
  std::vector<double> slopes;
  for (const auto part :
       {&Scene::positions, &Scene::scales, &Scene::rotations, &Scene::opacities, &Scene::colors, &Scene::sh}) {
    for (size_t i = 0; i < (scene.*part).size(); ++i) {
      const double step = 1e-6;
      Scene plus = scene, minus = scene;
      (plus.*part)[i] += step;
      (minus.*part)[i] -= step;
      slopes.push_back((loss(plus) - loss(minus)) / (2 * step));
    }
    if (part == &Scene::sh && scene.sh.empty()) slopes.resize(slopes.size() + 3 * scene.opacities.size(), 0);
  }
  return slopes;
}

ops::GaussianSplatBackwardAttrs backward_attrs(const Settings& s, float clip) {
  const ops::GaussianSplatAttrs a = attrs_of(s);
  return {.width = a.width,
          .height = a.height,
          .tile_size = a.tile_size,
          .radius_scale = a.radius_scale,
          .alpha_cutoff = a.alpha_cutoff,
          .max_splat_steps = a.max_splat_steps,
          .transmittance_threshold = a.transmittance_threshold,
          .max_list_entries = a.max_list_entries,
          .sh_band = a.sh_band,
          .sh_direction = a.sh_direction,
          .loss_grad_clip = clip};
}

}  // namespace

OP_CASES(gaussian_splat_render_backward) {
  // Every number of bands, both directions, colours from colors and from sh.
  int64_t band = 0;
  for (Settings s : settings())
    for (const int64_t sh : {0, 4, 16}) {
      s.sh_band = band++ % 4;
      const Scene scene = random_scene(rng, 5, sh);
      Tensors in = operands(scene);
      in.push_back(random({s.width * s.height * 4}));
      add(in, backward_attrs(s, 100)).check([=](const Tensors& given, const Tensors& out) {
        const std::vector<double> d_image = given[7].to_doubles(), exact = splat::gradient(scene, s, d_image, 100);
        expect_near(exact, differences(scene, s, d_image), 1e-6);
        expect_near(out[0].to_doubles(), exact, 1e-4);  // the op's attributes are f32, the settings here double
      });
    }
  {  // Band 3 with 16 coefficients, and opacities and colours outside [0, 1]: no gradient passes their clamps.
    Settings s{.width = 9, .height = 9, .tile_size = 4, .max_list_entries = 999, .sh_band = 3, .from_eye = true};
    Scene scene = random_scene(rng, 3, 16);
    scene.opacities[1] = 1.5;
    Tensors in = operands(scene);
    in.push_back(random({s.width * s.height * 4}));
    add(in, backward_attrs(s, 100)).check([=](const Tensors& given, const Tensors& out) {
      expect_near(splat::gradient(scene, s, given[7].to_doubles(), 100), differences(scene, s, given[7].to_doubles()),
                  1e-6);
      EXPECT_EQ(out[0].at(10 * 3 + 1), 0);
      EXPECT_NE(out[0].at(10 * 3), 0);
    });
    Scene bright = one_splat();
    bright.colors = {2, 0.5, -1};
    in = operands(bright);
    in.push_back(random({324}, 0.5, 1));
    add(in, backward_attrs(s, 100)).check([](const Tensors&, const Tensors& out) {
      EXPECT_EQ(out[0].at(11), 0);
      EXPECT_NE(out[0].at(12), 0);
      EXPECT_EQ(out[0].at(13), 0);
    });
  }
  {  // Without a threshold, and so many splats that what is left behind them is no f32.
    const Settings s{
        .width = 9, .height = 9, .max_splat_steps = 999, .transmittance_threshold = 0, .max_list_entries = 999};
    Scene scene = random_scene(rng, 100, 1);
    for (size_t i = 0; i < 100; ++i)
      for (size_t axis = 0; axis < 3; ++axis) {
        if (axis < 2) scene.positions[3 * i + axis] *= 0.25;
        scene.scales[3 * i + axis] = -0.75;
      }
    for (double& opacity : scene.opacities) opacity = 0.9375;
    Tensors in = operands(scene);
    in.push_back(random({s.width * s.height * 4}));
    add(in, backward_attrs(s, 100)).check([=](const Tensors& given, const Tensors& out) {
      expect_near(out[0].to_doubles(), splat::gradient(scene, s, given[7].to_doubles(), 100), 1e-4);
    });
  }
  // The gradient of the image is clamped; its alpha part does not count.
  const Settings s{.width = 7, .height = 7, .tile_size = 4};
  const Scene scene = random_scene(rng, 3, 1);
  Tensors wild = operands(scene), tame = operands(scene);
  std::vector<double> large, clamped;
  for (int64_t i = 0; i < 196; ++i) {
    large.push_back(rng.uniform(-3, 3));
    clamped.push_back(i % 4 == 3 ? 0 : std::clamp(large.back(), -0.5, 0.5));
  }
  wild.push_back(flat(large));
  tame.push_back(flat(clamped));
  add(wild, backward_attrs(s, 0.5f))
      .expect({run(ops::gaussian_splat_render_backward, tame, backward_attrs(s, 100))[0]}, kExact);
  Scene none;
  none.meta = scene.meta;
  Tensors empty = operands(none);
  empty.push_back(flat(large));
  add(empty, backward_attrs(s, 1)).expect({Tensor(DType::F32, {0})});
  add_error(wild, backward_attrs(s, 0), "Attribute loss_grad_clip (0) is less than 1e-8");
  Tensors short_image = operands(scene);
  short_image.push_back(random({195}));
  add_error(short_image, backward_attrs(s, 1), "Gradient shape ([195]) is not [196]");
}

}  // namespace rlx::test
