#include <cmath>
#include <limits>

#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

using ops::GridPadding;
using ops::GridSampleAttrs;
using ops::GridSampleMode;
using ops::RoiAlignAttrs;
using ops::RoiAlignMode;
using ops::RoiCoordinate;

namespace {
constexpr GridSampleMode kModes[] = {GridSampleMode::kLinear, GridSampleMode::kNearest, GridSampleMode::kCubic};
constexpr GridPadding kPaddings[] = {GridPadding::kZeros, GridPadding::kBorder, GridPadding::kReflection};
}  // namespace

OP_CASES(grid_sample) {
  const Tensor x = Tensor::f32({1, 1, 2, 2}, {1, 2, 3, 4});
  // The middle, the corners of the picture, beyond them; x before y.
  const Tensor grid = Tensor::f32({1, 1, 5, 2}, {0, 0, -1, -1, 1, -1, 3, 0, 0, NAN});
  add({x, grid}, {.align_corners = true}).expect({Tensor::f32({1, 1, 1, 5}, {2.5, 1, 2, 0, 1.5})}, kRounding);
  add({x, grid}, {.padding = GridPadding::kBorder}).expect({Tensor::f32({1, 1, 1, 5}, {2.5, 1, 2, 3, 1.5})}, kRounding);
  add({x, Tensor::f32({1, 1, 2, 2}, {-0.5, -0.5, 0.5, 9})}, {.mode = GridSampleMode::kNearest})
      .expect({Tensor::f32({1, 1, 1, 2}, {1, 0})}, kExact);
  const FixtureFile file("onnx_sample.npz");
  for (int i = 0; file.has(str("grid", i, "_y")); ++i) {
    const std::string name = str("grid", i, "_");
    const std::vector<float> a = file.floats(name + "a");
    add({file[name + "0"], file[name + "1"]}, {.mode = static_cast<GridSampleMode>(a[0]),
                                               .padding = static_cast<GridPadding>(a[1]),
                                               .align_corners = a[2] != 0})
        .expect({file[name + "y"]}, {.abs = 1e-4});
  }
  for (const GridSampleMode mode : kModes)
    for (const GridPadding padding : kPaddings)
      for (const bool align : {false, true})
        add({file["x"], file["grid"]}, {.mode = mode, .padding = padding, .align_corners = align})
            .expect({file[str(name_of(mode), "_", name_of(padding), "_", int{align})]}, {.rel = 1e-4, .abs = 1e-5});
  // At the elements' own places it is x.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64})
    for (const GridSampleMode mode : kModes) {
      Tensor own(d == DType::F64 ? DType::F64 : DType::F32, {2, 4, 3, 2});
      std::vector<double> places;
      for (int i = 0; i < 24; ++i) {
        places.push_back(i % 3 - 1);
        places.push_back(2.0 / 3 * (i / 3 % 4) - 1);
      }
      add({random({2, 3, 4, 3}, d), Tensor::from_doubles(own.dtype(), own.sizes(), places)},
          {.mode = mode, .padding = GridPadding::kBorder, .align_corners = true})
          .check([d](const Tensors& in, const Tensors& out) {
            EXPECT_TRUE(near(out[0], in[0], {.abs = d == DType::F64 ? 1e-12 : d == DType::F32 ? 1e-5 : 1e-2}));
          });
    }
  // Nearest moves elements of any dtype.
  for (const DType d : all_dtypes())
    add({random({1, 2, 3}, d), Tensor::f32({1, 4, 1}, {1, -1, 0, 5})}, {.mode = GridSampleMode::kNearest})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor zero(in[0].dtype(), {1, 2, 1});
          const Tensor wide = run(ops::concat, {in[0], zero}, {.axis = 2})[0];
          EXPECT_EQ(out[0], run(ops::gather, {wide, Tensor::i32({4}, {2, 0, 1, 3})}, {.axis = 2})[0]);
        });
  for (const GridSampleMode mode : kModes)
    for (const GridPadding padding : kPaddings)
      for (const bool align : {false, true}) {
        add({random({2, 5, 13, 9}), random({2, 11, 17, 2}, -1.5, 1.5)},
            {.mode = mode, .padding = padding, .align_corners = align});
        add({random({2, 3, 4, 5, 6}), random({2, 3, 5, 7, 3}, -1.5, 1.5)},
            {.mode = mode, .padding = padding, .align_corners = align});
        add({random({1, 2, 1, 1}), random({1, 3, 3, 2}, -4, 4)},
            {.mode = mode, .padding = padding, .align_corners = align});
        const float inf = std::numeric_limits<float>::infinity();
        // Of one element, an infinite coordinate times no distance is no number: found by fuzzing.
        for (const int64_t size : {1, 3})
          add({random({1, 1, size, size}), Tensor::f32({1, 1, 4, 2}, {inf, 0, -inf, 1, 1e30f, -1e30f, NAN, NAN})},
              {.mode = mode, .padding = padding, .align_corners = align})
              .check([](const Tensors&, const Tensors& out) {
                for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(out[0].at(i)));
              });
      }
  add({x, Tensor(DType::F32, {1, 0, 3, 2})}).expect({Tensor(DType::F32, {1, 1, 0, 3})}, kExact);
  add_error({x, random({1, 2, 2, 3})}, {}, "Last size of the grid and number of spatial axes (3 and 2) differ");
  add_error({x, random({2, 2, 2, 2})}, {}, "Batch sizes of x and grid (1 and 2) differ");
  add_error({x, random({1, 2, 2})}, {}, "Grid rank (3) is not 4");
  add_error({random({1, 2}), random({1, 2})}, {}, "Operand rank (2) is not 3, 4 or 5");
  add_error({x, integers({1, 1, 1, 2}, 0, 1)}, {}, "Grid dtype (i32) is not a float type");
  add_error({integers({1, 1, 2, 2}, 0, 9), grid}, {}, "Operand dtype (i32) cannot be interpolated (linear)");
  add_error({Tensor(DType::F32, {1, 1, 0, 2}), grid}, {}, "Axis 2 of the operand has no elements");
}

