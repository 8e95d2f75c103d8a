// Linear and cubic interpolation, one or two neighbouring axes at a time: rows of x are resampled along the second one,
// each once, and the last few of them are summed with the weights of the first one.
#include "rlx/ops/resize.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/cpu/simd/resample.h"
#include "backends/host/resize_axis.h"

namespace rlx::cpu {

using host::ResizeAxis;
using host::View;

namespace {

// Of one axis that changes: taps elements and weights for each of `out` places. `by_tap`: all first ones, then all
// second ones, … for rows of single elements; else those of one place together.
struct AxisTable {
  int64_t axis = 0, in = 0, out = 0, taps = 0;
  bool by_tap = false;
  int64_t index = 0, weight = 0;  // offsets in the scratch memory, in 4 bytes

  size_t slot(int64_t place, int64_t tap) const {
    return static_cast<size_t>(by_tap ? tap * out + place : place * taps + tap);
  }
};

// x [outer, rows.in, cols.in, channels] to [outer, rows.out, cols.out, channels]; an axis that is missing has size 1.
struct Pass {
  int64_t outer = 1, channels = 1;
  int rows = -1, cols = -1;  // tables
};

class Plan {
 public:
  Plan(const ops::ResizeAttrs& attrs, std::span<const int64_t> x, std::span<const int64_t> y, DType dtype)
      : half_(dtype != DType::F32) {
    const auto rank = static_cast<int64_t>(x.size());
    const auto axis_at = [&](int64_t a) {
      return ResizeAxis(attrs, rank, a, x[static_cast<size_t>(a)], y[static_cast<size_t>(a)]);
    };
    int64_t outer = 1, inner = product(x);
    for (int64_t a = 0; a < rank; ++a) {
      const ResizeAxis axis = axis_at(a);
      inner /= axis.in();
      if (!axis.is_identity()) {
        if (num_passes_ > 0) buffer_ = std::max(buffer_, round_up(outer * axis.in() * inner, 16));
        Pass pass{.outer = outer, .channels = inner};
        const bool paired = a + 1 < rank && !axis_at(a + 1).is_identity();
        if (!paired && inner == 1) {
          pass.cols = table(a, axis, true);
        } else {
          pass.rows = table(a, axis, false);
          if (paired) {
            const ResizeAxis next = axis_at(++a);
            outer *= axis.out();
            pass.channels = inner /= next.in();
            pass.cols = table(a, next, inner == 1);
          }
        }
        passes_[static_cast<size_t>(num_passes_++)] = pass;
        per_thread_ = std::max(per_thread_, thread_floats(pass));
      }
      outer *= y[static_cast<size_t>(a)];
    }
  }

  std::span<const Pass> passes() const { return {passes_.data(), static_cast<size_t>(num_passes_)}; }
  std::span<const AxisTable> tables() const { return {tables_.data(), static_cast<size_t>(num_tables_)}; }
  const AxisTable* table_at(int i) const { return i < 0 ? nullptr : &tables_[static_cast<size_t>(i)]; }

  int64_t bytes(int threads) const { return 4 * (table_floats_ + 2 * buffer_ + threads * per_thread_); }
  float* buffer(const Call& call, size_t i) const {
    return call.scratch_as<float>() + table_floats_ + static_cast<int64_t>(i % 2) * buffer_;
  }
  float* of_thread(const Call& call) const {
    return call.scratch_as<float>() + table_floats_ + 2 * buffer_ + ThreadPool::this_thread() * per_thread_;
  }

  // What a thread needs: elements and weights of one place in full precision while tables are made; then pointers to
  // the rows of a sum, which rows the ring holds, the ring, a row of x and a row of the result as f32.
  int64_t ring_rows(const Pass& pass) const {
    const AxisTable* rows = table_at(pass.rows);
    return rows == nullptr ? 0 : std::min(rows->taps, rows->in);
  }
  int64_t ring_floats(const Pass& pass) const {
    return pass.cols < 0 && !half_ ? 0 : ring_rows(pass) * round_up(out_row(pass), 16);  // x's own rows will do
  }
  int64_t in_row(const Pass& pass) const {
    const AxisTable* cols = table_at(pass.cols);
    return (cols == nullptr ? 1 : cols->in) * pass.channels;
  }
  int64_t out_row(const Pass& pass) const {
    const AxisTable* cols = table_at(pass.cols);
    return (cols == nullptr ? 1 : cols->out) * pass.channels;
  }
  int64_t most_taps(const Pass& pass) const {
    int64_t taps = 1;
    for (const int i : {pass.rows, pass.cols})
      if (i >= 0) taps = std::max(taps, table_at(i)->taps);
    return taps;
  }

