// Tests that need an adapter, a GPU or the software one; skipped where there is none.
#pragma once

#include <gtest/gtest.h>

#include "rlx/runtime.h"

namespace rlx::test {

class WebGpu : public testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceInfo& d : devices())
      if (d.name == "webgpu" && !d.available) GTEST_SKIP() << d.why_not;
  }
};

inline CompileOptions webgpu_options(bool poison = false) {
  CompileOptions options{.device = "webgpu", .verify_plan = true, .poison = poison};
  options.webgpu.library = CompileOptions::from_environment().webgpu.library;  // for tests that open its device
  options.webgpu.bounds_checks = true;
  return options;
}

}  // namespace rlx::test
