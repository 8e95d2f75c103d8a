// Attention without the matrix of all scores. A tile is some query rows of the heads that share a kv head, and its keys
// are taken a block at a time: scores, weights, weighted values, with the running maximum and sum of the online
// softmax.
//
// Two shapes of tile. Many rows: queries lie side by side in vectors (everything transposed, [.][row]), so the softmax
// needs no sums across lanes, and k and v are only ever read element by element, where they lie. Few rows (decode):
// keys and head entries lie side by side, and the keys are also split into chunks, whose partial results are merged.
#include "rlx/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/attention_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/host/kv_pages.h"
#include "core/kv_rows.h"
#include "core/thread_pool.h"
#include "rlx/ops/paged_kv.h"

namespace rlx::cpu {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kRows = 64, kKeys = 96;          // a tile of many rows
constexpr int64_t kFewRows = 8, kChunkKeys = 256;  // a tile of few
constexpr int64_t kMostPositions = 1 << 24;        // positions are compared as floats
static_assert(kKeys % 4 == 0 && kRows % 16 == 0 && kChunkKeys >= kKeys);

// Elements from one batch, head, position to the next.
struct HeadStrides {
  int64_t batch = 0, head = 0, seq = 0;
  int64_t at(int64_t b, int64_t h, int64_t s) const { return b * batch + h * head + s * seq; }
};

struct Problem {
  Problem(const ops::AttentionAttrs& a, std::span<const int64_t> q_sizes, std::span<const int64_t> kv_sizes)
      : attrs(a), heads(a.num_heads), width(a.head_dim) {
    const bool bhsd = a.layout == ops::AttentionLayout::kBhsd;
    batch = q_sizes[0];
    queries = q_sizes[bhsd ? 2 : 1];
    keys = kv_sizes[bhsd ? 2 : 1];
    kv_heads = bhsd ? kv_sizes[1] : a.layout == ops::AttentionLayout::kBshd ? kv_sizes[2] : kv_sizes[2] / width;
    group = heads / kv_heads;
    q = strides(bhsd, heads, queries);
    kv = strides(bhsd, kv_heads, keys);
    padded = round_up(width, 16);
  }
  HeadStrides strides(bool bhsd, int64_t h, int64_t seq) const {
    if (bhsd) return {h * seq * width, seq * width, width};
    return {seq * h * width, width, h * width};
  }

  // Rows that share a kv head: those of its group of heads, head by head.
  int64_t rows() const { return group * queries; }
  bool few_rows() const { return rows() <= kFewRows || queries == 1; }
  // At most, also when the call has fewer queries than planned.
  int64_t most_few_rows() const { return std::min(rows(), std::max(kFewRows, group)); }
  int64_t chunks() const { return std::max<int64_t>(1, div_up(keys, kChunkKeys)); }
  int64_t partial_elems() const { return padded + 16; }  // weighted values, max, sum

  ops::AttentionAttrs attrs;
  int64_t batch, heads, kv_heads, group, queries, keys, width, padded;
  HeadStrides q, kv;
};

// Working memory of one thread. Sizes are those of the larger kind of tile.
struct Buffers {
  static int64_t elems(int64_t padded) {
    return 2 * kRows * padded + 2 * kChunkKeys * padded + 3 * kRows * kKeys + 3 * kRows;
  }
  Buffers(float* memory, int64_t padded)
      : q(memory),
        o(q + kRows * padded),
        k(o + kRows * padded),
        v(k + kChunkKeys * padded),
        s(v + kChunkKeys * padded),
        mask(s + kRows * kKeys),
        mask_rows(mask + kRows * kKeys),
        max(mask_rows + kRows * kKeys),
        sum(max + kRows),
        positions(sum + kRows) {}
  float *q, *o, *k, *v, *s, *mask, *mask_rows, *max, *sum, *positions;
};
static_assert(kFewRows * kChunkKeys <= kRows * kKeys);

class Attention {
 public:
  explicit Attention(const Call& call)
      : call_(call), p_(call.attrs<ops::AttentionAttrs>(), call.input(0).sizes, call.input(1).sizes) {
    set_scores();
    int64_t next = 3;
    if (ops::has_mask_operand(p_.attrs.mask_kind)) set_mask_strides(next++);
    if (next < call.num_inputs()) {
      kv_len_ = call.input_as<int32_t>(next);
      for (int64_t b = 0; b < p_.batch; ++b)
        if (kv_len_[b] < 0 || kv_len_[b] > p_.keys)
          fail(ErrorKind::kRuntime, str("kv_len (", kv_len_[b], ") of batch ", b, " is outside 0 … ", p_.keys, "."));
    }
  }

