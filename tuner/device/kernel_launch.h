// From a launch plan and a problem to launches that the driver takes: grids evaluated, parameters packed with C layout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tuner/device/driver_api.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// A plan's tensor map with its expressions evaluated.
struct EvaluatedTensorMap {
  DType dtype = DType::kF16;
  DevicePointer address = 0;
  std::vector<std::uint64_t> extents, strides_bytes;  ///< strides of dimensions 1 and up
  std::vector<std::uint32_t> box;
  int swizzle_bytes = 0;
};
inline constexpr std::size_t kTensorMapBytes = 128;
using TensorMapBytes = std::array<std::byte, kTensorMapBytes>;
/// The driver's encoder, or the simulator's.
using EncodeTensorMap = std::function<Result<TensorMapBytes>(const EvaluatedTensorMap&)>;
/// By cuTensorMapEncodeTiled. Error: the driver refuses it, or is too old to know it.
EncodeTensorMap tensor_map_encoder(const DriverApi& driver);

/// What a plan's names stand for at one launch.
struct LaunchPointers {
  std::map<std::string, DevicePointer> tensors, workspaces;
  EncodeTensorMap encode_tensor_map = {};  ///< needed for plans with tensor maps
};

/// One evaluated launch, without a device: testable anywhere.
struct EvaluatedLaunch {
  std::string kernel;
  bool is_persistent = false;  ///< see PlanLaunch
  std::array<unsigned int, 3> grid{}, block{}, cluster{};
  unsigned int dynamic_smem_bytes = 0;
  std::vector<std::string> parameter_names;
  std::vector<std::vector<std::byte>> parameters;  ///< one packed struct each
};

/// Launches with an empty grid are left out (nothing to do). Errors: an expression that does not evaluate, a name without a pointer,
/// a tensor map that the encoder refuses, a grid or block outside the hardware's limits.
Result<std::vector<EvaluatedLaunch>> evaluate_launches(const KernelJob& job, const LaunchPointers& pointers);
/// Bytes of the plan's workspaces on this problem, by name.
Result<std::map<std::string, std::size_t>> workspace_bytes(const KernelJob& job);

/// A cubin loaded into the context.
class LoadedModule {
 public:
  static CudaResult<std::shared_ptr<LoadedModule>> load(const DriverApi& driver, const std::string& cubin);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  /// Prepares and enqueues. Before the first launch of a kernel its parameters are compared with the plan's (driver 550 and newer).
  CudaResult<void> launch(const EvaluatedLaunch& launch, CudaStream stream);

 private:
  struct Function {
    CudaFunction handle = nullptr;
    int max_dynamic_smem_bytes = 0;
  };
  explicit LoadedModule(const DriverApi& driver) : driver_(driver) {}
  CudaResult<void> check_parameters(CudaFunction function, const EvaluatedLaunch& launch) const;
  const DriverApi& driver_;
  CudaModule module_ = nullptr;
  std::map<std::string, Function> functions_;
};

}  // namespace kw::tuner
