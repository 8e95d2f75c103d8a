// Where a run's inputs, params and sizes come from: files, archives, random numbers, --dim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "image.h"
#include "rlx/model.h"

namespace rlx::cli {

struct FeedArgs {
  std::vector<std::string> inputs, params, dims;
  std::string params_file;
  std::optional<uint64_t> random_inputs, random_params;  // seeds; unset: what is not given stays so
  ImageArgs image;
};
void add_feed_options(CLI::App& app, FeedArgs& args);
void add_input_options(CLI::App& app, FeedArgs& args);  // the same without those of params
extern const char* const kFeedHelp;                     // how sources are read, for footers

struct Feed {
  NamedTensors inputs, params;  // every input
  DimBinding dims;              // for compile(): all symbols
};
// `graph` has at least the symbols, the inputs whose type is known and the params. Throws when an input is neither
// given nor random; the message lists all of them with their types.
Feed make_feed(const Graph& graph, const std::vector<ModelPort>& inputs, const FeedArgs& args);

}  // namespace rlx::cli
