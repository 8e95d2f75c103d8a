#include <hwy/targets.h>

#include "device_cases.h"
#include "rlx/error.h"

namespace rlx::test {

namespace {

// Kernels choose among these; the best one is what every other test runs.
constexpr int64_t kTargets[] = {HWY_AVX3, HWY_AVX2, HWY_SCALAR};

// Every kernel chooses its target anew.
void use_targets(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().DeInit();
}

struct RestoreTargets {
  ~RestoreTargets() { use_targets(0); }
};

class TargetsTest : public testing::Test {
 public:
  explicit TargetsTest(const OpDef& op) : op_(op) {}

  void TestBody() override {
    on_each_target([this] { compare_cpu_cases(op_); });
  }

 private:
  const OpDef& op_;
};

}  // namespace

void on_each_target(const std::function<void()>& f) {
  const int64_t supported = hwy::SupportedTargets() | HWY_SCALAR;
  const RestoreTargets restore;
  for (const int64_t target : kTargets) {
    if ((supported & target) == 0) continue;
    SCOPED_TRACE(str("instruction set ", hwy::TargetName(target)));
    use_targets(target);
    f();
  }
}

testing::Test* make_targets_test(const OpDef& op) { return new TargetsTest(op); }

}  // namespace rlx::test
