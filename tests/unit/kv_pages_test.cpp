#include "rlx/kv_pages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.h"
#include "support/random.h"

namespace rlx::test {

static std::vector<int32_t> pages_of(const KvPages& pages, KvPages::Sequence s) {
  const auto span = pages.pages(s);
  return {span.begin(), span.end()};
}

TEST(KvPages, TakesTheLowestFreePagesAndGivesAllBack) {
  KvPages pages(5, 4);
  const auto a = pages.open(), b = pages.open();
  EXPECT_TRUE(pages.extend(a, 5)->empty());
  EXPECT_TRUE(pages.extend(b, 4)->empty());
  EXPECT_TRUE(pages.extend(a, 4)->empty());  // 9 tokens: a third page
  EXPECT_EQ(pages_of(pages, a), (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(pages_of(pages, b), (std::vector<int32_t>{2}));
  EXPECT_EQ(pages.length(a), 9);
  pages.release(a);
  EXPECT_EQ(pages.free_pages(), 4);
  EXPECT_TRUE(pages.extend(b, 1)->empty());
  EXPECT_EQ(pages_of(pages, b), (std::vector<int32_t>{2, 0}));
  EXPECT_TRUE(pages.extend(b, 3)->empty());  // still in its page
  EXPECT_EQ(pages.free_pages(), 3);
}

TEST(KvPages, GivesNothingWhereThePoolIsTooSmall) {
  KvPages pages(2, 4);
  const auto a = pages.open(), b = pages.open();
  EXPECT_TRUE(pages.extend(a, 3));
  EXPECT_FALSE(pages.extend(b, 5));
  EXPECT_EQ(pages.length(b), 0);
  EXPECT_EQ(pages.free_pages(), 1);
  EXPECT_TRUE(pages.extend(b, 4));
  EXPECT_FALSE(pages.extend(b, 1));
  EXPECT_TRUE(pages.extend(a, 1));
}

TEST(KvPages, SharesPrefixesUntilSomebodyWrites) {
  KvPages pages(6, 4);
  const auto a = pages.open();
  ASSERT_TRUE(pages.extend(a, 6));  // pages 0, 1; the second half full
  const auto b = pages.fork(a);
  EXPECT_EQ(pages_of(pages, b), pages_of(pages, a));
  EXPECT_EQ(pages.free_pages(), 4);
  const auto copies = pages.extend(b, 1);
  ASSERT_EQ(copies->size(), 1u);
  EXPECT_EQ((*copies)[0].from, 1);
  EXPECT_EQ((*copies)[0].to, 2);
  EXPECT_EQ(pages_of(pages, b), (std::vector<int32_t>{0, 2}));
  EXPECT_TRUE(pages.extend(a, 1)->empty());  // it has page 1 alone now
  // A page that is full is never written to.
  const auto c = pages.fork(a);
  ASSERT_TRUE(pages.extend(a, 1));
  const auto d = pages.fork(a);
  EXPECT_TRUE(pages.extend(d, 1)->empty());
  pages.release(a);
  pages.release(b);
  EXPECT_EQ(pages_of(pages, c), (std::vector<int32_t>{0, 1}));
  pages.release(c);
  pages.release(d);
  EXPECT_EQ(pages.free_pages(), 6);
}

TEST(KvPages, WritesTables) {
  KvPages pages(4, 2);
  const auto a = pages.open(), b = pages.open(), c = pages.open();
  ASSERT_TRUE(pages.extend(a, 1) && pages.extend(b, 4));
  const KvPages::Sequence all[] = {b, a, c};
  EXPECT_EQ(pages.table(all, 3), Tensor::i32({3, 3}, {1, 2, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pages.lengths(all), Tensor::i32({3}, {4, 1, 0}));
  EXPECT_ERROR(pages.table(all, 1), kInvalid, "has 2 pages, more than a table of 1 columns holds");
}

TEST(KvPages, RefusesWhatIsReleased) {
  KvPages pages(4, 2);
  const auto a = pages.open();
  pages.release(a);
  EXPECT_ERROR(pages.release(a), kInvalid, "Sequence 0 is not open: it was released");
  EXPECT_ERROR(pages.extend(a, 1), kInvalid, "is not open");
  EXPECT_ERROR(pages.fork(7), kInvalid, "Sequence 7 is not open");
  EXPECT_ERROR(KvPages(3, 0), kInvalid, "Tokens of a page (0) are less than 1");
}

// Random traffic: every page is free or owned, never written by two.
TEST(KvPages, NeverLosesAPage) {
  for_random(20, [](Rng& rng) {
    constexpr int64_t kPages = 20;
    KvPages pages(kPages, rng.integer(1, 5));
    std::vector<KvPages::Sequence> open;
    for (int step = 0; step < 200; ++step) {
      if (open.empty() || rng.chance(0.2)) open.push_back(pages.open());
      const auto at = static_cast<size_t>(rng.integer(0, static_cast<int64_t>(open.size()) - 1));
      if (rng.chance(0.2)) {
        pages.release(open[at]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (rng.chance(0.2)) {
        open.push_back(pages.fork(open[at]));
      } else if (const int64_t more = rng.integer(1, 7); pages.extend(open[at], more)) {
        // What was just written belongs to this sequence alone.
        const auto own = pages_of(pages, open[at]);
        for (int64_t t = pages.length(open[at]) - more; t < pages.length(open[at]); ++t)
          for (const auto other : open) {
            if (other == open[at]) continue;
            for (const int32_t page : pages.pages(other))
              ASSERT_NE(page, own[static_cast<size_t>(t / pages.tokens_per_page())]);
          }
      }
      std::vector<bool> used(kPages);
      for (const auto s : open)
        for (const int32_t page : pages.pages(s)) used[static_cast<size_t>(page)] = true;
      ASSERT_EQ(std::count(used.begin(), used.end(), false), pages.free_pages());
    }
  });
}

}  // namespace rlx::test
