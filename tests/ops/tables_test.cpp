// The tables that are searched by name are strictly sorted by it: a merge of two branches may break that silently.
#include <gtest/gtest.h>

#include "backends/reference/table.h"
#include "rlx/op.h"

namespace rlx::test {

TEST(Tables, OpsAreSortedAndFound) {
  const auto ops = all_ops();
  for (size_t i = 1; i < ops.size(); ++i) EXPECT_LT(ops[i - 1]->name, ops[i]->name);
  for (const OpDef* op : ops) EXPECT_EQ(find_op(op->name), op) << op->name;
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(Tables, KernelsAreSortedAndFound) {
  const auto rows = reference::kernel_table();
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].op->name, rows[i].op->name);
  for (const host::KernelRow& row : rows) EXPECT_EQ(reference::find_kernel(*row.op), row.kernel) << row.op->name;
}

}  // namespace rlx::test
