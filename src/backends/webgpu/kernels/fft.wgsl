// Fourier transforms of LENGTH numbers in workgroup memory, COLUMNS of them per workgroup (Stockham's order: nothing is
// bit-reversed). LENGTH is a whole row, or one pass of a longer row n = m * LENGTH: pass j takes every m-th element from
// j, turns them by what earlier passes of `done` elements leave, and puts its results where the next one looks for them.
// Bluestein's transforms multiply what is loaded and what is stored by factors of the element's place.
// @include "fft_load_pairs.wgsl"
// @include "fft_store_pairs.wgsl"
alias S = vec2<f32>;                   // @type f32 | vec2<f32>
alias D = vec2<f32>;                   // @type f32 | vec2<f32>
override LENGTH: u32 = 8u;
override COLUMNS: u32 = 1u;
override WG: u32 = 64u;                // at least an eighth of LENGTH * COLUMNS
override RADIX0: u32 = 8u;             // their product is LENGTH; 2, 3, 4, 5, 7, 8, or 1 behind the last
override RADIX1: u32 = 1u;
override RADIX2: u32 = 1u;
override RADIX3: u32 = 1u;
override RADIX4: u32 = 1u;
override RADIX5: u32 = 1u;
override RADIX6: u32 = 1u;
override WHOLE_ROWS: bool = true;      // m = 1
override FIRST_PASS: bool = true;      // done = 1
override LOAD_FACTORS: bool = false;
override STORE_FACTORS: bool = false;

