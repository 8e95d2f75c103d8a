#include "backends/webgpu/lowering/movement.h"

#include <algorithm>
#include <array>

#include "wgsl/zeros.h"

namespace rlx::webgpu {

std::vector<int64_t> row_major_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t k = sizes.size(); k-- > 0; stride *= sizes[k]) strides[k] = stride;
  return strides;
}

Movement merge_axes(Movement m) {
  Movement out{.from_first = m.from_first, .to_first = m.to_first};
  for (size_t k = 0; k < m.sizes.size(); ++k) {
    if (m.sizes[k] == 1) continue;
    const bool merges = !out.sizes.empty() && out.from_strides.back() == m.from_strides[k] * m.sizes[k] &&
                        out.to_strides.back() == m.to_strides[k] * m.sizes[k];
    if (merges) {
      out.sizes.back() *= m.sizes[k];
      out.from_strides.back() = m.from_strides[k];
      out.to_strides.back() = m.to_strides[k];
      continue;
    }
    out.sizes.push_back(m.sizes[k]);
    out.from_strides.push_back(m.from_strides[k]);
    out.to_strides.push_back(m.to_strides[k]);
  }
  if (out.sizes.empty()) {
    out.sizes = {1};
    out.from_strides = out.to_strides = {1};
  }
  return out;
}

int64_t element_bytes_of(Storage storage) { return storage == Storage::kF16 ? 2 : storage == Storage::kC64 ? 8 : 4; }

Unit widest_unit(const LowerCall& call, std::span<const Operand> operands, std::span<const int64_t> multiples) {
  const int64_t size = element_bytes_of(call.storage(operands[0]));
  for (const int64_t bytes : {16, 8, 4}) {
    if (bytes < size) break;
    const int64_t elements = bytes / size;
    bool fits = std::all_of(multiples.begin(), multiples.end(), [&](int64_t m) { return m % elements == 0; });
    for (const Operand& o : operands) fits = fits && call.starts_at_multiple_of(o, bytes);
    if (fits) return {bytes == 16 ? "vec4<u32>" : bytes == 8 ? "vec2<u32>" : "u32", elements};
  }
  return {"f16", 1};
}

int64_t units_per_thread(int64_t n) { return n >= int64_t{1} << 20 ? 4 : 1; }
Grid unit_grid(int64_t n, bool active) {
  return {.x = {.items = n, .per_group = 256 * units_per_thread(n), .active = active}};
}
std::string unit_entry(int64_t n) {
  return str("const PER: u32 = ", units_per_thread(n), "u;\n// @include \"units.wgsl\"\n");
}

void ParamFields::add(const std::string& name, int64_t value) {
  if (value < -INT64_C(0x80000000)) to_u32(value);  // throws
  text += str("  ", name, ": u32,\n");
  words.push_back(value < 0 ? static_cast<uint32_t>(static_cast<int32_t>(value)) : to_u32(value));
}

void emit_zeros(LowerCall& call, Operand to, int64_t elements) {
  // A result starts at its root and is rounded up to words.
  const int64_t bytes = (elements * element_bytes_of(call.storage(to)) + 3) / 4 * 4;
  const bool wide = bytes % 16 == 0;
  const int64_t n = bytes / (wide ? 16 : 4);
  call.emit({.kernel = {"zeros", {{"T", wide ? "vec4<u32>" : "u32"}}},
             .operands = {to},
             .params = wgsl::zeros::Params{.n = to_u32(n)},
             .grid = {.x = {.items = n, .per_group = 256}},
             .extent_safe = true},
            "zeros");
}

std::string offset_text(ParamFields& fields, std::string_view name, const std::vector<int64_t>& strides,
                        std::span<const size_t> axes) {
  std::string out;
  for (const size_t k : axes) {
    if (strides[k] == 0) continue;
    if (strides[k] == 1) {
      out += str(" + c", k);
      continue;
    }
    fields.add(str(name, "_s", k), strides[k]);
    out += str(" + c", k, " * p.", name, "_s", k);
  }
  return out;
}

