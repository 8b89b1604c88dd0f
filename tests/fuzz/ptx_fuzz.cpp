// libFuzzer target: any bytes as a PTX text. What parses is decoded, and what decodes runs for a few thousand warp instructions on a
// machine with small limits. Nothing but a named refusal or a finding may come of it: no crash, no hang, no large allocation.
//   ptx_fuzz CORPUS -dict=tests/fuzz/ptx.dict -max_len=4096    (start the corpus with tests/simulator/ptx/texts and tests/fuzz/ptx_seeds)
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kBufferBytes = 4096;

void run_kernel(const Module& module, const Kernel& kernel, Schedule schedule) {
  SimulationOptions options;
  options.schedule = schedule;
  options.tensor_mode = TensorMode::kFast;
  options.limits.max_warp_instructions = 4000;
  options.limits.max_resident_bytes = std::uint64_t{64} << 20;
  options.limits.max_findings = 4;
  options.max_global_bytes = std::uint64_t{16} << 20;
  Simulation simulation(options);
  const Result<std::uint64_t> buffer =
      simulation.allocate(BufferRequest{.name = "data", .num_bytes = kBufferBytes, .role = AllocationRole::kInOut});
  if (!buffer) return;
  LaunchCall call{.kernel = kernel.name, .block = {64, 1, 1}, .dynamic_shared_bytes = 2048};
  if (kernel.required_threads.x != 0) call.block = {kernel.required_threads.x, kernel.required_threads.y, kernel.required_threads.z};
  if (kernel.is_explicit_cluster) call.grid = {kernel.required_cluster.x, kernel.required_cluster.y, kernel.required_cluster.z};
  if (std::uint64_t{call.block[0]} * call.block[1] * call.block[2] > 256) return;
  if (std::uint64_t{call.grid[0]} * call.grid[1] * call.grid[2] > 4) return;
  for (const Variable& parameter : kernel.parameters) {
    std::vector<std::byte> bytes(parameter.size_bytes);
    // Every pointer-sized parameter points to the buffer; others are zero.
    if (bytes.size() == 8) bytes = argument(*buffer);
    call.arguments.push_back(std::move(bytes));
  }
  (void)simulation.launch(module, call);
}

}  // namespace
}  // namespace kw::simulate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kw::simulate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kw::Result<Module> module = parse_ptx(text, "fuzz.ptx");
  if (!module || module->kernels.empty()) return 0;
  const Schedule schedules[] = {{Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 1}};
  run_kernel(*module, module->kernels.front(), schedules[size % 3]);
  return 0;
}
