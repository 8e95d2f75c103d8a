#include <cmath>
#include <limits>

#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

using ops::ResizeAttrs;
using ops::ResizeCoordinate;
using ops::ResizeMode;
using ops::ResizeNearest;

namespace {

constexpr ResizeCoordinate kCoordinates[] = {ResizeCoordinate::kHalfPixel, ResizeCoordinate::kHalfPixelSymmetric,
                                             ResizeCoordinate::kPytorchHalfPixel, ResizeCoordinate::kAlignCorners,
                                             ResizeCoordinate::kAsymmetric};

// The list that make_onnx_resize.py wrote.
ResizeAttrs attrs_of(const std::vector<float>& a, const Tensor& y) {
  ResizeAttrs attrs{.sizes = Shape(std::span<const int64_t>(y.sizes())).dims(),
                    .mode = static_cast<ResizeMode>(a[0]),
                    .coordinate = static_cast<ResizeCoordinate>(a[1]),
                    .nearest = static_cast<ResizeNearest>(a[2]),
                    .cubic_coeff_a = a[5],
                    .exclude_outside = a[3] != 0,
                    .extrapolation_value = a[6],
                    .antialias = a[4] != 0};
  const auto scales = a.begin() + 8, roi = scales + static_cast<int64_t>(a[7]);
  attrs.scales.assign(scales, roi);
  attrs.roi.assign(roi, a.end());
  return attrs;
}

}  // namespace

