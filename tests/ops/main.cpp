// One test per op of the catalogue ("Ops.softmax"), made from its OP_CASES; an op without cases, judge or kernel fails.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/reference/table.h"
#include "support/op_cases.h"

namespace rlx::test {

class OpTest : public testing::Test {
 public:
  explicit OpTest(const OpDef* op) : op_(op) {}

  void TestBody() override {
    bool judged = false;
    for (const RegisteredCases& registered : registered_cases()) {
      if (registered.op != op_) continue;
      int index = 0;
      for (const auto& c : registered.make()) {
        std::string types;
        for (const Tensor& t : c->inputs) types += str(types.empty() ? "" : ", ", t.type());
        SCOPED_TRACE(str(op_->name, " case ", index++, ": (", types, ")"));
        run_case(*c);
        judged |= c->judged() && c->error.empty();
      }
    }
    EXPECT_TRUE(judged) << "op '" << op_->name << "' has no op case with a judge in tests/ops";
    EXPECT_TRUE(reference::find_kernel(*op_) || op_->decompose)
        << "op '" << op_->name << "' has neither a reference kernel nor a decomposition";
    EXPECT_FALSE(op_->doc.empty()) << "op '" << op_->name << "' has no doc line";
    EXPECT_FALSE(op_->category.empty()) << "op '" << op_->name << "' has no category";
  }

 private:
  const OpDef* op_;
};

}  // namespace rlx::test

int main(int argc, char** argv) {
  using namespace rlx;
  testing::InitGoogleTest(&argc, argv);
  for (const OpDef* op : all_ops()) {
    if (op->traits.leaf) continue;  // leaves hold values; graph tests cover them
    testing::RegisterTest("Ops", std::string(op->name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [op]() -> testing::Test* { return new test::OpTest(op); });
  }
  return RUN_ALL_TESTS();
}
