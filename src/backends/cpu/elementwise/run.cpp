#include "backends/cpu/elementwise/run.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elementwise/lanes.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/stream.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kLine = 64;

// Rows from this length on are cut into blocks; shorter ones are taken several at a time.
constexpr int64_t kLongRow = kBlock / 2;

// `rows` rows of n elements, strides apart, to contiguous ones.
template <class T>
void copy_rows(const T* from, int64_t row_stride, int64_t stride, T* to, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, from += row_stride, to += n) {
    if (stride == 1) {
      if (n < 16)
        for (int64_t i = 0; i < n; ++i) to[i] = from[i];
      else
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else if (stride == 0) {
      const T v = *from;
      for (int64_t i = 0; i < n; ++i) to[i] = v;
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    }
  }
}

// A row of 2 that repeats one element is what a resize reads.
template <class T>
void repeat_twice(const T* from, int64_t row_stride, T* to, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) to[2 * r] = to[2 * r + 1] = from[r * row_stride];
}

template <class T>
void copy_strided(const std::byte* from, int64_t row_stride, int64_t stride, std::byte* to, int64_t rows, int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  if (n == 2 && stride == 0)
    repeat_twice(x, row_stride, y, rows);
  else
    copy_rows(x, row_stride, stride, y, rows, n);
}

using CopyFn = void (*)(const std::byte*, int64_t, int64_t, std::byte*, int64_t, int64_t);
CopyFn copy_fn(size_t element_bytes) {
  switch (element_bytes) {
    case 1: return copy_strided<uint8_t>;
    case 2: return copy_strided<uint16_t>;
    case 4: return copy_strided<uint32_t>;
    default: return copy_strided<uint64_t>;
  }
}

// Whole rows, or a part of one row.
struct Piece {
  int64_t row, rows, column, columns;
};

class Runner {
 public:
  Runner(const Program& program, const Layout& layout, const std::byte* const* inputs, std::byte* result)
      : program_(program), layout_(layout), inputs_(inputs), result_(result), row_(layout.row()), rows_(layout.rows()) {
    if (row_ >= kLongRow) {
      const int64_t parts = div_up(row_, kBlock);
      columns_ = round_up(div_up(row_, parts), 16);
      parts_ = div_up(row_, columns_);
    } else {
      rows_per_block_ = std::min(rows_, kBlock / row_);
      columns_ = row_;
    }
    for (int i = 0; i < program_.num_inputs; ++i) {
      const bool long_row = parts_ > 1 || row_ >= kLongRow;
      source_[i] = layout_.is_contiguous(i)                                ? Source::kContiguous
                   : layout_.is_scalar(i)                                  ? Source::kFixed
                   : layout_.is_one_row(i) && !long_row                    ? Source::kFixed
                   : long_row && layout_.strides[i][layout_.rank - 1] == 1 ? Source::kRowPart
                                                                           : Source::kGathered;
    }
    const int64_t bytes = rows_ * row_ * element_bytes(program_.result_dtype);
    streams_ = bytes >= kStreamBytes;
    for (int i = 0; i < program_.num_inputs; ++i) streams_ &= inputs_[i] != result_;  // those lines are there already
  }

  int64_t blocks() const { return parts_ * div_up(rows_, rows_per_block_); }
  int64_t block_elements() const { return rows_per_block_ * columns_; }

  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    const int64_t slot_bytes = program_.slot_bytes();
    const void* slots[kMaxProgramInputs + kMaxProgramSteps];
    for (int s = 0; s < program_.num_slots; ++s) slots[s] = scratch + s * slot_bytes;
    std::byte* const staging = scratch + program_.num_slots * slot_bytes;
    const bool direct = is_stored_as_lane(program_.result_dtype) && !streams_ && program_.num_steps > 0;
    const StepFn streaming = streams_ && program_.num_steps > 0 && program_.result_dtype == DType::F32
                                 ? streaming_step_fn(program_.steps[static_cast<size_t>(program_.num_steps - 1)].micro)
                                 : nullptr;
    const void* const result_slot = slots[program_.result];

