// The door to the CUDA driver and to NVML: own declarations of the few calls, loaded at run time. The GPU's worker process and the
// run-time library use it; the tuner itself never touches CUDA. Signatures and numbers: CUDA Driver API and NVML API reference manuals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "generator/base/error.h"
#include "generator/base/status.h"

namespace kw::tuner {

using DevicePointer = unsigned long long;
using CudaDevice = int;
using CudaContext = struct OpaqueCudaContext*;
using CudaModule = struct OpaqueCudaModule*;
using CudaFunction = struct OpaqueCudaFunction*;
using CudaStream = struct OpaqueCudaStream*;
using CudaEvent = struct OpaqueCudaEvent*;
using CudaGraph = struct OpaqueCudaGraph*;
using CudaGraphExec = struct OpaqueCudaGraphExec*;
using CudaGraphNode = struct OpaqueCudaGraphNode*;

/// CUuuid, CUlaunchAttribute (of its values the two that are used) and CUlaunchConfig, as the driver lays them out.
struct CudaUuid {
  unsigned char bytes[16];
};
struct CudaLaunchAttribute {
  int id;
  int padding;
  union {
    unsigned char bytes[64];
    unsigned int cluster[3];
    int is_dependent;
  } value;
};
struct CudaLaunchConfig {
  unsigned int grid[3], block[3];
  unsigned int dynamic_smem_bytes;
  CudaStream stream;
  CudaLaunchAttribute* attributes;
  unsigned int num_attributes;
};

/// CUgraphEdgeData: how a node waits for the one before it.
struct CudaGraphEdge {
  unsigned char from_port, to_port, type, reserved[5];
};
/// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC: the second kernel may begin when all CTAs of the first
/// let it.
inline constexpr CudaGraphEdge kDependentEdge = {1, 0, 1, {}};

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct CudaKernelNode {
  CudaFunction function;
  unsigned int grid[3], block[3];
  unsigned int dynamic_smem_bytes;
  void** parameters;
  void** extra;
  void* kernel;         ///< null: `function` says it
  CudaContext context;  ///< null: the current one
};

inline constexpr int kLaunchAttributeCluster = 4;       // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
inline constexpr int kLaunchAttributeDependent = 6;     // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
inline constexpr int kFunctionMaxDynamicSmem = 8;       // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int kFunctionNonPortableCluster = 14;  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
inline constexpr unsigned int kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1, kCaptureRelaxed = 2;

/// CUdevice_attribute, the ones that are asked for.
enum class DeviceAttribute {
  kClockKhz = 13,
  kNumSms = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMaxThreadsPerSm = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSmemBytesPerSm = 81,
  kRegistersPerSm = 82,
  kMaxSmemBytesPerCta = 97,
  kMaxCtasPerSm = 106,
};

struct DriverApi {
  int (*init)(unsigned int);
  int (*driver_version)(int*);
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(CudaDevice*, int);
  int (*device_name)(char*, int, CudaDevice);
  int (*device_attribute)(int*, int, CudaDevice);
  int (*device_memory)(std::size_t*, CudaDevice);
  int (*device_uuid)(CudaUuid*, CudaDevice);
  int (*context_retain)(CudaContext*, CudaDevice);
  int (*context_set_current)(CudaContext);
  int (*context_id)(CudaContext, unsigned long long*);  ///< null: the current one; never the same twice in a process
  int (*context_device)(CudaDevice*);                   ///< of the current context
  int (*memory_info)(std::size_t*, std::size_t*);
  int (*memory_allocate)(DevicePointer*, std::size_t);
  int (*memory_free)(DevicePointer);
  int (*host_allocate)(void**, std::size_t, unsigned int);
  int (*host_free)(void*);
  int (*copy_to_device)(DevicePointer, const void*, std::size_t, CudaStream);
  int (*copy_to_host)(void*, DevicePointer, std::size_t, CudaStream);
  int (*copy_on_device)(DevicePointer, DevicePointer, std::size_t, CudaStream);
  int (*set_bytes)(DevicePointer, unsigned char, std::size_t, CudaStream);
  int (*module_load)(CudaModule*, const void*);
  int (*module_unload)(CudaModule);
  int (*module_function)(CudaFunction*, CudaModule, const char*);
  int (*function_set_attribute)(CudaFunction, int, int);
  int (*function_parameter)(CudaFunction, std::size_t, std::size_t*, std::size_t*);  ///< null before driver 550
  /// map, data type, rank, address, extents, strides, box, element strides, interleave, swizzle, L2 promotion, fill
  int (*tensor_map_encode)(void*, int, unsigned int, DevicePointer, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,
                           const std::uint32_t*, int, int, int, int);
  int (*launch)(const CudaLaunchConfig*, CudaFunction, void**, void**);
  int (*stream_create)(CudaStream*, unsigned int);
  int (*stream_synchronize)(CudaStream);
  int (*stream_context)(CudaStream, CudaContext*);
  int (*capture_exchange_mode)(int*);  ///< of this thread; the old mode comes back
  int (*capture_begin)(CudaStream, int);
  int (*capture_end)(CudaStream, CudaGraph*);
  int (*graph_instantiate)(CudaGraphExec*, CudaGraph, unsigned long long);
  int (*graph_launch)(CudaGraphExec, CudaStream);
  int (*graph_exec_destroy)(CudaGraphExec);
  int (*graph_destroy)(CudaGraph);
  // Graphs node by node: null in a driver that does not have them.
  int (*graph_create)(CudaGraph*, unsigned int);
  int (*graph_add_kernel)(CudaGraphNode*, CudaGraph, const CudaGraphNode*, std::size_t, const CudaKernelNode*);
  /// graph, from, to, edges, how many; null before driver 545
  int (*graph_add_dependencies)(CudaGraph, const CudaGraphNode*, const CudaGraphNode*, const CudaGraphEdge*, std::size_t);
  int (*graph_node_set_attribute)(CudaGraphNode, int, const void*);  ///< the value of a CudaLaunchAttribute
  int (*graph_exec_set_kernel)(CudaGraphExec, CudaGraphNode, const CudaKernelNode*);
  int (*stream_is_capturing)(CudaStream, int*);  ///< CUstreamCaptureStatus: 0 when it is not
  int (*event_create)(CudaEvent*, unsigned int);
  int (*event_destroy)(CudaEvent);
  int (*event_record)(CudaEvent, CudaStream);
  int (*event_synchronize)(CudaEvent);
  int (*event_elapsed_ms)(float*, CudaEvent, CudaEvent);
};

/// Thread-safe. Loads libcuda.so.1, or the library named by $KERNELWRIGHT_LIBCUDA (tests). Error kDevice: no driver, or one too old, and
/// the cure.
Result<const DriverApi*> load_driver();

/// 0 when the driver does not know it.
int attribute_of(const DriverApi& driver, CudaDevice device, DeviceAttribute attribute);
/// What decides whether stored code and stored times belong to a device.
struct DeviceModel {
  std::string name;            ///< "NVIDIA H200"; empty when the driver does not say
  int compute_capability = 0;  ///< 90
};
DeviceModel model_of(const DriverApi& driver, CudaDevice device);

/// A CUDA call that failed.
struct CudaFault {
  int code = 0;
  std::string text;  ///< "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument"
};
template <typename T>
using CudaResult = tl::expected<T, CudaFault>;

CudaFault cuda_fault(const DriverApi& driver, int code, const char* call);
/// The context is lost after such an error: the process must end.
bool is_sticky(int code);
/// kOutOfMemory, kOutOfBounds (illegal address), kDeviceLost or kLaunchFailed.
TrialStatus status_of(int code);

/// Processor and memory clocks, power and neighbours from NVML; a table of calls, all null when NVML is not there.
struct NvmlApi {
  int (*init)();
  int (*handle_by_uuid)(const char*, void**);
  int (*driver_text)(char*, unsigned int);
  int (*clock_mhz)(void*, int, unsigned int*);
  int (*temperature)(void*, int, unsigned int*);
  int (*power_mw)(void*, unsigned int*);
  int (*power_limit_mw)(void*, unsigned int*);
  int (*throttle_reasons)(void*, unsigned long long*);
  int (*compute_processes)(void*, unsigned int*, void*);
};
/// NVML's record of a process (nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3).
struct NvmlProcess {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
};
/// Null when libnvidia-ml.so.1 (or $KERNELWRIGHT_LIBNVML) is not there: then nothing is known, and that is no error.
const NvmlApi* load_nvml();

}  // namespace kw::tuner

/// Returns a CudaFault from the enclosing function when a driver call fails; `driver` must be in scope.
#define KW_CUDA(driver, name, call)                                                                  \
  do {                                                                                               \
    if (const int kw_code = (call); kw_code != 0)                                                    \
      return tl::unexpected<::kw::tuner::CudaFault>(::kw::tuner::cuda_fault(driver, kw_code, name)); \
  } while (false)
/// KW_CUDA_TRY(declaration, expression): unwraps a CudaResult or returns its fault.
#define KW_CUDA_TRY(declaration, expression)                                                                                           \
  auto KW_CONCAT(kw_cuda_, __LINE__) = (expression);                                                                                   \
  if (!KW_CONCAT(kw_cuda_, __LINE__)) return tl::unexpected<::kw::tuner::CudaFault>(std::move(KW_CONCAT(kw_cuda_, __LINE__).error())); \
  declaration = std::move(*KW_CONCAT(kw_cuda_, __LINE__))
#define KW_CUDA_TRY_VOID(expression)                                                                       \
  do {                                                                                                     \
    auto kw_cuda_status = (expression);                                                                    \
    if (!kw_cuda_status) return tl::unexpected<::kw::tuner::CudaFault>(std::move(kw_cuda_status.error())); \
  } while (false)
