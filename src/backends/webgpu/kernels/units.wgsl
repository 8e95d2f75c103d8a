// The entry of kernels that compute element place(i) of y as value(i), for i < p.n. With PER = 4 a thread computes four,
// all of them before the first is stored, so that more loads are under way: the compiler cannot reorder them by itself,
// since the buffers may be the same.
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let i = (group.x + group.y * groups.x) * (256u * PER) + lane;
  if (i >= p.n) { return; }
  let v0 = value(i);
  if (PER == 1u) {
    y[place(i)] = v0;
    return;
  }
  let last = p.n - 1u;
  let v1 = value(min(i + 256u, last));
  let v2 = value(min(i + 512u, last));
  let v3 = value(min(i + 768u, last));
  y[place(i)] = v0;
  if (i + 256u < p.n) { y[place(i + 256u)] = v1; }
  if (i + 512u < p.n) { y[place(i + 512u)] = v2; }
  if (i + 768u < p.n) { y[place(i + 768u)] = v3; }
}
