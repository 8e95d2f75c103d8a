// Ops that an embedder adds: a type rule and kernels, registered by name for the whole process (spec 10, 4.20). All
// functions may be called from any thread. Registering a name again replaces what was there; nodes that exist keep
// working and use the new registration from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

// The result types from those of the operands (call.input(i)); sizes may be symbols. Throws Error when they do not fit.
using CustomTypeRule = std::function<Types(const InferCall& call, std::span<const uint8_t> attrs)>;

struct CustomOp {
  std::string name;  // "vendor.op"
  int64_t num_inputs = 1;
  CustomTypeRule infer;
};
void register_custom_op(CustomOp op);
std::shared_ptr<const CustomOp> find_custom_op(std::string_view name);  // null when there is none

// One operand or result: dense, row-major.
struct CustomView {
  DType dtype = DType::F32;
  std::span<const int64_t> sizes;
  void* data = nullptr;  // null when the tensor is empty, or a result that nobody uses

  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
  // The elements, where T is the C++ type of the dtype (see rlx::holds).
  template <class T>
  std::span<T> values() const {
    require(holds<std::remove_const_t<T>>(dtype), "A custom op reads a tensor of ", dtype, " as another type.");
    return {static_cast<T*>(data), data == nullptr ? 0 : static_cast<size_t>(elements())};
  }
};

struct CustomCall {
  std::span<const CustomView> inputs;  // not to be written
  std::span<const CustomView> outputs;
  std::span<const uint8_t> attrs;
};
using CustomKernel = std::function<void(const CustomCall&)>;

// The backend is named as in compile options: "reference", "cpu", which runs the reference's where it has none. A
// kernel may be registered before its op.
void register_custom_kernel(std::string_view op, std::string_view backend, CustomKernel kernel);
CustomKernel find_custom_kernel(std::string_view op, std::string_view backend);  // empty when there is none

// Builds a node. Throws when no op of that name is registered or the number of operands is not its own.
Value custom_op(std::string_view name, std::span<const Value> inputs, std::span<const uint8_t> attrs = {});
// The packed form: one result of the given type.
Value custom_op(std::string_view name, std::span<const Value> inputs, std::span<const uint8_t> attrs, TensorType type);

}  // namespace rlx
