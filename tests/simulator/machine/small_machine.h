// A machine with one or a few CTAs and short names for its calls: each test reads as the accesses of a small kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "simulator/machine/machine.h"

namespace kw::simulate {

struct SmallMachine {
  explicit SmallMachine(LaunchShape shape_in = {.block = {64, 1, 1}, .shared_bytes = 1024}, MachineOptions options = {})
      : machine(memory, shape_in, options), ctas(machine.admit(0)) {}

  Context at(std::uint32_t warp, std::uint32_t pc, LaneMask lanes = kAllLanes, std::size_t cta = 0) const {
    return {ctas[cta], warp, lanes, pc};
  }
  /// 32-bit shared address of a byte offset in a CTA of the first cluster.
  std::uint32_t shared(std::uint32_t offset, std::size_t cta = 0) const { return machine.shared_base(*ctas[cta]) + offset; }

  /// Lane l stores value + l at address + 4 l.
  Outcome store(Context ctx, std::uint64_t address, std::uint32_t value, AccessKind kind = {.space = Space::kShared}) {
    std::array<std::uint64_t, kLanes> addresses{};
    std::array<std::uint32_t, kLanes> values{};
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
      addresses[lane] = address + 4 * lane;
      values[lane] = value + static_cast<std::uint32_t>(lane);
    }
    return machine.store(ctx, kind, addresses.data(), reinterpret_cast<const std::byte*>(values.data()));
  }
  Outcome load(Context ctx, std::uint64_t address, AccessKind kind = {.space = Space::kShared}) {
    std::array<std::uint64_t, kLanes> addresses{};
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) addresses[lane] = address + 4 * lane;
    return machine.load(ctx, kind, addresses.data(), reinterpret_cast<std::byte*>(loaded.data()));
  }
  /// Both warps of a two-warp CTA pass barrier 0.
  void sync(std::uint32_t pc) {
    const std::uint32_t num_warps = machine.shape().num_warps();
    for (std::uint32_t warp = 0; warp < num_warps; ++warp) machine.barrier_sync(at(warp, pc), 0, 0, true);
    for (std::uint32_t warp = 0; warp + 1 < num_warps; ++warp) machine.barrier_sync(at(warp, pc), 0, 0, true);
  }
  /// cp.async of 16 bytes by one lane.
  Outcome copy16(Context ctx, std::uint32_t shared_address, std::uint64_t global, const std::uint32_t* source_bytes = nullptr) {
    std::array<std::uint64_t, kLanes> to{};
    std::array<std::uint64_t, kLanes> from{};
    std::array<std::uint32_t, kLanes> num_source{};
    to[0] = shared_address;
    from[0] = global;
    if (source_bytes != nullptr) num_source[0] = *source_bytes;
    ctx.lanes = 1;
    return machine.cp_async(ctx, 16, to.data(), from.data(), source_bytes != nullptr ? num_source.data() : nullptr);
  }
  Outcome init(Context ctx, std::uint32_t address, std::uint32_t count) {
    ctx.lanes = 1;
    const std::uint64_t wide = address;
    return machine.mbarrier_init(ctx, &wide, &count);
  }
  Outcome arrive(Context ctx, std::uint32_t address, std::uint32_t count = 1, std::int64_t tx_bytes = -1) {
    ctx.lanes = 1;
    const std::uint64_t wide = address;
    return machine.mbarrier_arrive(ctx,
                                   {.space = Space::kSharedCluster,
                                    .count = count,
                                    .has_expect_tx = tx_bytes >= 0,
                                    .tx_bytes = static_cast<std::uint32_t>(tx_bytes < 0 ? 0 : tx_bytes)},
                                   &wide, nullptr, nullptr, nullptr);
  }
  Outcome wait_parity(Context ctx, std::uint32_t address, std::uint64_t parity) {
    ctx.lanes = 1;
    const std::uint64_t wide = address;
    return machine.mbarrier_wait(ctx, {}, &wide, &parity, completed);
  }
  /// The loop of a kernel around try_wait; copies land when nothing else can go on.
  void wait_until(Context ctx, std::uint32_t address, std::uint64_t parity) {
    completed = 0;
    while (completed == 0) {
      if (wait_parity(ctx, address, parity) == Outcome::kParked && !machine.force_one_completion()) return;
    }
  }
  std::uint32_t atomic_add(Context ctx, std::uint64_t address, std::uint32_t add, Order order, Scope scope = Scope::kGpu) {
    ctx.lanes = 1;
    std::uint32_t old = 0;
    machine.atomic(ctx, {.space = Space::kGlobal, .order = order, .scope = scope}, &address, reinterpret_cast<const std::byte*>(&add),
                   nullptr, reinterpret_cast<std::byte*>(&old));
    return old;
  }
  void exit(std::uint32_t warp, std::size_t cta = 0) { machine.exit_lanes(at(warp, 0, kAllLanes, cta)); }

  std::vector<FindingKind> kinds() const {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : machine.findings().all()) kinds.push_back(finding.kind);
    return kinds;
  }
  std::string text() const {
    std::string text;
    for (const Finding& finding : machine.findings().all()) text += to_text(finding);
    return text;
  }

  GlobalMemory memory;
  Machine machine;
  std::vector<Cta*> ctas;
  std::array<std::uint32_t, kLanes> loaded{};
  LaneMask completed = 0;
};

inline std::vector<std::byte> bytes_of(std::vector<std::uint32_t> words) {
  std::vector<std::byte> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

}  // namespace kw::simulate
