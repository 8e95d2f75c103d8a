// ThreadPool: loops over a range of indices, shared between a few threads that stay alive.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace rlx {

class ThreadPool {
 public:
  // `threads` counts the caller; 0 means as many as the machine has. One thread starts none.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Which thread of its pool this is, for scratch memory per thread: a pool's workers are 1 to threads() - 1, every
  // other thread is 0. Inside a loop no two threads have the same one.
  static int this_thread();

  // Calls fn(b, e) for pieces that together are [begin, end), each of at least `grain` indices but for the last one.
  // Which pieces depends on the number of threads, so results must not. The calling thread takes part and returns when
  // all are done. When calls throw, pieces that have not begun are left out and the first exception is thrown here.
  // From inside such a loop (of any pool) everything runs on the calling thread; calls from several threads take turns.
  // Nothing is allocated.
  template <class F>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& fn) {
    using Fn = std::remove_reference_t<F>;
    run(begin, end, grain, const_cast<void*>(static_cast<const void*>(std::addressof(fn))),
        [](void* f, int64_t b, int64_t e) { (*static_cast<Fn*>(f))(b, e); });
  }

 private:
  using Call = void (*)(void* fn, int64_t begin, int64_t end);

  void run(int64_t begin, int64_t end, int64_t grain, void* fn, Call call);
  void work(int index);
  void take_pieces();
  bool enter(uint32_t& last_job);
  void leave();
  void stop();

  // The job. Written while the gate is closed and nobody is inside, read by those inside.
  void* fn_ = nullptr;
  Call call_ = nullptr;
  int64_t begin_ = 0, end_ = 0;
  uint64_t piece_ = 0, pieces_ = 0;   // indices per piece, number of pieces
  std::atomic<uint64_t> next_ = 0;    // the next piece that nobody has taken
  std::atomic<bool> failed_ = false;  // set by the first that throws, who then owns error_
  std::exception_ptr error_;

  // Open bit, number of the job, and how many workers are inside, in one word: a worker enters only while the job it
  // saw is open, and a closed gate with nobody inside means that the job's fields are nobody's any more.
  std::atomic<uint32_t> gate_ = 0;
  std::atomic<bool> stopping_ = false;

  std::mutex callers_;  // held for a whole loop: one job at a time
  std::mutex sleep_;    // only for going to sleep and waking up
  std::condition_variable wake_workers_, wake_caller_;
  std::atomic<int> sleeping_workers_ = 0;
  std::atomic<bool> sleeping_caller_ = false;
  int spins_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace rlx
