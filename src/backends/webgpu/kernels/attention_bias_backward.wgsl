// The gradient of attention's bias: the gradient of the scores, summed over the dims that the bias is broadcast along.
// LANES threads share an element of the bias, whose sum goes over `terms` pairs.
// @include "attention_common.wgsl"
alias D = f32;             // of the bias's gradient
override LANES: u32 = 1u;  // 1 or WG
const WG = 64u;

@group(0) @binding(0) var<storage, read> query: array<E>;
@group(0) @binding(1) var<storage, read> key: array<KE>;
@group(0) @binding(2) var<storage, read> value: array<KE>;
@group(0) @binding(3) var<storage, read> dy: array<E>;
@group(0) @binding(4) var<storage, read> mask: array<M>;
@group(0) @binding(5) var<storage, read> stats: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> first: array<D>;
@group(0) @binding(7) var<uniform> p: Params;

var<workgroup> cells: array<f32, WG>;

fn load_dy(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(dy[p.dy_base + (at + d) / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(dy[p.dy_base + at + d + i]).x); } }
  return r;
}

fn gradient_of(b: u32, h: u32, i: u32, j: u32) -> f32 {
  let kv_head = h / p.group;
  let row = i * p.group + h % p.group;
  let queries = p.batch * p.heads * p.seq_q;
  let keys = bitcast<i32>(stats[p.stats_base + queries + b].x);
  let stat = stats[p.stats_base + query_index(row, b, kv_head)];
  if (i32(j) >= keys || is_neg_inf(bitcast<f32>(stat.x))) { return 0.0; }
  let q_at = query_at(row, b, kv_head);
  let key_from = key_at(b, kv_head, j);
  let value_from = value_at(b, kv_head, j);
  var product = 0.0;
  var dp = 0.0;
  for (var d = 0u; d < p.head_dim; d += 4u) {
    product += dot(load_query(q_at, d), load_key(key_from, d));
    dp += dot(load_dy(q_at, d), load_value(value_from, d));
  }
  let score = score_of(product, row_of(row, b, kv_head, keys), i32(j));
  if (is_neg_inf(score)) { return 0.0; }
  return f_exp(score - bitcast<f32>(stat.x)) * (dp - bitcast<f32>(stat.y));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  // Sizes of the bias, and of what each of its elements is a sum over. A dim of 1 is broadcast; if the problem's is 1 too,
  // that is the same.
  let own = vec4u(select(p.batch, 1u, p.mask_batch == 0u), select(p.heads, 1u, p.mask_head == 0u),
                  select(p.seq_q, 1u, p.mask_seq == 0u), select(p.seq_k, 1u, p.mask_key == 0u));
  let over = vec4u(p.batch, p.heads, p.seq_q, p.seq_k) / own;
  let terms = over.x * over.y * over.z * over.w;
  let id = (group.x + group.y * groups.x) * (WG / LANES) + lane / LANES;
  let live = id < p.groups;
  let at = vec4u(id / (own.y * own.z * own.w), id / (own.z * own.w) % own.y, id / own.w % own.z, id % own.w);
  var sum = 0.0;
  if (live) {
    for (var n = lane % LANES; n < terms; n += LANES) {
      let to = at + vec4u(n / (over.y * over.z * over.w), n / (over.z * over.w) % over.y, n / over.w % over.z, n % over.w);
      sum += gradient_of(to.x, to.y, to.z, to.w);
    }
  }
  cells[lane] = sum;
  workgroupBarrier();
  if (live && lane % LANES == 0u) {
    for (var n = 1u; n < LANES; n++) { sum += cells[lane + n]; }
    first[p.first_base + id] = D(sum);
  }
}
