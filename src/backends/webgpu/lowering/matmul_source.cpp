// The kernel that computes a float product by tiles, written out: loops over sums in an array, and conditions and
// products of indices inside the loop along k, cost half of the speed on NVIDIA's GPUs.
#include "backends/webgpu/lowering/matmul_table.h"
#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

constexpr std::string_view kHead = R"(
// @include "matmul_params.wgsl"
// @include "matmul_lhs.wgsl"
// @include "matmul_rhs.wgsl"
// @include "matmul_epilogue.wgsl"
// @include "matmul_store.wgsl"
// @include "matmul_batch.wgsl"
@group(0) @binding(10) var<uniform>            p: Params;

// Where a thread's results go: its first row, the rows there are, the matrix, its first column.
struct Place {
  row: u32,
  rows: u32,
  result: u32,
  col: u32,
  known: bool,   // else rhs counts as zeros
}
fn put4(place: Place, row: u32, col: u32, sum: vec4f) {
  store4(place.result, row, col, epilogue(select(vec4f(), sum, place.known), col));
}
)";

// Tiles of rows are the grid's x (and y, where it wraps), batch and all; z are tiles of columns and parts of k. 32
// threads are 8 across and 4 down: they read few different vectors.
constexpr std::string_view kMain = R"(
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tile = tile_of(group, groups);
  if (!is_in_grid(tile)) { return; }
  if (!is_there(tile.rows % p.tiles_m, lane)) { return; }
  let at = matrices_of(tile.rows / p.tiles_m, tile.rows % p.tiles_m, TM);
  let col = tile.columns % p.tiles_n * TN;
  let part = tile.columns / p.tiles_n;
  let k_first = part * p.chunk;
  let k_end = min(p.k, k_first + p.chunk);
  let tx = lane % 8u + lane / 32u % (TX / 8u) * 8u;
  let ty = lane / 8u % 4u + lane / 32u / (TX / 8u) * 4u;
)";

constexpr char kComponents[] = "xyzw";

class Writer {
 public:
  Writer(const MatmulVariant& v, bool in_parts)
      : v_(v),
        in_parts_(in_parts),
        across_(v.tn / v.rn),
        down_(v.tm / v.rm),
        threads_(across_ * down_),
        quads_(v.tk / 4) {
    loads_a_ = v.tm * quads_ / threads_;
    loads_b_ = v.tk * (v.tn / 4) / threads_;
    RLX_ASSERT(across_ % 8 == 0 && down_ % 4 == 0 && v.rm % 4 == 0 && v.rn % 4 == 0);
    RLX_ASSERT(loads_a_ * threads_ == v.tm * quads_ && loads_b_ * threads_ * 4 == v.tk * v.tn);
  }

