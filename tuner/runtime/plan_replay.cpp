// See plan_replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/plan_replay.h"

#include <algorithm>
#include <bit>

namespace kw::tuner {
namespace {

std::vector<std::uint64_t> key_of(const kw_arguments& arguments) {
  std::vector<std::uint64_t> key;
  for (std::size_t i = 0; i < arguments.num_tensors; ++i) key.push_back(reinterpret_cast<std::uint64_t>(arguments.tensors[i]));
  for (std::size_t i = 0; i < arguments.num_scalars; ++i) key.push_back(std::bit_cast<std::uint64_t>(arguments.scalars[i]));
  key.push_back(reinterpret_cast<std::uint64_t>(arguments.workspace));
  key.push_back(reinterpret_cast<std::uint64_t>(arguments.zeroed_workspace));
  return key;
}

/// A node's description; `addresses` is what it points to.
CudaKernelNode node_of(const BoundLaunch& bound, CudaFunction function, const std::vector<std::byte>& parameters,
                       std::array<void*, kMaxParameters>& addresses) {
  for (std::size_t i = 0; i < bound.parameter_offsets.size(); ++i)
    addresses[i] = const_cast<std::byte*>(parameters.data() + bound.parameter_offsets[i]);
  CudaKernelNode node{};
  node.function = function;
  std::copy(bound.launch.grid.begin(), bound.launch.grid.end(), node.grid);
  std::copy(bound.launch.block.begin(), bound.launch.block.end(), node.block);
  node.dynamic_smem_bytes = bound.launch.dynamic_smem_bytes;
  node.parameters = addresses.data();
  return node;
}

}  // namespace

bool PlanReplays::is_supported(const DriverApi& driver) {
  return driver.graph_create != nullptr && driver.graph_add_kernel != nullptr && driver.graph_node_set_attribute != nullptr &&
         driver.graph_exec_set_kernel != nullptr && driver.stream_is_capturing != nullptr;
}

PlanReplays::Replay::~Replay() {
  if (executable != nullptr) driver.graph_exec_destroy(executable);
  if (graph != nullptr) driver.graph_destroy(graph);
}

void PlanReplays::forget() {
  for (const std::unique_ptr<Replay>& replay : replays_) {
    replay->executable = nullptr;
    replay->graph = nullptr;
  }
  replays_.clear();
}

bool PlanReplays::is_for(const Replay& replay, const kw_arguments& arguments) {
  if (replay.key.size() != arguments.num_tensors + arguments.num_scalars + 2) return false;
  const std::uint64_t* word = replay.key.data();
  for (std::size_t i = 0; i < arguments.num_tensors; ++i) {
    if (*word++ != reinterpret_cast<std::uint64_t>(arguments.tensors[i])) return false;
  }
  for (std::size_t i = 0; i < arguments.num_scalars; ++i) {
    if (*word++ != std::bit_cast<std::uint64_t>(arguments.scalars[i])) return false;
  }
  return word[0] == reinterpret_cast<std::uint64_t>(arguments.workspace) &&
         word[1] == reinterpret_cast<std::uint64_t>(arguments.zeroed_workspace);
}

CudaResult<void> PlanReplays::add_node(Replay& replay, std::size_t index) const {
  const BoundLaunch& bound = plan_.launches[index];
  std::array<void*, kMaxParameters> addresses;
  const CudaKernelNode description = node_of(bound, functions_[index], replay.parameters[index], addresses);
  // A driver that knows no edges of this kind gets a common one: the kernel's wait ends at once.
  const bool begins_early = bound.launch.is_dependent && driver_.graph_add_dependencies != nullptr;
  const CudaGraphNode* const before = index == 0 ? nullptr : &replay.nodes[index - 1];
  CudaGraphNode node = nullptr;
  KW_CUDA(driver_, "cuGraphAddKernelNode",
          driver_.graph_add_kernel(&node, replay.graph, before, index == 0 || begins_early ? 0 : 1, &description));
  if (begins_early)
    KW_CUDA(driver_, "cuGraphAddDependencies", driver_.graph_add_dependencies(replay.graph, before, &node, &kDependentEdge, 1));
  replay.nodes.push_back(node);
  LaunchAttributes attributes;
  const CudaLaunchConfig config = launch_config(bound.launch, nullptr, attributes);
  for (std::size_t i = 0; i < config.num_attributes; ++i) {
    if (attributes[i].id == kLaunchAttributeDependent) continue;  // the edge says it
    KW_CUDA(driver_, "cuGraphKernelNodeSetAttribute", driver_.graph_node_set_attribute(node, attributes[i].id, &attributes[i].value));
  }
  return {};
}

CudaResult<void> PlanReplays::instantiate(Replay& replay) const {
  KW_CUDA(driver_, "cuGraphCreate", driver_.graph_create(&replay.graph, 0));
  for (std::size_t index = 0; index < plan_.launches.size(); ++index) KW_CUDA_TRY_VOID(add_node(replay, index));
  KW_CUDA(driver_, "cuGraphInstantiate", driver_.graph_instantiate(&replay.executable, replay.graph, 0));
  return {};
}

Outcome<void> PlanReplays::build(Replay& replay, const FillParameters& fill) const {
  for (const BoundLaunch& bound : plan_.launches) {
    replay.parameters.push_back(bound.parameters);
    KW_OUTCOME_VOID(fill(bound, replay.parameters.back().data()));
  }
  KW_OUTCOME_VOID(instantiate(replay));
  return {};
}

Outcome<void> PlanReplays::update(Replay& replay, const FillParameters& fill) const {
  for (std::size_t index = 0; index < plan_.launches.size(); ++index) {
    const BoundLaunch& bound = plan_.launches[index];
    std::vector<std::byte> parameters = bound.parameters;
    KW_OUTCOME_VOID(fill(bound, parameters.data()));
    if (parameters == replay.parameters[index]) continue;
    replay.parameters[index] = std::move(parameters);
    std::array<void*, kMaxParameters> addresses;
    const CudaKernelNode description = node_of(bound, functions_[index], replay.parameters[index], addresses);
    if (const int code = driver_.graph_exec_set_kernel(replay.executable, replay.nodes[index], &description); code != 0)
      return failed(cuda_fault(driver_, code, "cuGraphExecKernelNodeSetParams"));
  }
  return {};
}

Outcome<PlanReplays::Replay*> PlanReplays::made_for(const kw_arguments& arguments, const FillParameters& fill) {
  std::vector<std::uint64_t> key = key_of(arguments);
  if (replays_.size() < kMaxGraphs) {
    auto replay = std::make_unique<Replay>(driver_);
    KW_OUTCOME_VOID(build(*replay, fill));
    replay->key = std::move(key);
    replays_.push_back(std::move(replay));
    return replays_.back().get();
  }
  const auto oldest =
      std::min_element(replays_.begin(), replays_.end(), [](const auto& a, const auto& b) { return a->last_turn < b->last_turn; });
  (*oldest)->key.clear();  // half changed it serves nobody
  if (const Outcome<void> updated = update(**oldest, fill); !updated) {
    replays_.erase(oldest);
    return failed(updated.error());
  }
  (*oldest)->key = std::move(key);
  return oldest->get();
}

Outcome<int> PlanReplays::launch(const kw_arguments& arguments, const FillParameters& fill, CudaStream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(replays_.begin(), replays_.end(), [&](const auto& replay) { return is_for(*replay, arguments); });
  Replay* replay = found == replays_.end() ? nullptr : found->get();
  if (replay == nullptr) {
    KW_OUTCOME(replay, made_for(arguments, fill));
  }
  replay->last_turn = ++turn_;
  return driver_.graph_launch(replay->executable, stream);
}

}  // namespace kw::tuner
