// Where a run's inputs, params and sizes come from: files, archives, random numbers, --dim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.h"

namespace rlx::cli {

struct FeedArgs {
  std::vector<std::string> inputs, params, dims;
  std::string params_file;
  std::optional<uint64_t> random_inputs, random_params;  // seeds; unset: what is not given stays so
};
void add_feed_options(CLI::App& app, FeedArgs& args);

struct Feed {
  NamedTensors inputs, params;
  DimBinding dims;  // for compile(); empty when inputs are missing, so that the run can name them
};
Feed make_feed(const Graph& graph, const FeedArgs& args);

}  // namespace rlx::cli
