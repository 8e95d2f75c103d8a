#include "backends/webgpu/device.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <thread>

#include "backends/webgpu/subgroups.h"
#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

constexpr std::chrono::microseconds kSpin{200};  // a sleeping thread takes some 50 to wake up

// One instance per library, never released: drivers keep threads of their own.
WGPUInstance instance_of(const Api& api) {
  static std::mutex mutex;
  static std::map<const Api*, WGPUInstance>* const instances = new std::map<const Api*, WGPUInstance>;
  const std::lock_guard lock(mutex);
  WGPUInstance& instance = (*instances)[&api];
  if (instance == nullptr) {
    // Mesa's layer that orders adapters opens a window system's display and complains where there is none; we order
    // them ourselves.
    setenv("NODEVICE_SELECT", "1", 0);
    if (api.SetLogLevel) api.SetLogLevel(WGPULogLevel_Off);  // errors come through callbacks
    WGPUInstanceExtras extras{};
    extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    extras.backends = WGPUInstanceBackend_Primary;
    WGPUInstanceDescriptor descriptor{};
    if (api.InstanceEnumerateAdapters) descriptor.nextInChain = &extras.chain;
    instance = api.CreateInstance(&descriptor);
  }
  if (instance == nullptr) fail(ErrorKind::kUnavailable, str("WebGPU library '", api.path, "' makes no instance."));
  return instance;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

struct FeatureName {
  uint32_t id;
  std::string_view name;
};
constexpr FeatureName kFeatureNames[] = {
    {WGPUFeatureName_ShaderF16, "shader-f16"},
    {WGPUFeatureName_Subgroups, "subgroups"},
    {WGPUNativeFeature_Subgroup, "subgroups"},
    {WGPUFeatureName_TimestampQuery, "timestamp-query"},
    {WGPUNativeFeature_TimestampQueryInsidePasses, "timestamp-query-inside-passes"},
    {WGPUNativeFeature_Immediates, "immediates"},
    {WGPUNativeFeature_PipelineCache, "pipeline-cache"},
    {WGPUNativeFeature_ShaderFloat32Atomic, "shader-float32-atomic"},
    {WGPUNativeFeature_ShaderInt64, "shader-int64"},
    {WGPUNativeFeature_ShaderF64, "shader-f64"},
    {WGPUNativeFeature_CooperativeMatrix, "cooperative-matrix"},
};

std::vector<uint32_t> features_of(const Api& api, WGPUAdapter adapter) {
  WGPUSupportedFeatures supported{};
  api.AdapterGetFeatures(adapter, &supported);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < supported.featureCount; ++i) out.push_back(static_cast<uint32_t>(supported.features[i]));
  api.SupportedFeaturesFreeMembers(supported);
  return out;
}

std::string_view backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan: return "vulkan";
    case WGPUBackendType_Metal: return "metal";
    case WGPUBackendType_D3D12: return "d3d12";
    case WGPUBackendType_OpenGL: return "opengl";
    case WGPUBackendType_OpenGLES: return "opengles";
    default: return "other";
  }
}

AdapterFacts facts_of(const Api& api, WGPUAdapter adapter) {
  AdapterFacts facts;
  WGPUAdapterInfo info{};
  api.AdapterGetInfo(adapter, &info);
  facts.name = text(info.device);
  if (facts.name.empty()) facts.name = text(info.description);
  facts.driver = backend_name(info.backendType);
  facts.software = info.adapterType == WGPUAdapterType_CPU;
  facts.type = info.adapterType == WGPUAdapterType_DiscreteGPU     ? "discrete"
               : info.adapterType == WGPUAdapterType_IntegratedGPU ? "integrated"
               : facts.software                                    ? "software"
                                                                   : "other";
  facts.features.subgroup_min = info.subgroupMinSize;
  facts.features.subgroup_max = info.subgroupMaxSize;
  constexpr uint32_t kNvidia = 0x10de;
  facts.features.waits = info.vendorID == kNvidia && !facts.software;
  api.AdapterInfoFreeMembers(info);

  WGPULimits limits{};
  api.AdapterGetLimits(adapter, &limits);
  facts.limits = {.max_buffer_bytes = limits.maxBufferSize,
                  .max_binding_bytes = limits.maxStorageBufferBindingSize / 16 * 16,
                  .binding_alignment = std::max(limits.minStorageBufferOffsetAlignment, 16u),
                  .uniform_alignment = std::max(limits.minUniformBufferOffsetAlignment, 16u),
                  .workgroup_bytes = limits.maxComputeWorkgroupStorageSize,
                  .workgroup_threads = limits.maxComputeInvocationsPerWorkgroup,
                  .storage_bindings = limits.maxStorageBuffersPerShaderStage,
                  .groups_per_axis = limits.maxComputeWorkgroupsPerDimension,
                  .groups_per_row = limits.maxComputeWorkgroupsPerDimension};

  for (const uint32_t id : features_of(api, adapter)) {
    if (id == WGPUFeatureName_ShaderF16) facts.features.f16 = true;
    if (id == WGPUFeatureName_Subgroups || id == WGPUNativeFeature_Subgroup) {
      facts.features.subgroups = true;
      // The library's own name first: with it, WGSL takes no directive.
      if (facts.features.subgroups_feature != WGPUNativeFeature_Subgroup) facts.features.subgroups_feature = id;
    }
    if (id == WGPUFeatureName_TimestampQuery) facts.features.timestamps = true;
    if (id == WGPUNativeFeature_CooperativeMatrix) facts.features.cooperative_matrix = true;
    for (const FeatureName& f : kFeatureNames)
      if (f.id == id) facts.feature_names.emplace_back(f.name);
  }
  return facts;
}