OP_CASES(roi_align) {
  // A region of 2 x 2 elements in 2 x 2 bins: a point in each, in the middle between four elements.
  const Tensor x = Tensor::f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor roi = Tensor::f32({1, 4}, {0, 0, 2, 2}), image = Tensor::i64({1}, {0});
  add({x, roi, image}, {.output_height = 2, .output_width = 2})
      .expect({Tensor::f32({1, 1, 2, 2}, {1, 2, 4, 5})}, kRounding);
  add({x, roi, image}, {.output_height = 2, .output_width = 2, .coordinate_mode = RoiCoordinate::kOutputHalfPixel})
      .expect({Tensor::f32({1, 1, 2, 2}, {3, 4, 6, 7})}, kRounding);
  for (const float largest : {9.0f, -9.0f})  // a NaN wins, whatever comes after it
    add({Tensor::f32({1, 1, 2, 2}, {1, NAN, largest, 2}), Tensor::f32({1, 4}, {0, 0, 1, 1}), image},
        {.mode = RoiAlignMode::kMax})
        .expect({Tensor::f32({1, 1, 1, 1}, {NAN})}, kExact);
  const FixtureFile file("onnx_sample.npz");
  for (int i = 0; file.has(str("roi", i, "_y")); ++i) {
    const std::string name = str("roi", i, "_");
    const std::vector<float> a = file.floats(name + "a");
    add({file[name + "0"], file[name + "1"], file[name + "2"]}, {.mode = static_cast<RoiAlignMode>(a[0]),
                                                                 .output_height = static_cast<int64_t>(a[1]),
                                                                 .output_width = static_cast<int64_t>(a[2]),
                                                                 .sampling_ratio = static_cast<int64_t>(a[3]),
                                                                 .spatial_scale = a[4],
                                                                 .coordinate_mode = static_cast<RoiCoordinate>(a[5])})
        .expect({file[name + "y"]}, {.abs = 1e-4});
  }
  // Of a constant picture every bin is the constant.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64})
    for (const int64_t ratio : {0, 3})
      add({Tensor::from_doubles(d, {2, 1, 4, 5}, std::vector<double>(40, 1.5)),
           Tensor::from_doubles(d, {2, 4}, std::vector<double>{0.5, 0.5, 4, 3, 1, 1, 3, 3.5}),
           Tensor::i32({2}, {1, 0})},
          {.output_height = 2, .output_width = 3, .sampling_ratio = ratio})
          .check([](const Tensors&, const Tensors& out) {
            ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 1, 2, 3}));
            for (int64_t i = 0; i < 12; ++i) EXPECT_NEAR(out[0].at(i), 1.5, 1e-6);
          });
  for (const RoiAlignMode mode : {RoiAlignMode::kAvg, RoiAlignMode::kMax})
    for (const int64_t ratio : {0, 2})
      add({random({3, 7, 20, 30}), random({9, 4}, -5, 60), integers({9}, 0, 2, DType::I64)},
          {.mode = mode, .output_height = 5, .output_width = 4, .sampling_ratio = ratio, .spatial_scale = 0.5f});
  add({x, Tensor(DType::F32, {0, 4}), Tensor(DType::I64, {0})}).expect({Tensor(DType::F32, {0, 1, 1, 1})}, kExact);
  add_error({x, roi, Tensor::i64({1}, {1})}, {}, "Batch index (1) is out of range for size (1)");
  add_error({x, roi, Tensor::i64({1}, {-1})}, {}, "Batch index (-1) is out of range for size (1)");
  add_error({x, Tensor::f32({1, 4}, {0, 0, NAN, 1}), image}, {}, "has no bins that can be sampled");
  add_error({x, Tensor::f32({1, 4}, {0, 0, 9000, 9000}), image}, {}, "A region has bins of (9000) x (9000) points");
  add_error({x, random({1, 5}), image}, {}, "Numbers of a region (5 and 4) differ");
  add_error({x, random({2, 4}), image}, {}, "Numbers of regions and batch indices (2 and 1) differ");
  add_error({x, roi, image}, {.output_height = 0}, "Output size (0, 1) is less than 1");
  add_error({x, roi, image}, {.sampling_ratio = -1}, "sampling_ratio (-1) is negative");
  add_error({random({1, 3, 3}), roi, image}, {}, "Operand rank (3) is not 4");
}

}  // namespace rlx::test
