#include "elementwise_cases.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                           DType::U8, DType::U16, DType::U32, DType::U64};

Tensor ints(DType dtype, std::vector<int64_t> values) {  // by their low bits
  return Tensor::i64({static_cast<int64_t>(values.size())}, values).cast(dtype);
}
Tensor bools(std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::Bool, {static_cast<int64_t>(values.size())}, values);
}
Tensor u64(std::vector<uint64_t> values) {
  return Tensor::of<uint64_t>(DType::U64, {static_cast<int64_t>(values.size())}, values);
}

// All four pairs of bits at several places, of every dtype, broadcast in the middle: bit by bit against a truth table.
template <class Builder>
void truth_table(Builder& b, uint32_t table) {
  for (const DType d : kInts)
    b.add({b.random({2, 1, 4}, d), b.random({3, 1}, d)}).check([table](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].type(), (TensorType{{2, 3, 4}, in[0].dtype()}));
      const Tensor a = in[0].cast(DType::I64), c = in[1].cast(DType::I64), y = out[0].cast(DType::I64);
      const auto bit = [](const Tensor& t, int64_t i, size_t n) {
        return static_cast<uint32_t>(static_cast<uint64_t>(t.values<int64_t>()[static_cast<size_t>(i)]) >> n & 1);
      };
      for (int64_t i = 0; i < 24; ++i)
        for (size_t n = 0; n < 8 * size_of(in[0].dtype()); ++n)
          ASSERT_EQ(bit(y, i, n), table >> (2 * bit(a, i / 12 * 4 + i % 4, n) + bit(c, i / 4 % 3, n)) & 1);
    });
  // Any non-zero byte is true.
  b.add({bools({0, 0, 1, 255}), bools({0, 2, 0, 1})})
      .expect({bools({static_cast<uint8_t>(table & 1), static_cast<uint8_t>(table >> 1 & 1),
                      static_cast<uint8_t>(table >> 2 & 1), static_cast<uint8_t>(table >> 3 & 1)})},
              kExact);
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::Bool})
    for (const auto& [x, y] : broadcast_pairs()) b.add({b.random(x, d), b.random(y, d)});
  b.add({b.random({0, 3}, DType::I32), b.random({3}, DType::I32)}).expect({Tensor(DType::I32, {0, 3})});
  for (const DType d : {DType::F32, DType::C64})
    b.add_error({b.random({2}, d), b.random({2}, d)}, {}, "is not defined");
  b.add_error({b.random({2}, DType::I32), b.random({2}, DType::I64)}, {}, "Operand dtypes (i32, i64) differ");
  b.add_error({b.random({3}, DType::I32), b.random({2}, DType::I32)}, {}, "do not broadcast");
}

template <class Builder>
void shift_errors(Builder& b) {
  for (const DType d : {DType::F32, DType::Bool})
    b.add_error({b.random({2}, d), b.random({2}, d)}, {}, "is not defined");
}

// Every count from beyond one end to beyond the other, of several values, in every dtype; long enough for vectors.
template <class Builder>
void all_counts(Builder& b) {
  for (const DType d : kInts) {
    std::vector<int64_t> x, count;
    for (const int64_t v : {1, 2, 100, 127, -1, -128, -77, 0x7fff, -0x8000, 0x12345678})
      for (int64_t c = -3; c < 70; ++c) {
        x.push_back(v);
        count.push_back(c);
      }
    b.add({ints(d, x), ints(d, count)});
  }
  b.add({b.random({5, 300}, DType::I32), b.integers({5, 1}, 0, 31)});
}

}  // namespace

