// lstm, gru and rnn: the input products of many steps as one matrix product, then per step one product with the packed
// hidden weights and the gates.
#include "ops/recurrent.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/recurrent_gates.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kF32 = sizeof(float);
constexpr int64_t kProducts = 16 << 20;  // bytes of input products at a time

// The hidden weights of a cell: one matrix [hidden, rows], or where the reset comes before the hidden product of n, the
// gates r and z and the gate n apart.
bool apart(const ops::Recurrent& r) { return r.cell == ops::Cell::kGru && !r.reset_after; }
int64_t cell_bytes(const ops::Recurrent& r, DType dtype) {
  if (!apart(r)) return round_up(gemm::packed_b_bytes(r.hidden, r.rows(), dtype), 64);
  return round_up(gemm::packed_b_bytes(r.hidden, 2 * r.hidden, dtype), 64) +
         round_up(gemm::packed_b_bytes(r.hidden, r.hidden, dtype), 64);
}
void pack_cells(const ops::Recurrent& r, const host::View& w, std::byte* packed, ThreadPool& pool) {
  const auto size = static_cast<int64_t>(size_of(w.dtype));
  for (int64_t i = 0; i < r.cells(); ++i, packed += cell_bytes(r, w.dtype)) {
    const gemm::Matrix m = {w.data + i * r.rows() * r.hidden * size, w.dtype, 1, r.hidden};
    if (!apart(r)) {
      gemm::pack_b(m, r.hidden, r.rows(), packed, pool);
      continue;
    }
    gemm::Matrix last = m;
    last.data = w.data + (i * r.rows() + 2 * r.hidden) * r.hidden * size;
    gemm::pack_b(m, r.hidden, 2 * r.hidden, packed, pool);
    gemm::pack_b(last, r.hidden, r.hidden, packed + round_up(gemm::packed_b_bytes(r.hidden, 2 * r.hidden, w.dtype), 64),
                 pool);
  }
}

// One run over a batch: what is where in the scratch memory.
class Run {
 public:
  Run(const ops::Recurrent& r, DType dtype, std::span<const int64_t> x, bool packed, int threads)
      : r_(r), dtype_(dtype), batch_(x[0]), seq_(x[1]), in_(x[2]) {
    wide_ = r.directions() * r.hidden;
    chunk_ =
        std::clamp<int64_t>(kProducts / std::max<int64_t>(1, batch_ * r.rows() * kF32), 1, std::max<int64_t>(seq_, 1));
    const auto take = [&](int64_t bytes) { return std::exchange(bytes_, bytes_ + round_up(bytes, 64)); };
    weights_ = packed ? -1 : take(r.cells() * cell_bytes(r, dtype));
    products_ = take(batch_ * chunk_ * r.rows() * kF32);
    sums_ = take(batch_ * r.rows() * kF32);
    h_ = take(batch_ * r.hidden * kF32);
    c_ = take(batch_ * r.hidden * kF32);
    reset_ = take(batch_ * r.hidden * kF32);
    fresh_ = take(batch_ * r.hidden * kF32);
    bias_ = take(3 * r.rows() * kF32);
    peephole_ = take(3 * r.hidden * kF32);
    // Results of a layer: the last one's are y itself where that is f32.
    for (int64_t& layer : layers_) layer = take(batch_ * seq_ * wide_ * kF32);
    work_ = bytes_;
    int64_t most = gemm::scratch_bytes(hidden_product(nullptr), threads);
    if (apart(r)) most = std::max(most, gemm::scratch_bytes(fresh_product(nullptr), threads));
    for (int64_t i = 0; i < r.cells(); ++i) {
      gemm::BatchDim dim;
      const int64_t width = r.width(i / r.directions(), in_);
      gemm::Gemm g = input_product(nullptr, i < r.directions() ? dtype : DType::F32, width, nullptr, chunk_, dim);
      g.batch = {&dim, 1};
      most = std::max(most, gemm::scratch_bytes(g, threads));
      const int64_t rest = seq_ % chunk_;
      if (rest == 0) continue;
      g = input_product(nullptr, i < r.directions() ? dtype : DType::F32, width, nullptr, rest, dim);
      g.batch = {&dim, 1};
      most = std::max(most, gemm::scratch_bytes(g, threads));
    }
    bytes_ += most;
  }

  int64_t bytes() const { return bytes_; }

  void run(const Call& call, const std::byte* packed) {
    scratch_ = call.scratch();
    if (!packed) {
      pack_cells(r_, call.input(2), scratch_ + weights_, call.pool());
      packed = scratch_ + weights_;
    }
    const bool direct = call.wants(0) && dtype_ == DType::F32;
    const std::byte* from = call.input(0).data;
    DType from_dtype = dtype_;
    float* to = nullptr;
    for (int64_t layer = 0; layer < r_.layers; ++layer) {
      to = direct && layer + 1 == r_.layers ? call.output_as<float>(0) : floats(layers_[layer % 2]);
      for (int64_t d = 0; d < r_.directions(); ++d) {
        const int64_t index = layer * r_.directions() + d;
        run_cell(call, index, from, from_dtype, packed + index * cell_bytes(r_, dtype_), to + d * r_.hidden);
      }
      from = reinterpret_cast<const std::byte*>(to);
      from_dtype = DType::F32;
    }
    if (!direct && call.wants(0)) from_f32(dtype_, to, call.output(0).data, 0, batch_ * seq_ * wide_);
  }

