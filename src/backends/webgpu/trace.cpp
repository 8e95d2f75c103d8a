// Traced runs: when each step ran, by the GPU's own clock where it has one (spec 40, 6; 20, 5).
#include <algorithm>
#include <chrono>

#include "backends/webgpu/executor.h"
#include "ops/cost.h"

namespace rlx::webgpu {

namespace {

constexpr uint32_t kQueriesPerSet = 4096;  // WebGPU's limit

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

void WebGpuProgram::begin_trace() {
  marks_.clear();
  next_query_ = 0;
  if (!device_->features().timestamps || dispatches_.size() == 0 || !queries_.empty()) return;
  const auto count = static_cast<uint32_t>(2 * dispatches_.size());
  for (uint32_t at = 0; at < count; at += kQueriesPerSet) {
    WGPUQuerySetDescriptor descriptor{};
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = kQueriesPerSet;
    queries_.emplace_back(api_, api_.DeviceCreateQuerySet(device_->raw(), &descriptor));
  }
  query_results_ = device_->make_buffer(queries_.size() * kQueriesPerSet * 8,
                                        WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, "timestamps");
  ++stats_.buffers;
  device_->check("making timestamp queries");
}

void WebGpuProgram::run_traced(ReadyStep& r) {
  Mark mark{.step = r.step, .once = in_static_, .begin_ns = now_ns()};
  if (r.dispatch < 0 || queries_.empty()) {
    inner_trace_ = &mark.inner;
    execute(r);  // no clock of its own: the host waits for it
    inner_trace_ = nullptr;
    submit();
    device_->wait();
  } else {
    const ReadyDispatch& d = dispatches_[static_cast<size_t>(r.dispatch)];
    if (d.x == 0 || d.y == 0 || d.z == 0) return;
    mark.query = next_query_;
    next_query_ += 2;
    commands_.dispatch_timed(d, queries_[static_cast<size_t>(mark.query) / kQueriesPerSet].get(),
                             static_cast<uint32_t>(mark.query) % kQueriesPerSet);
  }
  mark.end_ns = now_ns();
  marks_.push_back(std::move(mark));
}

void WebGpuProgram::read_timestamps() {
  timestamps_.resize(static_cast<size_t>(next_query_));
  if (next_query_ == 0) return;
  const auto count = static_cast<uint64_t>(next_query_);
  for (uint64_t at = 0; at < count; at += kQueriesPerSet)
    commands_.resolve(queries_[at / kQueriesPerSet].get(),
                      static_cast<uint32_t>(std::min<uint64_t>(kQueriesPerSet, count - at)), query_results_.get(),
                      at * 8);
  queries_item_ = static_cast<int64_t>(readback_.add_raw(query_results_.get(), 0, count * 8));
}

void WebGpuProgram::end_trace(std::vector<StepTrace>& trace) {
  const double period = device_->timestamp_period_ns();
  uint64_t last = 0;
  for (const uint64_t t : timestamps_) last = std::max(last, t);
  // The clocks differ by a constant: the last step has just been seen to end.
  const int64_t end_ns = now_ns();
  const auto on_host_clock = [&](int64_t query) {
    return end_ns - static_cast<int64_t>(static_cast<double>(last - timestamps_[static_cast<size_t>(query)]) * period);
  };
  const Graph& graph = full_graph();
  std::vector<int64_t> parts(graph.nodes().size());  // dispatches that share a node's arithmetic
  for (const Mark& m : marks_)
    if (!m.step->is_of_one_value()) ++parts[static_cast<size_t>(m.step->graph_node)];
  for (const Mark& m : marks_) {
    StepTrace out{.step = describe(*m.step), .once = m.once, .begin_ns = m.begin_ns, .end_ns = m.end_ns};
    if (m.query >= 0) {
      out.begin_ns = on_host_clock(m.query);
      out.end_ns = std::max(on_host_clock(m.query + 1), out.begin_ns);
    }
    const Node& node = graph.nodes()[static_cast<size_t>(m.step->graph_node)];
    std::vector<TensorType> inputs, results;
    for (const ValueId id : node.inputs) inputs.push_back(graph.type(id));
    for (const Result& r : node.results) results.push_back(r.type);
    const Cost cost = cost_of(*node.op, node.attrs, inputs, results);
    if (!m.step->is_of_one_value())
      out.flops = cost.flops / static_cast<double>(parts[static_cast<size_t>(m.step->graph_node)]);
    out.bytes = cost.bytes;
    if (const auto* d = std::get_if<Dispatch>(&m.step->work)) {
      out.bytes = 0;
      for (const Operand& o : d->operands) {
        out.bytes += static_cast<double>(storage_bytes(value(o.value).storage, value(o.value).type));
      }
    }
    trace.push_back(std::move(out));
    trace.insert(trace.end(), m.inner.begin(), m.inner.end());
  }
}

}  // namespace rlx::webgpu