std::string coordinate_text(ParamFields& fields, const std::vector<int64_t>& sizes, std::span<const size_t> axes) {
  std::string out;
  for (size_t a = axes.size(); a-- > 1;) {
    const size_t k = axes[a];
    fields.add(str("d", k), sizes[k]);
    out += str("  let q", k, " = r / p.d", k, ";\n  let c", k, " = r - q", k, " * p.d", k, ";\n  r = q", k, ";\n");
  }
  if (!axes.empty()) out += str("  let c", axes[0], " = r;\n");
  return out;
}

namespace {

constexpr int64_t kTile = 32;  // side of a tile of transpose
constexpr int64_t kWideTile = 64;
constexpr int64_t kTileMin = 8;  // narrower axes leave most of a tile empty

std::string bindings_text(std::string_view from, std::string_view to) {
  return str("@group(0) @binding(0) var<storage, read> x: array<", from, ">;\n",
             "@group(0) @binding(1) var<storage, read_write> y: array<", to, ">;\n",
             "@group(0) @binding(2) var<uniform> p: Params;\n");
}

// One thread per unit.
void emit_units(LowerCall& call, Operand from, Operand to, Movement m, bool active, bool is_copy = false) {
  const size_t rank = m.sizes.size();
  std::string x_type, y_type, value;
  int64_t width = 1;  // elements of a unit
  if (m.to_strides.back() == 1 && m.from_strides.back() == 1) {
    std::vector<int64_t> multiples = {m.sizes.back(), m.from_first, m.to_first};
    multiples.insert(multiples.end(), m.from_strides.begin(), m.from_strides.end() - 1);
    multiples.insert(multiples.end(), m.to_strides.begin(), m.to_strides.end() - 1);
    const Unit unit = widest_unit(call, std::array{from, to}, multiples);
    width = unit.elements;
    x_type = y_type = unit.type;
    value = "x[at]";
  } else {
    const int64_t size = element_bytes_of(call.storage(from));
    x_type = y_type = size == 2 ? "f16" : size == 8 ? "vec2<u32>" : "u32";
    value = "x[at]";
    // One element for many: four are stored at once.
    bool by_four = m.to_strides.back() == 1 && m.from_strides.back() == 0 && size <= 4 && m.sizes.back() % 4 == 0 &&
                   m.to_first % 4 == 0 && call.starts_at_multiple_of(to, 4 * size);
    for (size_t k = 0; k + 1 < rank; ++k) by_four = by_four && m.to_strides[k] % 4 == 0;
    if (by_four) {
      y_type = str("vec4<", x_type, ">");
      value = str(y_type, "(x[at])");
      width = 4;
      for (size_t k = 0; k + 1 < rank; ++k) m.to_strides[k] /= 4;
      m.to_first /= 4;
      m.sizes.back() /= 4;
    }
  }
  if (x_type == y_type && width > 1) {
    for (size_t k = 0; k + 1 < rank; ++k) {
      m.from_strides[k] /= width;
      m.to_strides[k] /= width;
    }
    m.from_first /= width;
    m.to_first /= width;
    m.sizes.back() /= width;
  }
  const int64_t n = product(std::span<const int64_t>(m.sizes));
  ParamFields fields;
  fields.add("n", n);
  std::vector<size_t> axes(rank);
  for (size_t k = 0; k < rank; ++k) axes[k] = k;
  const bool dense = m.to_strides == row_major_strides(m.sizes);
  const std::string coordinates = coordinate_text(fields, m.sizes, axes);
  std::string read = offset_text(fields, "x", m.from_strides, axes);
  std::string write = dense ? std::string(" + i") : offset_text(fields, "y", m.to_strides, axes);
  if (m.from_first != 0) {
    fields.add("x_first", m.from_first);
    read += " + p.x_first";
  }
  if (m.to_first != 0) {
    fields.add("y_first", m.to_first);
    write += " + p.y_first";
  }
  fields.add("x_base", 0);
  fields.add("y_base", 0);
  std::string source = "struct Params {\n" + fields.text + "}\n" + bindings_text(x_type, y_type);
  source += str("fn value(i: u32) -> ", y_type, " {\n  var r = i;\n", coordinates, "  let at = p.x_base", read,
                ";\n  return ", value, ";\n}\nfn place(i: u32) -> u32 {\n",
                dense ? std::string() : str("  var r = i;\n", coordinates), "  return p.y_base", write, ";\n}\n",
                unit_entry(n));
  call.emit({.kernel = {.kernel = "copy", .source = std::make_shared<std::string>(std::move(source))},
             .operands = {from, to},
             .params = {std::move(fields.words), active ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}},
             .grid = unit_grid(n, active),
             .extent_safe = active || is_copy,
             .own_bound = is_copy,  // the whole cache, whatever rows are added
             .in_place = is_copy,
             .is_copy = is_copy},
            is_copy ? "copy" : "");
}

