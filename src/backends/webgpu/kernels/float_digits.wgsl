// Small integers as the last digits of a float, which one fused step scales and shifts back: that costs less than a
// conversion. With `digits`, 2^23, in a register a compiler can mask and set them at once; a constant would take two steps.
var<private> digits: u32;
fn set_digits() { digits = 0x4b000000u | (p.n >> 31u); }  // p.n is less than 2^31, which no compiler knows
