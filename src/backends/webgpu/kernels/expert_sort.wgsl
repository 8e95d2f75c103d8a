// Rows sorted by the expert that each names, stably, and each expert's rows cut into tiles of TM: order[i] is the row at
// place i; tiles[0] counts the tiles, then come an expert, a first place and an end for each. Rows that name no expert
// come last, under the number `experts`. One workgroup: a thread looks after every 256th expert.
override TM: u32 = 64u;

struct Params {
  rows: u32,
  experts: u32,
  index_base: u32,
  order_base: u32,
  tiles_base: u32,
}
@group(0) @binding(0) var<storage, read>       index: array<i32>;
@group(0) @binding(1) var<storage, read_write> order: array<u32>;
@group(0) @binding(2) var<storage, read_write> tiles: array<u32>;
@group(0) @binding(3) var<uniform>             p: Params;
var<workgroup> names: array<vec4u, 256>;
var<workgroup> sums: array<vec2u, 256>;

// The experts of rows `row0` and on, as many as fit.
fn stage(row0: u32, lane: u32) {
  workgroupBarrier();  // the ones before are still being read
  var four = vec4u(0xffffffffu);
  for (var c = 0u; c < 4u; c++) {
    let row = row0 + lane * 4u + c;
    if (row < p.rows) {
      let expert = index[p.index_base + row];
      four[c] = select(p.experts, u32(expert), expert >= 0 && u32(expert) < p.experts);
    }
  }
  names[lane] = four;
  workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
  var before = vec2u();  // rows and tiles of experts before these 256
  for (var first = 0u; first <= p.experts; first += 256u) {
    let expert = first + lane;
    var count = 0u;
    for (var row0 = 0u; row0 < p.rows; row0 += 1024u) {
      stage(row0, lane);
      for (var i = 0u; i * 4u < min(1024u, p.rows - row0); i++) {
        let own = select(vec4u(0u), vec4u(1u), names[i] == vec4u(expert));
        count += own.x + own.y + own.z + own.w;
      }
    }
    // Sums over the threads up to each.
    workgroupBarrier();
    sums[lane] = vec2u(count, (count + TM - 1u) / TM);
    for (var step = 1u; step < 256u; step = step * 2u) {
      workgroupBarrier();
      var below = vec2u();
      if (lane >= step) { below = sums[lane - step]; }
      workgroupBarrier();
      sums[lane] += below;
    }
    workgroupBarrier();
    let start = before.x + sums[lane].x - count;
    let tile = before.y + sums[lane].y - (count + TM - 1u) / TM;
    for (var t = 0u; t * TM < count; t++) {
      let at = p.tiles_base + 1u + 3u * (tile + t);
      tiles[at] = expert;
      tiles[at + 1u] = start + t * TM;
      tiles[at + 2u] = min(start + count, start + (t + 1u) * TM);
    }
    var place = start;
    for (var row0 = 0u; row0 < p.rows; row0 += 1024u) {
      stage(row0, lane);
      for (var i = 0u; i * 4u < min(1024u, p.rows - row0); i++) {
        let own = names[i] == vec4u(expert);
        if (!any(own)) { continue; }
        for (var c = 0u; c < 4u; c++) {
          if (own[c]) {
            order[p.order_base + place] = row0 + i * 4u + c;
            place += 1u;
          }
        }
      }
    }
    before += sums[255];
  }
  if (lane == 0u) { tiles[p.tiles_base] = before.y; }
}