OP_CASES(resize) {
  const Tensor row = Tensor::f32({1, 4}, {1, 2, 3, 4});
  add({row}, {.sizes = {1, 8}}).expect({Tensor::f32({1, 8}, {1, 1, 2, 2, 3, 3, 4, 4})}, kExact);
  add({row}, {.sizes = {2, 2}, .coordinate = ResizeCoordinate::kAsymmetric})
      .expect({Tensor::f32({2, 2}, {1, 3, 1, 3})}, kExact);
  add({row}, {.sizes = {1, 8}, .mode = ResizeMode::kLinear})
      .expect({Tensor::f32({1, 8}, {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4})}, kRounding);
  add({row}, {.sizes = {1, 7}, .mode = ResizeMode::kLinear, .coordinate = ResizeCoordinate::kAlignCorners})
      .expect({Tensor::f32({1, 7}, {1, 1.5, 2, 2.5, 3, 3.5, 4})}, kRounding);
  // With antialias every element counts: halves are means of pairs and a little of their neighbours.
  add({row}, {.sizes = {1, 2}, .mode = ResizeMode::kLinear, .antialias = true})
      .expect({Tensor::f32({1, 2}, {1.625, 3.375})}, kRounding);

  const FixtureFile file("onnx_resize.npz");
  for (int i = 0; file.has(str(i, "a")); ++i)
    add({file[str(i, "x")]}, attrs_of(file.floats(str(i, "a")), file[str(i, "y")]))
        .expect({file[str(i, "y")]}, kAccumulation);

  // Nearest moves elements of any dtype; linear and cubic round integers to the nearest.
  for (const DType d : all_dtypes())
    add({random({3, 4, 5}, d)}, {.sizes = {3, 8, 10}}).check([](const Tensors& in, const Tensors& out) {
      const Tensor every_second =
          run(ops::slice, {out[0]}, {.start = {0, 1, 0}, .step = {1, 2, 2}, .len = {3, 4, 5}})[0];
      EXPECT_EQ(every_second, in[0]);
    });
  // A plane keeps its corners and its slope.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I16})
    for (const ResizeMode mode : {ResizeMode::kLinear, ResizeMode::kCubic}) {
      std::vector<double> values;
      for (int i = 0; i < 90; ++i) values.push_back(8 * (i / 9) + 16 * (i % 9));
      add({Tensor::from_doubles(d, {2, 5, 9}, values)},
          {.sizes = {2, 5, 17}, .mode = mode, .coordinate = ResizeCoordinate::kAlignCorners})
          .check([mode](const Tensors&, const Tensors& out) {
            for (int64_t i = 0; i < 2 * 5 * 17; ++i) {
              const int64_t x = i % 17;
              if (mode == ResizeMode::kCubic && (x < 2 || x > 14)) continue;  // the edge is repeated
              EXPECT_NEAR(out[0].at(i), 8 * static_cast<double>(i / 17) + 8 * static_cast<double>(x), 1e-4);
            }
          });
    }
  // Blocks, tails, channels last, one axis, three axes, pairs that are not neighbours.
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const ResizeMode mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic}) {
      add({random({2, 3, 19, 37}, d)}, {.sizes = {2, 3, 41, 75}, .mode = mode});
      add({random({2, 3, 41, 75}, d)}, {.sizes = {2, 3, 19, 37}, .mode = mode});
      add({random({2, 9, 11, 5}, d)}, {.sizes = {2, 20, 7, 5}, .mode = mode});
      add({random({3, 30, 67}, d)}, {.sizes = {3, 47, 67}, .mode = mode});
      add({random({90}, d)}, {.sizes = {333}, .mode = mode});
      add({random({2, 5, 6, 7}, d)}, {.sizes = {2, 9, 10, 15}, .mode = mode});
      add({random({4, 5, 6, 7}, d)}, {.sizes = {7, 5, 9, 7}, .mode = mode});
      add({random({4, 5, 6, 3, 2}, d)}, {.sizes = {7, 5, 9, 3, 5}, .mode = mode});
      add({random({4, 5}, d)}, {.sizes = {4, 5}, .mode = mode});
      if (mode != ResizeMode::kNearest) {
        add({random({3, 90, 200}, d)}, {.sizes = {3, 31, 47}, .mode = mode, .antialias = true});
        add({random({70, 50, 9}, d)}, {.sizes = {3, 2, 9}, .mode = mode, .exclude_outside = true, .antialias = true});
      }
    }
  for (const ResizeCoordinate c : kCoordinates)
    for (const ResizeMode mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic}) {
      add({random({1, 2, 33, 34})}, {.sizes = {1, 2, 57, 23}, .mode = mode, .coordinate = c});
      add({random({1, 2, 33, 34})}, {.sizes = {1, 2, 57, 23},
                                     .scales = {1, 1, 1.75f, 0.7f},
                                     .mode = mode,
                                     .coordinate = c,
                                     .exclude_outside = true});
      add({random({2, 33, 7})}, {.sizes = {2, 1, 1}, .mode = mode, .coordinate = c});
    }
  add({random({1, 3, 500, 700})}, {.sizes = {1, 3, 1200, 1300}, .mode = ResizeMode::kLinear});  // past the caches
  const float inf = std::numeric_limits<float>::infinity();
  for (const ResizeMode mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic})
    add({Tensor::f32({3, 4}, {1, inf, 3, 4, 5, 6, -inf, 8, 9, NAN, 11, 12})}, {.sizes = {5, 9}, .mode = mode});
  add({Tensor(DType::F32, {0, 4})}, {.sizes = {0, 8}}).expect({Tensor(DType::F32, {0, 8})}, kExact);
  add({row}, {.sizes = {1, 0}, .mode = ResizeMode::kLinear}).expect({Tensor(DType::F32, {1, 0})}, kExact);
  add({Tensor::f32({}, {5})}, {.mode = ResizeMode::kLinear}).expect({Tensor::f32({}, {5})}, kExact);

  add_error({row}, {.sizes = {4}}, "sizes ([4]) do not have one entry for each of the 2 axes");
  add_error({row}, {.sizes = {1, 8}, .scales = {2}}, "scales ([2]) do not have one entry");
  add_error({row}, {.sizes = {1, 8}, .scales = {1, 0}}, "Scale (0) is not between");
  add_error({row}, {.sizes = {1, 8}, .scales = {1, NAN}}, "is not between");
  add_error({row}, {.sizes = {1, -8}}, "Size (-8) of axis 1 is negative");
  add_error({row}, {.sizes = {1, 8}, .coordinate = ResizeCoordinate::kTfCropAndResize, .roi = {0, 1}},
            "roi ([0, 1]) does not have a begin and an end");
  add_error({row}, {.sizes = {1, 8}, .antialias = true}, "Mode (nearest) has no antialias");
  add_error({Tensor(DType::F32, {1, 0})}, {.sizes = {1, 8}}, "Axis 1 has no elements to make 8 of");
  add_error({row}, {.sizes = {1, 5'000'000}}, "Axis 1 of size (4) cannot become (5000000)");
  add_error({random({2}, DType::Bool)}, {.sizes = {4}, .mode = ResizeMode::kLinear}, "cannot be interpolated (linear)");
}

TEST(ResizeInfer, SizesMayBeSymbols) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), 3, Dim::symbol(1), 8}, DType::F32});
  const std::vector<Dim> sizes = {Dim::symbol(0), 3, Dim::symbol(1, 4), 32};
  EXPECT_EQ(ops::resize(x, {.sizes = sizes, .scales = {1, 1, 4, 4}}).shape(), Shape(sizes));
}

}  // namespace rlx::test
