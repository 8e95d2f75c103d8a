#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/allocations.h"
#include "support/expect_error.h"

namespace rlx {
namespace {

using namespace std::chrono_literals;
using Piece = std::pair<int64_t, int64_t>;

// The pieces of a loop, sorted.
std::vector<Piece> pieces_of(ThreadPool& pool, int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  std::vector<Piece> pieces;
  pool.parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    const std::lock_guard lock(mutex);
    pieces.emplace_back(b, e);
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(ThreadPool, EveryIndexIsVisitedOnceInPiecesOfAtLeastTheGrain) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t begin : {int64_t{-5}, int64_t{0}, int64_t{1000}})
      for (const int64_t count : {1, 2, 7, 64, 1000})
        for (const int64_t grain : {1, 3, 64, 5000}) {
          const auto pieces = pieces_of(pool, begin, begin + count, grain);
          int64_t at = begin;
          for (size_t i = 0; i < pieces.size(); ++i) {
            EXPECT_EQ(pieces[i].first, at);
            EXPECT_GT(pieces[i].second, at);
            if (i + 1 < pieces.size()) {
              EXPECT_GE(pieces[i].second - at, grain);
            }
            at = pieces[i].second;
          }
          EXPECT_EQ(at, begin + count) << threads << " threads, grain " << grain;
        }
  }
}

TEST(ThreadPool, AnEmptyRangeCallsNothing) {
  ThreadPool pool(3);
  EXPECT_TRUE(pieces_of(pool, 3, 3, 1).empty());
  EXPECT_TRUE(pieces_of(pool, 3, -3, 1).empty());
}

TEST(ThreadPool, TheWidestRangeDoesNotOverflow) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  ThreadPool pool(3);
  const auto pieces = pieces_of(pool, kMin, kMax, 1);
  EXPECT_EQ(pieces.front().first, kMin);
  EXPECT_EQ(pieces.back().second, kMax);
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_EQ(pieces[i].first, pieces[i - 1].second);
  EXPECT_EQ(pieces_of(pool, kMin, kMax, kMax).size(), 3u);
}

TEST(ThreadPool, BadArgumentsAreErrors) {
  EXPECT_ERROR(ThreadPool(-1), kInvalid, "Number of threads (-1)");
  EXPECT_ERROR(ThreadPool(1'000'000), kInvalid, "Number of threads (1000000)");
  ThreadPool pool(2);
  EXPECT_ERROR(pool.parallel_for(0, 1, 0, [](int64_t, int64_t) {}), kInvalid, "Grain (0) is not positive.");
}

