// What a scan begins with: nothing. scan_go_on.wgsl: what came before the chunk.
fn start_of(row: Row) -> Acc { return identity(); }
