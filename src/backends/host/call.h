// What a host kernel (oracle or cpu) sees of one step: typed dense operands and results, attributes, the active extent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/convert.h"
#include "rlx/attrs.h"
#include "rlx/error.h"
#include "rlx/op.h"
#include "rlx/tensor.h"

namespace rlx {
class ThreadPool;
}

namespace rlx::host {

// Reads any real dtype as double.
class Reader {
 public:
  Reader(DType dtype, const std::byte* data) : load_(load_fn(dtype)), data_(data) {}
  double operator[](int64_t index) const { return load_(data_, index); }

 private:
  LoadFn load_;
  const std::byte* data_;
};

// Rounds once, to the dtype of the result.
class Writer {
 public:
  Writer(DType dtype, std::byte* data) : store_(store_fn(dtype)), data_(data) {}
  void set(int64_t index, double value) const { store_(data_, index, value); }

 private:
  StoreFn store_;
  std::byte* data_;
};

// The same for integers and Bool, exact over all of 64 bits.
class IntReader {
 public:
  IntReader(DType dtype, const std::byte* data) : load_(load_int_fn(dtype)), data_(data) {}
  int64_t operator[](int64_t index) const { return load_(data_, index); }

 private:
  LoadIntFn load_;
  const std::byte* data_;
};
// U64 by value: an int64_t holds its bits alone.
class UintReader {
 public:
  explicit UintReader(const std::byte* data) : load_(load_int_fn(DType::U64)), data_(data) {}
  uint64_t operator[](int64_t index) const { return static_cast<uint64_t>(load_(data_, index)); }

 private:
  LoadIntFn load_;
  const std::byte* data_;
};
class IntWriter {
 public:
  IntWriter(DType dtype, std::byte* data) : store_(store_int_fn(dtype)), data_(data) {}
  void set(int64_t index, int64_t value) const { store_(data_, index, value); }

 private:
  StoreIntFn store_;
  std::byte* data_;
};

// One operand or result. `data` is null for an optional result that nobody uses, and for an empty tensor.
struct View {
  DType dtype = DType::F32;
  std::span<const int64_t> sizes;
  std::byte* data = nullptr;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t dim(int64_t axis) const { return sizes[static_cast<size_t>(axis)]; }
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
};

// The weights of the running graph, for the regions of control flow: their params are the parent's, by name.
class ParamSource {
 public:
  virtual ~ParamSource() = default;
  virtual const Tensor* find_param(std::string_view name) const = 0;  // null: not set
};

// A region of a control-flow step: a graph that can be run again and again.
class Region {
 public:
  virtual ~Region() = default;
  // Input `index` is read where these bytes lie; null where it is empty.
  virtual void set_input(size_t index, const std::byte* bytes) = 0;
  // Bytes of the region's own for input `index`, which is read there from now on. They are the same at every call.
  virtual std::span<std::byte> own_input(size_t index) = 0;
  virtual void run() = 0;
  // Valid until the next run, in no input's bytes.
  virtual const Tensor& output(size_t index) const = 0;
};

// The regions of a control-flow step, compiled as programs of their own.
class BodyRunner {
 public:
  virtual ~BodyRunner() = default;
  virtual Region& region(const Graph& body) = 0;  // one of the step's attributes
};

// What a kernel may use besides its operands. The oracle's use no threads.
struct Resources {
  ThreadPool* pool = nullptr;
  std::byte* scratch = nullptr;  // as many bytes as the kernel's row asked for, aligned to 64
  BodyRunner* bodies = nullptr;  // null: regions are run by the plain evaluator
};

class Call {
 public:
  Call(const Attrs& attrs, std::span<const View> inputs, std::span<const View> outputs, const ParamSource& params,
       Resources resources = {})
      : attrs_(attrs), inputs_(inputs), outputs_(outputs), params_(params), resources_(resources) {}

  template <class A>
  const A& attrs() const {
    return attrs_.as<A>();
  }
  const Attrs& raw_attrs() const { return attrs_; }

  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(outputs_.size()); }
  const View& input(int64_t i) const { return inputs_[static_cast<size_t>(i)]; }
  const View& output(int64_t i) const { return outputs_[static_cast<size_t>(i)]; }
  // Optional results that nobody uses have no bytes and are not computed.
  bool wants(int64_t i) const { return i < num_outputs() && output(i).data != nullptr; }

