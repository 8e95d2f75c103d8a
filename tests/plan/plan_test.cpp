// The planner alone: random lists of steps, every option, every invariant of spec 20, 2.5; and small cases by hand.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/assign.h"
#include "support/random.h"

namespace rlx::test {

using plan::Options;
using plan::Plan;
using plan::Problem;
using plan::Region;
using plan::Schedule;

static Problem random_problem(Rng& rng, int64_t steps) {
  Problem p;
  const auto add = [&](Region region) {
    p.values.push_back(
        {.size_bytes = rng.chance(0.05) ? 0 : rng.integer(1, 40) * (rng.chance(0.3) ? 16 : 64), .region = region});
    return static_cast<int32_t>(p.values.size() - 1);
  };
  std::vector<int32_t> known;
  for (int i = 0; i < 3; ++i) known.push_back(add(Region::kExternal));
  std::vector<int32_t> states;
  for (int64_t i = rng.integer(0, 2); i > 0; --i) states.push_back(add(Region::kPersistent));
  known.insert(known.end(), states.begin(), states.end());
  const auto pick = [&] { return known[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(known.size()) - 1))]; };
  for (int64_t s = 0; s < steps; ++s) {
    plan::Step step;
    for (int64_t i = rng.integer(0, 3); i > 0; --i) step.reads.push_back(pick());
    for (int64_t i = rng.integer(1, 3); i > 0; --i) {
      const int32_t w = add(rng.chance(0.1) ? Region::kPersistent : Region::kActivation);
      step.writes.push_back(w);
      if (!step.reads.empty() && rng.chance(0.6)) {
        const int32_t r = step.reads[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(step.reads.size()) - 1))];
        p.values[static_cast<size_t>(w)].size_bytes = p.values[static_cast<size_t>(r)].size_bytes;
        step.may_share.emplace_back(w, r);
      }
    }
    if (rng.chance(0.2)) step.scratch_bytes = rng.integer(1, 2000);
    p.steps.push_back(step);
    for (const int32_t w : step.writes) known.push_back(w);
    if (rng.chance(0.3)) {  // a view of anything
      const int32_t of = pick();
      const int64_t size = p.values[static_cast<size_t>(of)].size_bytes;
      const int64_t offset = size == 0 || rng.chance(0.4) ? 0 : rng.integer(0, size - 1);
      p.values.push_back({.size_bytes = size - offset,
                          .region = p.values[static_cast<size_t>(plan::root_of(p, of).value)].region,
                          .view_of = of,
                          .view_offset_bytes = offset});
      known.push_back(static_cast<int32_t>(p.values.size() - 1));
    }
  }
  for (const int32_t v : known)
    if (p.values[static_cast<size_t>(plan::root_of(p, v).value)].region == Region::kPersistent && rng.chance(0.3))
      p.outputs.push_back(v);
  for (const int32_t s : states)
    for (const int32_t v : known)
      if (v != s && p.values[static_cast<size_t>(v)].region == Region::kPersistent &&
          p.values[static_cast<size_t>(v)].size_bytes == p.values[static_cast<size_t>(s)].size_bytes) {
        p.updates.push_back({s, v});
        break;
      }
  return p;
}

static std::vector<Options> all_options() {
  std::vector<Options> out;
  for (const Schedule schedule : {Schedule::kBest, Schedule::kGreedy, Schedule::kSource})
    for (const bool no_reuse : {false, true})
      for (const bool in_place : {false, true})
        for (const int64_t alignment : {int64_t{1}, int64_t{16}, int64_t{64}, int64_t{256}})
          out.push_back({.alignment = alignment, .schedule = schedule, .no_reuse = no_reuse, .in_place = in_place});
  return out;
}

TEST(Plan, InvariantsHoldOnRandomProblemsWithAllOptions) {
  for_random(150, [](Rng& rng) {
    const Problem p = random_problem(rng, rng.integer(0, 40));
    for (const Options& o : all_options()) {
      const Plan plan = plan::make_plan(p, o);
      EXPECT_EQ(plan::check(p, plan, o), std::vector<std::string>{});
      if (o.no_reuse) {
        EXPECT_EQ(plan.arena_bytes, plan.unshared_bytes);
      }
      // M9: the same problem gives the same plan.
      const Plan again = plan::make_plan(p, o);
      EXPECT_EQ(again.order, plan.order);
      EXPECT_EQ(again.arena_bytes, plan.arena_bytes);
    }
  });
}

