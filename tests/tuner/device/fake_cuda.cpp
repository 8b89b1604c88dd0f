// A driver and an NVML made of host memory: the GPU worker's machinery (hangs, kills, restarts, guards, locks) is tested with it on
// machines without a GPU, and the run-time library. Kernels are known by name; a trailing "_<number>us" is the time a launch takes on the
// fake's clock. Environment: FAKE_CUDA_MEMORY (bytes there are), FAKE_CUDA_DEVICES, FAKE_NVML_THROTTLE, FAKE_NVML_PROCESSES.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/tuner/device/fake_library_work.h"
#include "tuner/device/driver_api.h"

using namespace kw::tuner;

namespace {

struct FakeFunction {
  std::string name;
  double launch_us = 1;
  std::vector<std::size_t> parameter_bytes;
};
struct FakeLaunch {
  const FakeFunction* function;
  std::vector<std::vector<unsigned char>> parameters;
  unsigned int num_cluster_ctas;
};
struct FakeGraph {
  std::vector<FakeLaunch> launches;
  bool is_last_alone = false;  ///< no edge leads to the last node yet
};
/// Graphs that live. Those of a context that is not current stay with it, and the fake's contexts never end: kept reachable, they are no
/// leak.
std::vector<FakeGraph*>& living_graphs() {
  static auto& graphs = *new std::vector<FakeGraph*>;
  return graphs;
}
/// A graph's nodes are numbered from 1.
CudaGraphNode node_handle(std::size_t index) { return reinterpret_cast<CudaGraphNode>(index + 1); }
std::size_t node_index(CudaGraphNode node) { return reinterpret_cast<std::size_t>(node) - 1; }
struct FakeContext {
  int device = 0;
  unsigned long long id = 0;
};
struct FakeStream {
  const FakeContext* context;  ///< null: of any
};

std::recursive_mutex mutex;  // of launches, functions and modules: the run-time library calls from many threads
thread_local const FakeContext* current_context = nullptr;
std::atomic<long> num_loaded_modules{0}, num_encoded_maps{0}, num_graphs{0}, num_graph_launches{0}, num_node_updates{0}, num_early_edges{0};

int sticky_code = 0;
bool is_hanging = false;
double clock_us = 0;
long num_launches = 0;
FakeGraph* capture = nullptr;
std::size_t used_bytes = 0;
std::map<unsigned long long, std::size_t> allocations;

long number_from(const char* variable, long fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtol(text, nullptr, 0);
}

constexpr std::size_t kFakeMapBytes = 128;

template <typename T>
T argument(const FakeLaunch& launch, std::size_t index) {
  T value{};
  std::memcpy(&value, launch.parameters[index].data(), sizeof value);
  return value;
}

bool starts(const std::string& name, const char* prefix) { return name.rfind(prefix, 0) == 0; }

/// fill_input_f32(out, num_elements, kind, low, high, seed, num_sorted): a pattern of its own that a test can tell.
void run_fill(const FakeLaunch& launch) {
  auto* out = argument<float*>(launch, 0);
  const auto seed = argument<std::uint64_t>(launch, 5);
  for (long long i = 0; i < argument<long long>(launch, 1); ++i) out[i] = static_cast<float>(seed % 97) + static_cast<float>(i % 1000);
}

void run(const FakeLaunch& launch) {
  const std::string& name = launch.function->name;
  ++num_launches;
  clock_us += launch.function->launch_us;
  if (starts(name, "fill_input")) return run_fill(launch);
  if (starts(name, "library_call")) return argument<const test::FakeLibraryWork*>(launch, 0)->run();
  auto* x = argument<float*>(launch, 0);
  auto* y = argument<float*>(launch, 1);
  const auto n = argument<long long>(launch, 2);
  if (starts(name, "illegal")) {
    sticky_code = 700;
    return;
  }
  if (starts(name, "hang")) {
    is_hanging = true;
    return;
  }
  if (starts(name, "segfault")) std::raise(SIGSEGV);
  if (starts(name, "vector_load") && (reinterpret_cast<std::uintptr_t>(x) % 16 != 0)) {
    sticky_code = 716;
    return;
  }
  if (starts(name, "nothing")) return;
  if (starts(name, "right_once")) {
    static long num_calls = 0;
    if (++num_calls > 1) return;
  }
  if (starts(name, "half_when_timed")) {
    static long num_calls = 0;
    const long long end = ++num_calls > 8 ? n / 2 : n;
    for (long long i = 0; i < end; ++i) y[i] = 2 * x[i];
    return;
  }
  if (starts(name, "cached_by_pointer")) {
    static std::map<const float*, std::vector<float>> results;
    std::vector<float>& result = results[x];
    for (long long i = static_cast<long long>(result.size()); i < n; ++i) result.push_back(2 * x[i]);
    std::copy(result.begin(), result.begin() + n, y);
    return;
  }
  if (starts(name, "keeps_old")) {
    for (long long i = 0; i < n; ++i) y[i] = y[i] == y[i] ? y[i] : 2 * x[i];
    return;
  }
  const long long first = starts(name, "first_element_missing") ? 1 : 0;
  if (starts(name, "in_place")) {
    for (long long i = 0; i < n; ++i) y[i] = 2 * y[i];
    return;
  }
  for (long long i = first; i < n; ++i) y[i] = 2 * x[i];
  if (starts(name, "wrong")) y[7] += 0.5f;
  if (starts(name, "nan")) y[7] = __builtin_nanf("");
  if (starts(name, "past_end")) y[n] = 1;
  if (starts(name, "before_begin")) y[-1] = 1;
  if (starts(name, "past_input")) x[n] = 1;
  if (starts(name, "reads_past_input")) y[0] = 2 * x[0] + 0 * x[n];
  if (starts(name, "unstable")) y[3] += static_cast<float>(num_launches % 2) * 1e-6f;
  if (starts(name, "changes_input")) std::memset(x, 0, static_cast<std::size_t>(n) * sizeof(float));
  if (starts(name, "alignment"))
    y[0] = static_cast<float>(reinterpret_cast<std::uintptr_t>(x) & (0 - reinterpret_cast<std::uintptr_t>(x)) & 0xfff);
  if (starts(name, "workspace")) {
    auto* counter = argument<unsigned char*>(launch, 3);
    y[0] += *counter;
    *counter = starts(name, "workspace_left") ? 1 : 0;
  }
}

FakeLaunch copy_launch(const FakeFunction* function, void** parameters, const CudaLaunchConfig& config) {
  FakeLaunch launch{function, {}, 1};
  for (std::size_t index = 0; index < function->parameter_bytes.size(); ++index) {
    const auto* bytes = static_cast<const unsigned char*>(parameters[index]);
    launch.parameters.emplace_back(bytes, bytes + function->parameter_bytes[index]);
  }
  if (config.num_attributes == 1 && config.attributes[0].id == kLaunchAttributeCluster) {
    for (const unsigned int extent : config.attributes[0].value.cluster) launch.num_cluster_ctas *= extent;
  }
  return launch;
}

int wait_for_device() {
  while (is_hanging) sleep(1000);
  return sticky_code;
}

/// What the caller gets for an object of ours. The types are the caller's: clang's -fsanitize=function compares them.
template <typename Handle>
Handle handle(void* object) {
  return static_cast<Handle>(object);
}

}  // namespace