struct Found {
  AdapterHandle handle;
  AdapterFacts facts;
};

int rank(const AdapterFacts& facts) {
  return facts.type == "discrete" ? 0 : facts.type == "integrated" ? 1 : facts.software ? 3 : 2;
}

std::vector<Found> list_adapters(const Api& api) {
  const WGPUInstance instance = instance_of(api);
  std::vector<Found> found;
  const auto add = [&](WGPUAdapter raw) {
    AdapterHandle handle(api, raw);
    AdapterFacts facts = facts_of(api, raw);
    found.push_back({std::move(handle), std::move(facts)});
  };
  if (api.InstanceEnumerateAdapters) {
    std::vector<WGPUAdapter> raw(api.InstanceEnumerateAdapters(instance, nullptr, nullptr));
    api.InstanceEnumerateAdapters(instance, nullptr, raw.data());
    for (const WGPUAdapter adapter : raw) add(adapter);
  } else {  // portable: the one for speed, and the software one
    for (const bool fallback : {false, true}) {
      struct Answer {
        bool done = false;
        WGPUAdapter adapter = nullptr;
      } answer;
      WGPURequestAdapterOptions options{};
      options.powerPreference = WGPUPowerPreference_HighPerformance;
      options.forceFallbackAdapter = fallback;
      WGPURequestAdapterCallbackInfo callback{};
      callback.mode = WGPUCallbackMode_AllowProcessEvents;
      callback.callback = [](WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView, void* to, void*) {
        *static_cast<Answer*>(to) = {true, status == WGPURequestAdapterStatus_Success ? adapter : nullptr};
      };
      callback.userdata1 = &answer;
      api.InstanceRequestAdapter(instance, &options, callback);
      while (!answer.done) api.InstanceProcessEvents(instance);
      if (answer.adapter) add(answer.adapter);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return rank(a.facts) < rank(b.facts); });
  return found;
}

// Asked once: drivers take their time.
const std::vector<Found>& find_adapters(const Api& api) {
  static std::mutex mutex;
  static auto* const known = new std::map<const Api*, std::vector<Found>>;
  const std::lock_guard lock(mutex);
  const auto it = known->find(&api);
  return it != known->end() ? it->second : known->emplace(&api, list_adapters(api)).first->second;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Is `wanted` a part of the name? A number only as a whole word: 4090 is a part of "RTX 4090", 15 is none of
// "LLVM 15.0.6".
bool is_part_of(const std::string& name, const std::string& wanted) {
  const std::string text = lower_case(name), part = lower_case(wanted);
  const bool number = std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const auto ends_word = [&](size_t i) {
    return i >= text.size() || std::string_view(" ,()[]").find(text[i]) != text.npos;
  };
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    if (!number || ((at == 0 || ends_word(at - 1)) && ends_word(at + part.size()))) return true;
  return false;
}

}  // namespace

size_t choose_adapter(const std::vector<AdapterFacts>& list, const std::string& wanted) {
  if (list.empty())
    fail(ErrorKind::kUnavailable,
         "There is no WebGPU adapter: neither Vulkan, Metal nor Direct3D 12 shows one. Install the GPU's driver, or "
         "Debian's mesa-vulkan-drivers for a software adapter.");
  if (wanted.empty()) return 0;
  size_t index = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  if (error == std::errc() && end == wanted.data() + wanted.size() && index < list.size()) return index;
  std::string known;
  for (size_t i = 0; i < list.size(); ++i) {
    if (is_part_of(list[i].name, wanted) || lower_case(wanted) == list[i].type) return i;
    known += str(known.empty() ? "" : ", ", i, " '", list[i].name, "'");
  }
  fail(ErrorKind::kUnavailable, str("There is no WebGPU adapter '", wanted, "'; there are: ", known, "."));
}

