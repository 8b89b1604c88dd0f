// Loads and stores: where an address points, the checks of its bytes, the copy.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <fmt/format.h>

#include "simulator/machine/bits.h"
#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

// About 28 MB of outputs and workspaces; what lies beyond is not checked for races, and the report says so.
constexpr std::uint64_t kMaxShadowBytes = std::uint64_t{1} << 28;

AccessClass class_of(Order order, bool is_store) {
  if (order == Order::kWeak) return is_store ? AccessClass::kWeakWrite : AccessClass::kWeakRead;
  return is_store ? AccessClass::kStrongWrite : AccessClass::kStrongRead;
}

bool is_in_window(std::uint64_t address, std::uint64_t window) { return address - window < kWindowBytes; }

}  // namespace

bool Machine::State::resolve(const Context& ctx, Space space, std::uint64_t address, std::uint32_t num_bytes, int lane, bool is_store,
                             Target& target) {
  const auto refuse = [&](FindingKind kind, std::string message, std::string remedy) {
    report(ctx, kind, lane, std::move(message), fmt::format("{} {} bytes", is_store ? "writes" : "reads", num_bytes), std::move(remedy));
    return false;
  };
  if (space == Space::kGeneric) {
    if (is_in_window(address, kSharedWindow)) {
      space = Space::kSharedCluster;
      address -= kSharedWindow;
    } else if (is_in_window(address, kLocalWindow)) {
      space = Space::kLocal;
      address -= kLocalWindow;
    } else {
      space = Space::kGlobal;
    }
  }
  if (space == Space::kGlobal) {
    Allocation* allocation = memory.find(address, num_bytes);
    if (allocation == nullptr) {
      return refuse(FindingKind::kOutOfBounds,
                    fmt::format("{}: {} bytes there are outside of every allocation", describe_address(ctx, space, address), num_bytes),
                    "guard the access by the tensor's extent, or give the buffer its full size");
    }
    target = {Target::Kind::kGlobal, allocation->bytes.data() + (address - allocation->address), address - allocation->address, allocation,
              nullptr};
    const bool is_early = options.is_dependent && allocation->role != AllocationRole::kConstant && lane >= 0 &&
                          (warp(ctx).has_waited_for_grid >> lane & 1u) == 0;
    if (is_early) {
      return refuse(FindingKind::kRace, fmt::format("{}: the grid before this one may still run", describe(target, num_bytes)),
                    "let every thread pass griddepcontrol.wait before it touches global memory");
    }
    if (is_store && (allocation->role == AllocationRole::kInput || allocation->role == AllocationRole::kConstant)) {
      return refuse(FindingKind::kWriteToReadOnly, fmt::format("{} is an input of the launch", describe(target, num_bytes)),
                    "declare the buffer inout if the kernel may write it");
    }
    return true;
  }
  if (space == Space::kLocal) {
    const std::uint64_t thread = static_cast<std::uint64_t>(ctx.warp) * kLanes + static_cast<std::uint64_t>(lane);
    const std::uint64_t size = shape.local_bytes_per_thread;
    if (address > size || num_bytes > size - address) {
      return refuse(FindingKind::kOutOfBounds, fmt::format("local memory + {}: {} bytes there; a thread has {}", address, num_bytes, size),
                    "");
    }
    const std::uint64_t offset = thread * size + address;
    target = {Target::Kind::kLocal, ctx.cta->local.data() + offset, offset, nullptr, ctx.cta};
    return true;
  }
  const std::uint64_t rank = address >> kSharedRankShift;
  if (rank >= ctx.cta->cluster->ctas.size()) {
    return refuse(
        FindingKind::kBadAddress,
        fmt::format("shared address {:#x} names CTA rank {}; the cluster has {} CTAs", address, rank, ctx.cta->cluster->ctas.size()), "");
  }
  Cta* owner = ctx.cta->cluster->ctas[rank].get();
  if (owner != ctx.cta && space == Space::kShared) {
    return refuse(
        FindingKind::kBadAddress,
        fmt::format("shared address {:#x} lies in CTA rank {}, the access is .shared::cta of rank {}", address, rank, ctx.cta->rank),
        "use .shared::cluster for the memory of another CTA");
  }
  if (owner->num_live_threads == 0) {
    // Seen on an H200: a remote load faults, a remote store or arrive is lost without a word.
    return refuse(FindingKind::kBadAddress,
                  fmt::format("shared memory of CTA rank {}: that CTA has exited; the device {}", rank,
                              is_store ? "drops the write silently" : "ends the launch with a failure"),
                  "let all CTAs of the cluster meet at a cluster barrier before they exit");
  }
  const std::uint64_t offset = (address & kSharedOffsetMask) - kSharedFirstByte;  // wraps below the first byte
  if (offset > owner->shared.size() || num_bytes > owner->shared.size() - offset) {
    return refuse(FindingKind::kOutOfBounds,
                  fmt::format("{}: {} bytes there; the CTA has {} bytes of shared memory",
                              describe_address(ctx, Space::kSharedCluster, address), num_bytes, owner->shared.size()),
                  "");
  }
  target = {Target::Kind::kShared, owner->shared.data() + offset, offset, nullptr, owner};
  return true;
}

