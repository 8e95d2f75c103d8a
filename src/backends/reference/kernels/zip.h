// f of every pair of broadcast elements.
#pragma once

#include "backends/host/broadcast.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

// Elements read by `a` and `b` and written by set(index, value).
template <class A, class B, class Set, class F>
void zip(const Call& call, const A& a, const B& b, const Set& set, const F& f) {
  host::BroadcastWalk<2> walk(call.output(0).sizes, {call.input(0).sizes, call.input(1).sizes});
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i, walk.next()) set(i, f(a[walk.offset(0)], b[walk.offset(1)]));
}

template <class F>
void zip_float(const Call& call, const F& f) {
  const Writer y = call.writer(0);
  zip(
      call, call.reader(0), call.reader(1), [&](int64_t i, double v) { y.set(i, v); }, f);
}

// f takes two int64_t, or two uint64_t where the elements are U64. The writer keeps the low bits of narrower types.
template <class F>
void zip_int(const Call& call, const F& f) {
  const IntWriter y = call.int_writer(0);
  if (call.output(0).dtype == DType::U64)
    zip(
        call, call.uint_reader(0), call.uint_reader(1),
        [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); }, f);
  else
    zip(
        call, call.int_reader(0), call.int_reader(1), [&](int64_t i, int64_t v) { y.set(i, v); }, f);
}

}  // namespace rlx::reference