// Sizes of gigabytes: offsets beyond 32 bits are those of the small problem, as many times larger.
TEST(Plan, LargeProblemsArePlannedAsSmallOnes) {
  constexpr int64_t kTimes = int64_t{1} << 24;  // the largest value has 40 GiB
  int64_t largest = 0;
  for_random(60, [&](Rng& rng) {
    const Problem small = random_problem(rng, rng.integer(10, 40));
    Problem large = small;
    for (plan::Value& v : large.values) {
      v.size_bytes *= kTimes;
      v.view_offset_bytes *= kTimes;
    }
    for (plan::Step& s : large.steps) s.scratch_bytes *= kTimes;
    for (Options o : all_options())
      for (const int64_t page : {0, 4096}) {
        o.page_bytes = page;
        o.guard_bytes = page == 0 ? 0 : 64;
        const Plan expected = plan::make_plan(small, o);
        Options scaled = o;
        for (int64_t* bytes : {&scaled.alignment, &scaled.page_bytes, &scaled.guard_bytes}) *bytes *= kTimes;
        const Plan plan = plan::make_plan(large, scaled);
        EXPECT_EQ(plan::check(large, plan, scaled), std::vector<std::string>{});
        EXPECT_EQ(plan.order, expected.order);
        EXPECT_EQ(plan.shared, expected.shared);
        EXPECT_EQ(plan.arena_bytes, expected.arena_bytes * kTimes);
        EXPECT_EQ(plan.persistent_bytes, expected.persistent_bytes * kTimes);
        for (size_t v = 0; v < plan.slots.size(); ++v) {
          EXPECT_EQ(plan.slots[v].offset, expected.slots[v].offset * kTimes);
          EXPECT_EQ(plan.slots[v].size, expected.slots[v].size * kTimes);
          largest = std::max(largest, plan.slots[v].offset);
        }
        for (size_t s = 0; s < plan.scratch.size(); ++s)
          EXPECT_EQ(plan.scratch[s].offset, expected.scratch[s].offset * kTimes);
      }
  });
  EXPECT_GT(largest, int64_t{1} << 36);
}

TEST(Plan, ValuesThatLiveTogetherBeyondFourGiB) {
  // Five of 1.5 GiB that the last step reads, and one that is dead by then.
  constexpr int64_t kBytes = 3 * (int64_t{1} << 29);
  Problem p;
  for (int i = 0; i < 7; ++i) p.values.push_back({.size_bytes = kBytes});
  p.steps = {{.writes = {6}}, {.reads = {6}, .writes = {0}}};
  for (int32_t i = 1; i < 5; ++i) p.steps.push_back({.writes = {i}});
  p.steps.push_back({.reads = {0, 1, 2, 3, 4}, .writes = {5}});
  for (const int64_t page : {int64_t{0}, int64_t{1} << 31, int64_t{1} << 33}) {
    const Plan plan = plan::make_plan(p, {.in_place = false, .verify = true, .page_bytes = page});
    EXPECT_EQ(plan.arena_bytes, page == int64_t{1} << 31 ? 5 * page + kBytes : page == 0 ? 6 * kBytes : page + kBytes);
    for (size_t a = 0; a < 6; ++a) {
      EXPECT_TRUE(page == 0 || plan.slots[a].offset % page + kBytes <= page);
      for (size_t b = 0; b < a; ++b) EXPECT_GE(std::abs(plan.slots[a].offset - plan.slots[b].offset), kBytes);
    }
  }
}

