// Export: what the launcher of every exported .cu uses. Pasted into the .cu, inside the op's own namespace, after the kernels.
// The including file has <cuda_runtime.h>, <cmath>, <cstddef>, <cstdint>, <initializer_list>, <tuple> and <type_traits>.
// SPDX-License-Identifier: Apache-2.0
// ---
// Parameters of a kernel as a tuple, so that argument structs need no second declaration.
template <typename Kernel>
struct KernelParameters;
template <typename... Parameters>
struct KernelParameters<void (*)(Parameters...)> {
  using Tuple = std::tuple<std::remove_cv_t<Parameters>...>;
};

template <typename T>
inline void set(T*& parameter, const void* pointer) {
  parameter = static_cast<T*>(const_cast<void*>(pointer));
}
template <typename T, typename Value>
inline std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<Value>> set(T& parameter, Value value) {
  parameter = static_cast<T>(value);
}

struct Extents {
  std::int64_t x, y, z;
  bool is_empty() const { return x == 0 || y == 0 || z == 0; }
};

// Limits of a grid: CUDA Programming Guide, table of technical specifications.
inline bool fits_grid(Extents grid) {
  return 0 <= grid.x && grid.x <= 2147483647 && 0 <= grid.y && grid.y <= 65535 && 0 <= grid.z && grid.z <= 65535;
}

struct Device {
  int compute_capability = 0;  // major * 10 + minor
  int max_smem_bytes = 0;      // dynamic shared memory that one CTA may ask for
};

inline cudaError_t current_device(Device& device) {
  int ordinal = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&device.max_smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  device.compute_capability = major * 10 + minor;
  return error;
}

inline std::int64_t round_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Hands out 256-byte aligned parts of a workspace; a part of 0 bytes is a null pointer.
struct Carver {
  char* next;
  void* take(std::int64_t bytes) {
    if (bytes == 0) return nullptr;
    char* const part = next;
    next += round_up(bytes);
    return part;
  }
};

// kEarly: the kernel may begin while the one before it in the stream runs, for it waits by itself (programmatic dependent launch).
enum class Begin { kInTurn, kEarly };

// A launch with an empty grid has nothing to do and is left out.
template <typename Kernel, typename Parameters>
inline cudaError_t launch_kernel(Kernel* kernel, Extents grid, Extents block, Extents cluster, std::int64_t smem_bytes, Begin begin,
                                 cudaStream_t stream, const Parameters& parameters) {
  if (grid.is_empty()) return cudaSuccess;
  if (smem_bytes > 48 * 1024) {  // above it a kernel has to ask
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  config.blockDim = dim3(static_cast<unsigned>(block.x), static_cast<unsigned>(block.y), static_cast<unsigned>(block.z));
  config.dynamicSmemBytes = static_cast<std::size_t>(smem_bytes);
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (cluster.x * cluster.y * cluster.z > 1) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(cluster.x);
    attribute.val.clusterDim.y = static_cast<unsigned>(cluster.y);
    attribute.val.clusterDim.z = static_cast<unsigned>(cluster.z);
  }
  if (begin == Begin::kEarly) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  return std::apply([&](const auto&... values) { return cudaLaunchKernelEx(&config, kernel, values...); }, parameters);
}

// Largest power of two, 256 at most, that divides the address; 256 for a null pointer.
inline std::int64_t alignment_of(const void* pointer) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer) | 256u;
  return static_cast<std::int64_t>(address & (~address + 1));
}

// Elements from the first to the last one of a tensor, both counted; 0 when it is empty. In double: no overflow.
inline double span(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
  double elements = 1;
  const std::int64_t* stride = strides.begin();
  for (const std::int64_t extent : shape) {
    if (extent <= 0) return 0;
    elements += static_cast<double>(extent - 1) * static_cast<double>(*stride++);
  }
  return elements;
}

// How far two extents are apart, in octaves.
inline double octaves(std::int64_t a, std::int64_t b) {
  return std::fabs(std::log2(static_cast<double>(a) + 1.0) - std::log2(static_cast<double>(b) + 1.0));
}
