// The op cases on the cpu device.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "rlx/op.h"

namespace rlx::test {

// Compares every case of an op on the cpu device with the oracle (main.cpp).
void compare_cpu_cases(const OpDef& op);

// Calls f once per instruction set that the machine has and the kernels are compiled for (targets_test.cpp).
void on_each_target(const std::function<void()>& f);
// compare_cpu_cases() on each of them.
testing::Test* make_targets_test(const OpDef& op);

}  // namespace rlx::test
