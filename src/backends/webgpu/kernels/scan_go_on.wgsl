// scan_begin.wgsl for chunks of a row.
fn start_of(row: Row) -> Acc {
  var start = identity();
  if (row.live) { start = Acc(starts[p.starts_base + row.index]); }
  return start;
}