  Reader reader(int64_t i) const { return Reader(input(i).dtype, input(i).data); }
  Writer writer(int64_t i) const { return Writer(output(i).dtype, output(i).data); }
  IntReader int_reader(int64_t i) const { return IntReader(input(i).dtype, input(i).data); }
  // Where the sign matters (order, division, mean): integers are read by this one if they are U64.
  UintReader uint_reader(int64_t i) const {
    RLX_ASSERT(input(i).dtype == DType::U64);
    return UintReader(input(i).data);
  }
  IntWriter int_writer(int64_t i) const { return IntWriter(output(i).dtype, output(i).data); }

  // The elements themselves, where the dtype is known.
  template <class T>
  const T* input_as(int64_t i) const {
    RLX_ASSERT(holds<T>(input(i).dtype));
    return reinterpret_cast<const T*>(input(i).data);
  }
  template <class T>
  T* output_as(int64_t i) const {
    RLX_ASSERT(holds<T>(output(i).dtype));
    return reinterpret_cast<T*>(output(i).data);
  }

  const ParamSource& params() const { return params_; }
  ThreadPool& pool() const {
    RLX_ASSERT(resources_.pool != nullptr);
    return *resources_.pool;
  }
  std::byte* scratch() const { return resources_.scratch; }
  BodyRunner* bodies() const { return resources_.bodies; }
  template <class T>
  T* scratch_as() const {
    return reinterpret_cast<T*>(resources_.scratch);
  }

 private:
  const Attrs& attrs_;
  std::span<const View> inputs_, outputs_;
  const ParamSource& params_;
  Resources resources_;
};

using Kernel = void (*)(const Call&);

// A node as a kernel's row sees it before it runs. Sizes are bound, except when a fused op is asked for support: such a
// row looks at dtypes, ranks and attributes only.
struct Signature {
  const Attrs& attrs;
  std::span<const TensorType> inputs, outputs;
  uint64_t static_inputs = 0;  // bit i: operand i is a weight, or computed of weights alone

  bool is_static(int64_t i) const { return i < 64 && (static_inputs >> i & 1) != 0; }
  const TensorType& input(int64_t i) const { return inputs[static_cast<size_t>(i)]; }
  const TensorType& output(int64_t i) const { return outputs[static_cast<size_t>(i)]; }
};

// A static operand in the layout its kernel likes best. `pack` is a step of its own that runs once, when the weights
// are set: its input 0 is the operand, its output 0 the packed bytes (of any type), its attributes are the node's. The
// kernel then finds the packed bytes behind that operand's View, whose dtype and sizes stay those of the operand.
struct Packing {
  int64_t operand = 0;
  int64_t (*bytes)(const Signature&) = nullptr;
  Kernel pack = nullptr;
  // The sizes that the packer's output has, for what it must know of the node besides the operand and the attributes.
  // Null: the operand's.
  std::vector<int64_t> (*sizes)(const Signature&) = nullptr;
};

// A row of a backend's kernel table: the first row of an op that supports a node runs it.
struct KernelRow {
  const OpDef* op;
  Kernel kernel;
  // Can it run this node? Null: every node of the op.
  bool (*supports)(const Signature&) = nullptr;
  std::string_view name = {};  // for schedules and reports, where an op has several kernels
  // Bytes of working memory that a call of these sizes needs, for all its threads. Null: none.
  int64_t (*scratch)(const Signature&, int threads) = nullptr;
  const Packing* packing = nullptr;  // such a row supports static operands only
};

// Elements before, along and after an axis: index = (o * axis + a) * inner + i.
struct SplitAt {
  int64_t outer, cols, inner;
};
inline SplitAt split_at(std::span<const int64_t> sizes, int64_t axis) {
  axis = normalize_axis(axis, static_cast<int64_t>(sizes.size()));
  const auto a = static_cast<size_t>(axis);
  return {product(sizes.first(a)), sizes[a], product(sizes.subspan(a + 1))};
}

}  // namespace rlx::host
