// Where the rows of paged_append and paged_append_q8 go, of bindings `pages` and `len`.
const NOWHERE: u32 = 0xffffffffu;

struct Params {
  n: u32,                  // threads
  used: u32,               // tokens of a batch that count
  count: u32,              // tokens of a batch
  row: u32,                // threads that write a token
  columns: u32,            // of the table
  pool_pages: u32,
  page_tokens: u32,
  width: u32,              // of a head; only where rows are quantised
  rows_base: u32,
  pages_base: u32,
  len_base: u32,
  y_base: u32,
}

// The place in the pool of token t of all batches' new ones.
fn place_of_token(t: u32) -> u32 {
  let b = t / p.count;
  let start = len[p.len_base + b];
  let token = u32(start) + t % p.count;
  if (t % p.count >= p.used || start < 0 || token / p.page_tokens >= p.columns) { return NOWHERE; }
  let page = pages[p.pages_base + b * p.columns + token / p.page_tokens];
  if (page < 0 || u32(page) >= p.pool_pages) { return NOWHERE; }
  return u32(page) * p.page_tokens + token % p.page_tokens;
}