 private:
  int table(int64_t a, const ResizeAxis& axis, bool by_tap) {
    AxisTable& t = tables_[static_cast<size_t>(num_tables_)];
    t = {.axis = a, .in = axis.in(), .out = axis.out(), .taps = axis.taps(), .by_tap = by_tap};
    const int64_t entries = round_up(t.out * t.taps, 16);
    t.index = table_floats_;
    t.weight = table_floats_ + entries;
    table_floats_ += 2 * entries;
    return num_tables_++;
  }
  int64_t thread_floats(const Pass& pass) const {
    const int64_t taps = round_up(most_taps(pass), 16);
    return 4 * taps + ring_floats(pass) + round_up(in_row(pass), 16) + round_up(out_row(pass), 16);
  }

  bool half_;
  std::array<Pass, kMostAxes> passes_{};
  std::array<AxisTable, kMostAxes> tables_{};
  int num_passes_ = 0, num_tables_ = 0;
  int64_t table_floats_ = 0, buffer_ = 0, per_thread_ = 0;
};

class Resampler {
 public:
  explicit Resampler(const Call& call)
      : call_(call),
        plan_(call.attrs<ops::ResizeAttrs>(), call.input(0).sizes, call.output(0).sizes, call.input(0).dtype) {}

  void run() {
    const View &x = call_.input(0), &y = call_.output(0);
    if (plan_.passes().empty()) {
      const auto element = static_cast<int64_t>(size_of(x.dtype));
      StridedCopy copy(y.data, x.data, element);
      copy.add_axis(y.elements(), element, element);
      return copy.run(call_.pool(), y.elements() * element);
    }
    for (const AxisTable& t : plan_.tables()) make(t);
    View from = x;
    for (size_t p = 0; p < plan_.passes().size(); ++p) {
      const bool last = p + 1 == plan_.passes().size();
      const Pass& pass = plan_.passes()[p];
      const std::array<int64_t, 1> size = {result_elements(pass)};
      View to{DType::F32, size, nullptr};
      to.data = last ? y.data : reinterpret_cast<std::byte*>(plan_.buffer(call_, p));
      if (last) to.dtype = y.dtype;
      resample(pass, from, to, !last);
      from = {DType::F32, {}, to.data};
    }
  }

 private:
  int32_t* index_of(const AxisTable& t) const { return call_.scratch_as<int32_t>() + t.index; }
  float* weight_of(const AxisTable& t) const { return call_.scratch_as<float>() + t.weight; }

  int64_t result_elements(const Pass& pass) const {
    const AxisTable* rows = plan_.table_at(pass.rows);
    return pass.outer * (rows == nullptr ? 1 : rows->out) * plan_.out_row(pass);
  }

  void make(const AxisTable& t) {
    const View& x = call_.input(0);
    const ResizeAxis axis(call_.attrs<ops::ResizeAttrs>(), x.rank(), t.axis, t.in, t.out);
    call_.pool().parallel_for(0, t.out, std::max<int64_t>(1, kGrain / 16 / t.taps), [&](int64_t begin, int64_t end) {
      auto* index = reinterpret_cast<int64_t*>(plan_.of_thread(call_));
      auto* weight = reinterpret_cast<double*>(index + t.taps);
      for (int64_t j = begin; j < end; ++j) {
        axis.at(j, index, weight);
        for (int64_t k = 0; k < t.taps; ++k) {
          index_of(t)[t.slot(j, k)] = static_cast<int32_t>(index[k]);
          weight_of(t)[t.slot(j, k)] = static_cast<float>(weight[k]);
        }
      }
    });
  }

  // The working memory of a thread in a pass.
  struct Local {
    const float** rows;
    int64_t* held;  // which row of x a place of the ring holds
    float *ring, *source, *result;
  };
  Local local(const Pass& pass) const {
    const int64_t taps = round_up(plan_.most_taps(pass), 16);
    float* p = plan_.of_thread(call_);
    Local l{reinterpret_cast<const float**>(p), reinterpret_cast<int64_t*>(p + 2 * taps), p + 4 * taps, nullptr,
            nullptr};
    l.source = l.ring + plan_.ring_floats(pass);
    l.result = l.source + round_up(plan_.in_row(pass), 16);
    std::fill(l.held, l.held + plan_.ring_rows(pass), -1);
    return l;
  }

