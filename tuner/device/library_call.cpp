// See library_call.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/library_call.h"

#include <fmt/format.h>

#include <utility>

namespace kw::tuner {
namespace {

int type_of(DType dtype) {
  return dtype == DType::kF16 ? cublaslt::kReal16F : dtype == DType::kBF16 ? cublaslt::kReal16BF : cublaslt::kReal32F;
}

cublaslt::Epilogue epilogue_of(LibraryEpilogue epilogue) {
  switch (epilogue) {
    case LibraryEpilogue::kNone:
      return cublaslt::Epilogue::kDefault;
    case LibraryEpilogue::kBias:
      return cublaslt::Epilogue::kBias;
    case LibraryEpilogue::kRelu:
      return cublaslt::Epilogue::kRelu;
    case LibraryEpilogue::kReluBias:
      return cublaslt::Epilogue::kReluBias;
    case LibraryEpilogue::kGeluTanh:
      return cublaslt::Epilogue::kGelu;
    case LibraryEpilogue::kGeluTanhBias:
      return cublaslt::Epilogue::kGeluBias;
  }
  return cublaslt::Epilogue::kDefault;
}

const void* address(DevicePointer pointer) { return reinterpret_cast<const void*>(pointer); }

}  // namespace

/// Returns a CudaFault from the enclosing function when a call of the library fails.
#define KW_CUBLASLT(library, name, call)                                               \
  do {                                                                                 \
    if (const int kw_status = (call); kw_status != cublaslt::kSuccess)                 \
      return tl::unexpected<::kw::tuner::CudaFault>((library).fault(kw_status, name)); \
  } while (false)

Result<std::unique_ptr<CublasLt>> CublasLt::open(int driver_version) {
  auto opened = std::make_unique<CublasLt>();
  KW_TRY(opened->library_, open_cublaslt(driver_version / 1000));
  if (const int status = opened->library_.api.create(&opened->handle_); status != cublaslt::kSuccess)
    return fail(Stage::kDevice, Code::kToolchain,
                fmt::format("{}: {}", opened->library_.path, opened->fault(status, "cublasLtCreate").text));
  return opened;
}

CudaFault CublasLt::fault(int status, const char* call) const {
  const char* text = library_.api.status_text == nullptr ? nullptr : library_.api.status_text(status);
  return {kLibraryFault, fmt::format("{}: {} ({})", call, text == nullptr ? "status" : text, status)};
}

CudaResult<std::unique_ptr<LibraryCall>> LibraryCall::create(const CublasLt& library, const LibraryMatmul& matmul,
                                                             const Alignments& alignments, std::size_t workspace_bytes) {
  std::unique_ptr<LibraryCall> call(new LibraryCall(library, matmul, workspace_bytes));
  KW_CUDA_TRY_VOID(call->describe());
  KW_CUDA_TRY_VOID(call->prefer(alignments));
  return call;
}

LibraryCall::~LibraryCall() {
  const CublasLtApi& api = library_.library().api;
  if (preference_ != nullptr) api.preference_destroy(preference_);
  for (CublasLtMatrixLayout layout : {first_, second_, out_})
    if (layout != nullptr) api.layout_destroy(layout);
  if (desc_ != nullptr) api.desc_destroy(desc_);
}

CudaResult<void> LibraryCall::describe() {
  const CublasLtApi& api = library_.library().api;
  const int compute = matmul_.multiplies_tf32 ? cublaslt::kCompute32FFastTf32 : cublaslt::kCompute32F;
  KW_CUBLASLT(library_, "cublasLtMatmulDescCreate", api.desc_create(&desc_, compute, cublaslt::kReal32F));
  const auto set = [&](cublaslt::Desc attribute, const auto& value) -> CudaResult<void> {
    KW_CUBLASLT(library_, "cublasLtMatmulDescSetAttribute", api.desc_set(desc_, static_cast<int>(attribute), &value, sizeof value));
    return {};
  };
  KW_CUDA_TRY_VOID(set(cublaslt::Desc::kTransposeFirst, matmul_.first.is_transposed ? cublaslt::kTranspose : cublaslt::kPlain));
  KW_CUDA_TRY_VOID(set(cublaslt::Desc::kTransposeSecond, matmul_.second.is_transposed ? cublaslt::kTranspose : cublaslt::kPlain));
  KW_CUDA_TRY_VOID(set(cublaslt::Desc::kEpilogue, static_cast<std::uint32_t>(epilogue_of(matmul_.epilogue))));
  if (has_bias(matmul_.epilogue) && matmul_.num_batches > 1)
    KW_CUDA_TRY_VOID(set(cublaslt::Desc::kBiasBatchStride, matmul_.bias_batch_stride));
  KW_CUDA_TRY_VOID(add_layout(first_, matmul_.first, matmul_.rows, matmul_.depth));
  KW_CUDA_TRY_VOID(add_layout(second_, matmul_.second, matmul_.depth, matmul_.cols));
  return add_layout(out_, matmul_.out, matmul_.rows, matmul_.cols);
}

/// `rows` and `cols` of the operand in the product; a transposed one is stored the other way round.
CudaResult<void> LibraryCall::add_layout(CublasLtMatrixLayout& layout, const LibraryMatmul::Matrix& matrix, std::int64_t rows,
                                         std::int64_t cols) {
  const CublasLtApi& api = library_.library().api;
  if (matrix.is_transposed) std::swap(rows, cols);
  KW_CUBLASLT(library_, "cublasLtMatrixLayoutCreate",
              api.layout_create(&layout, type_of(matrix.dtype), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols),
                                matrix.leading_dimension));
  if (matmul_.num_batches == 1) return {};
  const auto num_batches = static_cast<std::int32_t>(matmul_.num_batches);
  if (num_batches != matmul_.num_batches)
    return tl::unexpected<CudaFault>(
        CudaFault{kLibraryFault, fmt::format("{} batches: cuBLASLt counts them in 32 bits", matmul_.num_batches)});
  KW_CUBLASLT(library_, "cublasLtMatrixLayoutSetAttribute",
              api.layout_set(layout, static_cast<int>(cublaslt::Layout::kBatchCount), &num_batches, sizeof num_batches));
  KW_CUBLASLT(library_, "cublasLtMatrixLayoutSetAttribute",
              api.layout_set(layout, static_cast<int>(cublaslt::Layout::kBatchStride), &matrix.batch_stride, sizeof matrix.batch_stride));
  return {};
}