GlobalShadow* Machine::State::shadow_of(const Allocation& allocation) {
  if (allocation.role == AllocationRole::kInput || allocation.role == AllocationRole::kConstant) return nullptr;
  GlobalShadow& shadow = global_shadow[&allocation];
  if (shadow.pages.empty())
    shadow.pages.resize((allocation.num_bytes + 4 * GlobalShadow::kPageWords - 1) / (4 * GlobalShadow::kPageWords) + 1);
  return &shadow;
}

Machine::State::AgentAccess Machine::State::access_of(const Context& ctx, AccessClass access, const char* verb) const {
  const WarpState& state = warp(ctx);
  const std::uint32_t agent = own_agent(ctx);
  const auto cluster = static_cast<std::uint32_t>(ctx.cta->cluster->index);
  return {{state.clock.seen.local.get(agent), ctx.pc, cluster, static_cast<std::uint16_t>(agent), access, 0xf},
          {&state.clock.seen, nullptr, cluster, ctx.cta->cluster->num_generic_agents()},
          verb};
}

Machine::State::AgentAccess Machine::State::async_access_of(const Context& ctx, std::uint32_t agent, std::uint32_t epoch,
                                                            AccessClass access, bool is_async_proxy, const char* verb) const {
  AgentAccess prepared = access_of(ctx, access, verb);
  prepared.stamp.agent = static_cast<std::uint16_t>(agent);
  prepared.stamp.epoch = epoch;
  if (is_async_proxy) prepared.accessor.async_seen = &warp(ctx).clock.async_seen;
  return prepared;
}

void Machine::State::shadow_range(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const AgentAccess& access) {
  if (target.kind == Target::Kind::kLocal) return;
  ShadowCell* cells = nullptr;
  OverflowLists* lists = nullptr;
  GlobalShadow* global = nullptr;
  if (target.kind == Target::Kind::kShared) {
    cells = target.cta->shared_shadow.data();
    lists = &target.cta->shared_overflow;
  } else {
    global = shadow_of(*target.allocation);
    if (global == nullptr) return;
    lists = &global->overflow;
  }
  Stamp stamp = access.stamp;
  const std::uint64_t end = target.offset + num_bytes;
  for (std::uint64_t word = target.offset / 4; word * 4 < end; ++word) {
    const std::uint64_t first = std::max(target.offset, word * 4) - word * 4;
    const std::uint64_t last = std::min(end, word * 4 + 4) - word * 4;
    stamp.bytes = static_cast<std::uint8_t>(bit_range(first, last - first));
    ShadowCell* cell = nullptr;
    if (global == nullptr) {
      cell = cells + word;
    } else {
      auto& page = global->pages[word / GlobalShadow::kPageWords];
      if (page == nullptr) {
        if (num_shadow_bytes + sizeof(*page) > kMaxShadowBytes) {
          has_unchecked_memory = true;
          continue;
        }
        page = std::make_unique<std::array<ShadowCell, GlobalShadow::kPageWords>>();
        num_shadow_bytes += sizeof(*page);
      }
      cell = &(*page)[word % GlobalShadow::kPageWords];
    }
    const Conflict conflict = check_and_record(*cell, *lists, stamp, access.accessor);
    if (conflict.verdict != Verdict::kOrdered) [[unlikely]] {
      Target at = target;
      at.offset = word * 4;
      report_conflict(ctx, at, num_bytes, lane, access, conflict);
    }
  }
}

bool Machine::State::check_initialised(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const char* verb) {
  const ByteBits* bits = nullptr;
  switch (target.kind) {
    case Target::Kind::kGlobal:
      if (target.allocation->is_initialised.empty()) return true;
      bits = &target.allocation->is_initialised;
      break;
    case Target::Kind::kShared:
      bits = &target.cta->shared_initialised;
      break;
    case Target::Kind::kLocal:
      bits = &target.cta->local_initialised;
      break;
  }
  if (are_bits_set(*bits, target.offset, num_bytes)) [[likely]]
    return true;
  if (!findings.count_again(FindingKind::kUninitialised, ctx.pc, 0xffffffffu)) {
    report(ctx, FindingKind::kUninitialised, lane, fmt::format("{} was never written", describe(target, num_bytes)), std::string(verb),
           "write the bytes before they are read, or do not read them (tails, unused stages)");
  }
  return false;
}