 private:
  float* floats(int64_t offset) const { return reinterpret_cast<float*>(scratch_ + offset); }

  // `steps` steps of every sequence of x [batch, seq, width]. The weight is read as it lies: [rows, width].
  gemm::Gemm input_product(const std::byte* x, DType x_dtype, int64_t width, const std::byte* w, int64_t steps,
                           gemm::BatchDim& dim) const {
    dim = {.size = batch_, .a = seq_ * width, .b = 0, .c = steps * r_.rows()};
    gemm::Gemm g = {.m = steps, .n = r_.rows(), .k = width};
    g.a = {x, x_dtype, width, 1};
    g.b = {w, dtype_, 1, width};
    g.c = {scratch_ ? floats(products_) : nullptr, DType::F32, r_.rows(), 1};
    g.epilogue.bias = {floats_or_null(bias_), DType::F32, 0, 1};
    return g;
  }
  // All gates; those of lstm and rnn with the input products of the step added.
  gemm::Gemm hidden_product(const std::byte* packed) const {
    static constexpr std::byte kSome = {};
    gemm::Gemm g = {.m = batch_, .n = apart(r_) ? 2 * r_.hidden : r_.rows(), .k = r_.hidden};
    g.a = {floats_or_null(h_), DType::F32, r_.hidden, 1};
    g.b = {nullptr, dtype_, 1, r_.hidden};
    g.packed_b = packed ? packed : &kSome;
    g.c = {floats_or_null(sums_), DType::F32, r_.rows(), 1};
    return g;
  }
  // The gate n of a gru that resets first.
  gemm::Gemm fresh_product(const std::byte* packed) const {
    gemm::Gemm g = hidden_product(packed);
    g.n = r_.hidden;
    g.a.data = floats_or_null(reset_);
    g.c = {floats_or_null(fresh_), DType::F32, r_.hidden, 1};
    return g;
  }
  float* floats_or_null(int64_t offset) const { return scratch_ ? floats(offset) : nullptr; }

  void run_cell(const Call& call, int64_t index, const std::byte* x, DType x_dtype, const std::byte* packed, float* y) {
    const int64_t n = r_.hidden, rows = r_.rows(), width = r_.width(index / r_.directions(), in_);
    const auto size = static_cast<int64_t>(size_of(dtype_));
    load_biases(call, index);
    if (r_.peephole) {
      const host::View& p = call.input(r_.peephole_operand());
      to_f32(p.dtype, p.data, index * 3 * n, floats(peephole_), 3 * n);
    }
    for (int64_t s = 0; s < r_.states(); ++s) {
      float* state = floats(s == 0 ? h_ : c_);
      if (r_.carry)
        to_f32(dtype_, call.input(r_.state_operand() + s).data, index * batch_ * n, state, batch_ * n);
      else
        std::fill(state, state + batch_ * n, 0.0f);
    }
    const bool backwards = r_.backwards(index);
    const std::byte* w = call.input(1).data + r_.input_weights(index, in_) * size;
    for (int64_t done = 0; done < seq_; done += chunk_) {
      const int64_t steps = std::min(chunk_, seq_ - done), first = backwards ? seq_ - done - steps : done;
      gemm::BatchDim dim;
      gemm::Gemm g =
          input_product(x + first * width * static_cast<int64_t>(size_of(x_dtype)), x_dtype, width, w, steps, dim);
      g.batch = {&dim, 1};
      gemm::run(g, call.pool(), scratch_ + work_);
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = backwards ? steps - 1 - i : i;
        step(call.pool(), packed, floats(products_) + t * rows, steps * rows, y + (first + t) * wide_);
      }
    }
    for (int64_t s = 0; s < r_.states(); ++s)
      if (call.wants(1 + s))
        from_f32(dtype_, floats(s == 0 ? h_ : c_), call.output(1 + s).data, index * batch_ * n, batch_ * n);
  }

  // The input product's bias; the hidden product's joins it but for gru, which scales the hidden part alone.
  void load_biases(const Call& call, int64_t index) const {
    const int64_t rows = r_.rows();
    float *input = floats(bias_), *hidden = input + rows;
    std::fill(input, input + 2 * rows, 0.0f);
    if (!r_.bias) return;
    const host::View& b = call.input(r_.bias_operand());
    to_f32(b.dtype, b.data, index * 2 * rows, input, 2 * rows);
    if (r_.cell == ops::Cell::kGru) return;
    for (int64_t i = 0; i < rows; ++i) input[i] += hidden[i];
  }

  // x: the step's input products of the first sequence, x_row from one sequence to the next; y likewise.
  void step(ThreadPool& pool, const std::byte* packed, const float* x, int64_t x_row, float* y) const {
    const int64_t n = r_.hidden, rows = r_.rows();
    const bool gru = r_.cell == ops::Cell::kGru;
    const float* hidden_bias = floats(bias_) + rows;
    gemm::Gemm g = hidden_product(packed);
    if (gru)
      g.epilogue.bias = {hidden_bias, DType::F32, 0, 1};
    else
      g.epilogue.residual = {x, DType::F32, x_row, 1};
    gemm::run(g, pool, scratch_ + work_);
    float *sums = floats(sums_), *h = floats(h_), *c = floats(c_), *reset = floats(reset_), *fresh = floats(fresh_);
    const auto for_rows = [&](const auto& f) {
      pool.parallel_for(0, batch_, std::max<int64_t>(1, kGrain / 16 / n), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) f(b);
      });
    };
    if (apart(r_)) {
      for_rows([&](int64_t b) { gru_reset(x + b * x_row, sums + b * rows, h + b * n, n, reset + b * n); });
      gemm::Gemm last = fresh_product(packed + round_up(gemm::packed_b_bytes(n, 2 * n, dtype_), 64));
      last.epilogue.bias = {hidden_bias + 2 * n, DType::F32, 0, 1};
      last.epilogue.residual = {x + 2 * n, DType::F32, x_row, 1};
      gemm::run(last, pool, scratch_ + work_);
    }
    for_rows([&](int64_t b) {
      float* row = h + b * n;
      if (apart(r_))
        gru_blend(x + b * x_row + n, sums + b * rows + n, fresh + b * n, n, row);
      else if (gru)
        gru_gates(x + b * x_row, sums + b * rows, n, row);
      else if (r_.cell == ops::Cell::kLstm)
        lstm_gates(sums + b * rows, r_.peephole ? floats(peephole_) : nullptr, n, c + b * n, row);
      else
        rnn_gates(sums + b * rows, r_.relu, n, row);
      std::memcpy(y + b * seq_ * wide_, row, static_cast<size_t>(n) * sizeof(float));
    });
  }

  const ops::Recurrent r_;
  const DType dtype_;
  const int64_t batch_, seq_, in_;
  int64_t wide_, chunk_;
  std::byte* scratch_ = nullptr;
  // Offsets into the scratch memory.
  int64_t bytes_ = 0, weights_, products_, sums_, h_, c_, reset_, fresh_, bias_, peephole_, layers_[2], work_;
};

