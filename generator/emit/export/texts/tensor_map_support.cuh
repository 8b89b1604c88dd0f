// Export: how a launcher makes tensor maps. Pasted behind launch_support.cuh into a .cu whose kernels copy by TMA.
// SPDX-License-Identifier: Apache-2.0
// ---
// cuTensorMapEncodeTiled, found at run time: nothing has to be linked but the CUDA runtime.
using EncodeTiled = int (*)(void* map, int data_type, unsigned rank, void* address, const std::uint64_t* extents,
                            const std::uint64_t* strides_bytes, const std::uint32_t* box, const std::uint32_t* element_strides,
                            int interleave, int swizzle, int l2_promotion, int fill);

inline cudaError_t find_encode_tiled(EncodeTiled& function) {
  static EncodeTiled found = nullptr;
  if (found == nullptr) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &status);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &status);
#endif
    if (error != cudaSuccess) return error;
    if (status != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
    found = reinterpret_cast<EncodeTiled>(entry);
  }
  function = found;
  return cudaSuccess;
}

// A tensor in boxes of `box` elements; dimension 0 is contiguous, strides in bytes are those of dimensions 1 and up.
template <typename Map>
inline cudaError_t set_tensor_map(Map& map, int data_type, const void* address, std::initializer_list<std::int64_t> extents,
                                  std::initializer_list<std::int64_t> strides_bytes, std::initializer_list<std::int64_t> box,
                                  std::int64_t swizzle_bytes) {
  EncodeTiled encode = nullptr;
  const cudaError_t error = find_encode_tiled(encode);
  if (error != cudaSuccess) return error;
  std::uint64_t extent_list[5] = {}, stride_list[5] = {};
  std::uint32_t box_list[5] = {};
  const std::uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  std::copy(extents.begin(), extents.end(), extent_list);
  std::copy(strides_bytes.begin(), strides_bytes.end(), stride_list);
  std::copy(box.begin(), box.end(), box_list);
  const int swizzle = swizzle_bytes == 128 ? 3 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 1 : 0;
  constexpr int kL2Promotion128B = 2;
  const int code = encode(&map, data_type, static_cast<unsigned>(extents.size()), const_cast<void*>(address), extent_list, stride_list,
                          box_list, element_strides, 0, swizzle, kL2Promotion128B, 0);
  return code == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
