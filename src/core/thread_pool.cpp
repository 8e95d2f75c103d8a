#include "core/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "rlx/error.h"

namespace rlx {

namespace {

constexpr int kMaxThreads = 1024;
// Some 20 to 100 microseconds of looking before sleeping: the next loop of a model mostly follows that soon, and waking
// a thread costs about as much.
constexpr int kSpins = 2000;
// More pieces than threads, so that a slow one (or one that woke up late) does not hold up the rest.
constexpr uint64_t kPiecesPerThread = 4;

// Fields of the gate.
constexpr uint32_t kOpen = 0x8000'0000;
constexpr uint32_t kJob = 0x7FFF'0000;  // wraps around; at worst a worker that slept through 32,768 jobs misses one
constexpr uint32_t kInside = 0x0000'FFFF;
constexpr uint32_t kNextJob = 0x0001'0000;
static_assert(kMaxThreads < kInside);

thread_local bool inside_loop = false;
thread_local int thread_index = 0;

// Marks this thread as being inside a loop, also when a call throws.
struct InsideLoop {
  InsideLoop() { inside_loop = true; }
  ~InsideLoop() { inside_loop = false; }
};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int machine_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

ThreadPool::ThreadPool(int threads) {
  require(threads >= 0 && threads <= kMaxThreads, "Number of threads (", threads, ") is not between 0 and ",
          kMaxThreads, ".");
  const int wanted = threads == 0 ? std::min(machine_threads(), kMaxThreads) : threads;
  spins_ = wanted <= machine_threads() ? kSpins : 0;  // with fewer cores than threads, looking steals time from work
  workers_.reserve(static_cast<size_t>(wanted - 1));
  try {
    for (int i = 1; i < wanted; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& e) {
    stop();
    fail(ErrorKind::kUnavailable,
         str("Thread ", workers_.size() + 2, " of ", wanted, " cannot be started (", e.code().message(), ")."));
  }
}

ThreadPool::~ThreadPool() { stop(); }

int ThreadPool::this_thread() { return thread_index; }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(sleep_);
    stopping_ = true;
  }
  wake_workers_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t begin, int64_t end, int64_t grain, void* fn, Call call) {
  require(grain >= 1, "Grain (", grain, ") is not positive.");
  if (begin >= end) return;
  const uint64_t count = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);  // fits, whatever the two are
  if (workers_.empty() || inside_loop || count <= static_cast<uint64_t>(grain)) return call(fn, begin, end);

  const uint64_t shares = kPiecesPerThread * static_cast<uint64_t>(threads());
  const uint64_t piece = std::max(static_cast<uint64_t>(grain), count / shares + (count % shares != 0));
  const std::lock_guard one_at_a_time(callers_);
  fn_ = fn;
  call_ = call;
  begin_ = begin;
  end_ = end;
  piece_ = piece;
  pieces_ = count / piece + (count % piece != 0);
  next_ = 0;
  failed_ = false;
  const uint32_t job = (gate_.load() + kNextJob) & kJob;
  gate_.store(kOpen | job);
  // A worker counts itself as sleeping before it looks at the gate for the last time; both are sequentially consistent,
  // so either it sees the open gate or we see it sleeping.
  if (sleeping_workers_.load() > 0) {
    { const std::lock_guard lock(sleep_); }
    wake_workers_.notify_all();
  }

  {
    const InsideLoop mark;
    take_pieces();
  }

  // Whoever has not entered by now finds no piece left; wait for those inside.
  gate_.fetch_and(~kOpen);
  for (int i = 0; i < spins_ && (gate_.load() & kInside) != 0; ++i) relax();
  if ((gate_.load() & kInside) != 0) {
    std::unique_lock lock(sleep_);
    sleeping_caller_ = true;
    wake_caller_.wait(lock, [&] { return (gate_.load() & kInside) == 0; });
    sleeping_caller_ = false;
  }
  if (failed_.load()) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::take_pieces() {
  while (!failed_.load(std::memory_order_relaxed)) {
    const uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_) return;
    const uint64_t first = static_cast<uint64_t>(begin_) + i * piece_;
    const uint64_t size = std::min(piece_, static_cast<uint64_t>(end_) - first);
    try {
      call_(fn_, static_cast<int64_t>(first), static_cast<int64_t>(first + size));
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
}

// True when there is an open job that this worker has not seen, which it then is inside of.
bool ThreadPool::enter(uint32_t& last_job) {
  uint32_t gate = gate_.load();
  while ((gate & kOpen) && (gate & kJob) != last_job)
    if (gate_.compare_exchange_weak(gate, gate + 1)) {
      last_job = gate & kJob;
      return true;
    }
  return false;
}

void ThreadPool::leave() {
  const uint32_t before = gate_.fetch_sub(1);
  if ((before & kOpen) || (before & kInside) != 1 || !sleeping_caller_.load()) return;
  { const std::lock_guard lock(sleep_); }
  wake_caller_.notify_one();
}

void ThreadPool::work(int index) {
  thread_index = index;
  const InsideLoop mark;  // a loop inside a piece runs on this thread alone
  uint32_t last_job = 0;
  while (true) {
    bool entered = enter(last_job);
    for (int i = 0; i < spins_ && !entered && !stopping_.load(std::memory_order_relaxed); ++i) {
      relax();
      entered = enter(last_job);
    }
    if (!entered) {
      std::unique_lock lock(sleep_);
      ++sleeping_workers_;
      wake_workers_.wait(lock, [&] { return stopping_.load() || (entered = enter(last_job)); });
      --sleeping_workers_;
    }
    if (!entered) return;  // stopping
    take_pieces();
    leave();
  }
}

}  // namespace rlx
