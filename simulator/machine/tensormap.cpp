// Tensor maps that a kernel makes: published from shared to global memory, acquired, read by tensor copies. PTX ISA, tensormap proxy:
// a copy uses a new map only after fence.proxy.tensormap::generic.acquire on its address, by the thread that issues the copy.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kPartBytes = 16;  // of one access

Context first_lane_of(Context ctx) {
  ctx.lanes = ctx.lanes & (~ctx.lanes + 1);
  return ctx;
}

/// Loads or stores the bytes as the one lane of ctx.
Outcome move(Machine& machine, const Context& ctx, Space space, std::uint64_t address, std::span<std::byte> bytes, bool is_store) {
  const auto lane = static_cast<std::size_t>(std::countr_zero(ctx.lanes));
  const AccessKind kind{.space = space, .bytes = kPartBytes};
  for (std::size_t at = 0; at < bytes.size(); at += kPartBytes) {
    std::array<std::uint64_t, kLanes> addresses{};
    std::array<std::byte, kLanes * kPartBytes> data{};
    addresses[lane] = address + at;
    std::byte* mine = data.data() + lane * kPartBytes;
    if (is_store) std::memcpy(mine, bytes.data() + at, kPartBytes);
    const Outcome outcome =
        is_store ? machine.store(ctx, kind, addresses.data(), data.data()) : machine.load(ctx, kind, addresses.data(), data.data());
    if (outcome != Outcome::kDone) return outcome;
    if (!is_store) std::memcpy(bytes.data() + at, mine, kPartBytes);
  }
  return Outcome::kDone;
}

}  // namespace

Outcome Machine::read_tensor_map(const Context& ctx, std::uint64_t address, std::span<std::byte> bytes) {
  State& s = *state_;
  const Context one = first_lane_of(ctx);
  const auto published = s.published_maps.find(address);
  if (published != s.published_maps.end()) {
    const auto acquired = s.warp(ctx).acquired_maps.find(address);
    if (acquired == s.warp(ctx).acquired_maps.end() || acquired->second != published->second) {
      s.report(ctx, FindingKind::kMissingProxyFence, std::countr_zero(one.lanes),
               fmt::format("{}: a tensor map that was published in this launch is used without a fence of the tensormap proxy",
                           s.describe_address(ctx, Space::kGeneric, address)),
               "reads a tensor map", "fence.proxy.tensormap::generic.acquire on the map's address before the copy");
    }
  }
  return move(*this, one, Space::kGeneric, address, bytes, false);
}

Outcome Machine::publish_tensor_map(const Context& ctx, std::uint64_t global, std::uint32_t shared, std::uint32_t num_bytes, Scope scope) {
  State& s = *state_;
  const Context one = first_lane_of(ctx);
  std::vector<std::byte> bytes(num_bytes);
  if (const Outcome outcome = move(*this, one, Space::kShared, shared, bytes, false); outcome != Outcome::kDone) return outcome;
  if (const Outcome outcome = move(*this, one, Space::kGlobal, global, bytes, true); outcome != Outcome::kDone) return outcome;
  ++s.published_maps[global];
  s.fence(ctx, scope);
  return Outcome::kDone;
}

Outcome Machine::acquire_tensor_map(const Context& ctx, const std::uint64_t* address, Scope scope) {
  State& s = *state_;
  s.fence(ctx, scope);
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t at = address[std::countr_zero(rest)];
    const auto published = s.published_maps.find(at);
    if (published != s.published_maps.end()) s.warp(ctx).acquired_maps[at] = published->second;
  }
  return Outcome::kDone;
}

}  // namespace kw::simulate
