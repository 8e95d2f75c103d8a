#include "rlx/buckets.h"

#include <algorithm>
#include <map>

#include "rlx/ops/leaves.h"
#include "runtime/device_program.h"
#include "runtime/resized.h"

namespace rlx {

std::vector<Bucket> power_of_two_ladder(int64_t min, int64_t max) {
  require(min >= 1 && max >= min, "Bucket sizes (", min, " to ", max, ") are not positive and ascending.");
  int64_t upper = 1;
  while (upper < min) upper = checked_mul(upper, 2);
  std::vector<Bucket> buckets = {{1, upper}};
  while (upper < max) {
    buckets.push_back({upper + 1, checked_mul(upper, 2)});
    upper *= 2;
  }
  return buckets;
}

struct BucketedExecutable::Impl {
  Graph graph;
  uint32_t symbol;
  std::vector<Bucket> buckets;
  CompileOptions options;
  Manifest manifest;
  NamedTensors params;
  std::map<int64_t, Executable> by_upper;

  Executable& executable(const Bucket& bucket) {
    const auto it = by_upper.find(bucket.upper);
    if (it != by_upper.end()) return it->second;
    CompileOptions bound = options;
    bound.dims.set(symbol, bucket.upper);
    bound.bucket_symbol = symbol;
    Executable made = compile(graph, bound);
    for (const auto& [name, value] : params) made.set_param(name, value);
    return by_upper.emplace(bucket.upper, std::move(made)).first->second;
  }

  static const Port& find(const std::vector<Port>& ports, const std::string& name) {
    const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
    require(it != ports.end(), "There is no input '", name, "'.");
    return *it;
  }
};

BucketedExecutable::BucketedExecutable(Graph graph, uint32_t symbol, std::vector<Bucket> buckets,
                                       const CompileOptions& options)
    : impl_(std::make_unique<Impl>()) {
  verify(graph);
  impl_->manifest = manifest_of(graph);
  require(impl_->manifest.states.empty(), "State '",
          impl_->manifest.states.empty() ? "" : impl_->manifest.states[0].name,
          "' cannot be shared by buckets; use an Executable and its active extent.");
  require(!buckets.empty(), "There are no buckets.");
  for (size_t i = 0; i < buckets.size(); ++i)
    require(buckets[i].first >= 0 && buckets[i].first <= buckets[i].upper &&
                (i == 0 || buckets[i].first > buckets[i - 1].upper),
            "Bucket ", i, " (", buckets[i].first, " to ", buckets[i].upper,
            ") is not an ascending range after the one before it.");
  impl_->graph = std::move(graph);
  impl_->symbol = symbol;
  impl_->buckets = std::move(buckets);
  impl_->options = options;
}
BucketedExecutable::BucketedExecutable(BucketedExecutable&&) noexcept = default;
BucketedExecutable& BucketedExecutable::operator=(BucketedExecutable&&) noexcept = default;
BucketedExecutable::~BucketedExecutable() = default;

void BucketedExecutable::set_param(std::string_view name, Tensor value) {
  for (auto& [upper, exe] : impl_->by_upper) exe.set_param(name, value);
  impl_->params[std::string(name)] = std::move(value);
}

NamedTensors BucketedExecutable::run(const NamedTensors& inputs) {
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const auto& [name, tensor] : inputs) sizes[Impl::find(impl_->manifest.inputs, name).name] = tensor.sizes();
  DimBinding binding = infer_binding(impl_->graph, sizes);
  for (const auto& [id, size] : impl_->options.dims.sizes()) binding.set(id, size);
  const auto actual = binding.find(impl_->symbol);
  require(actual.has_value(), "No input has a size of symbol ?", impl_->symbol, ".");
  const auto bucket = std::find_if(impl_->buckets.begin(), impl_->buckets.end(),
                                   [&](const Bucket& b) { return b.first <= *actual && *actual <= b.upper; });
  require(bucket != impl_->buckets.end(), "Size (", *actual, ") of symbol ?", impl_->symbol,
          " is in no bucket; they end at ", impl_->buckets.back().upper, ".");
  Executable& exe = impl_->executable(*bucket);
  const DimBinding at_actual = impl_->graph.symbols().complete(binding);
  binding.set(impl_->symbol, bucket->upper);
  const DimBinding at_upper = impl_->graph.symbols().complete(binding);
  NamedTensors padded;
  for (const auto& [name, tensor] : inputs)
    padded[name] = resized(tensor, Impl::find(impl_->manifest.inputs, name).type.shape.bind(at_upper).sizes());
  exe.set_active_extent(*actual, bucket->upper);
  NamedTensors out = exe.run(padded);
  for (const Port& p : impl_->manifest.outputs)
    out[p.name] = resized(out.at(p.name), p.type.shape.bind(at_actual).sizes());
  return out;
}

int64_t BucketedExecutable::compiled() const { return static_cast<int64_t>(impl_->by_upper.size()); }

RunStats BucketedExecutable::stats() const {
  RunStats sum;
  for (const auto& [upper, exe] : impl_->by_upper) {
    const RunStats s = exe.stats();
    sum.runs += s.runs;
    sum.compiles += s.compiles;
    sum.full_extent_runs += s.full_extent_runs;
  }
  return sum;
}

}  // namespace rlx
