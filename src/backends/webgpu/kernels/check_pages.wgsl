// Do the tokens of every sequence lie in pages of the pool? A sequence's first place stands for its length, the others for
// its pages.
// @include "check.wgsl"
struct Params {
  batch: u32,
  columns: u32,         // pages of a sequence
  page_tokens: u32,
  pool_pages: u32,
  rows: u32,            // tokens that follow a length, where those are meant
  up_to_length: u32,    // the tokens before it are
  slot: u32,
  lengths_base: u32,
  pages_base: u32,
  errors_base: u32,
}
@group(0) @binding(0) var<storage, read>       lengths: array<i32>;
@group(0) @binding(1) var<storage, read>       pages: array<i32>;
@group(0) @binding(2) var<storage, read_write> errors: array<u32>;
@group(0) @binding(3) var<uniform>             p: Params;

fn value_at(i: u32) -> i32 {
  let b = i / (p.columns + 1u);
  let column = i % (p.columns + 1u);
  if (column == 0u) { return lengths[p.lengths_base + b]; }
  return pages[p.pages_base + b * p.columns + column - 1u];
}
fn is_bad(i: u32) -> bool {
  let capacity = p.columns * p.page_tokens;
  let length = lengths[p.lengths_base + i / (p.columns + 1u)];
  let fits = length >= 0 && u32(length) <= capacity && p.rows <= capacity - u32(length);
  let column = i % (p.columns + 1u);
  if (column == 0u || !fits) { return !fits; }
  let begin = select(u32(length), 0u, p.up_to_length != 0u);
  if (column - 1u < begin / p.page_tokens || (column - 1u) * p.page_tokens >= u32(length) + p.rows) { return false; }
  let page = value_at(i);
  return page < 0 || u32(page) >= p.pool_pages;
}
fn places() -> u32 { return p.batch * (p.columns + 1u); }
fn note_of(i: u32) -> vec3u { return vec3u(i, bitcast<u32>(value_at(i)), p.rows); }