OP_CASES(bit_and) {
  truth_table(*this, 0b1000);
  add({u64({0xFFFF'0000'FFFF'0000, UINT64_MAX}), u64({0xFF00'FF00'FF00'FF00, uint64_t{1} << 63})})
      .expect({u64({0xFF00'0000'FF00'0000, uint64_t{1} << 63})});
  add({ints(DType::I8, {-1, -128, 12}), ints(DType::I8, {127, -1, 10})})
      .expect({ints(DType::I8, {127, -128, 8})}, kExact);
}
OP_CASES(bit_or) {
  truth_table(*this, 0b1110);
  add({ints(DType::I16, {-32768, 12}), ints(DType::I16, {1, 10})}).expect({ints(DType::I16, {-32767, 14})}, kExact);
}
OP_CASES(bit_xor) {
  truth_table(*this, 0b0110);
  add({ints(DType::I32, {-1, 12}), ints(DType::I32, {1, 10})}).expect({ints(DType::I32, {-2, 6})}, kExact);
}

OP_CASES(bit_not) {
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64})
    add({ints(d, {0, -1, 5, -128})}).expect({ints(d, {-1, 0, -6, 127})}, kExact);
  for (const DType d : {DType::U8, DType::U16, DType::U32, DType::U64})
    add({ints(d, {0, -1, 5})}).expect({ints(d, {-1, 0, -6})}, kExact);  // by their low bits
  add({ints(DType::U16, {0, 5})}).expect({Tensor::from_doubles(DType::U16, {2}, std::vector<double>{65535, 65530})});
  add({u64({0, 1})}).expect({u64({UINT64_MAX, UINT64_MAX - 1})});
  add({bools({0, 1, 255})}).expect({bools({1, 0, 0})}, kExact);
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::I64, DType::Bool})
    add({random({3, 701}, d)});
  add({random({0, 3}, DType::I8)}).expect({Tensor(DType::I8, {0, 3})});
  for (const DType d : {DType::F32, DType::C64}) add_error({random({2}, d)}, {}, "Op 'bit_not' is not defined for");
}

OP_CASES(shift_left) {
  add({ints(DType::U8, {16, 4, 1, 255}), ints(DType::U8, {1, 2, 7, 4})})
      .expect({ints(DType::U8, {32, 16, 128, 240})}, kExact);
  add({ints(DType::I8, {1, 64, -1, 3}), ints(DType::I8, {7, 1, 3, 8})})
      .expect({ints(DType::I8, {-128, -128, -8, 0})}, kExact);
  add({ints(DType::I32, {1, 1, 1, 1, -5}), ints(DType::I32, {31, 32, 33, -1, 64})})
      .expect({ints(DType::I32, {INT32_MIN, 0, 0, 0, 0})}, kExact);
  add({Tensor::i64({4}, {1, 1, -1, 7}), Tensor::i64({4}, {62, 64, 63, INT64_MIN})})
      .expect({Tensor::i64({4}, {int64_t{1} << 62, 0, INT64_MIN, 0})});
  add({u64({3, 1, 1}), u64({63, 64, UINT64_MAX})}).expect({u64({uint64_t{1} << 63, 0, 0})});
  add({ints(DType::U16, {3, 1, 1}), ints(DType::U16, {15, 16, 65535})})
      .expect({ints(DType::U16, {32768, 0, 0})}, kExact);
  all_counts(*this);
  shift_errors(*this);
}

OP_CASES(shift_right) {
  add({ints(DType::U8, {16, 255, 128, 255}), ints(DType::U8, {1, 2, 7, 8})})
      .expect({ints(DType::U8, {8, 63, 1, 0})}, kExact);
  add({ints(DType::I8, {-128, -1, -7, 100}), ints(DType::I8, {7, 3, 1, 8})})
      .expect({ints(DType::I8, {-1, -1, -4, 0})}, kExact);
  add({ints(DType::I32, {-8, -8, 8, 8, -1}), ints(DType::I32, {1, 40, 40, -1, -1})})
      .expect({ints(DType::I32, {-4, -1, 0, 0, -1})}, kExact);
  add({Tensor::i64({3}, {INT64_MIN, INT64_MIN, INT64_MAX}), Tensor::i64({3}, {63, 64, 64})})
      .expect({Tensor::i64({3}, {-1, -1, 0})});
  add({u64({UINT64_MAX, UINT64_MAX, UINT64_MAX}), u64({63, 64, 1})}).expect({u64({1, 0, UINT64_MAX >> 1})});
  add({ints(DType::U32, {-1, -1}), ints(DType::U32, {31, 32})}).expect({ints(DType::U32, {1, 0})}, kExact);
  all_counts(*this);
  shift_errors(*this);
}

}  // namespace rlx::test
