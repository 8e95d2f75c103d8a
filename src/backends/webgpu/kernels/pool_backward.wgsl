// dx = sum of dy over the windows whose maximum, by `best`, is this element. One thread per element.
alias T = f32;             // @type f32 | f16

struct Params {
  n: u32,
  in_h: u32,
  in_w: u32,
  out_h: u32,
  out_w: u32,
  k_h: u32,
  k_w: u32,
  stride_h: u32,
  stride_w: u32,
  dilation_h: u32,
  dilation_w: u32,
  pad_h: u32,
  pad_w: u32,
  best_base: u32,
  dy_base: u32,
  dx_base: u32,
}
@group(0) @binding(0) var<storage, read>       best: array<i32>;   // pool_indices.wgsl, in the plane
@group(0) @binding(1) var<storage, read>       dy: array<T>;
@group(0) @binding(2) var<storage, read_write> dx: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let own = i % (p.in_h * p.in_w);
  let plane = i / (p.in_h * p.in_w) * p.out_h * p.out_w;
  var sum = 0.0;
  for (var ky = 0u; ky < p.k_h; ky++) {
    let from_y = i32(own / p.in_w + p.pad_h) - i32(ky * p.dilation_h);
    if (from_y < 0 || u32(from_y) % p.stride_h != 0u || u32(from_y) / p.stride_h >= p.out_h) { continue; }
    for (var kx = 0u; kx < p.k_w; kx++) {
      let from_x = i32(own % p.in_w + p.pad_w) - i32(kx * p.dilation_w);
      if (from_x < 0 || u32(from_x) % p.stride_w != 0u || u32(from_x) / p.stride_w >= p.out_w) { continue; }
      let window = plane + u32(from_y) / p.stride_h * p.out_w + u32(from_x) / p.stride_w;
      if (best[p.best_base + window] == i32(own)) { sum += f32(dy[p.dy_base + window]); }
    }
  }
  dx[p.dx_base + i] = T(sum);
}
