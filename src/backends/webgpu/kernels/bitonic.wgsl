// Sorts SIZE pairs (key, index) in workgroup memory: larger keys first, of equal keys the smaller index. Every thread
// of the workgroup calls it.
override SIZE: u32 = 1024u;  // a power of two
var<workgroup> sort_keys: array<u32, SIZE>;
var<workgroup> sort_ids: array<u32, SIZE>;

fn sort_pairs(thread: u32) {
  for (var size = 2u; size <= SIZE; size = size * 2u) {
    for (var half = size / 2u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      for (var i = thread; i < SIZE / 2u; i += WG) {
        let a = i / half * half * 2u + i % half;
        let b = a + half;
        let first = sort_keys[a] > sort_keys[b] || (sort_keys[a] == sort_keys[b] && sort_ids[a] < sort_ids[b]);
        if (first != ((a & size) == 0u)) {
          let key = sort_keys[a];
          let id = sort_ids[a];
          sort_keys[a] = sort_keys[b];
          sort_ids[a] = sort_ids[b];
          sort_keys[b] = key;
          sort_ids[b] = id;
        }
      }
    }
  }
  workgroupBarrier();
}