CudaResult<void> LibraryCall::prefer(const Alignments& alignments) {
  const CublasLtApi& api = library_.library().api;
  KW_CUBLASLT(library_, "cublasLtMatmulPreferenceCreate", api.preference_create(&preference_));
  const auto set = [&](cublaslt::Preference attribute, const auto& value) -> CudaResult<void> {
    KW_CUBLASLT(library_, "cublasLtMatmulPreferenceSetAttribute",
                api.preference_set(preference_, static_cast<int>(attribute), &value, sizeof value));
    return {};
  };
  KW_CUDA_TRY_VOID(set(cublaslt::Preference::kMaxWorkspaceBytes, static_cast<std::uint64_t>(workspace_bytes_)));
  KW_CUDA_TRY_VOID(set(cublaslt::Preference::kMinAlignmentFirst, alignments.first));
  KW_CUDA_TRY_VOID(set(cublaslt::Preference::kMinAlignmentSecond, alignments.second));
  KW_CUDA_TRY_VOID(set(cublaslt::Preference::kMinAlignmentAdded, alignments.out));
  return set(cublaslt::Preference::kMinAlignmentResult, alignments.out);
}

CudaResult<void> LibraryCall::set_bias(DevicePointer bias) {
  if (!has_bias(matmul_.epilogue)) return {};
  const void* pointer = address(bias);
  KW_CUBLASLT(library_, "cublasLtMatmulDescSetAttribute",
              library_.library().api.desc_set(desc_, static_cast<int>(cublaslt::Desc::kBiasPointer), &pointer, sizeof pointer));
  return {};
}

CudaResult<std::vector<BaselineAlgorithm>> LibraryCall::heuristics(const LibraryPointers& pointers, int max_count) {
  KW_CUDA_TRY_VOID(set_bias(pointers.bias));
  std::vector<CublasLtHeuristic> results(static_cast<std::size_t>(max_count));
  int num_results = 0;
  KW_CUBLASLT(library_, "cublasLtMatmulAlgoGetHeuristic",
              library_.library().api.heuristics(library_.handle(), desc_, first_, second_, out_, out_, preference_, max_count,
                                                results.data(), &num_results));
  std::vector<BaselineAlgorithm> algorithms;
  for (int i = 0; i < num_results; ++i) {
    const CublasLtHeuristic& result = results[static_cast<std::size_t>(i)];
    if (result.state == cublaslt::kSuccess) algorithms.push_back({result.algo.data, summary_of(result.algo)});
  }
  return algorithms;
}

std::string LibraryCall::summary_of(const CublasLtAlgo& algo) const {
  using cublaslt::Config;
  const std::pair<Config, const char*> parts[] = {
      {Config::kId, "algo"},        {Config::kTile, "tile"},           {Config::kStages, "stages"},   {Config::kCluster, "cluster"},
      {Config::kSplitK, "split-K"}, {Config::kReduction, "reduction"}, {Config::kSwizzle, "swizzle"}, {Config::kCustom, "custom"}};
  std::string text;
  for (const auto& [attribute, name] : parts) {
    std::uint32_t value = 0;  // x86 and ARM are little-endian: 16 bits land in the low half
    const std::size_t num_bytes = attribute == Config::kCluster ? sizeof(std::uint16_t) : sizeof value;
    std::size_t written = 0;
    if (library_.library().api.algo_get(&algo, static_cast<int>(attribute), &value, num_bytes, &written) != cublaslt::kSuccess) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

CudaResult<void> LibraryCall::enqueue(const LibraryPointers& pointers, const BaselineAlgorithm& algorithm, DevicePointer workspace,
                                      CudaStream stream) {
  KW_CUDA_TRY_VOID(set_bias(pointers.bias));
  const float one = 1, zero = 0;
  const CublasLtAlgo algo{algorithm.data};
  void* const out = reinterpret_cast<void*>(pointers.out);
  KW_CUBLASLT(
      library_, "cublasLtMatmul",
      library_.library().api.matmul(library_.handle(), desc_, &one, address(pointers.first), first_, address(pointers.second), second_,
                                    &zero, out, out_, out, out_, &algo, reinterpret_cast<void*>(workspace), workspace_bytes_, stream));
  return {};
}

}  // namespace kw::tuner
