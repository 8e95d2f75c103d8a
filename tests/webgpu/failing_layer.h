// What failing_layer.cpp, a library that the Vulkan loader loads, offers to the tests in the same process.
#pragma once

#include <vulkan/vulkan.h>

extern "C" {

// The call of this name, one of those in failing_layer.cpp, returns `result` from its `after`-th time on. Null: none
// does.
void fail_call(const char* name, int after, VkResult result);
bool call_failed();  // since fail_call()
}
