// A launch plan at one problem, made ready for many launches: every expression evaluated, parameters packed, and for each pointer, scalar
// and tensor map the place where its bytes go. Pure: no driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/device/kernel_launch.h"

namespace kw::tuner {

inline constexpr std::size_t kWorkspaceAlignBytes = 256;  // what cuMemAlloc gives
inline constexpr std::size_t kMaxParameterBytes = 4096;   // CUDA Programming Guide, __global__ function parameters
inline constexpr std::size_t kMaxParameters = kMaxParameterBytes / kTensorMapAlignBytes;

struct BoundTensor {
  std::string name;
  std::uint64_t align_bytes = 16;  ///< the problem's, else the spec's promise
  bool has_elements = true;
};

/// Bytes of a launch's parameters that come from the caller.
struct BoundSlot {
  PlanField::Kind kind = PlanField::Kind::kTensor;
  std::size_t offset_bytes = 0;  ///< in BoundLaunch::parameters
  std::size_t index = 0;         ///< of the tensor or scalar
  bool is_of_workspace = false;
  std::size_t workspace_bytes = 0;  ///< of a workspace: offset in it
  bool is_zeroed = false;           ///< of the zeroed workspace
  DType dtype = DType::kF32;        ///< kScalar
  std::uint64_t map_id = 0;         ///< kTensorMap: TensorMapCache::new_map_id()
  EvaluatedTensorMap map = {};      ///< kTensorMap: all but the address
};

struct BoundLaunch {
  EvaluatedLaunch launch;
  std::vector<std::byte> parameters;           ///< all of them, each aligned to 64
  std::vector<std::size_t> parameter_offsets;  ///< in `parameters`
  std::vector<BoundSlot> slots;
};

struct BoundPlan {
  std::vector<BoundTensor> tensors;
  std::vector<PlanScalar> scalars;
  std::size_t workspace_bytes = 0, zeroed_workspace_bytes = 0;
  std::vector<BoundLaunch> launches;  ///< those with a grid that is not empty
};

/// `job.problem` is complete (complete_strides). Errors: the problem breaks a constraint of the plan or the hardware's limits, or the plan
/// is at fault; the message says which.
Result<BoundPlan> bind_plan(const KernelJob& job);

}  // namespace kw::tuner
