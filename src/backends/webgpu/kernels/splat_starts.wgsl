// Each count becomes the sum of those before it, at most `limit`, and the sum of all follows. One workgroup; every thread has a run of counts.
struct Params {
  n: u32,
  limit: u32,
  starts_base: u32,
}
@group(0) @binding(0) var<storage, read_write> starts: array<u32>;
@group(0) @binding(1) var<uniform>             p: Params;

var<workgroup> sums: array<u32, 256>;

fn plus(a: u32, b: u32) -> u32 { return min(min(a, p.limit) + min(b, p.limit), p.limit); }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  let run = (p.n + 255u) / 256u;
  let begin = min(thread * run, p.n);
  let end = min(begin + run, p.n);
  var sum = 0u;
  for (var i = begin; i < end; i++) { sum = plus(sum, starts[p.starts_base + i]); }
  sums[thread] = sum;
  workgroupBarrier();
  var before = 0u;
  for (var t = 0u; t < thread; t++) { before = plus(before, sums[t]); }
  for (var i = begin; i < end; i++) {
    let count = starts[p.starts_base + i];
    starts[p.starts_base + i] = before;
    before = plus(before, count);
  }
  if (thread == 255u) { starts[p.starts_base + p.n] = before; }
}