struct Params {
  transforms: u32,                     // in all rows: m each
  m: u32,
  done: u32,
  loaded: u32,                         // length of a row of src: what lies beyond is 0
  stored: u32,                         // length of a row of dst: what lies beyond is dropped
  sign: f32,                           // of the exponents
  scale: f32,
  low: u32,                            // where roots has the powers 0 … 1023 of the row's root,
  high: u32,                           // every 1024th of them,
  load_factors: u32,                   // and the factors
  store_factors: u32,
  src_base: u32,
  roots_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<S>;
@group(0) @binding(1) var<storage, read>       roots: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> dst: array<D>;
@group(0) @binding(3) var<uniform>             p: Params;

const TILE = LENGTH * COLUMNS;
var<workgroup> cells: array<vec2<f32>, TILE>;

fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// a * i * sign
fn turned(a: vec2<f32>) -> vec2<f32> { return p.sign * vec2<f32>(-a.y, a.x); }
fn root(i: u32) -> vec2<f32> { return roots[p.roots_base + i] * vec2<f32>(1.0, p.sign); }
fn row_root(i: u32) -> vec2<f32> { return times(root(p.high + (i >> 10u)), root(p.low + (i & 1023u))); }

alias Few = array<vec2<f32>, 16>;

fn dft2(v: ptr<function, Few>, at: u32) {
  let a = (*v)[at];
  let b = (*v)[at + 1u];
  (*v)[at] = a + b;
  (*v)[at + 1u] = a - b;
}
fn dft3(v: ptr<function, Few>, at: u32) {
  let a = (*v)[at];
  let sum = (*v)[at + 1u] + (*v)[at + 2u];
  let side = turned(0.8660254 * ((*v)[at + 1u] - (*v)[at + 2u]));
  (*v)[at] = a + sum;
  (*v)[at + 1u] = a - 0.5 * sum + side;
  (*v)[at + 2u] = a - 0.5 * sum - side;
}
// Elements at, at + step, …; the results take their places.
fn dft4(v: ptr<function, Few>, at: u32, step: u32) {
  let a = (*v)[at] + (*v)[at + 2u * step];
  let b = (*v)[at] - (*v)[at + 2u * step];
  let c = (*v)[at + step] + (*v)[at + 3u * step];
  let d = turned((*v)[at + step] - (*v)[at + 3u * step]);
  (*v)[at] = a + c;
  (*v)[at + step] = b + d;
  (*v)[at + 2u * step] = a - c;
  (*v)[at + 3u * step] = b - d;
}
fn dft5(v: ptr<function, Few>, at: u32) {
  let a = (*v)[at];
  let s1 = (*v)[at + 1u] + (*v)[at + 4u];
  let s2 = (*v)[at + 2u] + (*v)[at + 3u];
  let d1 = (*v)[at + 1u] - (*v)[at + 4u];
  let d2 = (*v)[at + 2u] - (*v)[at + 3u];
  let m1 = a + 0.30901699 * s1 - 0.80901699 * s2;
  let m2 = a - 0.80901699 * s1 + 0.30901699 * s2;
  let n1 = turned(0.95105652 * d1 + 0.58778525 * d2);
  let n2 = turned(0.58778525 * d1 - 0.95105652 * d2);
  (*v)[at] = a + s1 + s2;
  (*v)[at + 1u] = m1 + n1;
  (*v)[at + 2u] = m2 + n2;
  (*v)[at + 3u] = m2 - n2;
  (*v)[at + 4u] = m1 - n1;
}
fn dft7(v: ptr<function, Few>, at: u32) {
  let a = (*v)[at];
  let s1 = (*v)[at + 1u] + (*v)[at + 6u];
  let s2 = (*v)[at + 2u] + (*v)[at + 5u];
  let s3 = (*v)[at + 3u] + (*v)[at + 4u];
  let d1 = (*v)[at + 1u] - (*v)[at + 6u];
  let d2 = (*v)[at + 2u] - (*v)[at + 5u];
  let d3 = (*v)[at + 3u] - (*v)[at + 4u];
  let m1 = a + 0.62348980 * s1 - 0.22252093 * s2 - 0.90096887 * s3;
  let m2 = a - 0.22252093 * s1 - 0.90096887 * s2 + 0.62348980 * s3;
  let m3 = a - 0.90096887 * s1 + 0.62348980 * s2 - 0.22252093 * s3;
  let n1 = turned(0.78183148 * d1 + 0.97492791 * d2 + 0.43388374 * d3);
  let n2 = turned(0.97492791 * d1 - 0.43388374 * d2 - 0.78183148 * d3);
  let n3 = turned(0.43388374 * d1 - 0.78183148 * d2 + 0.97492791 * d3);
  (*v)[at] = a + s1 + s2 + s3;
  (*v)[at + 1u] = m1 + n1;
  (*v)[at + 2u] = m2 + n2;
  (*v)[at + 3u] = m3 + n3;
  (*v)[at + 4u] = m3 - n3;
  (*v)[at + 5u] = m2 - n2;
  (*v)[at + 6u] = m1 - n1;
}
fn dft8(v: ptr<function, Few>, at: u32) {
  dft4(v, at, 2u);
  dft4(v, at + 1u, 2u);
  let o0 = (*v)[at + 1u];
  let o1 = 0.70710678 * ((*v)[at + 3u] + turned((*v)[at + 3u]));
  let o2 = turned((*v)[at + 5u]);
  let o3 = 0.70710678 * (turned((*v)[at + 7u]) - (*v)[at + 7u]);
  let e0 = (*v)[at];
  let e1 = (*v)[at + 2u];
  let e2 = (*v)[at + 4u];
  let e3 = (*v)[at + 6u];
  (*v)[at] = e0 + o0;
  (*v)[at + 1u] = e1 + o1;
  (*v)[at + 2u] = e2 + o2;
  (*v)[at + 3u] = e3 + o3;
  (*v)[at + 4u] = e0 - o0;
  (*v)[at + 5u] = e1 - o1;
  (*v)[at + 6u] = e2 - o2;
  (*v)[at + 7u] = e3 - o3;
}

// One step of all transforms in the tile, behind steps whose radices have the product `before`. Its arguments are
// constants: a compiler that inlines it keeps v in registers.
fn stage(thread: u32, radix: u32, before: u32) {
  if (radix == 1u) { return; }
  let apart = LENGTH / radix;
  let step = apart / before;
  var v: Few;
  for (var k = 0u; k * WG < TILE / radix; k++) {
    let b = thread + k * WG;
    if (b < TILE / radix) {
      let j = b % apart;
      let start = b / apart * LENGTH + j;
      let turn = j % before * step;
      v[k * radix] = cells[start];
      for (var q = 1u; q < radix; q++) {
        v[k * radix + q] = cells[start + q * apart];
        if (before > 1u) { v[k * radix + q] = times(v[k * radix + q], root(q * turn)); }
      }
      switch (radix) {
        case 2u: { dft2(&v, k * radix); }
        case 3u: { dft3(&v, k * radix); }
        case 4u: { dft4(&v, k * radix, 1u); }
        case 5u: { dft5(&v, k * radix); }
        case 7u: { dft7(&v, k * radix); }
        default: { dft8(&v, k * radix); }
      }
    }
  }
  workgroupBarrier();
  for (var k = 0u; k * WG < TILE / radix; k++) {
    let b = thread + k * WG;
    if (b < TILE / radix) {
      let j = b % apart;
      let to = b / apart * LENGTH + j / before * before * radix + j % before;
      for (var q = 0u; q < radix; q++) { cells[to + q * before] = v[k * radix + q]; }
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let first = (group.x + group.y * groups.x) * COLUMNS;
  // Neighbouring threads take neighbouring elements: of a row, or of the same place in neighbouring passes.
  for (var e = thread; e < TILE; e += WG) {
    let column = select(e % COLUMNS, e / LENGTH, WHOLE_ROWS);
    let q = select(e / COLUMNS, e % LENGTH, WHOLE_ROWS);
    let t = first + column;
    let row = t / p.m;
    let j = t % p.m;
    let i = j + q * p.m;
    var x = vec2<f32>(0.0, 0.0);
    if (t < p.transforms && i < p.loaded) {
      x = load(row, i);
      if (LOAD_FACTORS) { x = times(x, roots[p.roots_base + p.load_factors + i]); }
      if (!FIRST_PASS) { x = times(x, row_root(q * (j % p.done) * (p.m / p.done))); }
    }
    cells[column * LENGTH + q] = x;
  }
  workgroupBarrier();
  stage(thread, RADIX0, 1u);
  stage(thread, RADIX1, RADIX0);
  stage(thread, RADIX2, RADIX0 * RADIX1);
  stage(thread, RADIX3, RADIX0 * RADIX1 * RADIX2);
  stage(thread, RADIX4, RADIX0 * RADIX1 * RADIX2 * RADIX3);
  stage(thread, RADIX5, RADIX0 * RADIX1 * RADIX2 * RADIX3 * RADIX4);
  stage(thread, RADIX6, RADIX0 * RADIX1 * RADIX2 * RADIX3 * RADIX4 * RADIX5);
  for (var e = thread; e < TILE; e += WG) {
    let column = select(e % COLUMNS, e / LENGTH, FIRST_PASS);
    let q = select(e / COLUMNS, e % LENGTH, FIRST_PASS);
    let t = first + column;
    let row = t / p.m;
    let j = t % p.m;
    let i = j / p.done * p.done * LENGTH + j % p.done + q * p.done;
    if (t < p.transforms && i < p.stored) {
      var x = cells[column * LENGTH + q];
      if (STORE_FACTORS) { x = times(x, roots[p.roots_base + p.store_factors + i]); }
      store(row, i, x * p.scale);
    }
  }
}