// What a workgroup of emit_tiles does with its tile, of kTile rows and columns of elements.
constexpr const char* kTileText = R"(
  // What lies outside is read as the last inside and not written: conditions between the loads would keep them from being
  // under way at once.
  let column = min(in_first + lane % 32u, p.in_size - 1u);
  let row = lane / 32u;
  let a = out_first + row;
  let v0 = x[x_at + min(a, p.out_size - 1u) * p.out_step + column];
  let v1 = x[x_at + min(a + 8u, p.out_size - 1u) * p.out_step + column];
  let v2 = x[x_at + min(a + 16u, p.out_size - 1u) * p.out_step + column];
  let v3 = x[x_at + min(a + 24u, p.out_size - 1u) * p.out_step + column];
  let to = row * 33u + lane % 32u;
  tile[to] = v0;
  tile[to + 264u] = v1;
  tile[to + 528u] = v2;
  tile[to + 792u] = v3;
  workgroupBarrier();
  let o = out_first + lane % 32u;
  for (var k = row; k < 32u; k += 8u) {
    let c = in_first + k;
    if (o < p.out_size && c < p.in_size) { y[y_at + c * p.in_step + o] = tile[lane % 32u * 33u + k]; }
  }
}
)";
// Of kWideTile rows and columns, by four elements. Sizes, steps and places along both axes but out_size and in_size
// count fours. A row's fours lie in an order of its own, so that threads which read down a column meet other banks.
constexpr const char* kWideTileText = R"(
  let q = lane % 16u;
  let row = lane / 16u;
  let column = min(in_first / 4u + q, p.in_size / 4u - 1u);
  let a = out_first + row;
  let v0 = x[x_at + min(a, p.out_size - 1u) * p.out_step + column];
  let v1 = x[x_at + min(a + 16u, p.out_size - 1u) * p.out_step + column];
  let v2 = x[x_at + min(a + 32u, p.out_size - 1u) * p.out_step + column];
  let v3 = x[x_at + min(a + 48u, p.out_size - 1u) * p.out_step + column];
  tile[row * 16u + (q ^ (row / 4u))] = v0;
  tile[(row + 16u) * 16u + (q ^ (row / 4u + 4u))] = v1;
  tile[(row + 32u) * 16u + (q ^ (row / 4u + 8u))] = v2;
  tile[(row + 48u) * 16u + (q ^ (row / 4u + 12u))] = v3;
  workgroupBarrier();
  let o = out_first / 4u + q;
  for (var k = row; k < 64u; k += 16u) {
    let c = in_first + k;
    let at = q * 64u + ((k / 4u) ^ q);  // in rows 4 q … 4 q + 3
    let v = V(tile[at][k % 4u], tile[at + 16u][k % 4u], tile[at + 32u][k % 4u], tile[at + 48u][k % 4u]);
    if (o < p.out_size / 4u && c < p.in_size) { y[y_at + c * p.in_step + o] = v; }
  }
}
)";