TEST(Plan, StepsThatWriteOneValueKeepTheirOrder) {
  // Value 0 is written twice, read, written over and read again, beside steps that are ready at once.
  Problem p;
  for (int i = 0; i < 6; ++i) p.values.push_back({.size_bytes = i == 0 ? 1024 : 64});
  p.steps = {{.writes = {0}},
             {.writes = {1}},
             {.reads = {1}, .writes = {0}},
             {.reads = {0}, .writes = {2}},
             {.writes = {0}},
             {.reads = {0, 2}, .writes = {3}},
             {.writes = {4}},
             {.reads = {3, 4}, .writes = {5}}};
  for (const Schedule schedule : {Schedule::kBest, Schedule::kGreedy, Schedule::kSource}) {
    const Options o{.schedule = schedule};
    const Plan plan = plan::make_plan(p, o);
    EXPECT_EQ(plan::check(p, plan, o), std::vector<std::string>{});
    std::vector<size_t> at(p.steps.size());
    for (size_t i = 0; i < plan.order.size(); ++i) at[static_cast<size_t>(plan.order[i])] = i;
    EXPECT_EQ(plan.order.size(), p.steps.size());
    for (const auto& [before, after] : {std::pair(0, 2), {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 7}, {6, 7}})
      EXPECT_LT(at[static_cast<size_t>(before)], at[static_cast<size_t>(after)]);
  }
}

TEST(Plan, AValueThatIsAlreadyWrittenTakesNobodysBytes) {
  Problem p;
  for (int i = 0; i < 2; ++i) p.values.push_back({.size_bytes = 64});
  p.steps = {{.writes = {0}}, {.writes = {1}}, {.reads = {0}, .writes = {1}, .may_share = {{1, 0}}}};
  const Options o;
  const Plan plan = plan::make_plan(p, o);
  EXPECT_TRUE(plan.shared.empty());
  EXPECT_EQ(plan::check(p, plan, o), std::vector<std::string>{});
}

TEST(Plan, CheckFindsWhatIsWrong) {
  // a -> b -> c, all live one step each; then break the plan in every way the checker must see.
  Problem p;
  for (int i = 0; i < 3; ++i) p.values.push_back({.size_bytes = 128});
  p.values.push_back({.size_bytes = 64, .view_of = 0, .view_offset_bytes = 64});
  p.steps = {{.writes = {0}}, {.reads = {0, 3}, .writes = {1}, .scratch_bytes = 64}, {.reads = {1}, .writes = {2}}};
  const Options o;
  const Plan good = plan::make_plan(p, o);
  ASSERT_EQ(plan::check(p, good, o), std::vector<std::string>{});
  const auto broken = [&](auto&& edit) {
    Plan plan = good;
    edit(plan);
    return !plan::check(p, plan, o).empty();
  };
  EXPECT_TRUE(broken([](Plan& q) { q.slots[1].offset = q.slots[0].offset; }));    // lives together, M1 and M2
  EXPECT_TRUE(broken([](Plan& q) { q.slots[1].offset += 1; }));                   // M3
  EXPECT_TRUE(broken([](Plan& q) { q.slots[1].size = 4; }));                      // M3
  EXPECT_TRUE(broken([](Plan& q) { q.slots[1].offset = 1 << 20; }));              // M3
  EXPECT_TRUE(broken([](Plan& q) { q.slots[3].offset += 64; }));                  // M4
  EXPECT_TRUE(broken([](Plan& q) { std::swap(q.order[0], q.order[1]); }));        // M5
  EXPECT_TRUE(broken([](Plan& q) { q.scratch[1].offset = q.slots[0].offset; }));  // M13
  EXPECT_TRUE(broken([](Plan& q) { q.arena_bytes *= 100; }));                     // M10
  EXPECT_TRUE(broken([](Plan& q) { q.order.pop_back(); }));
}

TEST(Plan, AChainNeedsTwoBuffersAndOneInPlace) {
  Problem p;
  for (int i = 0; i < 10; ++i) {
    p.values.push_back({.size_bytes = 1024});
    plan::Step step{.writes = {i}};
    if (i > 0) step.reads = {i - 1}, step.may_share = {{i, i - 1}};
    p.steps.push_back(step);
  }
  EXPECT_EQ(plan::make_plan(p, {.in_place = false}).arena_bytes, 2048);
  EXPECT_EQ(plan::make_plan(p, {.in_place = true}).arena_bytes, 1024);
  EXPECT_EQ(plan::make_plan(p, {.no_reuse = true}).arena_bytes, 10240);
}

