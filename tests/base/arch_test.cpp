// Architectures: names, what runs where, limits.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/arch.h"

#include "tests/catch.h"

namespace kw {

TEST_CASE("every arch survives the way to text and back and has limits and rates") {
  for (const Arch arch : all_arches()) {
    CHECK(arch_from_text(to_text(arch)) == arch);
    const DeviceLimits device = generic_device(arch);
    CHECK(device.max_smem_bytes_per_cta >= 99 * 1024);
    CHECK(device.num_sms > 0);
    CHECK(device.dram_gb_per_s > 0);
    CHECK(device.mma_16bit_flops_per_clock_sm > 0);
  }
  CHECK_FALSE(arch_from_text("sm_70").has_value());
}

TEST_CASE("a cubin runs on the same major with an equal or higher minor, an 'a' target only on its own") {
  CHECK(runs_on(Arch::kSm80, 86));
  CHECK_FALSE(runs_on(Arch::kSm86, 80));
  CHECK_FALSE(runs_on(Arch::kSm80, 90));
  CHECK(runs_on(Arch::kSm90a, 90));
  CHECK_FALSE(runs_on(Arch::kSm100a, 103));
  CHECK(arch_for_device(90) == Arch::kSm90a);
  CHECK(arch_for_device(87) == Arch::kSm86);
  CHECK_FALSE(arch_for_device(75).has_value());
}

}  // namespace kw
