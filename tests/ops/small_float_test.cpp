// Codes of small floats, against ONNX's own conversions and ml_dtypes (fixtures/make_small_float.py) and against the
// tables of ONNX's Cast.
#include <cmath>

#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

const Tensor& fixture(const std::string& name) {
  static const std::map<std::string, Tensor> all = read_npz(RLX_FIXTURES "/small_float.npz");
  const auto it = all.find(name);
  require(it != all.end(), "Fixture '", name, "' is not there.");
  return it->second;
}

constexpr SmallFloat kFormats[] = {SmallFloat::kF8E4M3FN,   SmallFloat::kF8E4M3FNUZ, SmallFloat::kF8E5M2,
                                   SmallFloat::kF8E5M2FNUZ, SmallFloat::kF8E8M0,     SmallFloat::kF4E2M1};

Tensor codes(std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::U8, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

OP_CASES(encode_float) {
  for (const SmallFloat format : kFormats) {
    const std::string name(name_of(format));
    if (format == SmallFloat::kF8E8M0) {
      for (const PowerRounding mode : {PowerRounding::kUp, PowerRounding::kDown, PowerRounding::kNearest})
        add({fixture(name + "_x")}, {.format = format, .round_mode = mode})
            .expect({fixture(str(name, "_", name_of(mode)))}, kExact);
    } else {
      add({fixture(name + "_x")}, {.format = format}).expect({fixture(name + "_saturated")}, kExact);
      add({fixture(name + "_x")}, {.format = format, .saturate = false}).expect({fixture(name + "_plain")}, kExact);
    }
    for (const DType d : {DType::F16, DType::BF16, DType::F64})
      add({random({5, 301}, -600, 600, d)}, {.format = format}).check([format](const Tensors& in, const Tensors& out) {
        EXPECT_EQ(out[0], run(ops::encode_float, {in[0].cast(DType::F64)}, {.format = format})[0]);
      });
    add({random({0, 3})}, {.format = format}).expect({Tensor(DType::U8, {0, 3})});
  }
  // The table of Cast: NaN, infinities, what is too large, both zeros.
  const Tensor x = Tensor::f32({7}, {NAN, INFINITY, -INFINITY, 1e6f, -1e6f, 0.0f, -0.0f});
  add({x}, {.format = SmallFloat::kF8E4M3FN}).expect({codes({0x7F, 0x7E, 0xFE, 0x7E, 0xFE, 0, 0x80})}, kExact);
  add({x}, {.format = SmallFloat::kF8E4M3FN, .saturate = false})
      .expect({codes({0x7F, 0x7F, 0xFF, 0x7F, 0xFF, 0, 0x80})}, kExact);
  add({x}, {.format = SmallFloat::kF8E5M2, .saturate = false})
      .expect({codes({0x7E, 0x7C, 0xFC, 0x7C, 0xFC, 0, 0x80})}, kExact);
  for (const SmallFloat format : {SmallFloat::kF8E4M3FNUZ, SmallFloat::kF8E5M2FNUZ}) {
    add({x}, {.format = format}).expect({codes({0x80, 0x7F, 0xFF, 0x7F, 0xFF, 0, 0})}, kExact);
    add({x}, {.format = format, .saturate = false}).expect({codes({0x80, 0x80, 0x80, 0x80, 0x80, 0, 0})}, kExact);
  }
  add({x}, {.format = SmallFloat::kF4E2M1}).expect({codes({8, 7, 15, 7, 15, 0, 8})}, kExact);
  // f8e8m0: zero, NaN, infinity, beyond either end.
  const Tensor p = Tensor::f32({7}, {0, NAN, INFINITY, 0x1.8p127f, 0x1p127f, 0x1p-128f, 0x1p-127f});
  add({p}, {.format = SmallFloat::kF8E8M0}).expect({codes({0, 255, 254, 254, 254, 0, 0})}, kExact);
  add({p}, {.format = SmallFloat::kF8E8M0, .saturate = false, .round_mode = PowerRounding::kNearest})
      .expect({codes({255, 255, 255, 255, 254, 255, 0})}, kExact);
  // Rounds once: 1 + 2^-4 is the middle of two e4m3 values, and more than it by less than an f32 can say.
  add({Tensor::from_doubles(DType::F64, {2}, std::vector<double>{1 + 0x1p-4, 1 + 0x1p-4 + 0x1p-40})})
      .expect({codes({0x38, 0x39})}, kExact);
  add_error({random({2}, DType::I32)}, {}, "Op 'encode_float' is not defined for i32.");
}

OP_CASES(decode_float) {
  for (const SmallFloat format : kFormats) {
    const Tensor& values = fixture(str(name_of(format), "_values"));
    std::vector<uint8_t> all(static_cast<size_t>(values.num_elements()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    add({codes(all)}, {.format = format}).expect({values}, kExact);
    for (const DType d : {DType::F16, DType::BF16, DType::F64})
      add({codes(all)}, {.format = format, .to = d}).expect({values.cast(d)}, kExact);
    add({integers({9, 1001}, 0, static_cast<int64_t>(all.size()) - 1, DType::U8)}, {.format = format});
    // What was encoded and decoded is a value of the format: it survives another round.
    add({integers({500}, 0, static_cast<int64_t>(all.size()) - 1, DType::U8)}, {.format = format})
        .check([format](const Tensors& in, const Tensors& out) {
          const Tensor again = run(ops::encode_float, {out[0]}, {.format = format, .saturate = false})[0];
          for (int64_t i = 0; i < in[0].num_elements(); ++i)
            EXPECT_TRUE(std::isnan(out[0].at(i)) || again.at(i) == in[0].at(i)) << in[0].at(i);
        });
  }
  add({Tensor(DType::U8, {2, 0})}).expect({Tensor(DType::F32, {2, 0})});
  add_error({random({2}, DType::I8)}, {}, "Codes dtype (i8) is not u8");
  add_error({random({2}, DType::U8)}, {.to = DType::I32}, "Result dtype (i32) is not a float type.");
}

}  // namespace rlx::test