template <class A, bool kPacked>
int64_t scratch_of(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes();
  return Run(ops::recurrent_of(s.attrs.as<A>()), s.input(0).dtype, x, kPacked, threads).bytes();
}

template <class A, bool kPacked>
void run_of(const Call& call) {
  const host::View& x = call.input(0);
  Run(ops::recurrent_of(call.attrs<A>()), x.dtype, x.sizes, kPacked, call.pool().threads())
      .run(call, kPacked ? call.input(2).data : nullptr);
}

// All cells, one after the other, in the layout of the matrix product.
template <class A>
constexpr host::Packing packing_of() {
  return {.operand = 2,
          .bytes =
              [](const Signature& s) {
                const ops::Recurrent r = ops::recurrent_of(s.attrs.as<A>());
                return r.cells() * cell_bytes(r, s.input(0).dtype);
              },
          .pack =
              [](const Call& call) {
                pack_cells(ops::recurrent_of(call.attrs<A>()), call.input(0), call.output(0).data, call.pool());
              }};
}

}  // namespace

bool recurrent_supports(const Signature& s) { return is_small_float(s.input(0).dtype); }
bool recurrent_packed_supports(const Signature& s) { return recurrent_supports(s) && s.is_static(2); }

const host::Packing lstm_packing = packing_of<ops::LstmAttrs>();
const host::Packing gru_packing = packing_of<ops::GruAttrs>();
const host::Packing rnn_packing = packing_of<ops::RnnAttrs>();

int64_t lstm_packed_scratch(const Signature& s, int threads) { return scratch_of<ops::LstmAttrs, true>(s, threads); }
int64_t lstm_scratch(const Signature& s, int threads) { return scratch_of<ops::LstmAttrs, false>(s, threads); }
void lstm_packed(const Call& call) { run_of<ops::LstmAttrs, true>(call); }
void lstm(const Call& call) { run_of<ops::LstmAttrs, false>(call); }

int64_t gru_packed_scratch(const Signature& s, int threads) { return scratch_of<ops::GruAttrs, true>(s, threads); }
int64_t gru_scratch(const Signature& s, int threads) { return scratch_of<ops::GruAttrs, false>(s, threads); }
void gru_packed(const Call& call) { run_of<ops::GruAttrs, true>(call); }
void gru(const Call& call) { run_of<ops::GruAttrs, false>(call); }

int64_t rnn_packed_scratch(const Signature& s, int threads) { return scratch_of<ops::RnnAttrs, true>(s, threads); }
int64_t rnn_scratch(const Signature& s, int threads) { return scratch_of<ops::RnnAttrs, false>(s, threads); }
void rnn_packed(const Call& call) { run_of<ops::RnnAttrs, true>(call); }
void rnn(const Call& call) { run_of<ops::RnnAttrs, false>(call); }

}  // namespace rlx::cpu
