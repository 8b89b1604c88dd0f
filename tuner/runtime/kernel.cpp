// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

using namespace kw;
using namespace kw::tuner;

namespace {

DevicePointer address_of(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

Outcome<void> check_workspace(const char* name, const void* pointer, std::size_t given_bytes, std::size_t needed_bytes) {
  if (needed_bytes == 0) return {};
  if (pointer == nullptr) return failed(KW_BAD_ARGUMENT, fmt::format("{} is null: the kernel needs {} bytes", name, needed_bytes));
  if (given_bytes < needed_bytes)
    return failed(KW_BAD_ARGUMENT, fmt::format("{} has {} bytes: the kernel needs {}", name, given_bytes, needed_bytes));
  if (address_of(pointer) % kWorkspaceAlignBytes != 0)
    return failed(KW_BAD_ARGUMENT, fmt::format("{} is at {}: must be aligned to {} bytes", name, pointer, kWorkspaceAlignBytes));
  return {};
}

}  // namespace

kw_kernel::kw_kernel(KernelParts parts) : parts_(std::move(parts)) {}

kw_kernel::~kw_kernel() {
  ContextId current = 0;
  const bool is_known = parts_.driver.context_id(nullptr, &current) == 0;
  for (Prepared& prepared : prepared_) {
    if (!is_known || prepared.context != current) prepared.replays.forget();
  }
}

void kw_kernel::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Outcome<void> kw_kernel::check(const kw_arguments& arguments) const {
  const BoundPlan& plan = parts_.plan;
  if (arguments.num_tensors != plan.tensors.size())
    return failed(KW_BAD_ARGUMENT,
                  fmt::format("{} tensors are given: {} has {}", arguments.num_tensors, parts_.info.variant, plan.tensors.size()));
  if (arguments.num_scalars != plan.scalars.size())
    return failed(KW_BAD_ARGUMENT,
                  fmt::format("{} scalars are given: {} has {}", arguments.num_scalars, parts_.info.variant, plan.scalars.size()));
  if (arguments.tensors == nullptr && arguments.num_tensors > 0) return failed(KW_BAD_ARGUMENT, "arguments.tensors is null");
  if (arguments.scalars == nullptr && arguments.num_scalars > 0) return failed(KW_BAD_ARGUMENT, "arguments.scalars is null");
  for (std::size_t index = 0; index < plan.tensors.size(); ++index) {
    const BoundTensor& tensor = plan.tensors[index];
    if (!tensor.has_elements) continue;
    if (arguments.tensors[index] == nullptr) return failed(KW_BAD_ARGUMENT, fmt::format("tensor {} is null", tensor.name));
    if (address_of(arguments.tensors[index]) % tensor.align_bytes != 0)
      return failed(KW_BAD_ARGUMENT,
                    fmt::format("tensor {} is at {}: must be aligned to {} bytes (kw_find takes another alignment as {}.align)",
                                tensor.name, arguments.tensors[index], tensor.align_bytes, tensor.name));
  }
  KW_OUTCOME_VOID(check_workspace("workspace", arguments.workspace, arguments.workspace_bytes, plan.workspace_bytes));
  return check_workspace("zeroed_workspace", arguments.zeroed_workspace, arguments.zeroed_workspace_bytes, plan.zeroed_workspace_bytes);
}

Outcome<kw_kernel::Prepared*> kw_kernel::prepared_in(ContextId context) {
  Prepared* last = last_prepared_.load(std::memory_order_acquire);
  if (last != nullptr && last->context == context) return last;
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(prepared_.begin(), prepared_.end(), [context](const Prepared& entry) { return entry.context == context; });
  if (found == prepared_.end()) {
    KW_OUTCOME(const CudaDevice device, current_device(parts_.driver));
    if (const std::string model = model_of(parts_.driver, device).name; model != parts_.device_model)
      return failed(KW_WRONG_DEVICE, fmt::format("{} was found for {}, the current context's device is {}: call kw_find with this context",
                                                 parts_.info.variant, parts_.device_model, model));
    std::vector<EvaluatedLaunch> launches;
    for (const BoundLaunch& bound : parts_.plan.launches) launches.push_back(bound.launch);
    KW_OUTCOME(std::vector<CudaFunction> functions, parts_.variant->prepare(context, launches));
    prepared_.emplace_back(context, std::move(functions), parts_);
    found = std::prev(prepared_.end());
  }
  last_prepared_.store(&*found, std::memory_order_release);
  return &*found;
}

Outcome<void> kw_kernel::prepare() {
  KW_OUTCOME(const ContextId context, current_context(parts_.driver));
  KW_OUTCOME_VOID(prepared_in(context));
  return {};
}

Outcome<void> kw_kernel::fill(const BoundSlot& slot, const kw_arguments& arguments, std::byte* bytes) const {
  if (slot.kind == PlanField::Kind::kScalar) {
    store_element(slot.dtype, arguments.scalars[slot.index], bytes);
    return {};
  }
  const void* const workspace = slot.is_zeroed ? arguments.zeroed_workspace : arguments.workspace;
  const DevicePointer address =
      slot.is_of_workspace ? address_of(workspace) + slot.workspace_bytes : address_of(arguments.tensors[slot.index]);
  if (slot.kind != PlanField::Kind::kTensorMap) {
    std::memcpy(bytes, &address, sizeof address);
    return {};
  }
  if (parts_.maps->find(slot.map_id, address, bytes)) return {};
  EvaluatedTensorMap map = slot.map;
  map.address = address;
  KW_OUTCOME(const TensorMapBytes encoded, tensor_map_encoder(parts_.driver)(map));
  parts_.maps->store(slot.map_id, address, encoded);
  std::memcpy(bytes, encoded.data(), encoded.size());
  return {};
}

Outcome<void> kw_kernel::fill_all(const BoundLaunch& bound, const kw_arguments& arguments, std::byte* parameters) const {
  for (const BoundSlot& slot : bound.slots) KW_OUTCOME_VOID(fill(slot, arguments, parameters + slot.offset_bytes));
  return {};
}

Outcome<void> kw_kernel::enqueue(const BoundLaunch& bound, CudaFunction function, const kw_arguments& arguments, CudaStream stream) const {
  alignas(kTensorMapAlignBytes) std::array<std::byte, kMaxParameterBytes> parameters;
  std::array<void*, kMaxParameters> addresses;
  std::memcpy(parameters.data(), bound.parameters.data(), bound.parameters.size());
  KW_OUTCOME_VOID(fill_all(bound, arguments, parameters.data()));
  for (std::size_t index = 0; index < bound.parameter_offsets.size(); ++index)
    addresses[index] = parameters.data() + bound.parameter_offsets[index];
  LaunchAttributes attributes;
  const CudaLaunchConfig config = launch_config(bound.launch, stream, attributes);
  const int code = parts_.driver.launch(&config, function, addresses.data(), nullptr);
  if (code != 0) return launch_failure(code, "cuLaunchKernelEx", stream);
  return {};
}

/// Plans of several launches, unless the caller captures a graph of his own, which takes the launches themselves.
bool kw_kernel::is_replayed(CudaStream stream) const {
  if (parts_.plan.launches.size() < 2 || !PlanReplays::is_supported(parts_.driver)) return false;
  int status = 0;
  return parts_.driver.stream_is_capturing(stream, &status) == 0 && status == 0;
}

tl::unexpected<Failure> kw_kernel::launch_failure(int code, const char* call, CudaStream stream) const {
  const CudaFault fault = cuda_fault(parts_.driver, code, call);
  // Asked only now: a launch that succeeds need not know.
  CudaContext context = nullptr;
  ContextId current = 0, of_stream = 0;
  if (stream != nullptr && !is_sticky(code) && parts_.driver.context_id(nullptr, &current) == 0 &&
      parts_.driver.stream_context(stream, &context) == 0 && parts_.driver.context_id(context, &of_stream) == 0 && current != of_stream)
    return failed(KW_WRONG_DEVICE, fmt::format("{}: the stream belongs to another context than the one that is current ({})",
                                               parts_.info.variant, fault.text));
  Failure failure = failed(fault).value();
  failure.sentence =
      fmt::format("{}: {}{}", parts_.info.variant, fault.text, is_sticky(code) ? "; an earlier kernel broke the context" : "");
  return failed(std::move(failure));
}

Outcome<void> kw_kernel::launch(const kw_arguments& arguments, CudaStream stream) {
  KW_OUTCOME_VOID(check(arguments));
  KW_OUTCOME(const ContextId context, current_context(parts_.driver));
  KW_OUTCOME(Prepared* const prepared, prepared_in(context));
  if (is_replayed(stream)) {
    const auto fill_launch = [&](const BoundLaunch& bound, std::byte* parameters) { return fill_all(bound, arguments, parameters); };
    KW_OUTCOME(const int code, prepared->replays.launch(arguments, fill_launch, stream));
    if (code != 0) return launch_failure(code, "cuGraphLaunch", stream);
    return {};
  }
  for (std::size_t index = 0; index < parts_.plan.launches.size(); ++index)
    KW_OUTCOME_VOID(enqueue(parts_.plan.launches[index], prepared->functions[index], arguments, stream));
  return {};
}