extern "C" {
int cuInit(unsigned int) { return number_from("FAKE_CUDA_DEVICES", 1) == 0 ? 100 : 0; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "FAKE_ERROR";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "of the fake driver";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(number_from("FAKE_CUDA_DEVICES", 1));
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
// Device 2 is of another model, and an older one.
int cuDeviceGetName(char* name, int bytes, int device) {
  std::strncpy(name, device == 2 ? "Fake A100" : "Fake H200", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const std::map<int, int> values = {
      {75, device == 2 ? 8 : 9}, {76, 0}, {16, 132}, {38, 1 << 20}, {13, 1980000}, {36, 3201000}, {37, 6144}, {97, 232448}};
  const auto found = values.find(attribute);
  *value = found == values.end() ? 0 : found->second;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = 1ull << 37;
  return 0;
}
int cuDeviceGetUuid_v2(CudaUuid* uuid, int device) {
  std::memset(uuid, 0x10 + device, sizeof *uuid);
  return 0;
}
int cuDevicePrimaryCtxRetain(CudaContext* context, int device) {
  static FakeContext contexts[4] = {{0, 11}, {1, 12}, {2, 13}, {3, 14}};
  *context = handle<CudaContext>(&contexts[device]);
  return 0;
}
int cuCtxSetCurrent(CudaContext context) {
  current_context = reinterpret_cast<const FakeContext*>(context);
  return 0;
}
int cuCtxGetId(CudaContext context, unsigned long long* id) {
  const auto* asked = context == nullptr ? current_context : reinterpret_cast<const FakeContext*>(context);
  if (asked == nullptr) return 201;
  *id = asked->id;
  return 0;
}
int cuCtxGetDevice(CudaDevice* device) {
  if (current_context == nullptr) return 201;
  *device = current_context->device;
  return 0;
}
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = *total = 1ull << 37;
  return 0;
}
int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  if (sticky_code != 0) return sticky_code;
  if (used_bytes + bytes > static_cast<std::size_t>(number_from("FAKE_CUDA_MEMORY", 1l << 40))) return 2;
  *pointer = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  allocations[*pointer] = bytes;
  used_bytes += bytes;
  return 0;
}
int cuMemFree_v2(unsigned long long pointer) {
  if (sticky_code != 0) return sticky_code;
  used_bytes -= allocations[pointer];
  allocations.erase(pointer);
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}
int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int) {
  *pointer = std::malloc(bytes);
  return 0;
}
int cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, CudaStream) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return sticky_code;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, CudaStream) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return sticky_code;
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, CudaStream) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return sticky_code;
}
int cuMemsetD8Async(unsigned long long to, unsigned char byte, std::size_t bytes, CudaStream) {
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return sticky_code;
}
int cuModuleLoadData(CudaModule* module, const void* image) {
  if (std::strcmp(static_cast<const char*>(image), "bad image") == 0) return 209;
  *module = handle<CudaModule>(&clock_us);
  ++num_loaded_modules;
  return 0;
}
int cuModuleUnload(CudaModule) {
  --num_loaded_modules;
  return 0;
}
int cuModuleGetFunction(CudaFunction* function, CudaModule, const char* name) {
  if (starts(name, "missing")) return 500;
  const std::lock_guard lock(mutex);
  static std::vector<std::unique_ptr<FakeFunction>> functions;  // the driver keeps them as long as the process lives
  auto* made = functions.emplace_back(std::make_unique<FakeFunction>()).get();
  made->name = name;
  made->parameter_bytes = starts(name, "fill_input")  ? std::vector<std::size_t>{8, 8, 4, 8, 8, 8, 8}
                          : starts(name, "workspace") ? std::vector<std::size_t>{8, 8, 8, 8}
                          : starts(name, "map")       ? std::vector<std::size_t>{128, 8, 8}
                                                      : std::vector<std::size_t>{8, 8, 8};
  const std::size_t mark = made->name.rfind('_');
  if (mark != std::string::npos && made->name.ends_with("us")) made->launch_us = std::atof(name + mark + 1);
  *function = handle<CudaFunction>(made);
  return 0;
}
int cuFuncSetAttribute(CudaFunction, int, int) { return 0; }
int cuFuncGetParamInfo(CudaFunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  const auto& parameters = reinterpret_cast<FakeFunction*>(function)->parameter_bytes;
  if (index >= parameters.size()) return 1;
  *offset = 8 * index;
  *bytes = parameters[index];
  return 0;
}
int cuTensorMapEncodeTiled(void* map, int, unsigned int, DevicePointer address, const std::uint64_t*, const std::uint64_t*,
                           const std::uint32_t*, const std::uint32_t*, int, int, int, int) {
  std::memset(map, 0, kFakeMapBytes);
  std::memcpy(map, &address, sizeof address);  // a kernel that takes a map finds its tensor so
  ++num_encoded_maps;
  return 0;
}
int cuLaunchKernelEx(const CudaLaunchConfig* config, CudaFunction function, void** parameters, void**) {
  const std::lock_guard lock(mutex);
  if (sticky_code != 0) return sticky_code;
  const auto* stream = reinterpret_cast<const FakeStream*>(config->stream);
  if (stream != nullptr && stream->context != current_context) return 400;
  if (config->dynamic_smem_bytes > 232448) return 1;
  FakeLaunch launch = copy_launch(reinterpret_cast<FakeFunction*>(function), parameters, *config);
  if (capture != nullptr) {
    capture->launches.push_back(std::move(launch));
  } else {
    run(launch);
  }
  return 0;
}
int cuStreamCreate(CudaStream* stream, unsigned int) {
  static std::vector<std::unique_ptr<FakeStream>> streams;  // the driver keeps them as long as the process lives
  const std::lock_guard lock(mutex);
  *stream = handle<CudaStream>(streams.emplace_back(std::make_unique<FakeStream>(FakeStream{current_context})).get());
  return 0;
}
int cuStreamGetCtx(CudaStream stream, CudaContext* context) {
  *context = handle<CudaContext>(const_cast<FakeContext*>(reinterpret_cast<FakeStream*>(stream)->context));
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current_mode = 0;
  std::swap(*mode, current_mode);
  return 0;
}
int cuStreamSynchronize(CudaStream) { return wait_for_device(); }
int cuStreamBeginCapture_v2(CudaStream, int) {
  capture = new FakeGraph;
  ++num_graphs;
  return 0;
}
int cuStreamEndCapture(CudaStream, CudaGraph* graph) {
  *graph = handle<CudaGraph>(capture);
  capture = nullptr;
  return 0;
}
int cuGraphInstantiateWithFlags(CudaGraphExec* executable, CudaGraph graph, unsigned long long) {
  if (reinterpret_cast<FakeGraph*>(graph)->is_last_alone) return 1;
  *executable = handle<CudaGraphExec>(graph);
  return 0;
}
int cuGraphLaunch(CudaGraphExec executable, CudaStream stream) {
  const std::lock_guard lock(mutex);
  const auto* of = reinterpret_cast<const FakeStream*>(stream);
  if (of != nullptr && of->context != nullptr && of->context != current_context) return 400;
  for (const FakeLaunch& launch : reinterpret_cast<FakeGraph*>(executable)->launches) run(launch);
  ++num_graph_launches;
  return sticky_code;
}
int cuGraphExecDestroy(CudaGraphExec) { return 0; }
int cuGraphDestroy(CudaGraph graph) {
  const std::lock_guard lock(mutex);
  std::erase(living_graphs(), reinterpret_cast<FakeGraph*>(graph));
  delete reinterpret_cast<FakeGraph*>(graph);
  --num_graphs;
  return 0;
}
int cuGraphCreate(CudaGraph* graph, unsigned int) {
  const std::lock_guard lock(mutex);
  living_graphs().push_back(new FakeGraph);
  *graph = handle<CudaGraph>(living_graphs().back());
  ++num_graphs;
  return 0;
}
int cuGraphAddKernelNode_v2(CudaGraphNode* node, CudaGraph graph, const CudaGraphNode* before, std::size_t num_before,
                            const CudaKernelNode* description) {
  auto* const target = reinterpret_cast<FakeGraph*>(graph);
  auto& launches = target->launches;
  // Only chains are made: each node behind the last one, by its own edge or by one that is added at once.
  if (num_before > 1 || target->is_last_alone || (num_before == 1 && node_index(*before) + 1 != launches.size())) return 1;
  target->is_last_alone = num_before == 0 && !launches.empty();
  if (description->dynamic_smem_bytes > 232448) return 1;
  launches.push_back(copy_launch(reinterpret_cast<FakeFunction*>(description->function), description->parameters, {}));
  *node = node_handle(launches.size() - 1);
  return 0;
}
int cuGraphAddDependencies_v2(CudaGraph graph, const CudaGraphNode* from, const CudaGraphNode* to, const CudaGraphEdge* edges,
                              std::size_t num_edges) {
  auto* const target = reinterpret_cast<FakeGraph*>(graph);
  const bool is_programmatic = num_edges == 1 && edges->from_port == 1 && edges->to_port == 0 && edges->type == 1;
  if (!is_programmatic || !target->is_last_alone || node_index(*to) + 1 != target->launches.size() ||
      node_index(*from) + 1 != node_index(*to))
    return 1;
  target->is_last_alone = false;
  ++num_early_edges;
  return 0;
}
int cuGraphKernelNodeSetAttribute(CudaGraphNode, int, const void*) { return 0; }
int cuGraphExecKernelNodeSetParams_v2(CudaGraphExec executable, CudaGraphNode node, const CudaKernelNode* description) {
  auto& launches = reinterpret_cast<FakeGraph*>(executable)->launches;
  launches.at(node_index(node)) = copy_launch(reinterpret_cast<FakeFunction*>(description->function), description->parameters, {});
  ++num_node_updates;
  return 0;
}
int cuStreamIsCapturing(CudaStream, int* status) {
  *status = capture != nullptr ? 1 : 0;
  return 0;
}
long fakeNumGraphs() { return num_graphs; }
long fakeNumGraphLaunches() { return num_graph_launches; }
long fakeNumNodeUpdates() { return num_node_updates; }
long fakeNumEarlyEdges() { return num_early_edges; }
int cuEventCreate(CudaEvent* event, unsigned int) {
  *event = handle<CudaEvent>(new double(0));
  return 0;
}
int cuEventDestroy_v2(CudaEvent event) {
  delete reinterpret_cast<double*>(event);
  return 0;
}
int cuEventRecord(CudaEvent event, CudaStream) {
  *reinterpret_cast<double*>(event) = clock_us;
  return sticky_code;
}
int cuEventSynchronize(CudaEvent) { return wait_for_device(); }
int cuEventElapsedTime(float* elapsed_ms, CudaEvent begin, CudaEvent end) {
  *elapsed_ms = static_cast<float>((*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin)) * 1e-3);
  return 0;
}

// For tests of the run-time library.
long fakeNumLoadedModules() { return num_loaded_modules; }
long fakeNumEncodedMaps() { return num_encoded_maps; }

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strncmp(uuid, "GPU-10101010-1010-", 18) != 0) return 2;
  *device = &sticky_code;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned int bytes) {
  std::strncpy(text, "580.1.fake", bytes);
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned int* mhz) {
  *mhz = type == 1 ? 1755 : 3201;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned int* celsius) {
  *celsius = 45;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned int* milliwatts) {
  *milliwatts = 512000;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned int* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = static_cast<unsigned long long>(number_from("FAKE_NVML_THROTTLE", 4));
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned int* count, void*) {
  *count = static_cast<unsigned int>(number_from("FAKE_NVML_PROCESSES", 1));
  return 0;
}
}
