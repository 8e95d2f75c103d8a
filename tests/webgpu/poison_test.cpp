// A kernel that writes outside its result is found out.
#include "backends/webgpu/program.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using PoisonOnWebGpu = WebGpu;

// softmax, with a row more than it has.
static webgpu::Program one_row_too_many(const webgpu::Device& device, const CompileOptions& options, bool too_many) {
  Graph g;
  const Value x = g.input("x", {{3, 8}, DType::F32});
  g.output(ops::softmax(ops::softmax(x)), "y");
  webgpu::Program program = webgpu::lower(g, manifest_of(g), {}, device, options);
  auto& first = std::get<webgpu::Dispatch>(program.steps[0].work);
  EXPECT_EQ(first.params.words[0], 3u);
  if (too_many) {
    ++first.params.words[0];
    ++first.grid.x.items;
  }
  return program;
}

TEST_F(PoisonOnWebGpu, FindsWritesOutsideTheResult) {
  for (const bool checks : {true, false}) {
    CompileOptions options = webgpu_options(true);
    options.webgpu.bounds_checks = checks;
    const auto device = webgpu::Device::open(options.webgpu);
    for (const bool too_many : {false, true}) {
      const auto program = webgpu::make_program(one_row_too_many(*device, options, too_many), device, options);
      Rng rng(1);
      program->set_input(0, rng.tensor({3, 8}));
      if (too_many) {
        EXPECT_ERROR(program->run(), kInternal, "(softmax) writes outside its result");
      } else {
        EXPECT_NO_THROW(program->run());
      }
    }
  }
}

}  // namespace rlx::test
