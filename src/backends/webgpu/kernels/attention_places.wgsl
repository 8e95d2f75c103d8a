// Where key j of a kv head begins, and its value.
fn key_at(b: u32, kv_head: u32, j: u32) -> u32 { return b * p.k_batch + kv_head * p.k_head + j * p.k_seq; }
fn value_at(b: u32, kv_head: u32, j: u32) -> u32 { return b * p.v_batch + kv_head * p.v_head + j * p.v_seq; }
