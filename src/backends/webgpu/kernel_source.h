// WGSL kernels as text (style.md, 4): what a file declares, and the specialiser that fits it to one dispatch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx::webgpu {

struct KernelText {
  std::string_view name;  // the file's, without .wgsl
  const char* text;
};
std::span<const KernelText> all_kernels();  // sorted by name; helpers that others include are among them

// Which program a dispatch runs.
struct KernelKey {
  std::string kernel;                                         // a file's name, or what a generated one is called
  std::vector<std::pair<std::string, std::string>> types;     // alias and WGSL type: {"T", "f16"}
  std::vector<std::pair<std::string, uint32_t>> constants;    // overrides
  std::shared_ptr<const std::string> source;                  // a generated kernel's text; null: the file's
  std::vector<std::pair<std::string, std::string>> includes;  // an include, and the one that takes its place
};

// What a kernel's text declares.
struct KernelFacts {
  struct Binding {
    std::string name;     // x
    std::string element;  // T, f32, vec4<f32>, atomic<u32>; aliases are resolved
    bool writes = false;
    uint32_t index = 0;
  };
  std::string text;                 // includes pasted in, aliases and overrides set
  std::vector<Binding> bindings;    // storage, in the order of their indices
  std::vector<std::string> params;  // the fields of Params: a word each
  uint32_t params_binding = 0;
};
// Files in the folder, where one is named, take the place of those that rlx was built with (WebGpuOptions::kernels).
KernelFacts kernel_facts(const KernelKey& key, const std::string& folder = {});
void check_kernel_folder(const std::string& folder);  // an Error where it is none, or has a file that is no kernel's

uint32_t element_bytes(std::string_view wgsl_type);  // of vec4<f16>: 8

// How one dispatch binds the operands (spec 40, 3).
struct BindingUse {
  int32_t shares = -1;    // the operand whose binding this one uses; -1: its own
  bool writable = false;  // the buffer is also written: `read` becomes `read_write`
};
std::string specialize(const KernelFacts& facts, std::span<const BindingUse> uses);

}  // namespace rlx::webgpu