std::vector<AdapterFacts> adapters(const WebGpuOptions& options) {
  std::vector<AdapterFacts> out;
  for (const Found& f : find_adapters(load_api(options.library))) out.push_back(f.facts);
  return out;
}

constexpr WGPUBufferDescriptor kSmallBuffer = {
    .nextInChain = nullptr, .label = {}, .usage = WGPUBufferUsage_CopyDst, .size = 16, .mappedAtCreation = 0};

// Callbacks record; the next check() throws, of the thread whose call it was: libraries report what is wrong with a
// call before it returns. What comes in a thread of the library's own is told to whoever asks first.
struct Device::Errors {
  struct Message {
    ErrorKind kind = ErrorKind::kInternal;
    std::string text;
  };
  std::mutex mutex;
  std::map<std::thread::id, Message> messages;  // the first of each since its last check
  std::string why_lost;
  std::atomic<bool> lost = false, any = false;

  static bool& this_thread_checks() {
    thread_local bool checks = false;
    return checks;
  }
  void lose(std::string_view why) {
    const std::lock_guard lock(mutex);
    if (!lost) why_lost = why.empty() ? "The GPU device is lost." : str("The GPU device is lost: ", why);
    lost = true;
  }
  void add(ErrorKind kind, std::string text) {
    const std::lock_guard lock(mutex);
    messages.try_emplace(this_thread_checks() ? std::this_thread::get_id() : std::thread::id(),
                         Message{kind, std::move(text)});
    any = true;
  }
  // The one for this thread, which is still there afterwards.
  std::map<std::thread::id, Message>::iterator find() {
    const auto own = messages.find(std::this_thread::get_id());
    return own != messages.end() ? own : messages.find(std::thread::id());
  }
  // The same, which is gone then.
  Message take() {
    const std::lock_guard lock(mutex);
    const auto found = find();
    if (found == messages.end()) return {};
    Message message = std::move(found->second);
    messages.erase(found);
    any = !messages.empty();
    return message;
  }
};

struct Device::PipelineSlot {
  std::once_flag once;
  Pipeline pipeline;
};

std::shared_ptr<Device> Device::open(const WebGpuOptions& options) {
  const Api& api = load_api(options.library);
  static std::mutex mutex;
  // Never freed: at exit the driver may be gone before us.
  static auto* const open_devices = new std::map<std::pair<const Api*, size_t>, std::shared_ptr<Device>>;
  const std::lock_guard lock(mutex);
  const std::vector<Found>& found = find_adapters(api);
  std::vector<AdapterFacts> facts;
  for (const Found& f : found) facts.push_back(f.facts);
  const size_t index = choose_adapter(facts, options.adapter);
  std::shared_ptr<Device>& device = (*open_devices)[{&api, index}];
  if (!device || device->lost()) {
    std::shared_ptr<Device> fresh(new Device(api, found[index].handle.get(), facts[index]));
    fresh->check_features();
    device = std::move(fresh);
  }
  return device;
}

// What the adapter lists and the device does not do right is not used.
void Device::check_features() {
  Features& features = facts_.features;
  if (!features.subgroups) return;
  const SubgroupProbe probe = probe_subgroups(*this);
  features.subgroups = probe.passed;
  if (!probe.passed || features.subgroup_min != 0) return;
  features.subgroup_min = probe.min;
  features.subgroup_max = probe.max;
}

