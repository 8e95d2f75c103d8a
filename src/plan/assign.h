// Offsets for blocks that live for an interval of steps: blocks that live together do not overlap.
#pragma once

#include <cstdint>
#include <span>

namespace rlx::plan {

struct Block {
  int64_t size = 0;              // aligned
  int32_t birth = 0, death = 0;  // both included
  int64_t offset = 0;            // the answer
};

// The most bytes that are alive at one step: a lower bound of every assignment.
int64_t largest_live(std::span<const Block> blocks);

// Tries several greedy orders and keeps the smallest; stops when `lower_bound` is reached. Returns the arena's size.
int64_t assign(std::span<Block> blocks, int64_t lower_bound);

// Every block its own bytes.
int64_t assign_apart(std::span<Block> blocks);

}  // namespace rlx::plan
