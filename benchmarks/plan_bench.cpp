// How good and how fast the memory plan is: arena against the largest live set, and the time to compile. With a folder
// as argument it also writes the graphs there as text, for `rlx info GRAPH --plan`.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "graphs.h"
#include "rlx/rlx.h"

using namespace rlx;

static double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

static void report(const char* name, const Graph& graph) {
  const auto start = std::chrono::steady_clock::now();
  const Executable exe = compile(graph, {.device = "reference"});
  const double ms = ms_since(start);
  const PlanInfo plan = exe.plan();
  std::printf(
      "%-22s %6zu steps  arena %9.2f MB  largest live set %9.2f MB  ratio %.4f  unshared %9.2f MB  compile %7.1f ms\n",
      name, plan.steps.size(), static_cast<double>(plan.arena_bytes) / 1048576,
      static_cast<double>(plan.largest_live_bytes) / 1048576,
      static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.largest_live_bytes),
      static_cast<double>(plan.unshared_bytes) / 1048576, ms);
}

int main(int argc, char** argv) {
  try {
    if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--help") == 0)) {
      std::printf("usage: plan_bench [FOLDER]\n  FOLDER: write each graph there as NAME.rlx\n");
      return argc > 2 ? 2 : 0;
    }
    for (const bench::NamedGraph& g : bench::all_graphs()) {
      const Graph graph = g.make();
      report(std::string(g.name).c_str(), graph);
      if (argc != 2) continue;
      std::ofstream file(std::string(argv[1]) + "/" + std::string(g.name) + ".rlx");
      file << print(graph);
      if (!file.flush()) fail(ErrorKind::kUnavailable, str("Folder '", argv[1], "' cannot be written."));
    }
    // A long graph: compile time grows linearly with the nodes.
    for (const int64_t nodes : {5000, 20000}) {
      Graph g(str("chain_of_", nodes));
      Value x = g.input("x", {{16, 16}, DType::F32});
      std::vector<Value> recent(4, x);
      for (int64_t i = 0; i < nodes; ++i)
        recent[static_cast<size_t>(i % 4)] =
            i % 3 == 0 ? ops::relu(recent[static_cast<size_t>((i + 1) % 4)])
                       : recent[static_cast<size_t>((i + 3) % 4)] + recent[static_cast<size_t>((i + 1) % 4)];
      g.output(recent[0], "y");
      report(g.name().c_str(), g);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "plan_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
