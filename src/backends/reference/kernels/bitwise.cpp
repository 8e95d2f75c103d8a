#include <type_traits>

#include "backends/reference/kernels/zip.h"

namespace rlx::reference {

namespace {

// A negative count is a very large one.
template <class T>
bool shifts_all_out(T count) {
  return static_cast<uint64_t>(count) >= 64;
}

// Narrower types need no rule of their own: their upper bits are zeros or the sign, and the writer drops them.
struct ShiftLeft {
  template <class T>
  T operator()(T x, T count) const {
    return shifts_all_out(count) ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << count);
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T x, T count) const {
    if (shifts_all_out(count)) return std::is_signed_v<T> && x < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(x >> count);
  }
};

}  // namespace

// Bool is 0 or 1 here, whatever its byte.
void bit_and(const Call& call) {
  zip_int(call, [](auto a, auto b) { return a & b; });
}
void bit_or(const Call& call) {
  zip_int(call, [](auto a, auto b) { return a | b; });
}
void bit_xor(const Call& call) {
  zip_int(call, [](auto a, auto b) { return a ^ b; });
}

void bit_not(const Call& call) {
  const IntReader x = call.int_reader(0);
  const IntWriter y = call.int_writer(0);
  const bool logical = call.input(0).dtype == DType::Bool;
  for (int64_t i = 0; i < call.output(0).elements(); ++i) y.set(i, logical ? int64_t{x[i] == 0} : ~x[i]);
}

void shift_left(const Call& call) { zip_int(call, ShiftLeft{}); }
void shift_right(const Call& call) { zip_int(call, ShiftRight{}); }

}  // namespace rlx::reference
