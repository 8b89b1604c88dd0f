// See bound_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/bound_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tuner/device/tensor_storage.h"
#include "tuner/runtime/tensor_map_cache.h"

namespace kw::tuner {
namespace {

std::size_t round_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

Error refused(const KernelJob& job, const std::string& why) {
  return Error{Stage::kDevice, Code::kInternal, fmt::format("{}: launch plan: {}", job.label, why), {}, {}};
}

struct WorkspacePart {
  std::size_t offset_bytes = 0;
  bool is_zeroed = false;
};

/// Lays the workspaces out one after another, zeroed ones in a memory of their own.
Result<std::map<std::string, WorkspacePart>> lay_out_workspaces(const KernelJob& job, BoundPlan& bound) {
  KW_TRY(const auto sizes, workspace_bytes(job));
  std::map<std::string, WorkspacePart> parts;
  for (const PlanWorkspace& workspace : job.plan.workspaces) {
    std::size_t& total = workspace.is_zeroed_once ? bound.zeroed_workspace_bytes : bound.workspace_bytes;
    parts[workspace.name] = {total, workspace.is_zeroed_once};
    total += round_up(sizes.at(workspace.name), kWorkspaceAlignBytes);
  }
  return parts;
}

template <typename Item>
Result<std::size_t> index_of(const KernelJob& job, const std::vector<Item>& items, const std::string& name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
  if (found == items.end()) return fail(refused(job, fmt::format("nothing is named '{}'", name)));
  return static_cast<std::size_t>(found - items.begin());
}

Result<BoundLaunch> bind_launch(const KernelJob& job, EvaluatedLaunch launch, const std::map<std::string, WorkspacePart>& workspaces) {
  BoundLaunch bound;
  for (const std::vector<std::byte>& parameter : launch.parameters) {
    const std::size_t offset = round_up(bound.parameters.size(), kTensorMapAlignBytes);
    bound.parameter_offsets.push_back(offset);
    bound.parameters.resize(offset + parameter.size());
    std::memcpy(bound.parameters.data() + offset, parameter.data(), parameter.size());
  }
  if (bound.parameters.size() > kMaxParameterBytes)
    return fail(refused(
        job, fmt::format("{}: {} bytes of parameters: must be at most {}", launch.kernel, bound.parameters.size(), kMaxParameterBytes)));
  for (const LaunchSlot& slot : launch.slots) {
    BoundSlot filled;
    filled.kind = slot.kind;
    filled.offset_bytes = bound.parameter_offsets[slot.parameter] + slot.offset_bytes;
    filled.dtype = slot.scalar_dtype;
    filled.is_of_workspace = slot.is_of_workspace;
    if (slot.is_of_workspace) {
      const auto part = workspaces.find(slot.source);
      if (part == workspaces.end()) return fail(refused(job, fmt::format("no workspace is named '{}'", slot.source)));
      filled.workspace_bytes = part->second.offset_bytes;
      filled.is_zeroed = part->second.is_zeroed;
    } else if (slot.kind == PlanField::Kind::kScalar) {
      KW_TRY(filled.index, index_of(job, job.plan.scalars, slot.source));
    } else {
      KW_TRY(filled.index, index_of(job, job.plan.tensors, slot.source));
    }
    if (slot.kind == PlanField::Kind::kTensorMap) {
      filled.map = slot.map;
      filled.map_id = TensorMapCache::new_map_id();
    }
    bound.slots.push_back(std::move(filled));
  }
  bound.launch = std::move(launch);
  return bound;
}

}  // namespace

Result<BoundPlan> bind_plan(const KernelJob& job) {
  if (const std::string broken = first_broken_constraint(job.plan, job.problem); !broken.empty())
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{}: {}", job.label, broken));
  BoundPlan bound;
  KW_TRY(const std::vector<TensorStorage> storages, tensor_storages(job.plan, job.problem));
  for (const TensorStorage& storage : storages) {
    // Of a list the caller gives a table of pointers; its kernels look at each of them.
    const auto align_bytes = storage.is_list ? sizeof(std::uint64_t) : static_cast<std::uint64_t>(storage.align_bytes);
    bound.tensors.push_back({storage.name, align_bytes, storage.num_elements > 0});
  }
  bound.scalars = job.plan.scalars;
  KW_TRY(const auto workspaces, lay_out_workspaces(job, bound));
  KW_TRY(std::vector<EvaluatedLaunch> launches, evaluate_unbound_launches(job));
  for (EvaluatedLaunch& launch : launches) {
    KW_TRY(BoundLaunch one, bind_launch(job, std::move(launch), workspaces));
    bound.launches.push_back(std::move(one));
  }
  return bound;
}

}  // namespace kw::tuner