  // Keys in pages: as many as a sequence's pages hold.
  Attention(const Call& call, const ops::PagedAttentionAttrs& attrs)
      : call_(call),
        p_(attrs.dense(), call.input(0).sizes, paged_sizes(call.input(1).sizes, call.input(3).sizes, attrs.head_dim)),
        pages_(host::KvPageTable(call, 1, 3)),
        q8_(attrs.format == ops::KvFormat::kQ8),
        kv_len_(call.input_as<int32_t>(4)) {
    set_scores();
    for (int64_t b = 0; b < p_.batch; ++b) pages_->check(b, 0, kv_len_[b]);
  }
  static std::array<int64_t, 4> paged_sizes(std::span<const int64_t> pool, std::span<const int64_t> table,
                                            int64_t width) {
    return {table[0], table[1] * pool[1], pool[2], width};
  }

  void run() {
    const int64_t per_thread = Buffers::elems(p_.padded);
    const auto buffers = [&] {
      return Buffers(call_.scratch_as<float>() + ThreadPool::this_thread() * per_thread, p_.padded);
    };
    const int64_t heads = p_.batch * p_.kv_heads;
    if (!p_.few_rows()) {
      const int64_t blocks = div_up(p_.rows(), kRows);
      call_.pool().parallel_for(0, heads * blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const Tile tile = tile_of(t / blocks, t % blocks * kRows, kRows);
          if (!many_rows(tile, buffers(), false)) many_rows(tile, buffers(), true);
        }
      });
      return;
    }
    float* partials = call_.scratch_as<float>() + call_.pool().threads() * per_thread;
    const int64_t blocks = div_up(p_.rows(), kFewRows), chunks = p_.chunks();
    const int64_t elems = p_.partial_elems();
    // The blocks of one chunk follow each other: its keys are in the cache then.
    call_.pool().parallel_for(0, heads * chunks * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t head = t / (chunks * blocks), chunk = t / blocks % chunks, first = t % blocks * kFewRows;
        const Tile tile = tile_of(head, first, kFewRows);
        float* to = partials + ((head * p_.rows() + first) * chunks + chunk) * elems;
        if (!few_rows(tile, buffers(), chunk, to, chunks * elems, false))
          few_rows(tile, buffers(), chunk, to, chunks * elems, true);
      }
    });
    call_.pool().parallel_for(0, heads * p_.rows(), std::max<int64_t>(1, kGrain / (chunks * elems)),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t r = begin; r < end; ++r)
                                  merge(r, partials + r * chunks * elems, buffers());
                              });
  }

 private:
  void set_scores() {
    const ops::AttentionAttrs& a = p_.attrs;
    scale_ = a.score_scale ? *a.score_scale : 1 / std::sqrt(static_cast<float>(p_.width));
    softcap_ = a.attn_logit_softcap ? std::max(0.0f, *a.attn_logit_softcap) : 0.0f;
  }

  // Rows first … first + count - 1 of one batch and kv head, and the keys that any of them sees.
  struct Tile {
    int64_t b, kv_head, first, count;
    int64_t key_begin, key_end;
  };

  int64_t head_of(const Tile& t, int64_t r) const { return t.kv_head * p_.group + (t.first + r) / p_.queries; }
  int64_t query_of(const Tile& t, int64_t r) const { return (t.first + r) % p_.queries; }
  // Of query 0 among the keys: queries are the last positions of the keys in use.
  int64_t offset_of(int64_t b) const {
    return kv_len_ ? kv_len_[b] - p_.queries : std::max<int64_t>(0, p_.keys - p_.queries);
  }
  bool by_position() const {
    return p_.attrs.mask_kind == ops::MaskKind::kCausal || p_.attrs.mask_kind == ops::MaskKind::kSlidingWindow;
  }

  Tile tile_of(int64_t head, int64_t first, int64_t most) const {
    Tile t{head / p_.kv_heads, head % p_.kv_heads, first, std::min(most, p_.rows() - first), 0, p_.keys};
    if (kv_len_) t.key_end = kv_len_[t.b];
    if (!by_position()) return t;
    int64_t low = p_.queries, high = 0;
    for (int64_t r = 0; r < t.count; ++r) {
      low = std::min(low, query_of(t, r));
      high = std::max(high, query_of(t, r));
    }
    t.key_end = std::clamp<int64_t>(high + offset_of(t.b) + 1, 0, t.key_end);
    if (p_.attrs.mask_kind == ops::MaskKind::kSlidingWindow && low + offset_of(t.b) > p_.attrs.window)
      t.key_begin = std::min(t.key_end, low + offset_of(t.b) - p_.attrs.window);
    return t;
  }

  // Keys j … j + n - 1 as f32 rows: where they lie, if they lie densely (few rows also need whole vectors), else a
  // copy.
  const float* rows_of(int64_t operand, const Tile& t, int64_t j, int64_t n, float* copy, bool whole_vectors,
                       int64_t& stride) const {
    const host::View& x = call_.input(operand);
    if (pages_) {
      stride = p_.padded;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t from = pages_->at(t.b, j + i, t.kv_head);
        float* row = copy + i * p_.padded;
        if (q8_)
          decode_q8_row(reinterpret_cast<const uint32_t*>(x.data) + from, p_.width, row);
        else
          to_f32(x.dtype, x.data, from, row, p_.width);
        std::fill(row + p_.width, row + p_.padded, 0.0f);
      }
      return copy;
    }
    const int64_t from = p_.kv.at(t.b, t.kv_head, j);
    if (x.dtype == DType::F32 && (p_.kv.seq == p_.width || whole_vectors) &&
        (!whole_vectors || p_.padded == p_.width)) {
      stride = p_.kv.seq;
      return reinterpret_cast<const float*>(x.data) + from;
    }
    stride = p_.padded;
    if (p_.kv.seq == p_.padded && p_.width == p_.padded) {
      to_f32(x.dtype, x.data, from, copy, n * p_.width);
      return copy;
    }
    for (int64_t i = 0; i < n; ++i) {
      to_f32(x.dtype, x.data, from + i * p_.kv.seq, copy + i * p_.padded, p_.width);
      std::fill(copy + i * p_.padded + p_.width, copy + (i + 1) * p_.padded, 0.0f);
    }
    return copy;
  }

  // The rows of q, scaled, p_.padded apart.
  void read_queries(const Tile& t, float* to) const {
    const host::View& q = call_.input(0);
    for (int64_t r = 0; r < t.count; ++r, to += p_.padded) {
      to_f32(q.dtype, q.data, p_.q.at(t.b, head_of(t, r), query_of(t, r)), to, p_.width);
      for (int64_t i = 0; i < p_.width; ++i) to[i] *= scale_;
      std::fill(to + p_.width, to + p_.padded, 0.0f);
    }
  }

  void set_mask_strides(int64_t operand) {
    const host::View& m = call_.input(operand);
    mask_ = &m;
    int64_t stride = 1, axis = m.rank();
    const auto dim = [&](bool present) -> int64_t {
      if (!present) return 0;
      const int64_t size = m.dim(--axis), own = size == 1 ? 0 : stride;
      stride *= size;
      return own;
    };
    mask_key_ = dim(true);
    mask_at_.seq = dim(m.rank() >= 3);
    mask_at_.head = dim(m.rank() == 4);
    mask_at_.batch = dim(true);
  }

  // Mask values of one query for keys j … j + n - 1: the bias itself, or 0 and -inf. Which of the latter occur?
  struct Seen {
    bool some = false, all = true;
  };
  void mask_row(const Tile& t, int64_t r, int64_t j, int64_t n, float* to, Seen& seen) const {
    if (by_position()) {
      const int64_t p = query_of(t, r) + offset_of(t.b);
      const int64_t last = p, first = p_.attrs.mask_kind == ops::MaskKind::kCausal ? 0 : p - p_.attrs.window;
      for (int64_t i = 0; i < n; ++i) {
        const bool keep = j + i <= last && j + i >= first;
        to[i] = keep ? 0.0f : -kInf;
        seen.some |= keep;
        seen.all &= keep;
      }
      return;
    }
    const int64_t from = mask_at_.at(t.b, head_of(t, r), query_of(t, r)) + j * mask_key_;
    const bool custom = p_.attrs.mask_kind == ops::MaskKind::kCustom;
    const int64_t count = mask_key_ == 0 ? 1 : n;
    if (is_small_float(mask_->dtype)) {
      to_f32(mask_->dtype, mask_->data, from, to, count);
    } else {
      const host::Reader read(mask_->dtype, mask_->data);
      for (int64_t i = 0; i < count; ++i) to[i] = custom ? (read[from + i] >= 0.5) : static_cast<float>(read[from + i]);
    }
    std::fill(to + count, to + n, to[0]);
    const int64_t kept = custom ? threshold_mask(to, n) : n;
    seen.some |= kept > 0;
    seen.all &= custom && kept == n;
  }
  bool mask_is_shared() const { return !by_position() && mask_at_.seq == 0 && mask_at_.head == 0; }
  bool masks() const { return by_position() || mask_ != nullptr; }

  // Is block [j, j + n) seen by every row, whatever the mask's operand?
  bool inside_positions(const Tile& t, int64_t j, int64_t n) const {
    if (!by_position()) return false;
    int64_t low = p_.queries, high = 0;
    for (int64_t r = 0; r < t.count; ++r) {
      low = std::min(low, query_of(t, r));
      high = std::max(high, query_of(t, r));
    }
    const int64_t offset = offset_of(t.b);
    return j + n - 1 <= low + offset &&
           (p_.attrs.mask_kind == ops::MaskKind::kCausal || j >= high + offset - p_.attrs.window);
  }

  // Sets the step's mask for many rows; false when nobody sees any of the keys.
  bool mask_columns(const Tile& t, const Buffers& buffers, int64_t j, int64_t n, SoftmaxStep& step) const {
    step.mask = nullptr;
    if (!masks() || inside_positions(t, j, n)) return true;
    if (by_position()) {
      const bool causal = p_.attrs.mask_kind == ops::MaskKind::kCausal;
      for (int64_t r = 0; r < t.count; ++r)
        buffers.positions[r] = static_cast<float>(query_of(t, r) + offset_of(t.b) - j);
      const float window = causal ? kInf : static_cast<float>(std::min(p_.attrs.window, kMostPositions));
      position_tile(buffers.positions, window, buffers.mask, kRows, n, step.queries);
      step.mask = buffers.mask;
      step.mask_stride = kRows;
      step.mask_shared = step.mask_adds = false;
      return true;
    }
    Seen seen;
    const bool shared = mask_is_shared();
    for (int64_t r = 0; r < (shared ? 1 : t.count); ++r)
      mask_row(t, r, j, n, shared ? buffers.mask : buffers.mask_rows + r * kKeys, seen);
    if (!seen.some) return false;
    if (seen.all) return true;
    if (!shared) transpose_tile(buffers.mask_rows, kKeys, buffers.mask, kRows, round_up(t.count, 4), round_up(n, 4));
    step.mask = buffers.mask;
    step.mask_stride = kRows;
    step.mask_shared = shared;
    step.mask_adds = p_.attrs.mask_kind == ops::MaskKind::kBias;
    return true;
  }

  // False: a value of v that is NaN or infinite reached a row, perhaps from a key of weight 0 that does not count. Then
  // `careful` leaves such keys out one by one.
  bool many_rows(const Tile& t, const Buffers& buffers, bool careful) const {
    const int64_t queries = round_up(t.count, 16), padded = p_.padded;
    read_queries(t, buffers.o);
    std::fill(buffers.o + t.count * padded, buffers.o + queries * padded, 0.0f);
    transpose_tile(buffers.o, padded, buffers.q, kRows, queries, padded);
    std::fill(buffers.o, buffers.o + padded * kRows, 0.0f);
    std::fill(buffers.max, buffers.max + queries, -kInf);
    std::fill(buffers.sum, buffers.sum + queries, 0.0f);
    if (by_position()) std::fill(buffers.positions, buffers.positions + queries, 0.0f);
    if (mask_ != nullptr) std::fill(buffers.mask_rows, buffers.mask_rows + queries * kKeys, 0.0f);
    SoftmaxStep step{.s = buffers.s,
                     .s_stride = kRows,
                     .queries = queries,
                     .softcap = softcap_,
                     .keep_tiny = careful,
                     .max = buffers.max,
                     .sum = buffers.sum,
                     .o = buffers.o,
                     .o_stride = kRows,
                     .width = p_.width};
    for (int64_t j = t.key_begin; j < t.key_end; j += kKeys) {
      const int64_t n = step.keys = std::min(kKeys, t.key_end - j);
      if (!mask_columns(t, buffers, j, n, step)) continue;
      int64_t k_stride, v_stride;
      const float* k = rows_of(1, t, j, n, buffers.k, false, k_stride);
      multiply({k, k_stride, 1, buffers.q, kRows, buffers.s, kRows, n, p_.width, queries, false});
      softmax_columns(step);
      const float* v = rows_of(2, t, j, n, buffers.v, false, v_stride);
      if (!careful) {
        multiply({v, 1, v_stride, buffers.s, kRows, buffers.o, kRows, p_.width, n, queries, true});
        continue;
      }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t x = 0; x < p_.width; ++x)
          for (int64_t r = 0; r < t.count; ++r)
            if (const float w = buffers.s[i * kRows + r]; w != 0) buffers.o[x * kRows + r] += w * v[i * v_stride + x];
    }
    if (!careful && !finite(buffers.o, kRows, p_.width, t.count, buffers.sum)) return false;
    transpose_tile(buffers.o, kRows, buffers.q, padded, padded, round_up(t.count, 4));
    for (int64_t r = 0; r < t.count; ++r)
      write_row(t.b, head_of(t, r), query_of(t, r), buffers.q + r * padded, buffers.max[r], buffers.sum[r]);
    return true;
  }

  // Rows of o whose sum is a number are numbers; rows are the inner dim of o.
  static bool finite(const float* o, int64_t stride, int64_t outer, int64_t inner, const float* sums) {
    float bad[kRows] = {};  // x * 0 is NaN for what is not finite
    for (int64_t x = 0; x < outer; ++x)
      for (int64_t r = 0; r < inner; ++r) bad[r] += o[x * stride + r] * 0;
    for (int64_t r = 0; r < inner; ++r)
      if (std::isnan(bad[r]) && !std::isnan(sums[r])) return false;
    return true;
  }

  bool few_rows(const Tile& t, const Buffers& buffers, int64_t chunk, float* to, int64_t to_stride,
                bool careful) const {
    const int64_t padded = p_.padded;
    const int64_t begin = std::max(t.key_begin, chunk * kChunkKeys),
                  end = std::min(t.key_end, (chunk + 1) * kChunkKeys);
    std::fill(buffers.o, buffers.o + t.count * padded, 0.0f);
    std::fill(buffers.max, buffers.max + t.count, -kInf);
    std::fill(buffers.sum, buffers.sum + t.count, 0.0f);
    if (begin < end) {
      const int64_t n = end - begin;
      read_queries(t, buffers.q);
      SoftmaxStep step{.s = buffers.s,
                       .s_stride = kChunkKeys,
                       .queries = t.count,
                       .keys = n,
                       .softcap = softcap_,
                       .mask_stride = kChunkKeys,
                       .mask_adds = p_.attrs.mask_kind == ops::MaskKind::kBias,
                       .keep_tiny = careful,
                       .max = buffers.max,
                       .sum = buffers.sum,
                       .o = buffers.o,
                       .o_stride = padded,
                       .width = p_.width};
      if (masks() && !inside_positions(t, begin, n)) {
        Seen seen;
        step.mask = buffers.mask;
        step.mask_shared = mask_is_shared();
        for (int64_t r = 0; r < (step.mask_shared ? 1 : t.count); ++r)
          mask_row(t, r, begin, n, buffers.mask + r * kChunkKeys, seen);
      }
      int64_t k_stride, v_stride;
      const float* k = rows_of(1, t, begin, n, buffers.k, true, k_stride);
      dot({buffers.q, padded, k, k_stride, buffers.s, kChunkKeys, t.count, n, p_.width});
      softmax_rows(step);
      const float* v = rows_of(2, t, begin, n, buffers.v, true, v_stride);
      if (!careful) {
        multiply({buffers.s, kChunkKeys, 1, v, v_stride, buffers.o, padded, t.count, n, padded, true});
      } else {
        for (int64_t r = 0; r < t.count; ++r)
          for (int64_t i = 0; i < n; ++i)
            if (const float w = buffers.s[r * kChunkKeys + i]; w != 0)
              for (int64_t x = 0; x < p_.width; ++x) buffers.o[r * padded + x] += w * v[i * v_stride + x];
      }
    }
    for (int64_t r = 0; r < t.count; ++r)
      if (!careful && !std::isnan(buffers.sum[r]) && !finite(buffers.o + r * padded, 1, p_.width, 1, buffers.sum + r))
        return false;
    for (int64_t r = 0; r < t.count; ++r, to += to_stride) {
      std::copy(buffers.o + r * padded, buffers.o + (r + 1) * padded, to);
      to[padded] = buffers.max[r];
      to[padded + 1] = buffers.sum[r];
    }
    return true;
  }

  // The chunks of one row, in their order. `row` counts batch, kv head, row of the kv head.
  void merge(int64_t row, const float* partials, const Buffers& buffers) const {
    const int64_t elems = p_.partial_elems(), padded = p_.padded, head = row / p_.rows();
    const Tile t = tile_of(head, row % p_.rows(), 1);
    float top = -kInf, sum = 0;
    for (int64_t c = 0; c < p_.chunks(); ++c) {
      const float* part = partials + c * elems;
      if (part[padded] > top) top = part[padded];
    }
    std::fill(buffers.o, buffers.o + padded, 0.0f);
    for (int64_t c = 0; c < p_.chunks(); ++c) {
      const float* part = partials + c * elems;
      if (part[padded + 1] == 0) continue;  // no keys; NaN is not 0
      float factor = std::isnan(part[padded + 1]) ? part[padded + 1] : std::exp(part[padded] - top);
      sum += factor * part[padded + 1];
      if (factor == 0) {  // values that are not finite count, however small their weight
        if (finite(part, 1, p_.width, 1, &factor)) continue;
        factor = std::numeric_limits<float>::min();
      }
      for (int64_t x = 0; x < p_.width; ++x) buffers.o[x] += factor * part[x];
    }
    write_row(t.b, head_of(t, 0), query_of(t, 0), buffers.o, top, sum);
  }
  void write_row(int64_t b, int64_t h, int64_t i, float* o, float max, float sum) const {
    if (call_.wants(1)) {
      auto* lse = call_.output_as<float>(1);
      lse[(b * p_.heads + h) * p_.queries + i] = sum == 0 ? -kInf : max + std::log(sum);
    }
    if (!call_.wants(0)) return;
    const float scale = sum == 0 ? 0.0f : 1 / sum;
    for (int64_t x = 0; x < p_.width; ++x) o[x] *= scale;
    const host::View& y = call_.output(0);
    from_f32(y.dtype, o, y.data, p_.q.at(b, h, i), p_.width);
  }

  const Call& call_;
  Problem p_;
  float scale_, softcap_;
  std::optional<host::KvPageTable> pages_;
  bool q8_ = false;  // rows in pages are quantised
  const int32_t* kv_len_ = nullptr;
  const host::View* mask_ = nullptr;
  HeadStrides mask_at_;
  int64_t mask_key_ = 0;
};

}  // namespace

