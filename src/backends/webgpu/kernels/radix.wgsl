// Finds where a row's order is cut, a digit of 8 bits at a time, without sorting it. Elements are ordered by their
// rank: the pair (key, ~index), larger first, so that no two are equal. The kernel has row_key(i) and p.cols.
var<workgroup> bins: array<atomic<u32>, 256>;
var<workgroup> picked: array<u32, 3>;  // digit, elements before it, elements with it

fn rank_of(key: u32, i: u32) -> vec2<u32> { return vec2<u32>(key, ~i); }
fn at_least(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x > b.x || (a.x == b.x && a.y >= b.y); }
// Digit `round` of a rank: 0 is the highest.
fn digit_of(rank: vec2<u32>, round: u32) -> u32 {
  return (select(rank.x, rank.y, round >= 4u) >> (24u - round % 4u * 8u)) & 255u;
}
// The digits before `round`.
fn mask_above(round: u32) -> vec2<u32> {
  let part = select(~0u << (32u - max(round % 4u, 1u) * 8u), 0u, round % 4u == 0u);
  return select(vec2<u32>(part, 0u), vec2<u32>(~0u, part), round >= 4u);
}
fn with_digit(rank: vec2<u32>, round: u32, digit: u32) -> vec2<u32> {
  let word = digit << (24u - round % 4u * 8u);
  return select(rank | vec2<u32>(word, 0u), rank | vec2<u32>(0u, word), round >= 4u);
}

// A rank that exactly n elements reach, 1 <= n <= p.cols. Every thread of the workgroup calls it.
fn cut_after(n: u32, thread: u32) -> vec2<u32> {
  var cut = vec2<u32>(0u, 0u);
  var wanted = n;
  for (var round = 0u; round < 8u; round++) {
    for (var i = thread; i < 256u; i += WG) { atomicStore(&bins[i], 0u); }
    workgroupBarrier();
    let mask = mask_above(round);
    for (var i = thread; i < p.cols; i += WG) {
      let rank = rank_of(row_key(i), i);
      if (all((rank & mask) == cut)) { atomicAdd(&bins[digit_of(rank, round)], 1u); }
    }
    workgroupBarrier();
    if (thread == 0u) {
      var before = 0u;
      var digit = 255u;
      for (; digit > 0u; digit--) {
        let size = atomicLoad(&bins[digit]);
        if (before + size >= wanted) { break; }
        before += size;
      }
      picked[0] = digit;
      picked[1] = before;
      picked[2] = atomicLoad(&bins[digit]);
    }
    cut = with_digit(cut, round, workgroupUniformLoad(&picked[0]));
    wanted -= workgroupUniformLoad(&picked[1]);
    if (workgroupUniformLoad(&picked[2]) == wanted) { break; }  // the digits that are left do not matter
  }
  return cut;
}
