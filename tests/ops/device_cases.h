// The op cases on devices other than the oracle, for the tests that main.cpp registers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "support/op_cases.h"

namespace rlx::test {

// As near(), within the tolerance of the op (main.cpp); integers of 64 bits may have wrapped at 32 on a GPU. `looser`:
// by how much more a result may differ where that is measured by the largest element.
testing::AssertionResult near_on(std::string_view device, const OpCase& c, std::span<const Tensor> inputs,
                                 const Tensor& actual, const Tensor& expected, double looser = 1);

// Integers have 32 bits on a GPU, or 24 as f32: an operand that needs more is refused. Was it that?
bool is_refused_by_gpu(const CompileOptions& options, const Error& e);

// The cases of an op that are as they should be and small.
std::vector<std::unique_ptr<OpCase>> small_cases(const OpDef& op);

// How many of so many cases should run on the GPU: all, but about a dozen on a software adapter, which takes up to a
// second to compile a kernel, and none where there is no adapter.
double share_on_gpu(size_t cases);

// Compares every case of an op on the cpu device with the oracle (main.cpp).
void compare_cpu_cases(const OpDef& op);

// Calls f once per instruction set that the machine has and the kernels are compiled for (targets_test.cpp).
void on_each_target(const std::function<void()>& f);
// compare_cpu_cases() on each of them.
testing::Test* make_targets_test(const OpDef& op);

// Every case at an active extent, on each device (active_extent_test.cpp).
testing::Test* make_active_extent_test(const OpDef& op);

// Every case with its operands in the middle of other bytes, and in small buffers (placement_test.cpp).
testing::Test* make_placement_test(const OpDef& op);

// Every case with NaN or an infinity among its operands, of ops that give numbers for the same elements on all devices
// (non_finite_test.cpp).
bool has_same_numbers(const OpDef& op);
testing::Test* make_non_finite_test(const OpDef& op);

}  // namespace rlx::test
