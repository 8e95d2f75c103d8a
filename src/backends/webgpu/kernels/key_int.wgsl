// key.wgsl for integers.
alias E = i32;                       // @type i32 | u32
override LARGEST: bool = true;
override SIGNED: bool = true;

fn key_of(v: E) -> u32 {
  let key = bitcast<u32>(v) ^ select(0u, 0x80000000u, SIGNED);
  return select(~key, key, LARGEST);
}
