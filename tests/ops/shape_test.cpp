#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr DType kSomeDTypes[] = {DType::F32, DType::F16,  DType::F64, DType::I8,  DType::U32,
                                 DType::I64, DType::Bool, DType::C64, DType::U16, DType::U64};

// Bytes of one element, whatever it means.
std::vector<std::byte> element(const Tensor& t, int64_t index) {
  const size_t size = size_of(t.dtype());
  const auto bytes = t.bytes().subspan(static_cast<size_t>(index) * size, size);
  return {bytes.begin(), bytes.end()};
}

Tensor counted(std::vector<int64_t> sizes) {
  Tensor t(DType::I32, std::move(sizes));
  int32_t next = 0;
  for (int32_t& v : t.mutable_values<int32_t>()) v = next++;
  return t;
}

}  // namespace

OP_CASES(reshape) {
  for (const DType d : kSomeDTypes)
    add({random({2, 3, 4}, d)}, {.new_shape = {4, -1}}).check([](const Tensors& in, const Tensors& out) {
      EXPECT_EQ(out[0], in[0].reshaped({4, 6}));
    });
  add({counted({2, 3})}, {.new_shape = {6}}).expect({counted({6})}, kExact);
  add({counted({1})}, {.new_shape = {}}).expect({counted({})}, kExact);
  add({counted({})}, {.new_shape = {1, -1, 1}}).expect({counted({1, 1, 1})}, kExact);
  add({counted({0, 3})}, {.new_shape = {-1, 7}}).expect({counted({0, 7})}, kExact);
  add({counted({0, 3})}, {.new_shape = {5, 0}}).expect({counted({5, 0})}, kExact);
  add_error({counted({2, 3})}, {.new_shape = {4}}, "Shape [2, 3] does not have as many elements as [4]");
  add_error({counted({2, 3})}, {.new_shape = {4, -1}}, "are not a multiple of the known sizes of [4, -1]");
  add_error({counted({2, 3})}, {.new_shape = {-1, -1}}, "more than one -1");
  add_error({counted({2, 3})}, {.new_shape = {-2, 3}}, "New size (-2) is negative");
  add_error({counted({0, 3})}, {.new_shape = {0, -1}}, "can be anything");
}

