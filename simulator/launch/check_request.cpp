// Checks extents, shared memory and arguments of a launch against the kernel and the device's limits.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/check_request.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "simulator/launch/symbol_name.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kMaxClusterCtas = 16;  // 8 is portable, 16 ran on an H200
// CUDA Programming Guide, technical specifications: extents of blocks and grids, the same for all devices since 3.0.
constexpr std::array<std::uint64_t, 3> kMaxBlock = {1024, 1024, 64};
constexpr std::array<std::uint64_t, 3> kMaxGrid = {2147483647, 65535, 65535};
constexpr std::uint32_t kReservedSmemBytes = 1024;  // a block, on sm_80 and later

tl::unexpected<Error> refuse(std::string message) { return fail(Stage::kVerify, Code::kBadInput, std::move(message)); }

std::string text(const std::array<std::uint32_t, 3>& extent) { return fmt::format("{} x {} x {}", extent[0], extent[1], extent[2]); }
bool is_given(const Extent3& extent) { return extent.x != 0; }
/// Axes that a directive leaves out are 1.
std::array<std::uint32_t, 3> as_array(const Extent3& extent) { return {extent.x, std::max(1u, extent.y), std::max(1u, extent.z)}; }

Status check_extents(const std::string& name, const Kernel& kernel, const LaunchShape& shape, const DeviceLimits& limits) {
  std::uint64_t num_threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] == 0 || shape.grid[axis] > kMaxGrid[axis]) {
      return refuse(fmt::format("kernel '{}': grid {}: axis {} must be 1 to {}", name, text(shape.grid), axis, kMaxGrid[axis]));
    }
    if (shape.block[axis] == 0 || shape.block[axis] > kMaxBlock[axis]) {
      return refuse(fmt::format("kernel '{}': block {}: axis {} must be 1 to {}", name, text(shape.block), axis, kMaxBlock[axis]));
    }
    num_threads *= shape.block[axis];
    if (shape.cluster[axis] == 0 || shape.grid[axis] % shape.cluster[axis] != 0) {
      return refuse(fmt::format("kernel '{}': grid {} is not a multiple of the cluster {}", name, text(shape.grid), text(shape.cluster)));
    }
  }
  if (num_threads > static_cast<std::uint64_t>(limits.max_threads_per_cta)) {
    return refuse(fmt::format("kernel '{}': block {} has {} threads: the limit is {}", name, text(shape.block), num_threads,
                              limits.max_threads_per_cta));
  }
  if (const auto max = as_array(kernel.max_threads);
      is_given(kernel.max_threads) && num_threads > std::uint64_t{max[0]} * max[1] * max[2]) {
    return refuse(fmt::format("kernel '{}': block {}: the kernel allows at most {} threads (.maxntid)", name, text(shape.block),
                              std::uint64_t{max[0]} * max[1] * max[2]));
  }
  if (is_given(kernel.required_threads) && as_array(kernel.required_threads) != shape.block) {
    return refuse(fmt::format("kernel '{}': block {}: the kernel needs {} (.reqntid)", name, text(shape.block),
                              text(as_array(kernel.required_threads))));
  }
  if (is_given(kernel.required_cluster) && as_array(kernel.required_cluster) != shape.cluster) {
    return refuse(fmt::format("kernel '{}': cluster {}: the kernel needs {} (.reqnctapercluster)", name, text(shape.cluster),
                              text(as_array(kernel.required_cluster))));
  }
  const std::uint64_t num_cluster_ctas = std::uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2];
  if (num_cluster_ctas > kMaxClusterCtas || (num_cluster_ctas > 1 && limits.compute_capability < 90)) {
    return refuse(
        fmt::format("kernel '{}': cluster {}: the limit is {} CTAs, and 1 before sm_90", name, text(shape.cluster), kMaxClusterCtas));
  }
  return {};
}

Result<std::vector<std::byte>> pack_parameters(const Kernel& kernel, const LaunchRequest& request) {
  if (kernel.parameters.size() != request.arguments.size()) {
    return refuse(fmt::format("kernel '{}': {} arguments given, it has {} parameters", kernel.name, request.arguments.size(),
                              kernel.parameters.size()));
  }
  std::vector<std::byte> packed(kernel.parameter_bytes);
  for (std::size_t index = 0; index < kernel.parameters.size(); ++index) {
    const Variable& parameter = kernel.parameters[index];
    const std::vector<std::byte>& bytes = request.arguments[index];
    if (bytes.size() != parameter.size_bytes) {
      return refuse(fmt::format("kernel '{}': argument {} has {} bytes, the parameter {} has {}", kernel.name, index, bytes.size(),
                                parameter.name, parameter.size_bytes));
    }
    if (!bytes.empty()) std::memcpy(packed.data() + parameter.offset_bytes, bytes.data(), bytes.size());
  }
  return packed;
}

}  // namespace

Result<CheckedLaunch> check_request(const Module& module, const Program& program, const LaunchRequest& request) {
  const Kernel* kernel = module.find_kernel(request.kernel);
  if (kernel == nullptr) return refuse(fmt::format("kernel '{}': {} has no kernel of that name", request.kernel, module.file));
  const auto arch = arch_for_device(program.compute_capability);
  const DeviceLimits limits = generic_device(arch.value_or(Arch::kSm90a));
  CheckedLaunch launch;
  launch.shape.grid = request.grid;
  launch.shape.block = request.block;
  const bool has_cluster = request.cluster != std::array<std::uint32_t, 3>{0, 0, 0};
  launch.shape.cluster = has_cluster                          ? request.cluster
                         : is_given(kernel->required_cluster) ? as_array(kernel->required_cluster)
                                                              : std::array<std::uint32_t, 3>{1, 1, 1};
  KW_TRY_VOID(check_extents(request.kernel, *kernel, launch.shape, limits));
  const std::uint64_t shared_bytes = std::uint64_t{program.layout.static_shared_bytes} + request.dynamic_shared_bytes;
  if (shared_bytes > static_cast<std::uint64_t>(limits.max_smem_bytes_per_cta)) {
    return refuse(fmt::format("kernel '{}': {} bytes of shared memory ({} static, {} dynamic): the limit of sm_{} is {}", request.kernel,
                              shared_bytes, program.layout.static_shared_bytes, request.dynamic_shared_bytes, program.compute_capability,
                              limits.max_smem_bytes_per_cta));
  }
  launch.shape.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  launch.shape.local_bytes_per_thread = program.layout.local_bytes_per_thread;
  launch.shape.shared_symbols = program.layout.shared_symbols;
  for (SharedSymbol& symbol : launch.shape.shared_symbols) symbol.name = short_name(symbol.name);
  KW_TRY(launch.parameters, pack_parameters(*kernel, request));
  launch.num_clusters = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) launch.num_clusters *= launch.shape.grid[axis] / launch.shape.cluster[axis];
  const std::int64_t by_smem = limits.smem_bytes_per_sm / (static_cast<std::int64_t>(shared_bytes) + kReservedSmemBytes);
  const std::int64_t by_threads = limits.max_threads_per_sm / static_cast<std::int64_t>(launch.shape.num_warps() * kLanes);
  const std::int64_t per_sm = std::max<std::int64_t>(1, std::min({by_smem, by_threads, std::int64_t{limits.max_ctas_per_sm}}));
  launch.num_resident_ctas = static_cast<std::uint64_t>(per_sm * std::max(1, limits.num_sms));
  return launch;
}

}  // namespace kw::simulate
