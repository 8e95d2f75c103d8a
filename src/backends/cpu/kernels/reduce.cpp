// Reductions along any set of axes, without a transpose. Neighbouring axes that are all reduced, or all kept, are one.
// What is left ends either in a reduced run (rows, each for one result) or in a kept one (columns side by side).
// Work is cut into blocks by sizes alone, never by the number of threads: the results are the same on any machine.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/reduce.h"
#include "core/thread_pool.h"
#include "rlx/ops/reduce.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kMaxRank = 16;
constexpr int64_t kBlock = 32768;      // elements of one result that are reduced in one piece
constexpr int64_t kBlockRows = 256;    // of columns: as many at least, so that partial results are few
constexpr int64_t kStrip = 1024;       // results side by side: their accumulators stay in the first cache
constexpr int64_t kEnoughRows = 32;    // reduced at once, so that partial results take little memory
constexpr int64_t kEnoughUnits = 128;  // so many independent results need no blocks to keep all threads busy
constexpr int64_t kBuffer = 2048;      // elements of F16 or BF16 that are converted at a time

// Some axes of the operand, outermost first.
struct Axes {
  int64_t n = 0, count = 1;  // count: product of the sizes
  std::array<int64_t, kMaxRank> size{}, stride{};

  void add(int64_t s, int64_t st) {
    size[static_cast<size_t>(n)] = s, stride[static_cast<size_t>(n)] = st;
    ++n, count *= s;
  }
  int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (auto d = static_cast<size_t>(n); d-- > 0; index /= size[d]) at += index % size[d] * stride[d];
    return at;
  }
  int64_t last_size() const { return n == 0 ? 1 : size[static_cast<size_t>(n - 1)]; }
  int64_t last_stride() const { return n == 0 ? 0 : stride[static_cast<size_t>(n - 1)]; }
};

struct Geometry {
  bool columns = false;  // the innermost run is kept
  int64_t run = 1;       // elements of the innermost run
  int64_t width = 1;     // results side by side: the columns, or the rows of `run` elements that follow each other
  Axes kept, reduced;    // without the run and without `width`
  int64_t outputs = 1;   // all results
  int64_t elements = 1;  // that meet in one result
  int64_t strip = 1;     // results side by side that are computed together
  int64_t strips = 1;
  int64_t block = 1;  // one row (elements), or rows that meet (reduced.count), that are reduced in one piece
  int64_t blocks = 1;
  bool interleaved = false;  // blocks are around kept axes, not within them

  // Nothing is reduced but the run: every result has one row of its own.
  bool plain_rows() const { return !columns && reduced.n == 0; }
};

Geometry geometry(std::span<const int64_t> sizes, const std::vector<int64_t>& axes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  std::array<bool, kMaxRank> is_reduced{};
  for (const int64_t a : axes) is_reduced[static_cast<size_t>(normalize_axis(a, rank))] = true;
  // Innermost first.
  std::array<int64_t, kMaxRank> size{};
  std::array<bool, kMaxRank> reduced{};
  size_t n = 0;
  for (auto d = static_cast<size_t>(rank); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (n > 0 && reduced[n - 1] == is_reduced[d])
      size[n - 1] *= sizes[d];
    else
      size[n] = sizes[d], reduced[n++] = is_reduced[d];
  }
  Geometry g;
  if (n > 0) g.columns = !reduced[0], g.run = size[0];
  const size_t outside = g.columns ? 1 : 2;  // beyond the run and `width`
  g.width = g.columns ? g.run : n > 1 ? size[1] : 1;
  std::array<int64_t, kMaxRank> stride{};
  for (size_t d = 1; d < n; ++d) stride[d] = (d == 1 ? 1 : stride[d - 1]) * size[d - 1];
  for (size_t d = n; d-- > outside;) (reduced[d] ? g.reduced : g.kept).add(size[d], stride[d]);
  g.outputs = g.kept.count * g.width;
  g.elements = g.reduced.count * (g.columns ? 1 : g.run);
  if (g.plain_rows()) {
    g.block = g.outputs >= kEnoughUnits ? g.elements : kBlock;
    g.blocks = div_up(g.elements, std::max<int64_t>(1, g.block));
  } else {
    const int64_t run = g.columns ? 1 : std::max<int64_t>(1, g.run);
    g.strip = std::clamp<int64_t>(kBlock / run, 1, kStrip);
    g.strips = div_up(g.width, g.strip);
    const int64_t together = run * std::clamp<int64_t>(g.width, 1, g.strip);
    g.block = g.kept.count * g.strips >= kEnoughUnits ? g.reduced.count
                                                      : std::max(g.columns ? kBlockRows : 1, kBlock / together);
    // A reduced axis around a kept one: what follows in memory belongs to other results. Pieces of one inner axis each,
    // taken in the order of memory, read on and on.
    g.interleaved = g.columns && g.kept.n > 0 && g.reduced.n > 1 && g.reduced.stride[0] > g.kept.stride[0] &&
                    g.reduced.last_size() >= kEnoughRows;
    if (g.interleaved) g.block = g.reduced.last_size();
    g.blocks = div_up(g.reduced.count, std::max<int64_t>(1, g.block));
  }
  g.block = std::max<int64_t>(g.block, 1);
  g.blocks = std::max<int64_t>(g.blocks, 1);
  return g;
}

