// Updates that go to a place are applied by one thread, in their order.
#include "rlx/ops/scatter.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/along_axis.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::View;
using ops::ScatterReduction;

namespace {

constexpr int64_t kSlice = 512;  // updates that are converted at a time

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

bool supports(ScatterReduction reduction) {
  return reduction == ScatterReduction::kNone || reduction == ScatterReduction::kAdd;
}

// How elements are changed. Integers wrap, so they are added as unsigned ones of their size.
template <class T>
struct Replace {
  using Element = T;
  static T combine(T, T update) { return update; }
};
template <class T>
struct Add {
  using Element = T;
  static T combine(T old, T update) { return static_cast<T>(old + update); }
};

// The elements that are changed, and the updates: f16 and bf16 are added in f32.
template <class Change>
struct Target {
  using T = typename Change::Element;
  T* y;
  const View& updates;

  // f(u, update) for n updates from u on.
  template <class F>
  void each(int64_t u, int64_t n, const F& f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (updates.dtype != DType::F32) {
        float buffer[kSlice];
        for (int64_t done = 0; done < n; done += kSlice) {
          const int64_t part = std::min(kSlice, n - done);
          to_f32(updates.dtype, updates.data, u + done, buffer, part);
          for (int64_t i = 0; i < part; ++i) f(u + done + i, buffer[i]);
        }
        return;
      }
    }
    const T* from = reinterpret_cast<const T*>(updates.data) + u;
    for (int64_t i = 0; i < n; ++i) f(u + i, from[i]);
  }
};

struct Elements {
  template <class Change>
  static void run(const Call& call, const Target<Change>& target) {
    const int64_t rank = call.input(0).rank();
    const AlongAxis along(call.input(0).sizes, call.input(1).sizes,
                          normalize_axis(call.attrs<ops::ScatterElementsAttrs>().axis, rank));
    const Indices indices(call.input(1));
    FirstFault fault;
    const int64_t inner = along.inner.count(), lanes = along.outer.count() * inner;
    const auto apply = [&](int64_t u, int64_t n, typename Change::Element* to, int64_t step) {
      target.each(u, n, [&](int64_t i, auto update) {
        const int64_t index = indices.at(i, along.size);
        if (index < 0) return fault.note(i);
        auto& element = to[index * along.stride + (i - u) * step];
        element = Change::combine(element, update);
      });
    };
    // Places that differ in another axis than this one share nothing.
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, along.count));
    call.pool().parallel_for(0, lanes, grain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t o = begin / inner, t = begin % inner, run = along.inner.run();
        const int64_t n = std::min(end - begin, run - t % run);
        typename Change::Element* to = target.y + along.outer.offset(o) + along.inner.offset(t);
        if (inner == 1)
          apply(o * along.count, along.count, to, 0);
        else
          for (int64_t a = 0; a < along.count; ++a) apply((o * along.count + a) * inner + t, n, to, along.inner.step());
        begin += inner == 1 ? 1 : n;
      }
    });
    if (fault.any()) indices.fail_at(fault.first(), along.size);
  }
};

struct Slices {
  template <class Change>
  static void run(const Call& call, const Target<Change>& target) {
    const View& x = call.input(0);
    const std::span<const int64_t> sizes = call.input(1).sizes;
    const int64_t depth = sizes.back(), count = product(sizes.first(sizes.size() - 1));
    const int64_t slice = product(x.sizes.subspan(static_cast<size_t>(depth)));
    const Indices indices(call.input(1));
    FirstFault fault;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, count));
    call.pool().parallel_for(0, slice, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t place = 0;
        bool good = true;
        for (int64_t k = 0; good && k < depth; ++k) {
          const int64_t size = x.dim(k), index = indices.at(i * depth + k, size);
          good = index >= 0;
          if (!good) fault.note(i * depth + k);
          place = place * size + index;
        }
        if (!good) continue;
        auto* to = target.y + place * slice + begin;
        target.each(i * slice + begin, end - begin, [&](int64_t, auto update) {
          *to = Change::combine(*to, update);
          ++to;
        });
      }
    });
    if (fault.any()) indices.fail_at(fault.first(), x.dim(fault.first() % depth));
  }
};

template <class Form, class Change>
void change_copy(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  if (y.data != x.data) {
    const auto element = static_cast<int64_t>(size_of(x.dtype));
    StridedCopy copy(y.data, x.data, element);
    copy.add_axis(y.elements(), element, element);
    copy.run(call.pool(), y.elements() * element);
  }
  Form::run(call, Target<Change>{reinterpret_cast<typename Change::Element*>(y.data), call.input(2)});
}

template <class Form>
void add_halves(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  auto* sums = call.scratch_as<float>();
  call.pool().parallel_for(0, y.elements(), kGrain,
                           [&](int64_t b, int64_t e) { to_f32(x.dtype, x.data, b, sums + b, e - b); });
  Form::run(call, Target<Add<float>>{sums, call.input(2)});
  call.pool().parallel_for(0, y.elements(), kGrain,
                           [&](int64_t b, int64_t e) { from_f32(y.dtype, sums + b, y.data, b, e - b); });
}

template <class Form>
void scatter_updates(const Call& call, ScatterReduction reduction) {
  const DType dtype = call.input(0).dtype;
  if (reduction == ScatterReduction::kNone) switch (size_of(dtype)) {
      case 1: return change_copy<Form, Replace<uint8_t>>(call);
      case 2: return change_copy<Form, Replace<uint16_t>>(call);
      case 4: return change_copy<Form, Replace<uint32_t>>(call);
      default: return change_copy<Form, Replace<uint64_t>>(call);
    }
  if (is_half(dtype)) return add_halves<Form>(call);
  if (dtype == DType::F32) return change_copy<Form, Add<float>>(call);
  if (dtype == DType::F64) return change_copy<Form, Add<double>>(call);
  switch (size_of(dtype)) {
    case 1: return change_copy<Form, Add<uint8_t>>(call);
    case 2: return change_copy<Form, Add<uint16_t>>(call);
    case 4: return change_copy<Form, Add<uint32_t>>(call);
    default: return change_copy<Form, Add<uint64_t>>(call);
  }
}

}  // namespace

bool scatter_elements_supports(const Signature& s) {
  return few_axes(s) && supports(s.attrs.as<ops::ScatterElementsAttrs>().reduction);
}
bool scatter_nd_supports(const Signature& s) { return supports(s.attrs.as<ops::ScatterNdAttrs>().reduction); }

int64_t scatter_updates_scratch(const Signature& s, int) {
  return is_half(s.output(0).dtype) ? s.output(0).shape.num_elements() * static_cast<int64_t>(sizeof(float)) : 0;
}

void scatter_elements(const Call& call) {
  scatter_updates<Elements>(call, call.attrs<ops::ScatterElementsAttrs>().reduction);
}
void scatter_nd(const Call& call) { scatter_updates<Slices>(call, call.attrs<ops::ScatterNdAttrs>().reduction); }

}  // namespace rlx::cpu