TEST(ThreadPool, HasTheMachinesThreadsUnlessToldOtherwise) {
  EXPECT_EQ(ThreadPool().threads(), std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(ThreadPool, SeveralThreadsWorkAndTheCallerIsOneOfThem) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived = 0;
  // Each of three pieces waits for the other two, so three threads must take one each.
  pool.parallel_for(0, 3, 1, [&](int64_t, int64_t) {
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (arrived < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(ThreadPool, ThreadsOfALoopHaveDifferentIndicesAndTheCallersIsZero) {
  EXPECT_EQ(ThreadPool::this_thread(), 0);
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  std::set<std::pair<int, std::thread::id>> seen;
  for (int round = 0; round < 50; ++round)
    pool.parallel_for(0, 12, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(50us);
      const std::lock_guard lock(mutex);
      seen.emplace(ThreadPool::this_thread(), std::this_thread::get_id());
    });
  std::set<int> indices;
  for (const auto& [index, thread] : seen) {
    EXPECT_TRUE(indices.insert(index).second) << "two threads are " << index;
    EXPECT_EQ(index == 0, thread == caller);
    EXPECT_LT(index, pool.threads());
  }
  EXPECT_GT(indices.size(), 1u);
}

TEST(ThreadPool, SleepingThreadsWakeUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(20ms);  // far beyond the spinning
    std::atomic<int> arrived = 0;
    pool.parallel_for(0, 3, 1, [&](int64_t, int64_t) {
      ++arrived;
      const auto deadline = std::chrono::steady_clock::now() + 20s;
      while (arrived < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 3) << "a loop of three pieces that need three threads ended";
  }
}

TEST(ThreadPool, TheCallerWaitsForTheSlowest) {
  ThreadPool pool(4);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> done = 0;
    std::atomic<bool> helper_in = false;
    const auto caller = std::this_thread::get_id();
    pool.parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == caller) {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (!helper_in && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      } else {
        helper_in = true;
        std::this_thread::sleep_for(10ms);  // long enough for the caller to go to sleep
      }
      ++done;
    });
    EXPECT_EQ(done, 2);
  }
}

TEST(ThreadPool, NestedLoopsRunOnTheThreadThatCallsThem) {
  ThreadPool outer(3), other(3);
  std::atomic<int64_t> sum = 0;
  std::atomic<bool> elsewhere = false;
  outer.parallel_for(0, 50, 1, [&](int64_t b, int64_t e) {
    const auto self = std::this_thread::get_id();
    for (int64_t i = b; i < e; ++i)
      for (ThreadPool* pool : {&outer, &other})
        pool->parallel_for(0, 10, 1, [&](int64_t b2, int64_t e2) {
          if (std::this_thread::get_id() != self) elsewhere = true;
          sum += e2 - b2;
        });
  });
  EXPECT_EQ(sum, 50 * 2 * 10);
  EXPECT_FALSE(elsewhere);
  EXPECT_GT(pieces_of(outer, 0, 50, 1).size(), 1u) << "afterwards loops are shared again";
}

TEST(ThreadPool, AnExceptionTravelsToTheCallerAndTheRestIsLeftOut) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> thrown = 0;
    try {
      pool.parallel_for(0, 1000, 1, [&](int64_t b, int64_t) {
        if (b > 0) {
          ++thrown;
          throw std::runtime_error("piece " + std::to_string(b));
        }
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(std::string(e.what()).substr(0, 6), "piece ");
      EXPECT_LE(thrown, 3) << "each thread throws at most once";
    }
    EXPECT_EQ(pieces_of(pool, 0, 5, 1).size(), 5u) << "the pool goes on";
  }
}

TEST(ThreadPool, AnErrorOfTheCallersOwnPieceIsThrownOnce) {
  ThreadPool pool(2);
  EXPECT_ERROR(pool.parallel_for(0, 8, 1, [](int64_t, int64_t) { fail(ErrorKind::kRuntime, "Broken."); }), kRuntime,
               "Broken.");
  EXPECT_ERROR(pool.parallel_for(0, 1, 8, [](int64_t, int64_t) { fail(ErrorKind::kRuntime, "Inline."); }), kRuntime,
               "Inline.");
  EXPECT_EQ(pieces_of(pool, 0, 4, 1).size(), 4u);
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  ThreadPool pool(3);
  constexpr int kCallers = 4, kRounds = 200, kCount = 100;
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(kCallers);
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < kRounds; ++round) {
        std::vector<int64_t> cells(kCount);  // plain memory: the pool orders the writes before our reads
        pool.parallel_for(0, kCount, 1, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) cells[static_cast<size_t>(i)] = i;
        });
        sums[static_cast<size_t>(c)] += std::accumulate(cells.begin(), cells.end(), int64_t{0});
      }
    });
  for (std::thread& t : callers) t.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, int64_t{kRounds} * kCount * (kCount - 1) / 2);
}

TEST(ThreadPool, ManyShortLoopsSeeEachOthersWrites) {
  ThreadPool pool(4);
  std::vector<int64_t> cells(64, 0);  // plain memory again: what one loop writes the next one reads, on any thread
  for (int round = 0; round < 3000; ++round)
    pool.parallel_for(0, 64, 4, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++cells[static_cast<size_t>(63 - i)];
    });
  EXPECT_EQ(cells, std::vector<int64_t>(64, 3000));
}

TEST(ThreadPool, StartsAndStopsQuickly) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 2 == 0) pieces_of(pool, 0, 10, 1);
  }
}

TEST(ThreadPool, ALoopAllocatesNothing) {
  if (!test::allocations()) GTEST_SKIP() << "the sanitizer owns operator new";
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  const auto loop = [&] { pool.parallel_for(0, 100, 1, [&](int64_t b, int64_t e) { sum += e - b; }); };
  loop();
  std::this_thread::sleep_for(5ms);  // new threads may still be setting themselves up
  const auto before = *test::allocations();
  for (int i = 0; i < 100; ++i) loop();
  EXPECT_EQ(*test::allocations() - before, 0);
  EXPECT_EQ(sum, 101 * 100);
}

}  // namespace
}  // namespace rlx
