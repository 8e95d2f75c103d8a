// combine.wgsl for the mean of integers: an exact sum of 64 bits (low word, high word), divided toward zero.
alias E = i32;               // @type i32 | u32
alias T = i32;
alias Acc = vec2<u32>;

fn identity() -> Acc { return vec2<u32>(0u, 0u); }
fn widen(v: E) -> Acc { return vec2<u32>(bitcast<u32>(v), select(0u, 0xffffffffu, v < E(0))); }
fn combine(a: Acc, b: Acc) -> Acc {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
// Bit by bit; the quotient of a mean fits a word. Only signed sums are negative: n unsigned words stay below 2^63.
fn finish(a: Acc) -> T {
  let negative = (a.y >> 31u) == 1u;
  let size = select(a, vec2<u32>(~a.x + 1u, ~a.y + select(0u, 1u, a.x == 0u)), negative);
  var rest = 0u;
  var quotient = 0u;
  for (var i = 0u; i < 64u; i++) {
    let word = select(size.x, size.y, i < 32u);
    let over = rest >> 31u;
    rest = (rest << 1u) | ((word >> (31u - i % 32u)) & 1u);
    quotient = quotient << 1u;
    if (over == 1u || rest >= p.n) {
      rest -= p.n;
      quotient |= 1u;
    }
  }
  return bitcast<T>(select(quotient, ~quotient + 1u, negative));
}