TEST(Plan, NothingIsOverwrittenThatIsReadLater) {
  // v1 = f(v0) in place would destroy v0, which step 2 reads.
  Problem p;
  for (int i = 0; i < 3; ++i) p.values.push_back({.size_bytes = 64});
  p.steps = {{.writes = {0}}, {.reads = {0}, .writes = {1}, .may_share = {{1, 0}}}, {.reads = {0, 1}, .writes = {2}}};
  EXPECT_TRUE(plan::make_plan(p, {}).shared.empty());
  // A view of v0 that is read later counts as v0.
  p.values.push_back({.size_bytes = 32, .view_of = 0});
  p.steps[2].reads = {3, 1};
  EXPECT_TRUE(plan::make_plan(p, {}).shared.empty());
}

TEST(Plan, AnOperandReadInAnotherWayIsNotOverwritten) {
  // The step reads v0 as a whole (index-aligned) and by a transposed view of the same bytes that it may not overwrite.
  Problem p;
  p.values = {{.size_bytes = 64}, {.size_bytes = 64}, {.size_bytes = 64, .view_of = 0}};
  p.steps = {{.writes = {0}}, {.reads = {0, 2}, .writes = {1}, .may_share = {{1, 0}}}};
  EXPECT_TRUE(plan::make_plan(p, {}).shared.empty());
}

TEST(Plan, StatesAreUpdatedInPlaceUnlessSomebodyStillNeedsThem) {
  // 0: state, 1: new value, 2: another reader's result
  Problem p;
  p.values = {{.size_bytes = 64, .region = Region::kPersistent},
              {.size_bytes = 64, .region = Region::kPersistent},
              {.size_bytes = 64}};
  p.steps = {{.reads = {0}, .writes = {2}}, {.reads = {0}, .writes = {1}, .may_share = {{1, 0}}}};
  p.updates = {{0, 1}};
  EXPECT_EQ(plan::make_plan(p, {}).update_in_place[0], 1);
  std::swap(p.steps[0], p.steps[1]);
  EXPECT_EQ(plan::make_plan(p, {.schedule = Schedule::kSource}).update_in_place[0],
            0);  // the other one reads it afterwards
  std::swap(p.steps[0], p.steps[1]);
  p.outputs = {0};  // the caller wants the old value
  EXPECT_EQ(plan::make_plan(p, {}).update_in_place[0], 0);
}

TEST(Plan, GreedyOrderFreesBeforeItFills) {
  // Three large values, each reduced to a small one: source order makes all large ones first.
  Problem p;
  for (int i = 0; i < 3; ++i) p.values.push_back({.size_bytes = 1 << 20});
  for (int i = 0; i < 3; ++i) p.values.push_back({.size_bytes = 64});
  for (int32_t i = 0; i < 3; ++i) p.steps.push_back({.writes = {i}});
  for (int32_t i = 0; i < 3; ++i) p.steps.push_back({.reads = {i}, .writes = {3 + i}});
  p.steps.push_back({.reads = {3, 4, 5}, .writes = {}});
  EXPECT_GE(plan::make_plan(p, {.schedule = Schedule::kSource}).arena_bytes, 3 << 20);
  EXPECT_LE(plan::make_plan(p, {.schedule = Schedule::kBest}).arena_bytes, (1 << 20) + 1024);
}

TEST(Plan, AssignmentNeverOverlapsAndIsCloseToTheBound) {
  double worst = 1;
  for_random(60, [&](Rng& rng) {
    std::vector<plan::Block> blocks;
    for (int64_t i = rng.integer(1, 120); i > 0; --i) {
      const auto birth = static_cast<int32_t>(rng.integer(0, 100));
      blocks.push_back(
          {.size = rng.integer(1, 64) * 64, .birth = birth, .death = birth + static_cast<int32_t>(rng.integer(0, 12))});
    }
    const int64_t bound = plan::largest_live(blocks);
    const int64_t arena = plan::assign(blocks, bound);
    for (size_t i = 0; i < blocks.size(); ++i)
      for (size_t j = i + 1; j < blocks.size(); ++j) {
        const auto &a = blocks[i], &b = blocks[j];
        const bool together = a.birth <= b.death && b.birth <= a.death;
        EXPECT_FALSE(together && a.offset < b.offset + b.size && b.offset < a.offset + a.size);
      }
    worst = std::max(worst, static_cast<double>(arena) / static_cast<double>(bound));
  });
  EXPECT_LT(worst, 1.35);
}

}  // namespace rlx::test