bool attention_supports(const Signature& s) {
  const int64_t axis = s.attrs.as<ops::AttentionAttrs>().layout == ops::AttentionLayout::kBhsd ? 2 : 1;
  const Dim &queries = s.input(0).dim(axis), &keys = s.input(1).dim(axis);
  const auto fits = [](const Dim& n) { return !n.is_static() || n.value() <= kMostPositions; };
  return is_small_float(s.input(0).dtype) && fits(queries) && fits(keys);
}

static int64_t scratch_of(const Problem& p, int threads) {
  const int64_t partials = p.batch * p.kv_heads * p.most_few_rows() * p.chunks() * p.partial_elems();
  return (threads * Buffers::elems(p.padded) + partials) * static_cast<int64_t>(sizeof(float));
}

int64_t attention_scratch(const Signature& s, int threads) {
  const std::vector<int64_t> q = s.input(0).shape.sizes(), kv = s.input(1).shape.sizes();
  return scratch_of({s.attrs.as<ops::AttentionAttrs>(), q, kv}, threads);
}

void attention(const Call& call) { Attention(call).run(); }

bool paged_attention_supports(const Signature& s) {
  const Dim &pages = s.input(3).dim(1), &tokens = s.input(1).dim(1);
  const bool fits =
      !pages.is_static() || !tokens.is_static() || checked_mul(pages.value(), tokens.value()) <= kMostPositions;
  return is_small_float(s.input(0).dtype) && s.input(1).dtype != DType::F64 && fits;
}

int64_t paged_attention_scratch(const Signature& s, int threads) {
  const auto& attrs = s.attrs.as<ops::PagedAttentionAttrs>();
  const std::vector<int64_t> q = s.input(0).shape.sizes(), pool = s.input(1).shape.sizes();
  return scratch_of({attrs.dense(), q, Attention::paged_sizes(pool, s.input(3).shape.sizes(), attrs.head_dim)},
                    threads);
}

void paged_attention(const Call& call) { Attention(call, call.attrs<ops::PagedAttentionAttrs>()).run(); }

}  // namespace rlx::cpu
