// The table of architectures and the rates of a typical device of each.
// Limits: CUDA Programming Guide, technical specifications by compute capability. Rates: the vendor's datasheets, except sm_90,
// where mma.sync, L2 and DRAM rates were measured on an H200 (docs/findings); they are starting values of a model, not promises.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/arch.h"

#include "generator/base/error.h"

namespace kw {
namespace {

struct ArchRow {
  Arch arch;
  std::string_view name;
  DeviceLimits device;
};

DeviceLimits make_device(std::string name, int cc, int sms, int smem_kib_cta, int smem_kib_sm, int threads_sm, int ctas_sm) {
  DeviceLimits d;
  d.model_name = std::move(name);
  d.compute_capability = cc;
  d.num_sms = sms;
  d.max_smem_bytes_per_cta = smem_kib_cta * 1024;
  d.smem_bytes_per_sm = smem_kib_sm * 1024;
  d.max_threads_per_sm = threads_sm;
  d.max_ctas_per_sm = ctas_sm;
  return d;
}

struct Rates {
  double clock_ghz, dram_gb_per_s, l2_bytes_per_clock;
  std::int64_t l2_mib;
  double mma_16bit, mma_tf32, fma_f32, fma_f64, peak_16bit;  // FLOP per clock and SM
};

DeviceLimits with_rates(DeviceLimits d, const Rates& r) {
  d.max_clock_ghz = r.clock_ghz;
  d.dram_gb_per_s = r.dram_gb_per_s;
  d.l2_bytes_per_clock = r.l2_bytes_per_clock;
  d.l2_bytes = r.l2_mib << 20;
  d.mma_16bit_flops_per_clock_sm = r.mma_16bit;
  d.mma_tf32_flops_per_clock_sm = r.mma_tf32;
  d.fma_f32_flops_per_clock_sm = r.fma_f32;
  d.fma_f64_flops_per_clock_sm = r.fma_f64;
  d.peak_16bit_flops_per_clock_sm = r.peak_16bit;
  return d;
}

const std::vector<ArchRow>& table() {
  static const std::vector<ArchRow> rows = [] {
    const DeviceLimits sm80 =
        with_rates(make_device("generic sm_80", 80, 108, 163, 164, 2048, 32), {1.41, 1555, 5120, 40, 2048, 1024, 128, 64, 2048});
    const DeviceLimits sm86 =
        with_rates(make_device("generic sm_86", 86, 84, 99, 100, 1536, 16), {1.70, 768, 2048, 6, 1024, 512, 256, 4, 1024});
    const DeviceLimits sm89 =
        with_rates(make_device("generic sm_89", 89, 142, 99, 100, 1536, 24), {2.50, 864, 4096, 96, 1024, 512, 256, 4, 1024});
    const DeviceLimits sm90 =
        with_rates(make_device("generic sm_90", 90, 132, 227, 228, 2048, 32), {1.98, 4800, 5100, 60, 2672, 1336, 256, 128, 4096});
    const DeviceLimits sm100 =
        with_rates(make_device("generic sm_100", 100, 148, 227, 228, 2048, 32), {1.96, 8000, 6000, 126, 2048, 1024, 256, 128, 8192});
    const DeviceLimits sm120 =
        with_rates(make_device("generic sm_120", 120, 170, 99, 100, 1536, 24), {2.41, 1792, 4096, 96, 1024, 512, 256, 4, 1024});
    std::vector<ArchRow> list = {{Arch::kSm80, "sm_80", sm80},      {Arch::kSm86, "sm_86", sm86},    {Arch::kSm89, "sm_89", sm89},
                                 {Arch::kSm90, "sm_90", sm90},      {Arch::kSm90a, "sm_90a", sm90},  {Arch::kSm100, "sm_100", sm100},
                                 {Arch::kSm100a, "sm_100a", sm100}, {Arch::kSm103, "sm_103", sm100}, {Arch::kSm120, "sm_120", sm120}};
    for (ArchRow& row : list) row.device.model_name = "generic " + std::string(row.name);
    for (ArchRow& row : list)
      if (row.arch == Arch::kSm103) row.device.compute_capability = 103;
    return list;
  }();
  return rows;
}

const ArchRow& row_of(Arch arch) {
  for (const ArchRow& row : table())
    if (row.arch == arch) return row;
  check_failed("arch is in the table", __FILE__, __LINE__, "every Arch has a row");
}

}  // namespace

std::string_view to_text(Arch arch) { return row_of(arch).name; }

std::optional<Arch> arch_from_text(std::string_view text) {
  for (const ArchRow& row : table())
    if (row.name == text) return row.arch;
  return std::nullopt;
}

const std::vector<Arch>& all_arches() {
  static const std::vector<Arch> all = [] {
    std::vector<Arch> list;
    for (const ArchRow& row : table()) list.push_back(row.arch);
    return list;
  }();
  return all;
}

int compute_capability(Arch arch) { return row_of(arch).device.compute_capability; }

std::optional<Arch> arch_for_device(int cc) {
  std::optional<Arch> best;
  for (const Arch arch : {Arch::kSm80, Arch::kSm86, Arch::kSm89, Arch::kSm90, Arch::kSm90a, Arch::kSm100, Arch::kSm103, Arch::kSm120})
    if (runs_on(arch, cc)) best = arch;
  return best;
}

bool is_specific(Arch arch) { return to_text(arch).back() == 'a'; }

bool runs_on(Arch target, int device_cc) {
  const int target_cc = compute_capability(target);
  if (is_specific(target)) return target_cc == device_cc;
  return target_cc / 10 == device_cc / 10 && target_cc <= device_cc;
}

DeviceLimits generic_device(Arch arch) { return row_of(arch).device; }

IntBindings limit_bindings(const DeviceLimits& limits) {
  return {{"max_smem_bytes", limits.max_smem_bytes_per_cta},
          {"smem_bytes_per_sm", limits.smem_bytes_per_sm},
          {"max_threads_per_cta", limits.max_threads_per_cta},
          {"max_registers_per_thread", limits.max_registers_per_thread},
          {"registers_per_sm", limits.registers_per_sm},
          {"num_sms", limits.num_sms},
          {"arch", limits.compute_capability}};
}

}  // namespace kw
