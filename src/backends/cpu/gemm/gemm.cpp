#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/gemm/plan.h"
#include "backends/cpu/round_up.h"
#include "core/thread_pool.h"

namespace rlx::cpu::gemm {

namespace {

constexpr int64_t kF32 = sizeof(float);
// Of B, beside a panel of A and the rows of C that are being written.
constexpr int64_t kL2Bytes = 512 * 1024;

int type_index(DType dtype) { return dtype == DType::F32 ? 0 : dtype == DType::F16 ? 1 : 2; }

const std::byte* at(const void* data, DType dtype, int64_t element) {
  return static_cast<const std::byte*>(data) + element * static_cast<int64_t>(size_of(dtype));
}

// The matrix that begins at (row, col) of m; a null one stays null.
template <class M>
M moved(M m, int64_t elements) {
  if (m.data) m.data = const_cast<std::byte*>(at(m.data, m.dtype, elements));
  return m;
}
template <class M>
M from(const M& m, int64_t row, int64_t col) {
  return moved(m, row * m.row_stride + col * m.col_stride);
}

// One product and what it works with: the pool, or null to stay on this thread.
class Product {
 public:
  Product(const Gemm& g, const Plan& plan, ThreadPool* pool, std::byte* scratch)
      : g_(plan.swap ? swapped(g) : g),
        plan_(plan),
        kernels_(tile_kernels()),
        pool_(pool),
        packed_a_(reinterpret_cast<float*>(scratch)),
        packed_b_(reinterpret_cast<float*>(scratch + plan.a_bytes)),
        sums_(scratch + plan.a_bytes + plan.b_bytes),
        sums_in_c_(g_.c.dtype == DType::F32 && g_.c.col_stride == 1),
        has_epilogue_(!sums_in_c_ || g_.epilogue.bias.data || g_.epilogue.residual.data ||
                      g_.epilogue.activation != ops::ActivationKind::kNone) {}

  void run() {
    if (plan_.way == Way::kTiles)
      run_tiles();
    else
      run_few_rows();
  }

 private:
  template <class F>
  void loop(int64_t count, const F& fn) {
    if (pool_ && count > 1)
      pool_->parallel_for(0, count, 1, fn);
    else
      fn(int64_t{0}, count);
  }
  int threads() const { return pool_ ? pool_->threads() : 1; }

  // Where the sums of a block go, and how far apart its rows are.
  struct Sums {
    float* data;
    int64_t row;
  };
  Sums sums(int64_t row, int64_t col, int64_t cols) const {
    if (sums_in_c_) return {static_cast<float*>(from(g_.c, row, col).data), g_.c.row_stride};
    const int thread = pool_ ? ThreadPool::this_thread() : 0;
    return {reinterpret_cast<float*>(sums_ + thread * plan_.sums_bytes), cols};
  }
  void finish_sums(const Sums& s, int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    const Epilogue& e = g_.epilogue;
    finish({rows, cols, s.data, s.row, from(e.bias, row, col), from(e.residual, row, col), e.activation,
            from(g_.c, row, col)});
  }

  void run_few_rows() {
    const float* a = static_cast<const float*>(g_.a.data);
    int64_t a_row = g_.a.row_stride;
    if (plan_.copy_a) {
      pack_kernels().b_as_f32(g_.a, g_.m, g_.k, g_.k, packed_a_);
      a = packed_a_;
      a_row = g_.k;
    }
    const int type = type_index(g_.b.dtype);
    // Strips of columns, a few per thread, but none so short that handing it over costs more than it saves.
    constexpr int64_t kStripBytes = 32 * 1024;
    const int64_t bytes = g_.n * g_.k * static_cast<int64_t>(size_of(g_.b.dtype));
    const int64_t wanted = std::clamp<int64_t>(bytes / kStripBytes, 1, threads() == 1 ? 1 : 4 * threads());
    const int64_t width = std::min(plan_.sums_cols, round_up(div_up(g_.n, wanted), 32));
    loop(div_up(g_.n, width), [&](int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        const int64_t col = strip * width, cols = std::min(width, g_.n - col);
        const Sums s = sums(0, col, cols);
        const void* b = from(g_.b, 0, col).data;
        if (plan_.way == Way::kStream && g_.k > 0)
          kernels_.stream[type]({g_.m, cols, g_.k, a, a_row, b, g_.b.row_stride, s.data, s.row});
        else
          kernels_.dots[type]({g_.m, cols, g_.k, a, a_row, b, g_.b.col_stride, s.data, s.row, 1});
        if (has_epilogue_) finish_sums(s, 0, col, g_.m, cols);
      }
    });
  }

