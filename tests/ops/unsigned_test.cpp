// U16 and U64: known values above 2^63, which a signed 64-bit integer does not hold, wherever an op orders, divides,
// averages or converts. More cases of these ops, beside those in the ops' own files.
#include <cmath>

#include "elementwise_cases.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr uint64_t kTop = UINT64_MAX, kHalf63 = uint64_t{1} << 63;

Tensor u64(std::vector<int64_t> sizes, std::vector<uint64_t> values) {
  return Tensor::of<uint64_t>(DType::U64, std::move(sizes), values);
}
Tensor u64(std::vector<uint64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return u64({n}, std::move(values));
}
Tensor u16(std::vector<uint16_t> values) {
  return Tensor::of<uint16_t>(DType::U16, {static_cast<int64_t>(values.size())}, values);
}
Tensor bools(std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::Bool, {static_cast<int64_t>(values.size())}, values);
}
Tensor f64(std::vector<double> values) {
  return Tensor::from_doubles(DType::F64, {static_cast<int64_t>(values.size())}, values);
}

OP_CASES(add) {
  add({u64({kTop, kHalf63, 1}), u64({1, kHalf63, kTop - 1})}).expect({u64({0, 0, kTop})});
  add({u16({65535, 40000}), u16({1, 40000})}).expect({u16({0, 14464})}, kExact);
  add_broadcast_pairs(*this, {DType::U16, DType::U64});
}
OP_CASES(sub) {
  add({u64({0, kTop}), u64({1, kHalf63})}).expect({u64({kTop, kHalf63 - 1})});
  add({u16({0}), u16({1})}).expect({u16({65535})}, kExact);
}
OP_CASES(mul) {
  add({u64({kTop, uint64_t{1} << 32}), u64({3, uint64_t{1} << 31})}).expect({u64({kTop - 2, kHalf63})});
  add({u16({256, 65535}), u16({256, 65535})}).expect({u16({0, 1})}, kExact);
}
OP_CASES(div) {
  add({u64({kTop, kTop, kHalf63, 5, kTop}), u64({2, kTop, kTop, kTop, 10})})
      .expect({u64({kHalf63 - 1, 1, 0, 0, 1844674407370955161u})});
  add({u16({65535, 40000}), u16({2, 65535})}).expect({u16({32767, 0})}, kExact);
  add_error({u64({1}), u64({0})}, {}, "divided by 0");
}
OP_CASES(max) {
  add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63 - 1})}).expect({u64({kTop, kTop, kHalf63})});
  add({u16({65535, 1}), u16({1, 40000})}).expect({u16({65535, 40000})}, kExact);
}
OP_CASES(min) {
  add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63 - 1})}).expect({u64({1, 1, kHalf63 - 1})});
  add({u16({65535, 1}), u16({1, 40000})}).expect({u16({1, 1})}, kExact);
}
OP_CASES(pow) {
  // 3^(2^64 - 1) is the inverse of 3 modulo 2^64: the order of every odd number divides 2^62.
  add({u64({2, 3, 10, 0}), u64({63, kTop, 19, kTop})})
      .expect({u64({kHalf63, 12297829382473034411u, 10000000000000000000u, 0})});
  add({u16({3}), u16({11})}).expect({u16({46075})}, kExact);  // 177147 mod 65536
}

OP_CASES(eq) { add({u64({kTop, 1}), u64({kTop, kHalf63 + 1})}).expect({bools({1, 0})}, kExact); }
OP_CASES(ne) { add({u64({kTop, 1}), u64({kTop, kHalf63 + 1})}).expect({bools({0, 1})}, kExact); }
OP_CASES(lt) {
  add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63})}).expect({bools({0, 1, 0})}, kExact);
  add({u16({65535, 1}), u16({1, 65535})}).expect({bools({0, 1})}, kExact);
}
OP_CASES(le) { add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63})}).expect({bools({0, 1, 1})}, kExact); }
OP_CASES(gt) { add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63})}).expect({bools({1, 0, 0})}, kExact); }
OP_CASES(ge) { add({u64({kTop, 1, kHalf63}), u64({1, kTop, kHalf63})}).expect({bools({1, 0, 1})}, kExact); }