// Rows and columns of T, and of F16 or BF16 through a buffer of f32.
template <class T, class Acc>
struct Source {
  Step step;
  DType dtype;
  const std::byte* data;

  bool converts() const { return std::is_same_v<T, float> && dtype != DType::F32; }
  const T* at(int64_t offset) const { return reinterpret_cast<const T*>(data) + offset; }

  void rows(int64_t offset, int64_t n, int64_t cols, Acc* acc) const {
    if constexpr (std::is_same_v<T, float>) {
      if (converts()) {
        alignas(64) float buffer[kBuffer];
        const int64_t together = std::max<int64_t>(1, kBuffer / cols);
        for (int64_t r = 0; r < n; r += together) {
          const int64_t count = std::min(together, n - r);
          for (int64_t i = 0; i < count * cols; i += kBuffer) {
            const int64_t piece = std::min(kBuffer, count * cols - i);
            to_f32(dtype, data, offset + r * cols + i, buffer, piece);
            reduce_rows(step, buffer, count, piece / count, acc + r);
          }
        }
        return;
      }
    }
    reduce_rows(step, at(offset), n, cols, acc);
  }
  void columns(int64_t offset, int64_t n, int64_t stride, int64_t width, Acc* acc) const {
    if constexpr (std::is_same_v<T, float>) {
      if (converts()) {
        alignas(64) float buffer[kBuffer];
        const int64_t together = kBuffer / width;
        for (int64_t r = 0; r < n; r += together) {
          const int64_t count = std::min(together, n - r);
          for (int64_t k = 0; k < count; ++k) to_f32(dtype, data, offset + (r + k) * stride, buffer + k * width, width);
          reduce_columns(step, buffer, count, width, width, acc);
        }
        return;
      }
    }
    reduce_columns(step, at(offset), n, stride, width, acc);
  }
};

// Results `first` to `first + n` from their accumulators.
template <class Acc>
void write(const Call& call, int64_t first, int64_t n, const Acc* acc, Acc divisor) {
  const host::View& y = call.output(0);
  if constexpr (std::is_same_v<Acc, double>) {
    float buffer[kStrip];
    for (int64_t i = 0; i < n; i += kStrip) {
      const int64_t count = std::min(kStrip, n - i);
      // A mean of nothing is 0 / 0.
      for (int64_t k = 0; k < count; ++k)
        buffer[k] = static_cast<float>(divisor == 1 ? acc[i + k] : acc[i + k] / divisor);
      from_f32(y.dtype, buffer, y.data, first + i, count);
    }
  } else {
    const host::IntWriter out = call.int_writer(0);
    for (int64_t i = 0; i < n; ++i) out.set(first + i, acc[i] / divisor);
  }
}

// One block of the results `first` to `first + width` of the strip at `offset`.
template <class T, class Acc>
void reduce_strip(const Source<T, Acc>& x, const Geometry& g, int64_t offset, int64_t width, int64_t block, Acc* acc) {
  std::fill(acc, acc + width, identity<Acc>(x.step));
  if (g.elements == 0) return;
  const int64_t end = std::min(g.reduced.count, (block + 1) * g.block);
  for (int64_t r = block * g.block; r < end;) {
    const int64_t size = g.reduced.last_size(), take = g.columns ? std::min(end - r, size - r % size) : 1;
    const int64_t first = offset + g.reduced.offset(r);
    if (g.columns)
      x.columns(first, take, g.reduced.last_stride(), width, acc);
    else
      x.rows(first, width, g.run, acc);
    r += take;
  }
}

// Each result from one row: many rows, or the blocks of a few.
template <class T, class Acc>
void reduce_plain_rows(const Call& call, const Source<T, Acc>& x, const Geometry& g, Acc divisor) {
  if (g.blocks == 1) {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, g.elements));
    call.pool().parallel_for(0, g.outputs, grain, [&](int64_t begin, int64_t end) {
      Acc acc[kStrip];
      for (int64_t o = begin; o < end; o += kStrip) {
        const int64_t n = std::min(kStrip, end - o);
        std::fill(acc, acc + n, identity<Acc>(x.step));
        if (g.elements > 0) x.rows(o * g.run, n, g.run, acc);
        write(call, o, n, acc, divisor);
      }
    });
    return;
  }
  Acc* partial = call.scratch_as<Acc>();
  call.pool().parallel_for(0, g.outputs * g.blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t first = u % g.blocks * g.block;
      partial[u] = identity<Acc>(x.step);
      x.rows(u / g.blocks * g.run + first, 1, std::min(g.block, g.elements - first), partial + u);
    }
  });
  for (int64_t o = 0; o < g.outputs; ++o) {
    Acc acc = identity<Acc>(x.step);
    for (int64_t b = 0; b < g.blocks; ++b) acc = combine(x.step, acc, partial[o * g.blocks + b]);
    write(call, o, 1, &acc, divisor);
  }
}