// The operand's innermost axis `in` is not the result's: tiles through workgroup memory, so that both sides are
// accessed in runs. One workgroup per tile.
void emit_tiles(LowerCall& call, Operand from, Operand to, Movement m, size_t in, bool active) {
  const size_t out = m.sizes.size() - 1;
  std::vector<size_t> others;
  for (size_t k = 0; k < m.sizes.size(); ++k)
    if (k != in && k != out) others.push_back(k);
  const int64_t size = element_bytes_of(call.storage(from));
  const std::string element = size == 2 ? "f16" : size == 8 ? "vec2<u32>" : "u32";
  int64_t rest = 1;
  for (const size_t k : others) rest *= m.sizes[k];
  // Longer runs are faster where both axes have them.
  bool wide = size <= 4 && m.sizes[in] >= kWideTile && m.sizes[out] >= kWideTile && m.from_first % 4 == 0 &&
              m.to_first % 4 == 0 && call.starts_at_multiple_of(from, 4 * size) &&
              call.starts_at_multiple_of(to, 4 * size);
  for (size_t k = 0; k < m.sizes.size(); ++k)
    wide = wide && (k == in ? m.sizes[k] : m.from_strides[k]) % 4 == 0 &&
           (k == out ? m.sizes[k] : m.to_strides[k]) % 4 == 0;
  if (wide) {
    for (size_t k = 0; k < m.sizes.size(); ++k) {
      if (k != in) m.from_strides[k] /= 4;
      if (k != out) m.to_strides[k] /= 4;
    }
    m.from_first /= 4;
    m.to_first /= 4;
  }
  const std::string type = wide ? str("vec4<", element, ">") : element;
  const int64_t side = wide ? kWideTile : kTile;
  const auto tiles = [&](int64_t n) { return (n + side - 1) / side; };
  const int64_t in_tiles = tiles(m.sizes[in]), out_tiles = tiles(m.sizes[out]);
  ParamFields fields;
  fields.add("rest", rest);
  fields.add("in_size", m.sizes[in]);
  fields.add("out_size", m.sizes[out]);
  fields.add("in_tiles", in_tiles);
  fields.add("out_tiles", out_tiles);
  fields.add("in_step", m.to_strides[in]);      // of the result along the operand's innermost axis
  fields.add("out_step", m.from_strides[out]);  // of the operand along the result's
  fields.add("x_first", m.from_first);
  fields.add("y_first", m.to_first);
  const std::string coordinates = coordinate_text(fields, m.sizes, others);
  const std::string read = offset_text(fields, "x", m.from_strides, others),
                    write = offset_text(fields, "y", m.to_strides, others);
  fields.add("x_base", 0);
  fields.add("y_base", 0);
  std::string source = "struct Params {\n" + fields.text + "}\n" + bindings_text(type, type);
  source += str("alias V = ", type, ";\n", "const SIDE: u32 = ", side, "u;\n", "var<workgroup> tile: array<V, ",
                wide ? side * side / 4 : side * (side + 1), ">;\n");  // a column more against bank conflicts
  source += R"(
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  var r = group.x + group.y * groups.x;
  let in_first = (r % p.in_tiles) * SIDE;
  r = r / p.in_tiles;
  let out_first = (r % p.out_tiles) * SIDE;
  r = r / p.out_tiles;
  if (r >= p.rest) { return; }
)";
  source += coordinates;
  source += str("  let x_at = p.x_base + p.x_first", read, ";\n  let y_at = p.y_base + p.y_first", write, ";\n");
  source += wide ? kWideTileText : kTileText;
  // With the outermost axis among the others, fewer of them are done.
  const bool cut = active && !others.empty() && others[0] == 0;
  call.emit({.kernel = {.kernel = "transpose_tile", .source = std::make_shared<std::string>(std::move(source))},
             .operands = {from, to},
             .params = {std::move(fields.words), cut ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}},
             .grid = {.x = {.items = in_tiles * out_tiles * rest, .active = cut}},
             .extent_safe = cut});
}

}  // namespace

void emit_copy(LowerCall& call, Operand from, Operand to, int64_t elements) {
  emit_units(call, from, to, {.sizes = {elements}, .from_strides = {1}, .to_strides = {1}}, false, true);
}

void emit_movement(LowerCall& call, Operand from, Operand to, Movement movement, bool active) {
  const Movement m = merge_axes(std::move(movement));
  if (product(std::span<const int64_t>(m.sizes)) == 0) return;
  const size_t last = m.sizes.size() - 1;
  for (size_t k = 0; k < last; ++k)
    if (m.from_strides[k] == 1 && m.to_strides[last] == 1 && m.from_strides[last] > 1 && m.sizes[k] >= kTileMin &&
        m.sizes[last] >= kTileMin)
      return emit_tiles(call, from, to, m, k, active);
  emit_units(call, from, to, m, active);
}

}  // namespace rlx::webgpu
