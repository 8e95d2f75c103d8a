// The 32 elements of x that a lane of dequant_gemv_one.wgsl has. An array of them might not stay in registers.
const CHUNK: u32 = 1024u;  // elements of a row that a team takes at a time
var<private> xq0: vec4f;
var<private> xq1: vec4f;
var<private> xq2: vec4f;
var<private> xq3: vec4f;
var<private> xq4: vec4f;
var<private> xq5: vec4f;
var<private> xq6: vec4f;
var<private> xq7: vec4f;
fn load_x(token: u32, first: u32, lane: u32) {
  xq0 = x4(token, first + quad_at(lane, 0u));
  xq1 = x4(token, first + quad_at(lane, 1u));
  xq2 = x4(token, first + quad_at(lane, 2u));
  xq3 = x4(token, first + quad_at(lane, 3u));
  xq4 = x4(token, first + quad_at(lane, 4u));
  xq5 = x4(token, first + quad_at(lane, 5u));
  xq6 = x4(token, first + quad_at(lane, 6u));
  xq7 = x4(token, first + quad_at(lane, 7u));
}
