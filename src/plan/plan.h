// The memory plan (spec 20, 2): from a list of steps with their reads and writes to an order, a place for every value
// and the arena's size. Pure functions: no op, no device, no graph.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rlx::plan {

enum class Region : uint8_t {
  kActivation,  // planned: bytes are shared over time
  kPersistent,  // outputs and states: bytes of their own for the executable's life
  kExternal,    // inputs and weights: somebody else's bytes
};

struct Value {
  int64_t size_bytes = 0;
  Region region = Region::kActivation;
  int32_t view_of = -1;           // another value this one lies in; chains are followed to the root
  int64_t view_offset_bytes = 0;  // from the start of view_of
};

struct Step {
  std::vector<int32_t> reads, writes;
  // (written, read): the step may put the written value into the read value's bytes.
  std::vector<std::pair<int32_t, int32_t>> may_share;
  int64_t scratch_bytes = 0;  // lives for this step only
};

// When the run ends, `state` takes `value`; it may have been computed in the state's own bytes.
struct Update {
  int32_t state = 0;
  int32_t value = 0;
};

struct Problem {
  std::vector<Value> values;
  std::vector<Step> steps;  // in a topological order
  std::vector<int32_t> outputs;
  std::vector<Update> updates;
};

enum class Schedule : uint8_t {
  kBest,    // the better of the two below
  kGreedy,  // among the ready steps the one that frees most bytes, then the first
  kSource,  // as given
};

struct Options {
  int64_t alignment = 64;
  Schedule schedule = Schedule::kBest;
  bool no_reuse = false;  // every value its own bytes, for debugging
  bool in_place = true;
  bool verify = false;  // check() after planning
  // No value crosses a multiple of so many bytes, so that a region can be made of several buffers; 0: it is one.
  int64_t page_bytes = 0;
  // So many bytes behind every activation belong to nobody: a kernel that writes there is found out.
  int64_t guard_bytes = 0;
};

struct Slot {
  int64_t offset = 0;  // within the value's region; of a view: where its first byte is
  int64_t size = 0;
};

struct Plan {
  std::vector<int32_t> order;                       // steps, as they run
  std::vector<Slot> slots;                          // per value
  std::vector<Slot> scratch;                        // per step (index into Problem::steps), in the activation region
  std::vector<std::pair<int32_t, int32_t>> shared;  // the in-place pairs that were taken: (written, read)
  std::vector<uint8_t> update_in_place;             // per update: the state needs no copy at the end of a run

  int64_t arena_bytes = 0;  // the activation region
  int64_t persistent_bytes = 0;
  int64_t largest_live_bytes = 0;  // the most that is live at one step: no plan of this order can be smaller
  int64_t unshared_bytes = 0;      // the sum of all activations: what no_reuse needs
};

Plan make_plan(const Problem& problem, const Options& options);

// The invariants M1 to M6, M10, M11 and M13 of spec 20, 2.5; a sentence for each that does not hold.
std::vector<std::string> check(const Problem& problem, const Plan& plan, const Options& options);

// The value a view lies in, and where; a value that is no view is its own root.
struct Root {
  int32_t value = 0;
  int64_t offset_bytes = 0;
};
Root root_of(const Problem& problem, int32_t value);

}  // namespace rlx::plan
