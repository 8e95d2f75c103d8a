// usage: run_chunks MODEL FOLDER DEVICE: runs a model with a state over input_0.npy, input_1.npy … of the folder. The
// other inputs are state.npy, fed back from output stateN, and sr.npy. Writes output_0.npy … and the last stateN.npy.
#include <cstdio>
#include <filesystem>

#include "core/npy.h"
#include "rlx/model.h"

int main(int argc, char** argv) {
  using namespace rlx;
  if (argc != 4) return 2;
  try {
    const std::string folder = std::string(argv[2]) + "/";
    CompileOptions options;
    options.device = argv[3];
    Model model = Model::open(argv[1], options);
    Tensor state = read_npy(folder + "state.npy");
    const Tensor rate = read_npy(folder + "sr.npy");
    for (int i = 0;; ++i) {
      const std::string path = str(folder, "input_", i, ".npy");
      if (!std::filesystem::exists(path)) break;
      const NamedTensors outputs = model.run({{"input", read_npy(path)}, {"state", state}, {"sr", rate}});
      write_npy(str(folder, "output_", i, ".npy"), outputs.at("output"));
      state = outputs.at("stateN");
    }
    write_npy(folder + "stateN.npy", state);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "run_chunks: %s\n", e.what());
    return 1;
  }
}