  void run_tiles() {
    for (int64_t col = 0; col < g_.n; col += plan_.pass_cols) {
      const int64_t cols = std::min(plan_.pass_cols, g_.n - col);
      for (int64_t row = 0; row < g_.m; row += plan_.pass_rows) {
        first_row_ = row;
        rows_ = std::min(plan_.pass_rows, g_.m - row);
        first_col_ = col;
        cols_ = cols;
        row_panels_ = div_up(rows_, kernels_.rows);
        col_panels_ = div_up(cols_, kernels_.panel());
        pack(row == 0);
        multiply();
      }
    }
  }

  // Panels of rows are nearly equal, those of columns are full but for the last.
  int64_t panel_row(int64_t i) const { return part_begin(rows_, row_panels_, i); }
  int64_t panel_cols(int64_t j) const { return std::min<int64_t>(kernels_.panel(), cols_ - j * kernels_.panel()); }
  bool b_in_place(int64_t j) const { return !plan_.copy_b && (g_.packed_b || panel_cols(j) == kernels_.panel()); }

  void pack(bool with_b) {
    const int64_t a_panels = plan_.copy_a ? row_panels_ : 0;
    const int64_t first_b = plan_.copy_b ? 0 : col_panels_ - !b_in_place(col_panels_ - 1);
    const int64_t b_panels = with_b ? col_panels_ - first_b : 0;
    const auto pack_panels = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i < a_panels) {
          const int64_t row = panel_row(i);
          pack_kernels().a(from(g_.a, first_row_ + row, 0), panel_row(i + 1) - row, g_.k, packed_a_ + row * g_.k);
        } else {
          const int64_t j = first_b + i - a_panels;
          pack_kernels().b_as_f32(from(g_.b, 0, first_col_ + j * kernels_.panel()), g_.k, panel_cols(j),
                                  kernels_.panel(), packed_b_ + (j - first_b) * kernels_.panel() * g_.k);
        }
      }
    };
    const int64_t elements = a_panels * kernels_.rows * g_.k + b_panels * kernels_.panel() * g_.k;
    if (elements > 16 * 1024)
      loop(a_panels + b_panels, pack_panels);
    else
      pack_panels(0, a_panels + b_panels);
  }

  struct PanelB {
    const std::byte* data;
    int64_t step;  // elements from one k to the next
    int64_t next;  // and to the next panel
    int type;
  };
  PanelB panel_b(int64_t j) const {
    const int64_t panel = kernels_.panel();
    if (g_.packed_b)
      return {at(g_.packed_b, g_.b.dtype, (first_col_ / panel + j) * panel * g_.k), panel, panel * g_.k,
              type_index(g_.b.dtype)};
    if (!b_in_place(j)) {
      const int64_t packed = plan_.copy_b ? j : 0;
      return {reinterpret_cast<const std::byte*>(packed_b_ + packed * panel * g_.k), panel, panel * g_.k, 0};
    }
    return {static_cast<const std::byte*>(from(g_.b, 0, first_col_ + j * panel).data), g_.b.row_stride, panel,
            type_index(g_.b.dtype)};
  }

  void multiply() {
    const int64_t most_cols = sums_in_c_ ? col_panels_ : std::max<int64_t>(1, plan_.sums_cols / kernels_.panel());
    const Grid grid = make_grid(row_panels_, col_panels_, kBlockPanels, most_cols, 2 * rows_ * cols_ * g_.k, threads());
    loop(grid.rows * grid.cols, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r = task / grid.cols, c = task % grid.cols;
        multiply_block(part_begin(row_panels_, grid.rows, r), part_begin(row_panels_, grid.rows, r + 1),
                       part_begin(col_panels_, grid.cols, c), part_begin(col_panels_, grid.cols, c + 1));
      }
    });
  }

  // Panels [i0, i1) of rows times panels [j0, j1) of columns.
  void multiply_block(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    const int64_t panel = kernels_.panel();
    const Sums block = sums(first_row_ + panel_row(i0), first_col_ + j0 * panel, (j1 - j0) * panel);
    const int64_t wide = wide_panels(i0, i1);
    bool last = false;
    for (int64_t k0 = 0, depth = 0; !last; k0 += depth) {  // once for k = 0, which makes zeros
      depth = next_depth(k0);
      last = k0 + depth >= g_.k;
      const auto tile_at = [&](int64_t i, int64_t j, int64_t width) {
        const int64_t row = panel_row(i) - panel_row(i0);
        multiply_tile(i, j, width, k0, depth, {block.data + row * block.row + (j - j0) * panel, block.row}, last);
      };
      // Rows of C are written in long runs where the panels of B stay in the L2 cache meanwhile; else each of those is
      // used for all rows before the next one comes.
      if (wide == 1 && depth * (j1 - j0) * panel * kF32 <= kL2Bytes) {
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < j1; ++j) tile_at(i, j, 1);
      } else {
        for (int64_t j = j0; j < j1;) {
          const int64_t width = j + wide <= j1 && panel_cols(j + wide - 1) == panel ? wide : 1;
          for (int64_t i = i0; i < i1; ++i) tile_at(i, j, width);
          j += width;
        }
      }
    }
  }

  void multiply_tile(int64_t i, int64_t j, int64_t width, int64_t k0, int64_t depth, const Sums& s, bool last) const {
    const PanelB b = panel_b(j);
    const int64_t panel = kernels_.panel(), row = panel_row(i), rows = panel_row(i + 1) - row;
    const int64_t cols = std::min(width * panel, cols_ - j * panel);
    const Tile t = {.k = depth,
                    .a = plan_.copy_a ? packed_a_ + row * g_.k + k0 * rows
                                      : static_cast<const float*>(from(g_.a, first_row_ + row, k0).data),
                    .a_row = plan_.copy_a ? 1 : g_.a.row_stride,
                    .a_k = plan_.copy_a ? rows : g_.a.col_stride,
                    .b = b.data + k0 * b.step * static_cast<int64_t>(b.type == 0 ? 4 : 2),
                    .b_k = b.step,
                    .b_panel = b.next,
                    .c = s.data,
                    .c_row = s.row,
                    .cols = cols,
                    .accumulate = k0 > 0};
    if (width > 1)
      kernels_.wide_tile[b.type][rows](t);
    else if (b.type == 0 && cols <= kernels_.lanes)
      kernels_.half_tile[rows](t);
    else
      kernels_.tile[b.type][rows](t);
    if (last && has_epilogue_) finish_sums(s, first_row_ + row, first_col_ + j * panel, rows, cols);
  }

  // A rest much shorter than a pass is spread over the last two.
  int64_t next_depth(int64_t k0) const {
    const int64_t left = g_.k - k0;
    return left <= kDepth * 5 / 4 ? left : left < 2 * kDepth ? left / 2 : kDepth;
  }

  // How many panels a tile spans: several where it has few rows.
  int64_t wide_panels(int64_t i0, int64_t i1) const {
    const int64_t rows = panel_row(i1) - panel_row(i0);
    return i1 - i0 == 1 && rows <= kMaxWideRows && kernels_.wide_tile[0][rows] ? kWidePanels[rows] : 1;
  }

  const Gemm g_;
  const Plan plan_;
  const TileKernels& kernels_;
  ThreadPool* pool_;
  float* packed_a_;
  float* packed_b_;
  std::byte* sums_;
  const bool sums_in_c_, has_epilogue_;

  // The part that is being worked on.
  int64_t first_row_ = 0, rows_ = 0, first_col_ = 0, cols_ = 0;
  int64_t row_panels_ = 0, col_panels_ = 0;
};