Device::Device(const Api& api, WGPUAdapter adapter, AdapterFacts facts)
    : api_(api), facts_(std::move(facts)), errors_(std::make_unique<Errors>()) {
  std::vector<WGPUFeatureName> features;
  if (facts_.features.f16) features.push_back(WGPUFeatureName_ShaderF16);
  if (facts_.features.subgroups) features.push_back(static_cast<WGPUFeatureName>(facts_.features.subgroups_feature));
  if (facts_.features.timestamps) features.push_back(WGPUFeatureName_TimestampQuery);
  WGPULimits limits{};
  api_.AdapterGetLimits(adapter, &limits);  // the adapter's own, not WebGPU's defaults
  limits.nextInChain = nullptr;
  limits.maxImmediateSize = 0;

  WGPUDeviceDescriptor descriptor{};
  descriptor.label = view("rlx");
  descriptor.requiredFeatures = features.data();
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason, WGPUStringView message,
                                                  void* to, void*) { static_cast<Errors*>(to)->lose(text(message)); };
  descriptor.deviceLostCallbackInfo.userdata1 = errors_.get();
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType type, WGPUStringView message,
                                                       void* to, void*) {
    auto& errors = *static_cast<Errors*>(to);
    const std::string why = text(message);
    if (why.find("Parent device is lost") != why.npos) {  // wgpu-native 29 does not tell the callback above
      errors.lose("");
      return;
    }
    if (type == WGPUErrorType_OutOfMemory || why.find("Not enough memory left") != why.npos)
      errors.add(ErrorKind::kMemory, "The GPU's memory is full.");
    else
      errors.add(ErrorKind::kInternal, str("WebGPU reports an error: ", why));
  };
  descriptor.uncapturedErrorCallbackInfo.userdata1 = errors_.get();

  struct Answer {
    std::atomic<bool> done = false;
    WGPUDevice device = nullptr;
    std::string message;
  } answer;
  WGPURequestDeviceCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* to, void*) {
    auto& a = *static_cast<Answer*>(to);
    a.device = device;
    a.message = text(message);
    a.done = true;
  };
  callback.userdata1 = &answer;
  api_.AdapterRequestDevice(adapter, &descriptor, callback);
  while (!answer.done) api_.InstanceProcessEvents(instance_of(api_));
  if (answer.device == nullptr)
    fail(ErrorKind::kUnavailable, str("Adapter '", facts_.name, "' gives no device: ", one_line(answer.message)));
  device_ = DeviceHandle(api_, answer.device);
  queue_ = Queue(api_, api_.DeviceGetQueue(answer.device));
  if (facts_.features.timestamps && api_.QueueGetTimestampPeriod)
    timestamp_period_ns_ = static_cast<double>(api_.QueueGetTimestampPeriod(queue_.get()));
}

Device::~Device() {
  pipelines_.clear();
  if (!lost()) return;
  // wgpu-native would wait for it, and end the process when that fails.
  queue_.leave();
  device_.leave();
  errors_.release();  // what the device's callbacks write into
}

bool Device::lost() const { return errors_->lost; }

void Device::destroy() {
  api_.DeviceDestroy(device_.get());
  errors_->lose("it was destroyed.");
}

bool Device::has_error() const {
  Errors::this_thread_checks() = true;
  if (errors_->lost) return true;
  if (!errors_->any) return false;
  const std::lock_guard lock(errors_->mutex);
  return errors_->find() != errors_->messages.end();
}

void Device::check(std::string_view doing) {
  if (!has_error()) return;
  Errors::Message message = errors_->take();
  if (message.kind == ErrorKind::kMemory) {
    // wgpu-native has lost the device if the memory was for anything but a buffer, and says so at the next call.
    const Buffer buffer(api_, api_.DeviceCreateBuffer(device_.get(), &kSmallBuffer));
    errors_->take();
  } else if (errors_->lost) {
    message = {ErrorKind::kUnavailable, errors_->why_lost};
  } else if (message.text.empty()) {
    return;  // another thread was faster
  }
  Error error(message.kind, message.text);
  error.add_context(std::string(doing));
  throw error;
}

Buffer Device::make_buffer(uint64_t bytes, WGPUBufferUsage usage, const std::string& label) {
  const auto doing = [&] { return str("making buffer '", label, "' of ", bytes, " bytes"); };
  if (has_error()) check(doing());
  if (bytes > limits().max_buffer_bytes)
    fail(ErrorKind::kMemory,
         str("Buffer '", label, "' of ", bytes, " bytes exceeds the GPU's largest (", limits().max_buffer_bytes, ")."));
  WGPUBufferDescriptor descriptor{};
  descriptor.label = view(label);
  descriptor.usage = usage;
  descriptor.size = std::max<uint64_t>(bytes, 16);
  Buffer buffer(api_, api_.DeviceCreateBuffer(device_.get(), &descriptor));
  if (has_error()) check(doing());
  const std::lock_guard lock(mutex_);
  ++counters_.buffers;
  return buffer;
}

