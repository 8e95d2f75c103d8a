#include "rlx/ops/gaussian_splat.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/splat_math.h"

namespace rlx::reference {

namespace {

std::vector<double> doubles(const Call& call, int64_t i) {
  const auto count = static_cast<size_t>(call.input(i).elements());
  const float* values = count == 0 ? nullptr : call.input_as<float>(i);
  return {values, values + count};
}

splat::Scene scene_of(const Call& call) {
  return {doubles(call, 0), doubles(call, 1), doubles(call, 2), doubles(call, 3),
          doubles(call, 4), doubles(call, 5), doubles(call, 6)};
}

template <class A>
splat::Settings raster_settings(const A& a) {
  splat::Settings s;
  s.width = a.width;
  s.height = a.height;
  s.tile_size = a.tile_size;
  s.alpha_cutoff = static_cast<double>(a.alpha_cutoff);
  s.max_splat_steps = a.max_splat_steps;
  s.transmittance_threshold = static_cast<double>(a.transmittance_threshold);
  s.max_list_entries = a.max_list_entries;
  return s;
}

template <class A>
splat::Settings render_settings(const A& a) {
  splat::Settings s = raster_settings(a);
  s.radius_scale = static_cast<double>(a.radius_scale);
  s.sh_band = a.sh_band;
  s.from_eye = a.sh_direction == ops::ShDirection::kFromEye;
  return s;
}

void write(const Call& call, std::span<const double> values) {
  std::transform(values.begin(), values.end(), call.output_as<float>(0),
                 [](double v) { return static_cast<float>(v); });
}

}  // namespace

void gaussian_splat_prepare(const Call& call) {
  const splat::Scene scene = scene_of(call);
  const splat::Settings s = render_settings(call.attrs<ops::GaussianSplatAttrs>());
  const splat::Prepared p = splat::prepare(scene, s);
  if (call.wants(0)) {
    const splat::Vec3 background = scene.background();
    const double tail[] = {static_cast<double>(s.width),
                           static_cast<double>(s.height),
                           static_cast<double>(s.tile_size),
                           static_cast<double>(s.tiles_x()),
                           s.alpha_cutoff,
                           s.transmittance_threshold,
                           background[0],
                           background[1],
                           background[2],
                           static_cast<double>(s.max_splat_steps)};
    std::vector<double> prep;
    for (const auto* part : {&p.color_alpha, &p.pos_local, &p.inv_scale, &p.quaternion, &p.rays})
      prep.insert(prep.end(), part->begin(), part->end());
    prep.insert(prep.end(), std::begin(tail), std::end(tail));
    write(call, prep);
  }
  if (call.wants(1)) {
    uint32_t* lists = call.output_as<uint32_t>(1);
    for (const auto* part : {&p.valid, &p.ids, &p.ranges}) lists = std::copy(part->begin(), part->end(), lists);
  }
}

void gaussian_splat_rasterize(const Call& call) {
  const splat::Settings s = raster_settings(call.attrs<ops::GaussianSplatRasterizeAttrs>());
  const int64_t fixed = 3 * std::max<int64_t>(s.pixels(), 1) + 10, n = (call.input(0).elements() - fixed) / 14;
  const float* prep = call.input_as<float>(0);
  const uint32_t* lists = call.input_as<uint32_t>(1);
  const float* meta = call.input_as<float>(2);
  splat::Prepared p;
  const auto take = [](auto& part, auto& from, int64_t count) {
    part.assign(from, from + count);
    from += count;
  };
  take(p.color_alpha, prep, 4 * n);
  take(p.pos_local, prep, 3 * n);
  take(p.inv_scale, prep, 3 * n);
  take(p.quaternion, prep, 4 * n);
  take(p.rays, prep, 3 * std::max<int64_t>(s.pixels(), 1));
  take(p.valid, lists, n);
  take(p.ids, lists, s.max_list_entries);
  take(p.ranges, lists, 2 * s.tiles_x() * s.tiles_y());
  const auto background = [&](int c) { return static_cast<double>(meta[12 + c]); };
  write(call, splat::rasterize(p, {background(0), background(1), background(2)}, s));
}

void gaussian_splat_render_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::GaussianSplatBackwardAttrs>();
  write(call, splat::gradient(scene_of(call), render_settings(attrs), doubles(call, 7),
                              static_cast<double>(attrs.loss_grad_clip)));
}

}  // namespace rlx::reference