OP_CASES(transpose) {
  add({Tensor::i32({2, 3}, {0, 1, 2, 3, 4, 5})}, {.perm = {1, 0}})
      .expect({Tensor::i32({3, 2}, {0, 3, 1, 4, 2, 5})}, kExact);
  for (const DType d : kSomeDTypes)
    add({random({2, 3, 4, 5}, d)}, {.perm = {2, 0, 3, 1}}).check([](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{4, 2, 5, 3}));
      for (int64_t a = 0; a < 2; ++a)
        for (int64_t b = 0; b < 3; ++b)
          for (int64_t c = 0; c < 4; ++c)
            for (int64_t e = 0; e < 5; ++e)
              EXPECT_EQ(element(out[0], ((c * 2 + a) * 5 + e) * 3 + b), element(in[0], ((a * 3 + b) * 4 + c) * 5 + e));
    });
  // Beyond the squares and tiles of blocked kernels, with and without tails, in every element size; backends are
  // compared.
  for (const DType d : {DType::I8, DType::F16, DType::F32, DType::I64}) {
    add({random({64, 128}, d)}, {.perm = {1, 0}});
    add({random({70, 133}, d)}, {.perm = {1, 0}});
    add({random({3, 1000}, d)}, {.perm = {1, 0}});
    add({random({1000, 3}, d)}, {.perm = {1, 0}});
    add({random({2, 65, 3, 40}, d)}, {.perm = {0, 2, 3, 1}});
    add({random({2, 65, 3, 40}, d)}, {.perm = {0, 3, 1, 2}});
    add({random({2, 9, 5, 16}, d)}, {.perm = {0, 2, 1, 3}});  // rows stay whole
    add({random({5, 6, 70}, d)}, {.perm = {2, 1, 0}});
    add({random({1, 4, 1, 90, 33}, d)}, {.perm = {4, 2, 1, 0, 3}});
    add({random({100, 3, 72}, d)}, {.perm = {2, 1, 0}});  // by four elements, with tails
    add({random({3, 76, 200}, d)}, {.perm = {0, 2, 1}});
    add({random({2, 68, 3, 132}, d)}, {.perm = {0, 3, 2, 1}});
  }
  add({random({20, 2, 2}, DType::F32)}, {.perm = {1, 0, 2}});
  // Large enough to be streamed past the caches.
  add({counted({2048, 2064})}, {.perm = {1, 0}});
  add({counted({2, 1030, 2050})}, {.perm = {0, 2, 1}});
  add({random({65'537, 8, 9}, DType::F16)}, {.perm = {0, 2, 1}});  // more tiles than a grid has along one axis
  add({random({40, 3, 50}, DType::C64)}, {.perm = {2, 1, 0}});
  add({counted({})}, {.perm = {}}).expect({counted({})}, kExact);
  add({counted({1, 5, 1})}, {.perm = {2, 1, 0}}).expect({counted({1, 5, 1})}, kExact);
  add({counted({0, 5})}, {.perm = {1, 0}}).expect({counted({5, 0})}, kExact);
  add_error({counted({2, 3})}, {.perm = {0, 0}}, "Permutation [0, 0] does not name each axis of rank (2) once");
  add_error({counted({2, 3})}, {.perm = {0}}, "does not name each axis");
  add_error({counted({2, 3})}, {.perm = {0, -1}}, "does not name each axis");
}

OP_CASES(narrow) {
  add({counted({3, 2})}, {.axis = 0, .start = 1, .len = 2}).expect({Tensor::i32({2, 2}, {2, 3, 4, 5})}, kExact);
  for (const DType d : kSomeDTypes)
    for (const int64_t axis : {1, -2})
      add({random({2, 5, 3}, d)}, {.axis = axis, .start = 2, .len = 2})
          .check([](const Tensors& in, const Tensors& out) {
            ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 2, 3}));
            for (int64_t o = 0; o < 2; ++o)
              for (int64_t a = 0; a < 2; ++a)
                for (int64_t i = 0; i < 3; ++i)
                  EXPECT_EQ(element(out[0], (o * 2 + a) * 3 + i), element(in[0], (o * 5 + a + 2) * 3 + i));
          });
  for (const DType d : {DType::I8, DType::F16, DType::F32, DType::I64}) {
    for (const int64_t len : {1, 2, 3, 4, 8, 16, 333}) add({random({50, 400}, d)}, {.axis = 1, .start = 7, .len = len});
    add({random({3, 400, 700}, d)}, {.axis = 1, .start = 100, .len = 300});
  }
  add({counted({2100, 2100})}, {.axis = 1, .start = 5, .len = 2048});  // streamed
  add({counted({2100, 2112})}, {.axis = 1, .start = 16, .len = 2001});
  add({counted({4})}, {.axis = 0, .start = 4, .len = 0}).expect({counted({0})}, kExact);
  add({counted({4})}, {.axis = 0, .start = 0, .len = 4}).expect({counted({4})}, kExact);
  add_error({counted({4})}, {.axis = 0, .start = 2, .len = 3},
            "Start (2) + length (3) is beyond the size (4) of axis 0");
  add_error({counted({4})}, {.axis = 0, .start = -1, .len = 3}, "Start (-1) is negative");
  add_error({counted({4})}, {.axis = 0, .start = 1, .len = -1}, "Length (-1) is negative");
  add_error({counted({4})}, {.axis = 1, .start = 1, .len = 1}, "Axis (1) is out of range for rank (1)");
}

OP_CASES(concat) {
  add({Tensor::i32({2, 1}, {1, 2}), Tensor::i32({2, 2}, {3, 4, 5, 6})}, {.axis = 1})
      .expect({Tensor::i32({2, 3}, {1, 3, 4, 2, 5, 6})}, kExact);
  // Narrowing the result gives the operands back.
  for (const DType d : kSomeDTypes)
    for (const int64_t axis : {0, 1, 2, -1}) {
      std::vector<int64_t> a{2, 3, 4}, b{2, 3, 4}, empty{2, 3, 4};
      const auto at = static_cast<size_t>(normalize_axis(axis, 3));
      b[at] = 5;
      empty[at] = 0;
      add({random(a, d), random(empty, d), random(b, d)}, {.axis = axis})
          .check([axis](const Tensors& in, const Tensors& out) {
            Dim start = 0;
            for (const Tensor& x : in) {
              const Dim len = x.sizes()[static_cast<size_t>(normalize_axis(axis, 3))];
              EXPECT_EQ(run(ops::narrow, {out[0]}, {.axis = axis, .start = start, .len = len})[0], x);
              start = start.value() + len.value();
            }
            EXPECT_EQ(out[0].type().dim(normalize_axis(axis, 3)), start);
          });
    }
  for (const DType d : {DType::I8, DType::F16, DType::F32, DType::I64}) {
    add({random({60, 1}, d), random({60, 1}, d), random({60, 1}, d)}, {.axis = 1});
    add({random({3, 70, 100}, d), random({3, 1, 100}, d), random({3, 40, 100}, d)}, {.axis = 1});
    add({random({100'000}, d), random({70'001}, d)}, {.axis = 0});
  }
  for (const DType d : {DType::F16, DType::F32, DType::C64, DType::Bool})  // more operands than a GPU binds at once
    for (const int64_t width : {1, 8}) {
      Tensors parts;
      for (int64_t i = 0; i < 17; ++i) parts.push_back(random({5, width * (i % 3 + 1), 2}, d));
      add(std::move(parts), {.axis = 1});
    }
  {
    const Tensor twice = random({3, 8});
    add({twice, random({3, 4}), twice}, {.axis = 1});
  }
  add({counted({1024, 2048}), counted({1024, 2048}), counted({1024, 16})}, {.axis = 1});  // streamed
  add({counted({2, 2})}, {.axis = 0}).expect({counted({2, 2})}, kExact);
  add_error({counted({2, 2}), counted({2, 3})}, {.axis = 0}, "Sizes of axis 1 (2 and 3) differ");
  add_error({counted({2, 2}), counted({2})}, {.axis = 0}, "Operand 1 rank (1) is not 2");
  add_error({counted({2}), random({2})}, {.axis = 0}, "Operand dtypes (i32, f32) differ");
  add_error({counted({2})}, {.axis = -2}, "Axis (-2) is out of range");
  add_error({counted({})}, {.axis = 0}, "Axis (0) is out of range for rank (0)");
}

