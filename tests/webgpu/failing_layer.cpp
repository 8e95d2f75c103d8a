// A Vulkan layer between the loader and the driver whose calls fail when a test wants it: what a driver says when it
// takes a GPU away, or has no more memory. One driver's functions serve all devices.
#include "failing_layer.h"

#include <vulkan/vk_layer.h>

#include <atomic>
#include <cstring>

#define RLX_FAILING_CALLS(X)                                                                                        \
  X(vkAllocateMemory,                                                                                               \
    (VkDevice d, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* a, VkDeviceMemory* memory),         \
    (d, info, a, memory))                                                                                           \
  X(vkCreateBuffer, (VkDevice d, const VkBufferCreateInfo* info, const VkAllocationCallbacks* a, VkBuffer* buffer), \
    (d, info, a, buffer))                                                                                           \
  X(vkCreateComputePipelines,                                                                                       \
    (VkDevice d, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo* info,                        \
     const VkAllocationCallbacks* a, VkPipeline* pipelines),                                                        \
    (d, cache, n, info, a, pipelines))

namespace {

std::atomic<const char*> chosen = nullptr;
std::atomic<int> left = 0, result = VK_SUCCESS;
std::atomic<bool> has_failed = false;

// VK_SUCCESS: it is for the driver to say.
VkResult failure_of(const char* call) {
  const char* const name = chosen;
  if (name == nullptr || std::strcmp(name, call) != 0 || left-- > 0) return VK_SUCCESS;
  left = 0;
  has_failed = true;
  return static_cast<VkResult>(result.load());
}

#define RLX_DEFINE(name, parameters, arguments)                       \
  PFN_##name driver_##name = nullptr;                                 \
  VkResult VKAPI_CALL failing_##name parameters {                     \
    const VkResult failure = failure_of(#name);                       \
    return failure != VK_SUCCESS ? failure : driver_##name arguments; \
  }
RLX_FAILING_CALLS(RLX_DEFINE)

VkInstance instance = nullptr;
PFN_vkGetInstanceProcAddr next_instance_function = nullptr;
PFN_vkGetDeviceProcAddr next_device_function = nullptr;

template <class Link, class Info>
Link* link_of(const Info* info, VkStructureType type) {
  auto* link = static_cast<Link*>(const_cast<void*>(info->pNext));
  while (link->sType != type || link->function != VK_LAYER_LINK_INFO)
    link = static_cast<Link*>(const_cast<void*>(link->pNext));
  return link;
}

VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* a, VkInstance* out) {
  auto* const link = link_of<VkLayerInstanceCreateInfo>(info, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  next_instance_function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(next_instance_function(nullptr, "vkCreateInstance"));
  const VkResult done = create(info, a, out);
  instance = *out;
  return done;
}

VkResult VKAPI_CALL create_device(VkPhysicalDevice gpu, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* a,
                                  VkDevice* out) {
  auto* const link = link_of<VkLayerDeviceCreateInfo>(info, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  next_device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(next_instance_function(instance, "vkCreateDevice"));
  const VkResult done = create(gpu, info, a, out);
  if (done != VK_SUCCESS) return done;
#define RLX_FIND(name, parameters, arguments) \
  driver_##name = reinterpret_cast<PFN_##name>(next_device_function(*out, #name));
  RLX_FAILING_CALLS(RLX_FIND)
  return done;
}

PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance i, const char* name);
PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice d, const char* name);

PFN_vkVoidFunction own_function(const char* name) {
#define RLX_OWN(own_name, function) \
  if (std::strcmp(name, own_name) == 0) return reinterpret_cast<PFN_vkVoidFunction>(function);
#define RLX_OWN_CALL(name, parameters, arguments) RLX_OWN(#name, failing_##name)
  RLX_OWN("vkGetInstanceProcAddr", instance_function)
  RLX_OWN("vkGetDeviceProcAddr", device_function)
  RLX_OWN("vkCreateInstance", create_instance)
  RLX_OWN("vkCreateDevice", create_device)
  RLX_FAILING_CALLS(RLX_OWN_CALL)
  return nullptr;
}
PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance i, const char* name) {
  const PFN_vkVoidFunction own = own_function(name);
  return own != nullptr ? own : next_instance_function(i, name);
}
PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice d, const char* name) {
  const PFN_vkVoidFunction own = own_function(name);
  return own != nullptr ? own : next_device_function(d, name);
}

}  // namespace

extern "C" {

VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = instance_function;
  version->pfnGetDeviceProcAddr = device_function;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

void fail_call(const char* name, int after, VkResult failure) {
  chosen = nullptr;
  left = after;
  result = failure;
  has_failed = false;
  chosen = name;
}

bool call_failed() { return has_failed; }

}  // extern "C"