int64_t batch_size(const Gemm& g) {
  int64_t count = 1;
  for (const BatchDim& dim : g.batch) count *= dim.size;
  return count;
}

// Products one by one with all threads at each, or one product per thread? The latter where they come out even, or are
// so many that it does not matter, or so small that a thread does one in the time it takes to share it.
bool products_in_parallel(const Gemm& g, int threads) {
  const int64_t count = batch_size(g);
  if (threads == 1 || count < threads) return false;
  return count % threads == 0 || count >= 4 * threads || 2 * g.m * g.n * g.k < 1'000'000;
}

Gemm product_of_batch(const Gemm& g, int64_t index) {
  Gemm one = g;
  one.batch = {};
  int64_t a = 0, b = 0, c = 0, residual = 0;
  for (size_t axis = g.batch.size(); axis-- > 0;) {
    const BatchDim& dim = g.batch[axis];
    const int64_t i = index % dim.size;
    index /= dim.size;
    a += i * dim.a;
    b += i * dim.b;
    c += i * dim.c;
    residual += i * dim.residual;
  }
  one.a = moved(g.a, a);
  one.c = moved(g.c, c);
  one.epilogue.residual = moved(g.epilogue.residual, residual);
  if (g.packed_b)
    one.packed_b += b;
  else
    one.b = moved(g.b, b);
  return one;
}

}  // namespace