OP_CASES(expand) {
  add({Tensor::i32({2, 1}, {1, 2})}, {.target_shape = {2, 3}})
      .expect({Tensor::i32({2, 3}, {1, 1, 1, 2, 2, 2})}, kExact);
  for (const DType d : kSomeDTypes)
    add({random({3, 1, 2}, d)}, {.target_shape = {2, -1, 4, 2}}).check([](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, 4, 2}));
      for (int64_t i = 0; i < 48; ++i) EXPECT_EQ(element(out[0], i), element(in[0], i / 8 % 3 * 2 + i % 2));
    });
  for (const DType d : {DType::I8, DType::F16, DType::F32, DType::I64}) {
    add({random({9, 1}, d)}, {.target_shape = {9, 333}});
    add({random({1, 333}, d)}, {.target_shape = {40, 333}});
    add({random({5, 1, 7, 1}, d)}, {.target_shape = {5, 6, 7, 8}});
    add({random({5, 1, 7, 1}, d)}, {.target_shape = {3, 5, 6, 7, 1}});
    add({random({1}, d)}, {.target_shape = {100'003}});
  }
  add({counted({1, 2049})}, {.target_shape = {2100, 2049}});  // streamed
  add({counted({2100, 1})}, {.target_shape = {2100, 2049}});
  add({counted({})}, {.target_shape = {}}).expect({counted({})}, kExact);
  add({counted({})}, {.target_shape = {2, 2}}).expect({Tensor::i32({2, 2}, {0, 0, 0, 0})}, kExact);
  add({counted({3})}, {.target_shape = {1, 1, 3}}).expect({counted({1, 1, 3})}, kExact);
  add({counted({1, 3})}, {.target_shape = {0, 3}}).expect({counted({0, 3})}, kExact);
  add_error({counted({2, 3})}, {.target_shape = {2, 4}}, "Size 3 of axis 1 does not expand to 4");
  add_error({counted({2, 3})}, {.target_shape = {3}}, "has fewer dims than the operand");
  add_error({counted({3})}, {.target_shape = {-1, 3}}, "has no operand size to keep");
  add_error({counted({3})}, {.target_shape = {-2}}, "Target size (-2) is negative");
}

OP_CASES(resize_nearest_2x) {
  add({counted({1, 1, 2, 2})})
      .expect({Tensor::i32({1, 1, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3})}, kExact);
  for (const DType d : kSomeDTypes)
    add({random({2, 3, 1, 5}, d)}).check([](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, 2, 10}));
      for (int64_t plane = 0; plane < 6; ++plane)
        for (int64_t r = 0; r < 2; ++r)
          for (int64_t c = 0; c < 10; ++c)
            EXPECT_EQ(element(out[0], (plane * 2 + r) * 10 + c), element(in[0], plane * 5 + c / 2));
    });
  for (const DType d : {DType::I8, DType::F16, DType::F32, DType::I64}) add({random({1, 2, 9, 77}, d)});
  add({counted({1, 8, 256, 512})});  // streamed
  add({counted({1, 0, 2, 2})}).expect({counted({1, 0, 4, 4})}, kExact);
  add_error({counted({2, 2})}, {}, "Operand rank (2) is not 4");
}

}  // namespace rlx::test
