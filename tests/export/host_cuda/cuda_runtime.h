// A stand-in for the CUDA run-time on the host, so that an export's launcher, dispatcher and test run where no GPU is. It runs a kernel's
// threads one after the other: enough for kernels without shared memory and barriers. Only what exports use is here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned x_extent, unsigned y_extent, unsigned z_extent) : x(x_extent), y(y_extent), z(z_extent) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor, cudaDevAttrMaxSharedMemoryPerBlockOptin };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaLaunchAttributeID {
  cudaLaunchAttributeNone,
  cudaLaunchAttributeClusterDimension,
  cudaLaunchAttributeProgrammaticStreamSerialization
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id = cudaLaunchAttributeNone;
  struct {
    dim3 clusterDim;
    int programmaticStreamSerializationAllowed = 0;
  } val;
};
typedef struct CUstream_st* cudaStream_t;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

struct CUstream_st {
  bool is_capturing = false;
  std::vector<std::function<void()>> captured;
};
typedef std::vector<std::function<void()>>* cudaGraph_t;
typedef std::vector<std::function<void()>>* cudaGraphExec_t;

inline const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "invalid value"; }
inline cudaError_t cudaGetDevice(int* ordinal) { return *ordinal = 0, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const char* capability = std::getenv("HOST_CUDA_CAPABILITY");  // "80"
  const int number = capability == nullptr ? 80 : std::atoi(capability);
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? number / 10
           : attribute == cudaDevAttrComputeCapabilityMinor ? number % 10
                                                            : 166912;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *pointer == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) { return std::free(pointer), cudaSuccess; }
inline cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) { return std::memset(pointer, value, bytes), cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = new CUstream_st, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) { return stream->is_capturing = true, cudaSuccess; }
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = new std::vector<std::function<void()>>(std::move(stream->captured));
  return stream->is_capturing = false, cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return *executable = new std::vector<std::function<void()>>(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const std::function<void()>& launch : *executable) launch();
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }

template <typename... Parameters, typename... Values>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), const Values&... values) {
  const dim3 grid = config->gridDim, block = config->blockDim;
  const auto run = [=] {
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
      for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
          for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(values...);
  };
  if (config->stream != nullptr && config->stream->is_capturing) {
    config->stream->captured.emplace_back(run);
  } else {
    run();
  }
  return cudaSuccess;
}
