// GPU architectures we generate for, and the limits and rates of devices. A table, sources in arch.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/int_expr.h"

namespace kw {

/// Compile target, as NVRTC spells it after "--gpu-architecture=".
enum class Arch { kSm80 = 80, kSm86 = 86, kSm89 = 89, kSm90 = 90, kSm90a = 1090, kSm100 = 100, kSm100a = 1100, kSm103 = 103, kSm120 = 120 };

std::string_view to_text(Arch arch);  ///< "sm_90a"
std::optional<Arch> arch_from_text(std::string_view text);
const std::vector<Arch>& all_arches();
/// Compute capability times 10: 80, 90, 120; the 'a' variants give the same number.
int compute_capability(Arch arch);
/// The target for a device of this compute capability (major*10+minor), if we know it: the one with the most instructions.
std::optional<Arch> arch_for_device(int compute_capability);
/// Whether the arch has instructions of its own that no later one keeps ("sm_90a").
bool is_specific(Arch arch);
/// Whether a cubin for `target` loads on a device of `device_cc` (same major, device minor at least; 'a' only the same).
bool runs_on(Arch target, int device_cc);

/// Limits of one CTA and one SM, and rates for the model. Limits come from the arch; rates from the device when known.
struct DeviceLimits {
  std::string model_name;  ///< "NVIDIA H200", or "generic sm_90" when no device is known
  int compute_capability = 80;
  int num_sms = 0;
  std::int64_t max_smem_bytes_per_cta = 0;  ///< opt-in dynamic limit
  std::int64_t smem_bytes_per_sm = 0;
  int max_registers_per_thread = 255;
  int registers_per_sm = 65536;
  int max_threads_per_cta = 1024;
  int max_threads_per_sm = 2048;
  int max_ctas_per_sm = 32;
  std::int64_t l2_bytes = 0;
  double max_clock_ghz = 0;
  double dram_gb_per_s = 0;                 ///< decimal GB/s
  double l2_bytes_per_clock = 0;            ///< whole chip
  double mma_16bit_flops_per_clock_sm = 0;  ///< mma.sync, dense, f32 accumulate
  double mma_tf32_flops_per_clock_sm = 0;
  double fma_f32_flops_per_clock_sm = 0;  ///< CUDA cores; one fused multiply-add is 2
  double fma_f64_flops_per_clock_sm = 0;
  double peak_16bit_flops_per_clock_sm = 0;  ///< the chip's fastest dense 16-bit path (wgmma on sm_90): the roofline
};

/// Limits of the arch with the rates of a typical device of it ("generic sm_80": A100, sm_90: H200, ...).
DeviceLimits generic_device(Arch arch);

/// Variables that constraints may name: max_smem_bytes, max_threads_per_cta, registers_per_sm, num_sms, arch (80, 90, ...).
IntBindings limit_bindings(const DeviceLimits& limits);

}  // namespace kw