template <class T, class Acc>
void reduce_strips(const Call& call, const Source<T, Acc>& x, const Geometry& g, Acc divisor) {
  Acc* partial = g.blocks > 1 ? call.scratch_as<Acc>() : nullptr;
  const int64_t run = g.columns ? 1 : g.run;
  const int64_t cost = std::max<int64_t>(1, std::min(g.width, g.strip) * run * std::min(g.block, g.reduced.count));
  // Strips within blocks: a thread that takes several units reads on in memory.
  call.pool().parallel_for(
      0, g.kept.count * g.blocks * g.strips, std::max<int64_t>(1, kGrain / cost), [&](int64_t begin, int64_t end) {
        Acc acc[kStrip];
        for (int64_t u = begin; u < end; ++u) {
          const int64_t at = u / g.strips;
          const int64_t block = g.interleaved ? at / g.kept.count : at % g.blocks;
          const int64_t k = g.interleaved ? at % g.kept.count : at / g.blocks;
          const int64_t column = u % g.strips * g.strip, width = std::min(g.strip, g.width - column);
          Acc* to = partial == nullptr ? acc : partial + (k * g.blocks + block) * g.width + column;
          reduce_strip(x, g, g.kept.offset(k) + column * run, width, block, to);
          if (partial == nullptr) write(call, k * g.width + column, width, acc, divisor);
        }
      });
  if (partial == nullptr) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / (g.strip * g.blocks));
  call.pool().parallel_for(0, g.kept.count * g.strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t k = u / g.strips, column = u % g.strips * g.strip;
      const int64_t width = std::min(g.strip, g.width - column);
      Acc* acc = partial + k * g.blocks * g.width + column;
      for (int64_t b = 1; b < g.blocks; ++b)
        for (int64_t i = 0; i < width; ++i) acc[i] = combine(x.step, acc[i], acc[b * g.width + i]);
      write(call, k * g.width + column, width, acc, divisor);
    }
  });
}

template <class T, class Acc>
void run(const Call& call, Step step, const Geometry& g, Acc divisor) {
  const Source<T, Acc> x{step, call.input(0).dtype, call.input(0).data};
  if (g.plain_rows())
    reduce_plain_rows<T, Acc>(call, x, g, divisor);
  else
    reduce_strips<T, Acc>(call, x, g, divisor);
}

void reduce(const Call& call, Step step, bool mean = false) {
  const host::View& x = call.input(0);
  const auto& axes = call.attrs<ops::ReduceAttrs>().axes;
  if (axes.empty()) {  // a copy, bit for bit
    std::memcpy(call.output(0).data, x.data, static_cast<size_t>(x.elements()) * size_of(x.dtype));
    return;
  }
  const Geometry g = geometry(x.sizes, axes);
  const int64_t divisor = mean ? g.elements : 1;
  if (mean && divisor == 0 && !is_float(x.dtype)) fail(ErrorKind::kRuntime, "The mean of 0 integers is not defined.");
  if (g.elements == 0 && x.dtype == DType::I32 && (step == Step::kMax || step == Step::kMin)) {
    const int64_t nothing = step == Step::kMax ? smallest_int(x.dtype) : largest_int(x.dtype);
    std::fill_n(call.output_as<int32_t>(0), g.outputs, static_cast<int32_t>(nothing));
    return;
  }
  switch (x.dtype) {
    case DType::I32: return run<int32_t, int64_t>(call, step, g, divisor);
    case DType::I64: return run<int64_t, int64_t>(call, step, g, divisor);
    default: return run<float, double>(call, step, g, static_cast<double>(divisor));
  }
}

}  // namespace

bool reduce_supports(const Signature& s) {
  const DType t = s.input(0).dtype;
  return s.input(0).rank() <= kMaxRank && (is_small_float(t) || t == DType::I32 || t == DType::I64);
}

// The sum of 64-bit integers may need more than 64 bits before it is divided.
bool reduce_mean_supports(const Signature& s) { return reduce_supports(s) && s.input(0).dtype != DType::I64; }

int64_t reduce_scratch(const Signature& s, int) {
  const Geometry g = geometry(s.input(0).shape.sizes(), s.attrs.as<ops::ReduceAttrs>().axes);
  return g.blocks == 1 ? 0 : g.outputs * g.blocks * static_cast<int64_t>(sizeof(double));
}

void reduce_max(const Call& call) { reduce(call, Step::kMax); }
void reduce_mean(const Call& call) { reduce(call, Step::kSum, true); }
void reduce_min(const Call& call) { reduce(call, Step::kMin); }
void reduce_prod(const Call& call) { reduce(call, Step::kProd); }
void reduce_sum(const Call& call) { reduce(call, Step::kSum); }

}  // namespace rlx::cpu