void Machine::State::mark_initialised(const Target& target, std::uint32_t num_bytes) {
  switch (target.kind) {
    case Target::Kind::kGlobal:
      if (!target.allocation->is_initialised.empty()) set_bits(target.allocation->is_initialised, target.offset, num_bytes);
      break;
    case Target::Kind::kShared:
      set_bits(target.cta->shared_initialised, target.offset, num_bytes);
      break;
    case Target::Kind::kLocal:
      set_bits(target.cta->local_initialised, target.offset, num_bytes);
      break;
  }
}

bool Machine::State::check_aligned(const Context& ctx, Space space, std::uint64_t address, std::uint32_t num_bytes, int lane,
                                   const char* verb) {
  if ((address & (num_bytes - 1)) == 0) [[likely]]
    return true;
  report(ctx, FindingKind::kMisaligned, lane,
         fmt::format("{}: an access of {} bytes must be a multiple of {}", describe_address(ctx, space, address), num_bytes, num_bytes),
         verb, "");
  return false;
}

Outcome Machine::load(const Context& ctx, AccessKind kind, const std::uint64_t* address, std::byte* data) {
  State& s = *state_;
  const AccessClass access_class = class_of(kind.order, false);
  const State::AgentAccess access = s.access_of(ctx, access_class, "reads");
  const bool is_acquire = kind.order == Order::kAcquire || access_class == AccessClass::kStrongRead;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (!s.check_aligned(ctx, kind.space, address[lane], kind.bytes, lane, "reads")) return Outcome::kFault;
    Target target;
    if (!s.resolve(ctx, kind.space, address[lane], kind.bytes, lane, false, target)) return Outcome::kFault;
    if (s.options.checks_initialisation) s.check_initialised(ctx, target, kind.bytes, lane, "reads");
    if (s.options.checks_races) {
      if (is_acquire) s.acquire_from(ctx, s.sync_key(target), kind.order, kind.scope);
      s.shadow_range(ctx, target, kind.bytes, lane, access);
    }
    std::memcpy(data + static_cast<std::size_t>(lane) * kind.bytes, target.bytes, kind.bytes);
  }
  return Outcome::kDone;
}

Outcome Machine::store(const Context& ctx, AccessKind kind, const std::uint64_t* address, const std::byte* data) {
  State& s = *state_;
  ++s.store_count;
  const AccessClass access_class = class_of(kind.order, true);
  const State::AgentAccess access = s.access_of(ctx, access_class, "writes");
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (!s.check_aligned(ctx, kind.space, address[lane], kind.bytes, lane, "writes")) return Outcome::kFault;
    Target target;
    if (!s.resolve(ctx, kind.space, address[lane], kind.bytes, lane, true, target)) return Outcome::kFault;
    s.mark_initialised(target, kind.bytes);
    if (s.options.checks_races) {
      s.shadow_range(ctx, target, kind.bytes, lane, access);
      if (access_class == AccessClass::kStrongWrite) s.release_to(ctx, s.sync_key(target), kind.order, kind.scope);
    }
    std::memcpy(target.bytes, data + static_cast<std::size_t>(lane) * kind.bytes, kind.bytes);
  }
  if (access_class == AccessClass::kStrongWrite) s.advance(ctx);
  return Outcome::kDone;
}

Outcome Machine::load_rows(const Context& ctx, const std::uint32_t* row_address, std::byte* data) {
  std::array<std::uint64_t, kLanes> address{};
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1)
    address[static_cast<std::size_t>(std::countr_zero(rest))] = row_address[std::countr_zero(rest)];
  return load(ctx, {.space = Space::kShared, .bytes = 16}, address.data(), data);
}

Outcome Machine::store_rows(const Context& ctx, const std::uint32_t* row_address, const std::byte* data) {
  std::array<std::uint64_t, kLanes> address{};
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1)
    address[static_cast<std::size_t>(std::countr_zero(rest))] = row_address[std::countr_zero(rest)];
  return store(ctx, {.space = Space::kShared, .bytes = 16}, address.data(), data);
}

void Machine::peek_shared(const Cta& cta, std::uint32_t address, std::span<std::byte> bytes) const {
  const std::size_t rank = address >> kSharedRankShift;
  const std::size_t offset = (address & kSharedOffsetMask) - kSharedFirstByte;
  const auto& ctas = cta.cluster->ctas;
  KW_CHECK(rank < ctas.size() && offset <= ctas[rank]->shared.size() && bytes.size() <= ctas[rank]->shared.size() - offset,
           "the reads of an effect were checked at its issue");
  std::memcpy(bytes.data(), ctas[rank]->shared.data() + offset, bytes.size());
}

}  // namespace kw::simulate
