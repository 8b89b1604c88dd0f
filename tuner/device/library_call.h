// cuBLASLt with a handle, and one product as it wants it described. Run in the GPU's worker process only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tuner/device/baseline_job.h"
#include "tuner/device/cublaslt_api.h"
#include "tuner/device/device_context.h"

namespace kw::tuner {

/// Code of a CudaFault that is a status of the library and no error of CUDA.
inline constexpr int kLibraryFault = -3;

/// The library's handle in the current context. Both live as long as the process.
class CublasLt {
 public:
  /// Errors (kToolchain): as open_cublaslt, or the library refuses a handle.
  static Result<std::unique_ptr<CublasLt>> open(int driver_version);
  const CublasLtLibrary& library() const { return library_; }
  LibraryFile file() const { return {library_.path, library_.origin, library_.version_text()}; }
  CublasLtHandle handle() const { return handle_; }
  /// "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)"
  CudaFault fault(int status, const char* call) const;

 private:
  CublasLtLibrary library_;
  CublasLtHandle handle_ = nullptr;
};

/// Device addresses of one input set.
struct LibraryPointers {
  DevicePointer first = 0, second = 0, out = 0, bias = 0;
};

class LibraryCall {
 public:
  /// Smallest alignment of the pointers that it will be called with, in bytes.
  struct Alignments {
    std::uint32_t first = 256, second = 256, out = 256;
  };
  static CudaResult<std::unique_ptr<LibraryCall>> create(const CublasLt& library, const LibraryMatmul& matmul, const Alignments& alignments,
                                                         std::size_t workspace_bytes);
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

  /// The library's proposals, best first by its own estimate; those that it marks as not usable are left out.
  CudaResult<std::vector<BaselineAlgorithm>> heuristics(const LibraryPointers& pointers, int max_count);
  CudaResult<void> enqueue(const LibraryPointers& pointers, const BaselineAlgorithm& algorithm, DevicePointer workspace, CudaStream stream);

 private:
  LibraryCall(const CublasLt& library, const LibraryMatmul& matmul, std::size_t workspace_bytes)
      : library_(library), matmul_(matmul), workspace_bytes_(workspace_bytes) {}
  CudaResult<void> describe();
  CudaResult<void> add_layout(CublasLtMatrixLayout& layout, const LibraryMatmul::Matrix& matrix, std::int64_t rows, std::int64_t cols);
  CudaResult<void> prefer(const Alignments& alignments);
  CudaResult<void> set_bias(DevicePointer bias);
  std::string summary_of(const CublasLtAlgo& algo) const;

  const CublasLt& library_;
  const LibraryMatmul matmul_;
  const std::size_t workspace_bytes_;
  CublasLtMatmulDesc desc_ = nullptr;
  CublasLtMatrixLayout first_ = nullptr, second_ = nullptr, out_ = nullptr;
  CublasLtPreference preference_ = nullptr;
};

}  // namespace kw::tuner
