// rlx bench MODEL: how long a whole model takes, and how much memory.
#pragma once

#include <string>

#include "model_access.h"

namespace rlx::cli {

struct BenchModelArgs {
  std::string path;
  TargetArgs target;
  FeedArgs feed;
  uint64_t seed = 0;
  int64_t warmup = 1, runs = 0;  // 0: as many as fit into the seconds
  double seconds = 3;
  bool json = false;
};
int bench_model(BenchModelArgs args, std::string& out);

}  // namespace rlx::cli
