#include "backends/cpu/kernels/strided_copy.h"

#include <algorithm>

#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"
#include "rlx/error.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kPieceBytes = 64 << 10;  // worth a thread
// Bytes of a source row in a transposed panel. Every column is a row of the result, and in a page of its own: too many
// are more than the TLB holds.
constexpr int64_t kPanelBytes = 2048;

}  // namespace

void StridedCopy::add_axis(int64_t size, int64_t from_stride, int64_t to_stride) {
  if (size == 1) return;
  if (rank_ > 0) {
    Axis& last = axes_[static_cast<size_t>(rank_ - 1)];
    if (last.from == size * from_stride && last.to == size * to_stride) {
      last = {last.size * size, from_stride, to_stride};
      return;
    }
  }
  RLX_ASSERT(rank_ < kMostAxes);
  axes_[static_cast<size_t>(rank_++)] = {size, from_stride, to_stride};
}

StridedCopy::Axis StridedCopy::take(int64_t axis) {
  const Axis taken = axes_[static_cast<size_t>(axis)];
  std::copy(axes_.begin() + axis + 1, axes_.begin() + rank_, axes_.begin() + axis);
  --rank_;
  return taken;
}

StridedCopy::Place StridedCopy::place_of(int64_t index) const {
  Place p{0, 0};
  for (int64_t a = rank_; a-- > 0;) {
    const Axis& axis = axes_[static_cast<size_t>(a)];
    p.from += index % axis.size * axis.from;
    p.to += index % axis.size * axis.to;
    index /= axis.size;
  }
  return p;
}

void StridedCopy::run(ThreadPool& pool, int64_t result_bytes) {
  const bool large = result_bytes >= kStreamBytes;
  for (int64_t a = 0; a < rank_; ++a)
    if (axes_[static_cast<size_t>(a)].size == 0) return;
  if (rank_ == 0) return copy_runs(pool, element_, large);
  const Axis last = axes_[static_cast<size_t>(rank_ - 1)];
  if (last.to == element_ && last.from == element_) return copy_runs(pool, take(rank_ - 1).size * element_, large);
  if (last.to == element_ && last.from == 0) return fill_runs(pool, take(rank_ - 1), large);
  if (last.to == element_)
    for (int64_t a = 0; a < rank_ - 1; ++a)
      if (axes_[static_cast<size_t>(a)].from == element_) {
        const Axis rows = take(rank_ - 1);
        return transpose(pool, rows, take(a), large);
      }
  copy_runs(pool, element_, large);
}

void StridedCopy::copy_runs(ThreadPool& pool, int64_t run, bool large) {
  const Axis rows = rank_ > 0 ? take(rank_ - 1) : Axis{1, run, run};
  int64_t outer = 1;
  for (int64_t a = 0; a < rank_; ++a) outer *= axes_[static_cast<size_t>(a)].size;
  const bool streaming = large && rows_stream_well(to_, rows.to, run);
  if (run >= 2 * kPieceBytes) {  // long rows are cut
    const int64_t cuts = div_up(run, kPieceBytes);
    pool.parallel_for(0, outer * rows.size * cuts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / cuts, first = i % cuts * kPieceBytes;
        const Place p = place_of(row / rows.size);
        copy_bytes(to_ + p.to + row % rows.size * rows.to + first, from_ + p.from + row % rows.size * rows.from + first,
                   std::min(kPieceBytes, run - first), streaming);
      }
      if (streaming) stream_flush();
    });
    return;
  }
  pool.parallel_for(0, outer * rows.size, std::max<int64_t>(1, kPieceBytes / run), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % rows.size, n = std::min(rows.size - first, end - begin);
      const Place p = place_of(begin / rows.size);
      copy_rows(to_ + p.to + first * rows.to, rows.to, from_ + p.from + first * rows.from, rows.from, n, run,
                streaming);
      begin += n;
    }
    if (streaming) stream_flush();
  });
}

void StridedCopy::fill_runs(ThreadPool& pool, Axis run, bool large) {
  int64_t outer = 1;
  for (int64_t a = 0; a < rank_; ++a) outer *= axes_[static_cast<size_t>(a)].size;
  const int64_t most = kPieceBytes / element_, cuts = div_up(run.size, most);
  const bool streaming = large && rows_stream_well(to_, run.size * element_, run.size * element_);
  pool.parallel_for(0, outer * cuts, std::max<int64_t>(1, most / run.size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Place p = place_of(i / cuts);
      const int64_t first = i % cuts * most;
      fill_elements(to_ + p.to + first * element_, from_ + p.from, element_, std::min(most, run.size - first),
                    streaming);
    }
    if (streaming) stream_flush();
  });
}

// rows: the result's innermost axis; cols: the source's. Panels of up to kPanelBytes, cut into pieces of rows.
void StridedCopy::transpose(ThreadPool& pool, Axis rows, Axis cols, bool large) {
  int64_t outer = 1;
  for (int64_t a = 0; a < rank_; ++a) outer *= axes_[static_cast<size_t>(a)].size;
  const int64_t line = kCacheLine / element_, panel = std::min(kPanelBytes / element_, cols.size);
  const int64_t piece = std::max(line, div_up(kPieceBytes, panel * element_ * line) * line);
  const int64_t panels = div_up(cols.size, panel), pieces = div_up(rows.size, piece);
  bool streaming = large && on_line(to_) && cols.to % kCacheLine == 0 && rows.size >= line;
  for (int64_t a = 0; a < rank_; ++a) streaming &= axes_[static_cast<size_t>(a)].to % kCacheLine == 0;
  const int64_t grain = std::max<int64_t>(1, kPieceBytes / (panel * std::min(piece, rows.size) * element_));
  pool.parallel_for(0, outer * panels * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Place p = place_of(i / (panels * pieces));
      const int64_t c = i / pieces % panels * panel, r = i % pieces * piece;
      transpose_panel(to_ + p.to + c * cols.to + r * element_, cols.to, from_ + p.from + r * rows.from + c * element_,
                      rows.from, std::min(piece, rows.size - r), std::min(panel, cols.size - c), element_, streaming);
    }
    if (streaming) stream_flush();
  });
}

}  // namespace rlx::cpu