  void resample(const Pass& pass, const View& x, const View& y, bool shared) const {
    const AxisTable* rows = plan_.table_at(pass.rows);
    const int64_t height = rows == nullptr ? 1 : rows->out, in_height = rows == nullptr ? 1 : rows->in;
    const int64_t width = plan_.out_row(pass), ring = plan_.ring_rows(pass);
    const RowWriter writer(y, shared);
    const int64_t grain = std::max<int64_t>(1, kGrain / width);
    call_.pool().parallel_for(0, pass.outer * height, grain, [&](int64_t begin, int64_t end) {
      const Local l = local(pass);
      for (int64_t i = begin; i < end; ++i) {
        float* to = writer.target(i * width, l.result);
        if (rows == nullptr) {
          row_of(pass, x, i, l.source, to);
        } else {
          const int64_t first = i / height * in_height, j = i % height;
          for (int64_t k = 0; k < rows->taps; ++k) {
            const int64_t row = first + index_of(*rows)[rows->slot(j, k)], at = row % ring;
            float* place = l.ring + at * round_up(width, 16);  // rows of one sum follow each other: none is in the way
            l.rows[k] = l.held[at] == row ? place : row_of(pass, x, row, l.source, place);
            if (l.rows[k] == place) l.held[at] = row;
          }
          resample_rows(l.rows, weight_of(*rows) + rows->slot(j, 0), rows->taps, width, to);
        }
        writer.finish(i * width, l.result, width);
      }
      stream_flush();
    });
  }

  // A row of x with its columns resampled, as f32: in `to`, or x's own where nothing is to be done.
  const float* row_of(const Pass& pass, const View& x, int64_t row, float* buffer, float* to) const {
    const AxisTable* cols = plan_.table_at(pass.cols);
    const int64_t in = plan_.in_row(pass), c = pass.channels;
    if (cols == nullptr) return row_as_f32(x.dtype, x.data, row * in, to, in);
    const float* from = row_as_f32(x.dtype, x.data, row * in, buffer, in);
    const int32_t* index = index_of(*cols);
    const float* weight = weight_of(*cols);
    if (cols->by_tap) {
      resample_columns(from, index, weight, cols->taps, cols->out, to);
      return to;
    }
    resample_pixels(*cols, from, c, to);
    return to;
  }

  // Columns of several channels each.
  void resample_pixels(const AxisTable& cols, const float* from, int64_t channels, float* to) const {
    constexpr int64_t kTogether = 16;
    const float* pixels[kTogether];
    for (int64_t j = 0; j < cols.out; ++j)
      if (cols.taps <= kTogether) {
        for (int64_t k = 0; k < cols.taps; ++k) pixels[k] = from + index_of(cols)[cols.slot(j, k)] * channels;
        resample_rows(pixels, weight_of(cols) + cols.slot(j, 0), cols.taps, channels, to + j * channels);
      } else {
        for (int64_t i = 0; i < channels; ++i) {
          float sum = 0;
          for (int64_t k = 0; k < cols.taps; ++k)
            sum += weight_of(cols)[cols.slot(j, k)] * from[index_of(cols)[cols.slot(j, k)] * channels + i];
          to[j * channels + i] = sum;
        }
      }
  }

  const Call& call_;
  Plan plan_;
};

}  // namespace

bool resize_supports(const Signature& s) {
  const auto& attrs = s.attrs.as<ops::ResizeAttrs>();
  if (attrs.mode == ops::ResizeMode::kNearest || attrs.coordinate == ops::ResizeCoordinate::kTfCropAndResize ||
      !few_axes(s) || !is_small_float(s.input(0).dtype))
    return false;
  for (const Dim& d : s.input(0).shape)
    if (d.value() > std::numeric_limits<int32_t>::max()) return false;
  return s.input(0).shape.num_elements() > 0 && s.output(0).shape.num_elements() > 0;
}

int64_t resize_scratch(const Signature& s, int threads) {
  const std::vector<int64_t> x = s.input(0).shape.sizes(), y = s.output(0).shape.sizes();
  return Plan(s.attrs.as<ops::ResizeAttrs>(), x, y, s.input(0).dtype).bytes(threads);
}

void resize(const Call& call) { Resampler(call).run(); }

}  // namespace rlx::cpu