    for (int i = 0; i < program_.num_inputs; ++i)
      if (source_[i] == Source::kFixed) gather(i, {0, rows_per_block_, 0, columns_}, scratch + i * slot_bytes, staging);
    for (int64_t b = begin; b < end; ++b) {
      const Piece p = piece(b);
      const int64_t first = p.row * row_ + p.column, n = p.rows * p.columns;
      for (int i = 0; i < program_.num_inputs; ++i) slots[i] = block_of(i, p, scratch + i * slot_bytes, staging);
      std::byte* const to = result_ + first * element_bytes(program_.result_dtype);
      // The last step streams where its block is aligned; else its result is streamed from its slot.
      const bool streams_step = streaming != nullptr && reinterpret_cast<uintptr_t>(to) % kStreamAlignment == 0;
      if (program_.num_steps > 0) slots[program_.result] = direct || streams_step ? to : result_slot;
      Prefetches next = b + 1 < end ? prefetches(piece(b + 1)) : Prefetches();
      const int64_t share = next.lines / (program_.num_steps + 1) + 1;
      for (int s = 0; s < program_.num_steps; ++s) {
        next.issue(share);
        const ProgramStep& step = program_.steps[static_cast<size_t>(s)];
        const void* operands[3] = {slots[step.operands[0]], slots[step.operands[1]], slots[step.operands[2]]};
        const StepFn fn = streams_step && s == program_.num_steps - 1 ? streaming : step.fn;
        fn(operands, const_cast<void*>(slots[step.out]), n);  // slots of steps are ours, or the result
      }
      next.issue(next.lines);
      if (!direct && !streams_step) store(slots[program_.result], to, n, staging);
    }
    if (streams_) finish_streaming();
  }

 private:
  enum class Source : uint8_t {
    kContiguous,  // one element per element of the result, in order
    kFixed,       // the same block every time: a scalar, or a short row
    kRowPart,     // a part of a long row
    kGathered
  };

  // The next block's operands, fetched while this one's steps compute: those touch no memory themselves, so that the
  // hardware would fetch nothing meanwhile.
  struct Prefetches {
    struct Range {
      const std::byte* at;
      int64_t lines;
    };
    Range ranges[kMaxProgramInputs];
    int count = 0;
    int64_t lines = 0;

    void issue(int64_t n) {
      for (; n > 0 && count > 0; --count) {
        Range& r = ranges[count - 1];
        const int64_t now = std::min(n, r.lines);
        for (int64_t i = 0; i < now; ++i) __builtin_prefetch(r.at + i * kLine);
        r.at += now * kLine;
        r.lines -= now;
        lines -= now;
        n -= now;
        if (r.lines > 0) return;
      }
    }
  };
  Prefetches prefetches(const Piece& p) const {
    Prefetches all;
    for (int i = 0; i < program_.num_inputs; ++i) {
      int64_t first = 0, ignored = 0;
      if (source_[i] == Source::kContiguous)
        first = p.row * row_ + p.column;
      else if (source_[i] == Source::kRowPart)
        first = row_offset(i, p.row, ignored) + p.column;
      else
        continue;
      const int64_t bytes = element_bytes(program_.inputs[static_cast<size_t>(i)]);
      const int64_t lines = div_up(p.rows * p.columns * bytes, kLine);
      all.ranges[all.count++] = {inputs_[i] + first * bytes, lines};
      all.lines += lines;
    }
    return all;
  }

  static int64_t element_bytes(DType dtype) { return static_cast<int64_t>(size_of(dtype)); }

  Piece piece(int64_t block) const {
    if (parts_ > 1 || row_ >= kLongRow) {
      const int64_t column = block % parts_ * columns_;
      return {block / parts_, 1, column, std::min(columns_, row_ - column)};
    }
    const int64_t row = block * rows_per_block_;
    return {row, std::min(rows_per_block_, rows_ - row), 0, row_};
  }

  // Where row `row` of an operand begins, and how far it may be followed along the axis above a row.
  int64_t row_offset(int input, int64_t row, int64_t& left_on_axis) const {
    int64_t offset = 0;
    left_on_axis = 1;
    for (int d = layout_.rank - 2; d >= 0; --d) {
      const int64_t index = row % layout_.sizes[d];
      if (d == layout_.rank - 2) left_on_axis = layout_.sizes[d] - index;
      offset += index * layout_.strides[input][d];
      row /= layout_.sizes[d];
    }
    return offset;
  }

  // An input's lanes for a piece: where they lie, or converted into its slot.
  const void* block_of(int input, const Piece& p, std::byte* slot, std::byte* staging) const {
    const DType dtype = program_.inputs[static_cast<size_t>(input)];
    int64_t first = 0, ignored = 0;
    switch (source_[input]) {
      case Source::kFixed: return slot;
      case Source::kGathered: gather(input, p, slot, staging); return slot;
      case Source::kContiguous: first = p.row * row_ + p.column; break;
      case Source::kRowPart: first = row_offset(input, p.row, ignored) + p.column; break;
    }
    const std::byte* from = inputs_[input] + first * element_bytes(dtype);
    if (is_stored_as_lane(dtype)) return from;
    load_lanes(dtype, from, slot, p.rows * p.columns);
    return slot;
  }

  void gather(int input, const Piece& p, std::byte* slot, std::byte* staging) const {
    const DType dtype = program_.inputs[static_cast<size_t>(input)];
    const int64_t bytes = element_bytes(dtype), n = p.rows * p.columns;
    const CopyFn copy = copy_fn(size_of(dtype));
    const int64_t stride = layout_.strides[input][layout_.rank - 1];
    const int64_t row_stride = layout_.rank > 1 ? layout_.strides[input][layout_.rank - 2] : 0;
    std::byte* to = is_stored_as_lane(dtype) ? slot : staging;
    for (int64_t r = 0; r < p.rows;) {
      int64_t left = 0;
      const int64_t first = row_offset(input, p.row + r, left) + p.column * stride;
      const int64_t rows = std::min(left, p.rows - r);
      copy(inputs_[input] + first * bytes, row_stride, stride, to + r * p.columns * bytes, rows, p.columns);
      r += rows;
    }
    if (to == staging) load_lanes(dtype, staging, slot, n);
  }

  void store(const void* lanes, std::byte* to, int64_t n, std::byte* staging) const {
    const DType dtype = program_.result_dtype;
    if (!streams_) {
      if (lanes != to) store_lanes(dtype, lanes, to, n);
      return;
    }
    if (!is_stored_as_lane(dtype)) {
      store_lanes(dtype, lanes, staging, n);
      lanes = staging;
    }
    stream_bytes(lanes, to, n * element_bytes(dtype));
  }

  const Program& program_;
  const Layout& layout_;
  const std::byte* const* inputs_;
  std::byte* result_;
  int64_t row_, rows_;
  int64_t parts_ = 1, rows_per_block_ = 1, columns_ = 1;
  Source source_[kMaxProgramInputs] = {};
  bool streams_ = false;
};

}  // namespace

void run_program(const Program& program, const Layout& layout, const std::byte* const* inputs, std::byte* result,
                 ThreadPool& pool, std::byte* scratch) {
  const Runner runner(program, layout, inputs, result);
  const int64_t per_thread = program.scratch_bytes();
  const int64_t work = runner.block_elements() * std::max(1, program.cost);
  const int64_t grain = std::max<int64_t>(1, kGrain / work);
  pool.parallel_for(0, runner.blocks(), grain, [&](int64_t begin, int64_t end) {
    runner.run(begin, end, scratch + ThreadPool::this_thread() * per_thread);
  });
}

}  // namespace rlx::cpu
