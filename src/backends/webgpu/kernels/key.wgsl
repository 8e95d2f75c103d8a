// Words in the order of the elements: a larger element has a larger word. Of floats; NaN has NAN_KEY, and 0 and -0 the
// same. key_int.wgsl: of integers.
alias E = f32;                       // @type f32 | f16
override LARGEST: bool = true;       // else the order is turned round; NaN stays
override NAN_KEY: u32 = 0xffffffffu;

fn key_of(v: E) -> u32 {
  let f = f32(v);
  let bits = bitcast<u32>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return NAN_KEY; }
  if ((bits & 0x7fffffffu) == 0u) { return select(0x7fffffffu, 0x80000000u, LARGEST); }
  let key = select(bits ^ 0x80000000u, ~bits, (bits >> 31u) == 1u);
  return select(~key, key, LARGEST);
}
