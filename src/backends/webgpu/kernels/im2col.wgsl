// The windows of x as rows: y[image, window, channel, tap]. One thread per element.
alias T = f32;             // @type any

struct Params {
  n: u32,
  windows: u32,            // of an image
  out_w: u32,
  channels: u32,
  in_h: u32,
  in_w: u32,
  k_h: u32,
  k_w: u32,
  stride_h: u32,
  stride_w: u32,
  dilation_h: u32,
  dilation_w: u32,
  pad_h: u32,
  pad_w: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let tap = i % (p.k_h * p.k_w);
  let channel = i / (p.k_h * p.k_w) % p.channels;
  let window = i / (p.k_h * p.k_w) / p.channels;
  let o = window % p.windows;
  let row = u32(i32(o / p.out_w * p.stride_h + tap / p.k_w * p.dilation_h) - i32(p.pad_h));
  let col = u32(i32(o % p.out_w * p.stride_w + tap % p.k_w * p.dilation_w) - i32(p.pad_w));
  var v = T();
  if (row < p.in_h && col < p.in_w) {
    v = x[p.x_base + ((window / p.windows * p.channels + channel) * p.in_h + row) * p.in_w + col];
  }
  y[p.y_base + i] = v;
}
