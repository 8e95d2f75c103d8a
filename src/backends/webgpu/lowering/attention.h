// What the lowerings of attention and of its gradient share.
#pragma once

#include <vector>

#include "backends/webgpu/lower.h"
#include "rlx/ops/attention.h"
#include "wgsl/attention_params.h"

namespace rlx::webgpu {

// An attention problem as its kernels see it.
struct AttentionProblem {
  // Operands q, k, v at 0, 1, 2, the mask (if the kind has one) at `next`, then kv_len if `has_kv_len`. `strided`: q, k
  // and v may be read where a packed projection left them.
  AttentionProblem(LowerCall& call, int64_t next, bool has_kv_len, bool strided = false);
  static AttentionProblem paged(LowerCall& call);  // of ops::paged_attention

  int64_t rows() const;     // queries of the heads that read one kv head
  int64_t queries() const;  // of all heads and batches
  // May everything be read as vectors of four? `more`: operands of q's shape.
  bool reads_vectors(const LowerCall& call, std::initializer_list<Operand> more = {}) const;
  // As a kernel's, with the counts that the active extent cuts.
  Params with_extent(const wgsl::attention_params::Params& own) const;
  // Aliases and overrides of attention_common.wgsl.
  KernelKey kernel(std::string name, bool vectors) const;

  wgsl::attention_params::Params params;
  Operand q, k, v, mask, lengths;  // mask, lengths: a word that nobody reads where there is none
  std::string type, key_type;      // of q, and of k and v, in WGSL
  std::string mask_type;
  // Of the active extent: which counts it cuts, and whether it may.
  std::vector<uint32_t> active;
  bool extent_safe = true;
  uint32_t mask_use = 0;  // MASK of attention_common.wgsl
  bool in_pages = false;  // k and v are pools, and `mask` is the table of pages
  bool is_q8 = false;     // their rows are quantised

 private:
  AttentionProblem() = default;
  void set_scores(const ops::AttentionAttrs& attrs);
  void set_active(LowerCall& call, int64_t seq_axis, bool keys_too);
};

// How a kernel's workgroup splits its tile (attention.wgsl).
struct AttentionTile {
  uint32_t rows;             // BR
  uint32_t threads_across;   // TX
  uint32_t rows_per_thread;  // RM
  uint32_t vectors;          // OV: of four columns per thread
  uint32_t depth = 8;        // DV

  uint32_t keys() const { return 4 * threads_across; }
  int64_t columns() const { return int64_t{4} * threads_across * vectors; }
  uint32_t tile_vectors() const { return (rows + keys()) * (depth + 1); }
  // Rows of `columns()` that fit the tile's memory, a power of two.
  uint32_t staged(uint32_t most) const;
  void add_to(KernelKey& key) const;  // as overrides
  // Vectors of a thread that cover a head of `width`, `most` at most; a power of two.
  static uint32_t vectors_for(uint32_t width, uint32_t across, uint32_t most);
  // Does a block of 64 rows by 64 keys fit a workgroup, and how deep?
  static bool has_room(const Limits& limits);
  static uint32_t depth_for(const Limits& limits);
};

int64_t ceil_div(int64_t n, int64_t by);

// y and lse of `problem` into the operands; those without a value are not computed. y may be of another type than q.
void emit_attention(LowerCall& call, const AttentionProblem& problem, std::optional<Operand> y,
                    std::optional<Operand> lse);

}  // namespace rlx::webgpu