OP_CASES(cast) {
  const Tensor wild = f64({2.9, -2.9, 1e30, -INFINITY, NAN, 0x1p63, 0x1.fffffffffffffp63, 0x1p64});
  add({wild}, {.to = DType::U64}).expect({u64({2, 0, kTop, 0, 0, kHalf63, 0xFFFFFFFFFFFFF800u, kTop})});
  add({wild}, {.to = DType::U16}).expect({u16({2, 0, 65535, 0, 0, 65535, 65535, 65535})}, kExact);
  const Tensor large = u64({kTop, kHalf63, kHalf63 + 1, kHalf63 + 1025, 7});
  add({large}, {.to = DType::F64}).expect({f64({0x1p64, 0x1p63, 0x1p63, 0x1.0000000000001p63, 7})}, kExact);
  add({large}, {.to = DType::F32}).expect({Tensor::f32({5}, {0x1p64f, 0x1p63f, 0x1p63f, 0x1p63f, 7})}, kExact);
  // The tie of bf16 above 2^63, and one more: a detour over double would round both to even.
  const uint64_t tie = kHalf63 + (kHalf63 >> 8);
  add({u64({tie, tie + 1})}, {.to = DType::BF16})
      .expect({Tensor::of<uint16_t>(DType::BF16, {2}, std::vector<uint16_t>{0x5F00, 0x5F01})}, kExact);
  add({u64({kTop, 65504})}, {.to = DType::F16})
      .expect({Tensor::of<uint16_t>(DType::F16, {2}, std::vector<uint16_t>{0x7C00, 0x7BFF})}, kExact);
  using C = std::complex<float>;
  add({u64({kTop})}, {.to = DType::C64}).expect({Tensor::of<C>(DType::C64, {1}, std::vector<C>{{0x1p64f, 0}})}, kExact);
  add({large}, {.to = DType::I64}).expect({Tensor::i64({5}, {-1, INT64_MIN, INT64_MIN + 1, INT64_MIN + 1025, 7})});
  add({Tensor::i64({2}, {-1, 5})}, {.to = DType::U64}).expect({u64({kTop, 5})});
  add({Tensor::i32({3}, {-1, 65536, 65537})}, {.to = DType::U16}).expect({u16({65535, 0, 1})}, kExact);
  add({u16({65535, 32768})}, {.to = DType::I16})
      .expect({Tensor::of<int16_t>(DType::I16, {2}, std::vector<int16_t>{-1, -32768})}, kExact);
  add({u64({0, kHalf63})}, {.to = DType::Bool}).expect({bools({0, 1})}, kExact);
}

OP_CASES(reduce_max) {
  add({u64({2, 2}, {kTop, 1, 3, kHalf63})}, {.axes = {1}}).expect({u64({kTop, kHalf63})});
  add({Tensor(DType::U64, {2, 0})}, {.axes = {1}}).expect({u64({0, 0})});
  add({Tensor(DType::U16, {1, 0})}, {.axes = {1}}).expect({u16({0})}, kExact);
}
OP_CASES(reduce_min) {
  add({u64({2, 2}, {kTop, 1, kTop, kHalf63})}, {.axes = {1}}).expect({u64({1, kHalf63})});
  add({Tensor(DType::U64, {2, 0})}, {.axes = {1}}).expect({u64({kTop, kTop})});
  add({Tensor(DType::U16, {1, 0})}, {.axes = {1}}).expect({u16({65535})}, kExact);
}
OP_CASES(reduce_sum) { add({u64({3}, {kTop, 5, kHalf63})}, {.axes = {0}}).expect({u64({}, {kHalf63 + 4})}); }
OP_CASES(reduce_prod) { add({u64({2}, {kTop, 3})}, {.axes = {0}}).expect({u64({}, {kTop - 2})}); }
OP_CASES(reduce_mean) {
  add({u64({3}, {kTop, kTop, kTop - 3})}, {.axes = {0}}).expect({u64({}, {kTop - 1})});
  add({u16({65535, 65534})}, {.axes = {0}})
      .expect({Tensor::of<uint16_t>(DType::U16, {}, std::vector<uint16_t>{65534})}, kExact);
}
OP_CASES(cumsum) { add({u64({kTop, 5, kHalf63})}, {.axis = 0}).expect({u64({kTop, 4, kHalf63 + 4})}); }

OP_CASES(pool_max) {
  add({u64({1, 1, 3}, {kHalf63, 7, kTop})}, {.kernel_size = {2}, .padding = {1}})
      .expect({u64({1, 1, 4}, {kHalf63, kHalf63, kTop, kTop})});
}
OP_CASES(pool_min) {
  add({u64({1, 1, 2}, {kTop, kHalf63})}, {.kernel_size = {1}, .padding = {1}})
      .expect({u64({1, 1, 4}, {kTop, kTop, kHalf63, kTop})});
}

OP_CASES(topk) {
  add({u64({1, kTop, kHalf63, 0})}, {.k = 4}).expect({u64({kTop, kHalf63, 1, 0}), Tensor::i32({4}, {1, 2, 0, 3})});
  add({u64({1, kTop, kHalf63, 0})}, {.k = 2, .largest = false}).expect({u64({0, 1}), Tensor::i32({2}, {3, 0})});
}
OP_CASES(argmax) { add({u64({1, kTop, kHalf63})}).expect({Tensor::i32({}, {1})}); }
OP_CASES(argmin) { add({u64({kHalf63, kTop, 1})}).expect({Tensor::i32({}, {2})}); }

OP_CASES(matmul) { add({u64({1, 2}, {kTop, kHalf63}), u64({2, 1}, {2, 3})}).expect({u64({1, 1}, {kHalf63 - 2})}); }
OP_CASES(where) { add({u64({kHalf63, 0}), u64({kTop, kTop}), u64({1, kHalf63})}).expect({u64({kTop, kHalf63})}); }
OP_CASES(gather) {
  add({u64({kTop, 3, kHalf63}), Tensor::i32({2}, {2, 0})}).expect({u64({kHalf63, kTop})});
  add({random({50, 9}, DType::U16), integers({30}, 0, 49)});
}
OP_CASES(transpose) {
  add({u64({2, 2}, {kTop, 1, 2, kHalf63})}, {.perm = {1, 0}}).expect({u64({2, 2}, {kTop, 2, 1, kHalf63})});
  add({random({70, 33}, DType::U16)}, {.perm = {1, 0}});
}

}  // namespace

}  // namespace rlx::test
