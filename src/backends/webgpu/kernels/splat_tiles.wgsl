// The tiles that a splat's outline meets, one thread per splat in the order of depth: counts them, or enters them into
// the list from where the counts before it end.
override ENTER: bool = false;

struct Params {
  n: u32,
  tile_size: f32,
  tiles_x: u32,
  tiles_y: u32,
  limit: u32,       // entries that the list holds
  outlines_base: u32,
  order_base: u32,
  starts_base: u32,
  entries_base: u32,
  owners_base: u32,
}
@group(0) @binding(0) var<storage, read>       outlines: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read>       order: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> owners: array<u32>;
@group(0) @binding(5) var<uniform>             p: Params;

fn value(conic: vec4<f32>, x: f32, y: f32) -> f32 {
  return conic.x * x * x + 2.0 * conic.y * x * y + conic.z * y * y;
}
// Does the box hold a point of the ellipse? Coordinates about the ellipse's centre.
fn box_meets(conic: vec4<f32>, low: vec2<f32>, high: vec2<f32>) -> bool {
  if (all(low <= vec2<f32>(0.0)) && all(high >= vec2<f32>(0.0))) { return true; }
  var least = value(conic, low.x, clamp(-conic.y * low.x / conic.z, low.y, high.y));
  least = min(least, value(conic, high.x, clamp(-conic.y * high.x / conic.z, low.y, high.y)));
  least = min(least, value(conic, clamp(-conic.y * low.y / conic.x, low.x, high.x), low.y));
  least = min(least, value(conic, clamp(-conic.y * high.y / conic.x, low.x, high.x), high.y));
  return least <= 1.000001;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let rank = id.x + id.y * groups.x * 64u;
  if (rank >= p.n) { return; }
  let pair = order[p.order_base + rank];
  var count = 0u;
  var first = 0u;
  if (ENTER) { first = starts[p.starts_base + rank]; }
  if (pair.x != 0xffffffffu) {
    let place = outlines[p.outlines_base + pair.y * 3u];
    let conic = outlines[p.outlines_base + pair.y * 3u + 1u];
    let radius = outlines[p.outlines_base + pair.y * 3u + 2u].z;
    let extent = clamp(place.zw, vec2<f32>(1e-4), vec2<f32>(radius));
    let reach = extent + p.tile_size * 0.5;
    let most = vec2<f32>(f32(p.tiles_x), f32(p.tiles_y));
    let begin = vec2<u32>(clamp(floor((place.xy - reach) / p.tile_size), vec2<f32>(0.0), most));
    let end = vec2<u32>(clamp(ceil((place.xy + reach) / p.tile_size), vec2<f32>(0.0), most));
    // The order of a splat's tiles decides which of them a full list keeps.
    let by_columns = select(end.x - begin.x > end.y - begin.y, extent.x > extent.y, extent.x != extent.y);
    let outer = select(vec2<u32>(begin.y, end.y), vec2<u32>(begin.x, end.x), by_columns);
    let inner = select(vec2<u32>(begin.x, end.x), vec2<u32>(begin.y, end.y), by_columns);
    for (var u = outer.x; u < outer.y; u++) {
      for (var v = inner.x; v < inner.y; v++) {
        let tile = select(vec2<u32>(v, u), vec2<u32>(u, v), by_columns);
        let low = vec2<f32>(tile) * p.tile_size - place.xy;
        if (!box_meets(conic, low, low + p.tile_size)) { continue; }
        let entry = first + count;
        count += 1u;
        if (ENTER && entry < p.limit) {
          entries[p.entries_base + entry] = vec2<u32>(tile.y * p.tiles_x + tile.x, entry);
          owners[p.owners_base + entry] = pair.y;
        }
      }
    }
  }
  if (!ENTER) { starts[p.starts_base + rank] = count; }
}