  std::string text() {
    for (const auto& [name, value] : {std::pair{"TM", v_.tm}, {"TN", v_.tn}, {"TK", v_.tk}, {"TX", across_}})
      add("const ", name, ": u32 = ", value, "u;\n");
    add(kHead, "var<workgroup> tile_a: array<vec4f, ", v_.tk * v_.tm / 4, ">;\n",
        "var<workgroup> tile_b: array<vec4f, ", v_.tk * v_.tn / 4, ">;\n", "@compute @workgroup_size(", threads_, ")",
        kMain);
    places();
    for (uint32_t i = 0; i < v_.rm; ++i)
      for (uint32_t j = 0; j < v_.rn / 4; ++j) {
        add("  var s", i, "_", j, " = vec4f();\n");
        if (in_parts_) add("  var t", i, "_", j, " = vec4f();\n");
      }
    for (uint32_t u = 0; u < loads_a_; ++u) add("  var a", u, ": vec4f;\n");
    for (uint32_t u = 0; u < loads_b_; ++u) add("  var b", u, ": vec4f;\n");
    add("  var k0 = k_first;\n");
    load("k0");
    store("  ");
    // The next tile is loaded while the current one is multiplied.
    add("  workgroupBarrier();\n  for (; k0 < k_end; k0 += TK) {\n    let next = k0 + TK;\n");
    load("next");
    for (uint32_t k = 0; k < v_.tk; ++k) multiply(k);
    if (in_parts_) {
      add("    if ((k0 - k_first) % ", kMatmulPart, "u == ", kMatmulPart - v_.tk, "u) {\n");
      each_sum("      ", true);
      add("    }\n");
    }
    add("    workgroupBarrier();\n    if (next < k_end) {\n");
    store("      ");
    add("    }\n    workgroupBarrier();\n  }\n");
    if (in_parts_) each_sum("  ", false);
    results();
    add("}\n");
    return std::move(text_);
  }

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += str(parts...);
  }

  // Where a thread's loads start, and where they go. Rows that are not there are read as the last one: their results
  // are not stored. lhs lies transposed in workgroup memory, blocks of four rows moved about, so that a subgroup's
  // stores hit different banks.
  void places() {
    for (uint32_t u = 0; u < loads_a_; ++u) {
      add("  let a_k", u, " = (lane + ", u * threads_, "u) % ", quads_, "u;\n");
      add("  let a_m", u, " = (lane + ", u * threads_, "u) / ", quads_, "u;\n");
      add("  let a_row", u, " = at.lhs + row_of(min(at.first + a_m", u, ", at.rows - 1u)) * p.k;\n");
      add("  let a_to", u, " = a_k", u, " * TM + ((a_m", u, " / 4u) ^ (a_k", u, " * 2u % (TM / 4u)));\n");
    }
    for (uint32_t u = 0; u < loads_b_; ++u) {
      add("  let b_k", u, " = (lane + ", u * threads_, "u) / (TN / 4u);\n");
      add("  let b_col", u, " = col + (lane + ", u * threads_, "u) % (TN / 4u) * 4u;\n");
    }
  }

  // A whole tile needs no conditions; at the end of k what is not there is zero.
  void load(std::string_view k) {
    add("  if (", k, " + TK <= k_end) {\n    let down = at.rhs + ", k, " * p.n;\n");
    for (uint32_t u = 0; u < loads_a_; ++u) add("    a", u, " = lhs_in(a_row", u, " + ", k, " + a_k", u, " * 4u);\n");
    for (uint32_t u = 0; u < loads_b_; ++u) add("    b", u, " = rhs_in(down + b_k", u, " * p.n, b_col", u, ");\n");
    add("  } else if (", k, " < k_end) {\n");
    for (uint32_t u = 0; u < loads_a_; ++u)
      add("    a", u, " = lhs4(a_row", u, ", ", k, " + a_k", u, " * 4u, k_end);\n");
    for (uint32_t u = 0; u < loads_b_; ++u)
      add("    b", u, " = rhs4(at.rhs + (", k, " + b_k", u, ") * p.n, b_col", u, ", select(0u, p.n, ", k, " + b_k", u,
          " < k_end));\n");
    add("  }\n");
  }

  void store(std::string_view indent) {
    for (uint32_t u = 0; u < loads_a_; ++u)
      for (uint32_t i = 0; i < 4; ++i)
        add(indent, "tile_a[a_to", u, " + ", i * v_.tm / 4, "u][a_m", u, " % 4u] = a", u, ".", kComponents[i], ";\n");
    for (uint32_t u = 0; u < loads_b_; ++u) add(indent, "tile_b[lane + ", u * threads_, "u] = b", u, ";\n");
  }

  void multiply(uint32_t k) {
    add("    {\n");
    for (uint32_t i = 0; i < v_.rm / 4; ++i)
      add("      let x", i, " = tile_a[", k * v_.tm / 4, "u + ((ty + ", i * down_, "u) ^ ", k / 4 * 2 % (v_.tm / 4),
          "u)];\n");
    for (uint32_t j = 0; j < v_.rn / 4; ++j)
      add("      let y", j, " = tile_b[", k * v_.tn / 4, "u + tx + ", j * across_, "u];\n");
    for (uint32_t i = 0; i < v_.rm; ++i)
      for (uint32_t j = 0; j < v_.rn / 4; ++j)
        add("      s", i, "_", j, " = fma(vec4f(x", i / 4, ".", kComponents[i % 4], "), y", j, ", s", i, "_", j,
            ");\n");
    add("    }\n");
  }

  // To the sums of whole parts goes the current one, which begins anew; at the end they go to it.
  void each_sum(std::string_view indent, bool part_ends) {
    for (uint32_t i = 0; i < v_.rm; ++i)
      for (uint32_t j = 0; j < v_.rn / 4; ++j) {
        const std::string s = str("s", i, "_", j), t = str("t", i, "_", j);
        if (part_ends)
          add(indent, t, " += ", s, ";\n", indent, s, " = vec4f();\n");
        else
          add(indent, s, " += ", t, ";\n");
      }
  }

  // A thread's rows are blocks of four that lie `down_` blocks apart; so are its columns.
  void results() {
    add("  let place = Place(at.first + ty * 4u, at.rows, at.result + part * p.part, col + tx * 4u, at.cols != 0u);\n");
    for (uint32_t i = 0; i < v_.rm; ++i) {
      const uint32_t row = i / 4 * down_ * 4 + i % 4;
      add("  if (place.row + ", row, "u < place.rows) {\n    let row = row_of(place.row + ", row, "u);\n");
      for (uint32_t j = 0; j < v_.rn / 4; ++j)
        add("    put4(place, row, place.col + ", j * across_ * 4, "u, s", i, "_", j, ");\n");
      add("  }\n");
    }
  }

  const MatmulVariant& v_;
  bool in_parts_;
  uint32_t across_, down_, threads_;  // threads of a workgroup
  uint32_t quads_;                    // vectors along k in a row of lhs
  uint32_t loads_a_ = 0, loads_b_ = 0;
  std::string text_;
};

}  // namespace

std::string matmul_tile_source(const MatmulVariant& variant, bool in_parts) { return Writer(variant, in_parts).text(); }

}  // namespace rlx::webgpu
