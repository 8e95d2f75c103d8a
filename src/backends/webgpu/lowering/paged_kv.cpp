// A KV cache in pages: attention's kernels read keys through the table, new rows are scattered into their pages.
#include "rlx/ops/paged_kv.h"

#include <array>
#include <cmath>

#include "backends/webgpu/lowering/attention.h"
#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "wgsl/paged_token.h"

namespace rlx::webgpu {

// The host's kernels write zeros for what has no pages.
bool paged_attention_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  return !s.input(3).dim(1).is(0);
}

void lower_paged_attention(LowerCall& call) {
  check_pages(call,
              {.pool = 1, .table = 3, .lengths = 4, .up_to_length = true, .cuts_batch = call.bucket_axis(4) == 0});
  emit_attention(call, AttentionProblem::paged(call), call.write(0), std::nullopt);
}

void lower_paged_kv_append(LowerCall& call) {
  const TensorType &pool_type = call.input_type(0), &row_type = call.input_type(1), &table_type = call.input_type(2);
  const auto size = [](const TensorType& t, int64_t axis) { return t.dim(axis).value(); };
  const Operand pool = call.read(0), y = call.write(0);
  emit_copy(call, pool, y, pool_type.shape.num_elements());
  const bool cut_batch = call.bucket_axis(1) == 0;  // else the rows that are appended
  check_pages(call, {.pool = 0, .table = 2, .lengths = 3, .rows = size(row_type, 1), .cuts_batch = cut_batch});
  const int64_t tokens = size(row_type, 0) * size(row_type, 1), heads = size(row_type, 2), width = size(row_type, 3);
  if (tokens * heads * width == 0 || size(table_type, 1) == 0) return;
  const Operand rows = call.read(1), table = call.read(2), len = call.read(3);
  to_u32(pool_type.shape.num_elements());
  const auto emit = [&](KernelKey key, int64_t row, int64_t per_group) {
    using P = wgsl::paged_token::Params;
    const P params{.n = to_u32(checked_mul(tokens, row)),
                   .used = to_u32(size(row_type, 1)),
                   .count = to_u32(size(row_type, 1)),
                   .row = to_u32(row),
                   .columns = to_u32(size(table_type, 1)),
                   .pool_pages = to_u32(size(pool_type, 0)),
                   .page_tokens = to_u32(size(pool_type, 1)),
                   .width = to_u32(width)};
    call.emit({.kernel = std::move(key),
               .operands = {rows, table, len, y},
               .params = {params, {cut_batch ? &P::n : &P::used}},
               .grid = {.x = {.items = params.n, .per_group = per_group, .active = cut_batch}},
               .extent_safe = (cut_batch || call.bucket_axis(1) == 1) && call.bucket_axis(0) < 0,
               .own_bound = true},
              "paged_kv_append");
  };
  const std::string type(call.element(rows));
  if (call.attrs<ops::PagedKvAppendAttrs>().format == ops::KvFormat::kQ8) {
    emit({"paged_append_q8", {{"T", type}}}, heads * ((width + 63) / 64), 64);
    return;
  }
  const std::string to(call.element(y));
  const bool vectors = heads * width % 4 == 0 && call.starts_at_multiple_of(rows, type == "f16" ? 8 : 16) &&
                       call.starts_at_multiple_of(y, to == "f16" ? 8 : 16) && !call.same_root(rows, y);
  const auto unit = [&](const std::string& t) { return vectors ? str("vec4<", t, ">") : t; };
  emit({"paged_append", {{"T", unit(type)}, {"P", unit(to)}}}, heads * width / (vectors ? 4 : 1), 256);
}

}  // namespace rlx::webgpu
