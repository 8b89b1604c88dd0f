// The door to cuBLASLt: own declarations of the few calls, opened at run time in the GPU's worker process.
// Signatures and numbers: cuBLAS documentation, "Using the cuBLASLt API" (cublasLtMatmul() and the types it names), versions 12 and 13.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "generator/base/error.h"
#include "tuner/device/driver_api.h"

namespace kw::tuner {

using CublasLtHandle = struct OpaqueCublasLtHandle*;
using CublasLtMatmulDesc = struct OpaqueCublasLtMatmulDesc*;
using CublasLtMatrixLayout = struct OpaqueCublasLtMatrixLayout*;
using CublasLtPreference = struct OpaqueCublasLtPreference*;

/// cublasLtMatmulAlgo_t: may be copied, and used again by the same version of the library.
struct CublasLtAlgo {
  std::array<std::uint64_t, 8> data;
};
/// cublasLtMatmulHeuristicResult_t.
struct CublasLtHeuristic {
  CublasLtAlgo algo;
  std::size_t workspace_bytes;
  int state;  ///< 0: the others are valid
  float num_waves;
  int reserved[4];
};

namespace cublaslt {
inline constexpr int kSuccess = 0;                         // CUBLAS_STATUS_SUCCESS
inline constexpr int kReal32F = 0;                         // CUDA_R_32F
inline constexpr int kReal16F = 2, kReal16BF = 14;         // CUDA_R_16F, CUDA_R_16BF
inline constexpr int kCompute32F = 68;                     // CUBLAS_COMPUTE_32F
inline constexpr int kCompute32FFastTf32 = 77;             // CUBLAS_COMPUTE_32F_FAST_TF32
inline constexpr std::int32_t kPlain = 0, kTranspose = 1;  // CUBLAS_OP_N, CUBLAS_OP_T

/// cublasLtMatmulDescAttributes_t, with the type of the value.
enum class Desc {
  kTransposeFirst = 3,    ///< int32_t, CUBLASLT_MATMUL_DESC_TRANSA
  kTransposeSecond = 4,   ///< int32_t, CUBLASLT_MATMUL_DESC_TRANSB
  kEpilogue = 7,          ///< uint32_t
  kBiasPointer = 8,       ///< const void*; its value tells the heuristics its alignment
  kBiasBatchStride = 10,  ///< int64_t
};
/// cublasLtEpilogue_t; GELU is approximated by tanh (note 5 there).
enum class Epilogue : std::uint32_t { kDefault = 1, kRelu = 2, kBias = 4, kReluBias = 6, kGelu = 32, kGeluBias = 36 };
/// cublasLtMatrixLayoutAttribute_t.
enum class Layout { kBatchCount = 5 /* int32_t */, kBatchStride = 6 /* int64_t, elements */ };
/// cublasLtMatmulPreferenceAttributes_t.
enum class Preference {
  kMaxWorkspaceBytes = 1,  ///< uint64_t
  kMinAlignmentFirst = 5,  ///< uint32_t, and so the next three
  kMinAlignmentSecond = 6,
  kMinAlignmentAdded = 7,
  kMinAlignmentResult = 8,
};
/// cublasLtMatmulAlgoConfigAttributes_t: 32 bits each, the last two 16.
enum class Config {
  kId = 0,
  kTile = 1,
  kSplitK = 2,
  kReduction = 3,
  kSwizzle = 4,
  kCustom = 5,
  kStages = 6,
  kInnerShape = 7,
  kCluster = 8
};
}  // namespace cublaslt

struct CublasLtApi {
  std::size_t (*version)();
  const char* (*status_text)(int);  ///< null before 11.4.2
  int (*create)(CublasLtHandle*);
  int (*desc_create)(CublasLtMatmulDesc*, int compute_type, int scale_type);
  int (*desc_destroy)(CublasLtMatmulDesc);
  int (*desc_set)(CublasLtMatmulDesc, int, const void*, std::size_t);
  int (*layout_create)(CublasLtMatrixLayout*, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t leading_dimension);
  int (*layout_destroy)(CublasLtMatrixLayout);
  int (*layout_set)(CublasLtMatrixLayout, int, const void*, std::size_t);
  int (*preference_create)(CublasLtPreference*);
  int (*preference_destroy)(CublasLtPreference);
  int (*preference_set)(CublasLtPreference, int, const void*, std::size_t);
  /// handle, operation, layouts of A, B, C, D, preference, how many are asked for, results, how many came
  int (*heuristics)(CublasLtHandle, CublasLtMatmulDesc, CublasLtMatrixLayout, CublasLtMatrixLayout, CublasLtMatrixLayout,
                    CublasLtMatrixLayout, CublasLtPreference, int, CublasLtHeuristic*, int*);
  int (*algo_get)(const CublasLtAlgo*, int, void*, std::size_t, std::size_t*);
  /// handle, operation, alpha, A, B, beta, C, D, algorithm, workspace, its bytes, stream; pointers of scalars are the host's
  int (*matmul)(CublasLtHandle, CublasLtMatmulDesc, const void*, const void*, CublasLtMatrixLayout, const void*, CublasLtMatrixLayout,
                const void*, const void*, CublasLtMatrixLayout, void*, CublasLtMatrixLayout, const CublasLtAlgo*, void*, std::size_t,
                CudaStream);
};

/// An opened library. It stays open as long as the process.
struct CublasLtLibrary {
  CublasLtApi api{};
  std::string path;                  ///< the file that the loader took
  std::string origin;                ///< "KERNELWRIGHT_CUBLASLT", "CUDA toolkit", "PyPI wheel"
  int version = 0;                   ///< 130002
  std::string version_text() const;  ///< "13.0.2"
};

/// Looks at $KERNELWRIGHT_CUBLASLT (a file or a folder: then the only place), the toolkit's folders and ld.so, then the wheels of Python
/// (nvidia-cublas) in $VIRTUAL_ENV, $CONDA_PREFIX, ~/.local, /usr/local and /usr. A library of a newer CUDA major than `max_major` (the
/// driver's; 0: any) is passed over. Errors (kToolchain): every place looked at, or what is wrong with the library that is there.
Result<CublasLtLibrary> open_cublaslt(int max_major);

}  // namespace kw::tuner
