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
#include "tuner/device/kernel_job.h"

namespace kw::tuner {

/// A plan's tensor map with its expressions evaluated.
struct EvaluatedTensorMap {
  DType dtype = DType::kF16;
  DevicePointer address = 0;
  std::vector<std::uint64_t> extents, strides_bytes;  ///< strides of dimensions 1 and up
  std::vector<std::uint32_t> box;
  int swizzle_bytes = 0;
};
inline constexpr std::size_t kTensorMapBytes = 128, kTensorMapAlignBytes = 64;  // CUtensorMap, cuda.h
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

/// Bytes of a parameter that are known only at the launch.
struct LaunchSlot {
  PlanField::Kind kind = PlanField::Kind::kTensor;  ///< kTensor, kWorkspace, kScalar or kTensorMap
  std::string field;                                ///< name in the kernel source, for messages
  std::string source;                               ///< which tensor, workspace or scalar
  bool is_of_workspace = false;                     ///< source is a workspace
  DType scalar_dtype = DType::kF32;                 ///< kScalar: type in the kernel
  std::size_t parameter = 0, offset_bytes = 0;
  EvaluatedTensorMap map = {};  ///< kTensorMap: all but the address
};

/// One evaluated launch, without a device: testable anywhere.
struct EvaluatedLaunch {
  std::string kernel;
  bool is_persistent = false, is_dependent = false;  ///< see PlanLaunch
  std::array<unsigned int, 3> grid{}, block{}, cluster{};
  unsigned int dynamic_smem_bytes = 0;
  std::vector<std::string> parameter_names;
  std::vector<std::vector<std::byte>> parameters;  ///< one packed struct each
  std::vector<LaunchSlot> slots;                   ///< in the order of the fields
};

/// Everything but pointers and scalars: the bytes of the slots are zero. Errors: as evaluate_launches.
Result<std::vector<EvaluatedLaunch>> evaluate_unbound_launches(const KernelJob& job);

/// Launches with an empty grid are left out (nothing to do). Errors: an expression that does not evaluate, a name without a pointer,
/// a tensor map that the encoder refuses, a grid or block outside the hardware's limits.
Result<std::vector<EvaluatedLaunch>> evaluate_launches(const KernelJob& job, const LaunchPointers& pointers);
/// Bytes of the plan's workspaces on this problem, by name.
Result<std::map<std::string, std::size_t>> workspace_bytes(const KernelJob& job);

/// What a launch has beside its shape: a cluster, the leave to begin early.
using LaunchAttributes = std::array<CudaLaunchAttribute, 2>;
/// The driver's description of a launch. `attributes` is used by it and must live as long.
CudaLaunchConfig launch_config(const EvaluatedLaunch& launch, CudaStream stream, LaunchAttributes& attributes);

/// A cubin loaded into the context.
class LoadedModule {
 public:
  static CudaResult<std::shared_ptr<LoadedModule>> load(const DriverApi& driver, const std::string& cubin);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  /// The kernel, ready for this launch. The first time its parameters are compared with the plan's (driver 550 and newer).
  CudaResult<CudaFunction> prepare(const EvaluatedLaunch& launch);
  /// Prepares and enqueues.
  CudaResult<void> launch(const EvaluatedLaunch& launch, CudaStream stream);
  /// Leaves the module to its context, which is gone or is not the current one: it is not unloaded.
  void abandon() { module_ = nullptr; }

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