int64_t packed_b_bytes(int64_t k, int64_t n, DType dtype) {
  return round_up(n, tile_kernels().panel()) * k * static_cast<int64_t>(size_of(dtype));
}

void pack_b(const Matrix& b, int64_t k, int64_t n, std::byte* packed, ThreadPool& pool) {
  const int64_t panel = tile_kernels().panel(), bytes = panel * k * static_cast<int64_t>(size_of(b.dtype));
  pool.parallel_for(0, div_up(n, panel), 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      pack_kernels().b_as_is(from(b, 0, j * panel), k, std::min(panel, n - j * panel), panel, packed + j * bytes);
  });
}

int64_t scratch_bytes(const Gemm& g, int threads) {
  const Plan plan = make_plan(g);
  return products_in_parallel(g, threads) ? plan.bytes(1) * threads : plan.bytes(threads);
}

void run(const Gemm& g, ThreadPool& pool, std::byte* scratch) {
  if (g.m == 0 || g.n == 0) return;
  const Plan plan = make_plan(g);
  const int64_t count = batch_size(g);
  if (!products_in_parallel(g, pool.threads())) {
    for (int64_t i = 0; i < count; ++i) Product(product_of_batch(g, i), plan, &pool, scratch).run();
    return;
  }
  pool.parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    std::byte* own = scratch + ThreadPool::this_thread() * plan.bytes(1);
    for (int64_t i = begin; i < end; ++i) Product(product_of_batch(g, i), plan, nullptr, own).run();
  });
}

void run_alone(const Gemm& g, std::byte* scratch) {
  if (g.m == 0 || g.n == 0) return;
  const Plan plan = make_plan(g);
  const int64_t count = batch_size(g);
  for (int64_t i = 0; i < count; ++i) Product(product_of_batch(g, i), plan, nullptr, scratch).run();
}

}  // namespace rlx::cpu::gemm
