#include "backends/webgpu/api.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

#ifdef __APPLE__
constexpr std::string_view kNames[] = {"libwgpu_native-release.dylib", "libwgpu_native.dylib"};
#else
constexpr std::string_view kNames[] = {"libwgpu_native-release.so", "libwgpu_native.so"};
#endif

// The folder of the program or shared library that this code is in.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const auto file = std::filesystem::canonical(info.dli_fname, error);
  return error ? "" : file.parent_path().string();
}

std::vector<std::string> candidates(const std::string& library) {
  if (!library.empty()) return {library};
  std::vector<std::string> out;
  const std::string folder = own_folder();
  for (const std::string_view name : kNames) {
    if (!folder.empty()) out.push_back(str(folder, "/", name));
    if (!folder.empty()) out.push_back(str(folder, "/../lib/", name));
  }
  out.push_back(RLX_WEBGPU_BUILD_LIBRARY);
  for (const std::string_view name : kNames) out.emplace_back(name);
  return out;
}

// Empty when the library has all that is required; otherwise the first function it lacks.
std::string resolve(void* handle, Api& api) {
  std::string missing;
#define RLX_WEBGPU_FIND(name) api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, "wgpu" #name));
#define RLX_WEBGPU_NEED(name) \
  RLX_WEBGPU_FIND(name)       \
  if (api.name == nullptr && missing.empty()) missing = "wgpu" #name;
  RLX_WEBGPU_REQUIRED(RLX_WEBGPU_NEED)
  RLX_WEBGPU_OPTIONAL(RLX_WEBGPU_FIND)
#undef RLX_WEBGPU_NEED
#undef RLX_WEBGPU_FIND
  return missing;
}

}  // namespace

const Api& load_api(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, Api>* const loaded = new std::map<std::string, Api>;  // never freed: drivers run threads
  const std::lock_guard lock(mutex);
  if (const auto it = loaded->find(library); it != loaded->end()) return it->second;
  std::string tried, why;
  for (const std::string& file : candidates(library)) {
    tried += str(tried.empty() ? "" : ", ", file);
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const message = dlerror();
      if (!library.empty() && message != nullptr) why = str(" (", message, ")");
      continue;
    }
    Api api;
    if (const std::string missing = resolve(handle, api); !missing.empty())
      fail(ErrorKind::kUnavailable, str("WebGPU library '", file, "' has no function ", missing,
                                        "; rlx is made for webgpu.h of wgpu-native 29."));
    api.path = file;
    return loaded->emplace(library, api).first->second;
  }
  fail(ErrorKind::kUnavailable,
       str("There is no WebGPU library", why, ": looked for ", tried,
           ". './dev setup' fetches wgpu-native; another library is named by RLX_WEBGPU_LIBRARY."));
}

}  // namespace rlx::webgpu
