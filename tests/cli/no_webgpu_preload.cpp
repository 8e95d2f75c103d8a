// Loaded before a program (LD_PRELOAD), as if no WebGPU library were installed: dlopen finds everything else.
#include <dlfcn.h>

#include <string_view>

extern "C" void* dlopen(const char* file, int mode) {
  if (file != nullptr && std::string_view(file).find("wgpu") != std::string_view::npos) return nullptr;
  static const auto next = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  return next(file, mode);
}
