#include "backends/webgpu/storage.h"

#include "backends/webgpu/device.h"

namespace rlx::webgpu {

std::string_view element_type(Storage storage) {
  switch (storage) {
    case Storage::kF32: return "f32";
    case Storage::kF16: return "f16";
    case Storage::kI32: return "i32";
    case Storage::kU32:
    case Storage::kPacked: return "u32";
    case Storage::kC64: return "vec2<f32>";
    case Storage::kHost: break;
  }
  fail(ErrorKind::kInternal, "A value without device bytes is asked for its element type.");
}

int64_t storage_element_bytes(Storage storage, DType dtype) {
  switch (storage) {
    case Storage::kF16: return 2;
    case Storage::kC64: return 8;
    case Storage::kPacked:
    case Storage::kHost: return static_cast<int64_t>(size_of(dtype));
    default: return 4;
  }
}

int64_t storage_bytes(Storage storage, const TensorType& type) {
  const int64_t bytes = checked_mul(type.shape.num_elements(), storage_element_bytes(storage, type.dtype));
  return (bytes + 3) / 4 * 4;
}

uint32_t packed_kind(DType dtype) {
  switch (dtype) {
    case DType::I8: return 0;
    case DType::U8: return 1;
    case DType::Bool: return 2;
    case DType::I16: return 3;
    case DType::U16: return 4;
    case DType::BF16: return 5;
    default: fail(ErrorKind::kInternal, str("A packed value is ", dtype, "."));
  }
}

Storage kernel_storage(DType dtype, const Device& device, const CompileOptions& options) {
  switch (dtype) {
    case DType::F32:
    case DType::BF16: return Storage::kF32;
    case DType::F16: return device.features().f16 && !options.webgpu.f32_uniform ? Storage::kF16 : Storage::kF32;
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64: return Storage::kI32;
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64:
    case DType::Bool: return Storage::kU32;
    case DType::C64: return Storage::kC64;
    case DType::F64: break;
  }
  return Storage::kHost;
}

Storage computed_storage(DType dtype, const Device& device, const CompileOptions& options) {
  const Storage seen = kernel_storage(dtype, device, options);
  // Not words of 32 bits: states of random numbers have all of them.
  const bool as_f32 =
      options.webgpu.f32_uniform && (seen == Storage::kI32 || seen == Storage::kU32) && dtype != DType::U32;
  return as_f32 ? Storage::kF32 : seen;
}

}  // namespace rlx::webgpu