const Pipeline& Device::pipeline(const PipelineSource& source, bool checks) {
  std::string key = str(checks ? "c" : "t");
  for (const auto& b : source.bindings) key += str(" ", b.index, b.uniform ? "u" : b.writable ? "w" : "r");
  key += "\n" + source.wgsl;
  std::shared_ptr<PipelineSlot> slot;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<PipelineSlot>& s = pipelines_[key];
    if (!s) s = std::make_shared<PipelineSlot>();
    slot = s;
  }
  std::call_once(slot->once, [&] {
    const auto compiling = [&] { return str("compiling kernel '", source.label, "'"); };
    if (has_error()) check(compiling());
    const bool directive = facts_.features.subgroups_feature == WGPUFeatureName_Subgroups &&
                           source.wgsl.find("subgroup") != source.wgsl.npos;
    const std::string code = directive ? "enable subgroups;\n" + source.wgsl : source.wgsl;
    WGPUShaderSourceWGSL wgsl{};
    wgsl.chain.sType = WGPUSType_ShaderSourceWGSL;
    wgsl.code = view(code);
    WGPUShaderModuleDescriptor module_descriptor{};
    module_descriptor.nextInChain = &wgsl.chain;
    module_descriptor.label = view(source.label);
    const ShaderModule module(api_, !checks && api_.DeviceCreateShaderModuleTrusted
                                        ? api_.DeviceCreateShaderModuleTrusted(device_.get(), &module_descriptor,
                                                                               WGPUShaderRuntimeChecks_None)
                                        : api_.DeviceCreateShaderModule(device_.get(), &module_descriptor));
    if (has_error()) check(compiling());

    std::vector<WGPUBindGroupLayoutEntry> entries;
    for (const auto& b : source.bindings) {
      WGPUBindGroupLayoutEntry entry{};
      entry.binding = b.index;
      entry.visibility = WGPUShaderStage_Compute;
      entry.buffer.type = b.uniform    ? WGPUBufferBindingType_Uniform
                          : b.writable ? WGPUBufferBindingType_Storage
                                       : WGPUBufferBindingType_ReadOnlyStorage;
      entries.push_back(entry);
    }
    WGPUBindGroupLayoutDescriptor layout_descriptor{};
    layout_descriptor.entries = entries.data();
    layout_descriptor.entryCount = entries.size();
    slot->pipeline.layout = BindGroupLayout(api_, api_.DeviceCreateBindGroupLayout(device_.get(), &layout_descriptor));
    const WGPUBindGroupLayout raw_layout = slot->pipeline.layout.get();
    WGPUPipelineLayoutDescriptor pipeline_layout_descriptor{};
    pipeline_layout_descriptor.bindGroupLayouts = &raw_layout;
    pipeline_layout_descriptor.bindGroupLayoutCount = 1;
    const PipelineLayout pipeline_layout(api_,
                                         api_.DeviceCreatePipelineLayout(device_.get(), &pipeline_layout_descriptor));
    WGPUComputePipelineDescriptor descriptor{};
    descriptor.label = view(source.label);
    descriptor.layout = pipeline_layout.get();
    descriptor.compute.module = module.get();
    descriptor.compute.entryPoint = view("main");
    slot->pipeline.pipeline = ComputePipeline(api_, api_.DeviceCreateComputePipeline(device_.get(), &descriptor));
    check(str("making the pipeline of kernel '", source.label, "'"));
    const std::lock_guard lock(mutex_);
    ++counters_.pipelines;
  });
  return slot->pipeline;
}

void Device::wait() {
  if (api_.DevicePoll) {
    api_.DevicePoll(device_.get(), true, nullptr);
    return;
  }
  std::atomic<bool> done = false;
  WGPUQueueWorkDoneCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* to, void*) {
    *static_cast<std::atomic<bool>*>(to) = true;
  };
  callback.userdata1 = &done;
  api_.QueueOnSubmittedWorkDone(queue_.get(), callback);
  while (!done && !lost()) api_.InstanceProcessEvents(instance_of(api_));
}

const void* Device::map(const Buffer& buffer, uint64_t bytes, bool spin) {
  struct Answer {
    std::atomic<bool> done = false;
    bool ok = false;
    std::string message;
  } answer;
  WGPUBufferMapCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* to, void*) {
    auto& a = *static_cast<Answer*>(to);
    a.ok = status == WGPUMapAsyncStatus_Success;
    if (!a.ok) a.message = text(message);
    a.done = true;
  };
  callback.userdata1 = &answer;
  api_.BufferMapAsync(buffer.get(), WGPUMapMode_Read, 0, bytes, callback);
  const auto start = std::chrono::steady_clock::now();
  while (!answer.done) {
    if (!api_.DevicePoll) {
      api_.InstanceProcessEvents(instance_of(api_));
      continue;
    }
    const bool busy = spin && std::chrono::steady_clock::now() - start < kSpin;
    api_.DevicePoll(device_.get(), !busy, nullptr);
  }
  check("reading results back");
  if (!answer.ok) fail(ErrorKind::kUnavailable, str("Results cannot be read back: ", answer.message));
  return api_.BufferGetConstMappedRange(buffer.get(), 0, bytes);
}

DeviceCounters Device::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace rlx::webgpu
