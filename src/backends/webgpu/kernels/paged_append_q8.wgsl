// As paged_append.wgsl, for pools of q8_0 rows (attention_keys_q8.wgsl): a thread per two blocks of 32 elements.
// @include "paged_token.wgsl"
alias T = f32;             // @type f32 | f16

@group(0) @binding(0) var<storage, read>       rows: array<T>;
@group(0) @binding(1) var<storage, read>       pages: array<i32>;
@group(0) @binding(2) var<storage, read>       len: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform>             p: Params;

// Writes the quants of the block of elements from `first` on; its scale.
fn write_block(first: u32, to: u32) -> f32 {
  var largest = 0.0;
  for (var i = 0u; i < 32u; i++) { largest = max(largest, abs(f32(rows[first + i]))); }
  let scale = largest / 127.0;
  let factor = select(1.0 / scale, 0.0, scale == 0.0);
  for (var i = 0u; i < 8u; i++) {
    var word = 0u;
    for (var c = 0u; c < 4u; c++) {
      let quant = i32(round(clamp(f32(rows[first + 4u * i + c]) * factor, -127.0, 127.0)));
      word |= (bitcast<u32>(quant) & 255u) << (8u * c);
    }
    y[to + i] = word;
  }
  return scale;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let token = place_of_token(i / p.row);
  if (token == NOWHERE) { return; }
  let pairs = (p.width + 63u) / 64u;       // of blocks in a head
  let heads = p.row / pairs;
  let head = i % p.row / pairs;
  let pair = i % pairs;
  let first = p.rows_base + (i / p.row * heads + head) * p.width + 64u * pair;
  let to = p.y_base + (token * heads + head) * (p.width / 4u + pairs);
  var scales = vec2f(write_block(first, to + 16u * pair), 0.0);
  if (64u * pair + 32u < p.width) { scales.y = write_block(first + 32u, to + 16u * pair + 8u); }
  y[to + p.width / 4u + pair] = pack2x16float(scales);
}
