#include "rlx/ops/pad.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/host/pad_source.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::PaddedAxis;
using host::View;

namespace {

constexpr int64_t kPieceBytes = 64 << 10;  // worth a thread

// The result in rows: the innermost padded axis with the axes behind it, which are whole. A row has pads in front of
// and behind elements of x that lie together.
class PaddedRows {
 public:
  PaddedRows(const Call& call, const ops::PadAttrs& attrs)
      : x_(call.input(0)),
        y_(call.output(0)),
        element_(static_cast<int64_t>(size_of(x_.dtype))),
        value_(call.num_inputs() == 2 ? call.input(1).data : kZero) {
    int64_t rank = y_.rank();
    while (rank > 0 && attrs.before[static_cast<size_t>(rank - 1)] == 0 &&
           attrs.after[static_cast<size_t>(rank - 1)] == 0)
      run_ *= y_.dim(--rank);
    int64_t stride = run_;
    for (int64_t a = rank; a-- > 0; stride *= x_.dim(a)) {
      const auto i = static_cast<size_t>(a);
      axes_[i] = {PaddedAxis(attrs.mode, x_.dim(a), attrs.before[i], attrs.after[i]), y_.dim(a), stride};
    }
    // Long runs need no pads within a row.
    outer_ = rank == 0 || run_ * element_ >= kLongRow ? rank : rank - 1;
    row_ = outer_ < rank ? axes_[static_cast<size_t>(outer_)].out * run_ : run_;
    pads_inside_ = outer_ < rank;
  }

  void run(ThreadPool& pool) const {
    int64_t rows = 1;
    for (int64_t a = 0; a < outer_; ++a) rows *= axes_[static_cast<size_t>(a)].out;
    const int64_t bytes = row_ * element_;
    const bool streaming = rows * bytes >= kStreamBytes && rows_stream_well(y_.data, bytes, bytes);
    const int64_t piece = bytes >= 2 * kPieceBytes ? kPieceBytes / element_ : row_;  // elements; long rows are cut
    const int64_t cuts = (row_ + piece - 1) / piece;
    pool.parallel_for(0, rows * cuts, std::max<int64_t>(1, kPieceBytes / (piece * element_)),
                      [&](int64_t begin, int64_t end) {
                        Place place;
                        start(place, begin / cuts);
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t row = i / cuts, first = i % cuts * piece;
                          if (i > begin && first == 0) next(place);
                          write(row, source(place), first, std::min(row_, first + piece), streaming);
                        }
                        if (streaming) stream_flush();
                      });
  }

 private:
  static constexpr std::byte kZero[8] = {};
  struct Axis {
    PaddedAxis pad{ops::PadMode::kConstant, 0, 0, 0};
    int64_t out = 0, stride = 0;  // stride: elements of x
  };
  // Where a row stands, and for each axis the first element of x it needs; -1: none.
  struct Place {
    std::array<int64_t, kMostAxes> index{}, from{};
  };

  void look(Place& p, int64_t a) const {
    const auto i = static_cast<size_t>(a);
    const int64_t source = axes_[i].pad.source(p.index[i]);
    p.from[i] = source < 0 ? -1 : source * axes_[i].stride;
  }
  void start(Place& p, int64_t row) const {
    for (int64_t a = outer_; a-- > 0;) {
      const auto i = static_cast<size_t>(a);
      p.index[i] = row % axes_[i].out;
      row /= axes_[i].out;
      look(p, a);
    }
  }
  void next(Place& p) const {
    for (int64_t a = outer_; a-- > 0;) {
      const auto i = static_cast<size_t>(a);
      const bool carry = ++p.index[i] == axes_[i].out;
      if (carry) p.index[i] = 0;
      look(p, a);
      if (!carry) return;
    }
  }
  // -1: the row is all value.
  int64_t source(const Place& p) const {
    int64_t from = 0;
    for (int64_t a = 0; a < outer_; ++a) {
      if (p.from[static_cast<size_t>(a)] < 0) return -1;
      from += p.from[static_cast<size_t>(a)];
    }
    return from;
  }

  void fill(std::byte* to, int64_t count, bool streaming) const {
    if (count > 0) fill_elements(to, value_, element_, count, streaming);
  }

  // Elements first … last - 1 of a row whose elements of x begin at `from`.
  void write(int64_t row, int64_t from, int64_t first, int64_t last, bool streaming) const {
    std::byte* to = y_.data + row * row_ * element_;
    if (from < 0) return fill(to + first * element_, last - first, streaming);
    const std::byte* src = x_.data + from * element_;
    if (!pads_inside_)
      return copy_bytes(to + first * element_, src + first * element_, (last - first) * element_, streaming);
    const PaddedAxis& pad = axes_[static_cast<size_t>(outer_)].pad;
    const int64_t begin = pad.front() * run_, end = begin + pad.kept() * run_;
    const int64_t copy_from = std::clamp(begin, first, last), copy_to = std::clamp(end, first, last);
    pad_inside(to, src, first, copy_from, streaming);
    if (copy_from < copy_to)
      copy_bytes(to + copy_from * element_, src + (copy_from - begin + pad.first() * run_) * element_,
                 (copy_to - copy_from) * element_, streaming);
    pad_inside(to, src, copy_to, last, streaming);
  }

  // Elements of a row beside those of x.
  void pad_inside(std::byte* to, const std::byte* src, int64_t first, int64_t last, bool streaming) const {
    const PaddedAxis& pad = axes_[static_cast<size_t>(outer_)].pad;
    while (first < last) {
      const int64_t source = pad.source(first / run_);
      if (source < 0) return fill(to + first * element_, last - first, streaming);
      const int64_t offset = first % run_, n = std::min(run_ - offset, last - first);
      copy_bytes(to + first * element_, src + (source * run_ + offset) * element_, n * element_, false);
      first += n;
    }
  }

  const View &x_, &y_;
  int64_t element_;
  const std::byte* value_;
  std::array<Axis, kMostAxes> axes_;
  int64_t run_ = 1;    // elements behind the innermost padded axis
  int64_t outer_ = 0;  // axes whose indices number the rows
  int64_t row_ = 1;    // elements
  bool pads_inside_ = false;
};

}  // namespace

void pad(const Call& call) { PaddedRows(call, call.attrs<ops::PadAttrs>()).run(call.pool()); }

}  // namespace rlx::cpu
