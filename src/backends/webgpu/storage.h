// What a value's bytes are on the device (spec 10, 1.5).
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/shape.h"

namespace rlx {
struct CompileOptions;
}

namespace rlx::webgpu {

class Device;

enum class Storage : uint8_t {
  kHost,  // no device bytes: only host steps touch it
  kF32,   // F32; BF16 that is computed; F16 where the device has no halves
  kF16,
  kI32,     // I32, I64; I8 and I16 that are computed
  kU32,     // U32, U64; U8, U16 and Bool that are computed
  kC64,     // pairs of f32
  kPacked,  // the tensor's own bytes in 32-bit words: I8, U8, I16, U16, Bool and BF16 that are only read
};
std::string_view element_type(Storage storage);  // f32, f16, i32, u32: of WGSL; u32 for kPacked, vec2<f32> for kC64
int64_t storage_bytes(Storage storage, const TensorType& type);
int64_t storage_element_bytes(Storage storage, DType dtype);
uint32_t packed_kind(DType dtype);  // what packed.wgsl calls a dtype whose elements lie packed in words

// How kernels see elements of a dtype; kHost: they do not.
Storage kernel_storage(DType dtype, const Device& device, const CompileOptions& options);
// How values that are computed lie in memory: as kernels see them, or, with f32_uniform, all as f32.
Storage computed_storage(DType dtype, const Device& device, const CompileOptions& options);

}  // namespace rlx::webgpu
