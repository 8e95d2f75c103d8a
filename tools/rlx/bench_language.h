#pragma once

#include "model_access.h"

namespace rlx::cli {

struct BenchLanguageArgs {
  std::string path;
  TargetArgs target;
  int64_t prompt = 512, answer = 128;  // tokens
  std::string cache = "f32";
  int64_t runs = 3;
  bool json = false;
};

bool is_language_model(const std::string& path);  // by its name: .gguf, a folder, or a short name

// Tokens per second of a prompt and of an answer.
int bench_language(const BenchLanguageArgs& args, std::string& out);

}  // namespace rlx::cli
