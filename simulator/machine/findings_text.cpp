// Composes findings: names of addresses, places of stamps, what would order two accesses.
// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

std::string_view verb_of(AccessClass access) {
  switch (access) {
    case AccessClass::kWeakRead:
      return "reads";
    case AccessClass::kStrongRead:
      return "reads (strong)";
    case AccessClass::kStrongWrite:
      return "writes (strong)";
    case AccessClass::kStrongUpdate:
      return "updates atomically";
    case AccessClass::kWeakWrite:
      return "writes";
  }
  return "";
}

std::string_view remedy_for(std::uint32_t earlier_kind, bool is_other_cluster, bool is_global) {
  if (is_other_cluster)
    return "a release (fence, then atomic) in the one CTA and an acquire (atomic, then fence) at gpu scope in the other";
  switch (static_cast<AgentKind>(std::min(earlier_kind, static_cast<std::uint32_t>(AgentKind::kMbarrier)))) {
    case AgentKind::kGeneric:
      break;
    case AgentKind::kCpAsync:
      return "cp.async.wait_group for the copy's group, then a barrier for the other warps";
    case AgentKind::kBulkRead:
      return "cp.async.bulk.wait_group.read by the issuing thread, then a barrier for the other warps";
    case AgentKind::kBulkWrite:
      return "cp.async.bulk.wait_group by the issuing thread, then a barrier for the other warps";
    case AgentKind::kWgmma:
      return "wgmma.wait_group for the group that reads it, before the memory is released";
    case AgentKind::kMbarrier:
      return "a wait on the mbarrier phase that counts the copy's bytes";
  }
  if (is_global) return "a barrier (bar.sync) between warps of a CTA, or release and acquire at gpu scope between CTAs";
  return "a barrier (bar.sync, mbarrier) that both warps pass between the two accesses";
}

}  // namespace

std::string Machine::State::shared_name(std::uint64_t offset) const {
  const SharedSymbol* nearest = nullptr;
  for (const SharedSymbol& symbol : shape.shared_symbols) {
    const bool is_below = symbol.offset <= offset && (symbol.num_bytes == 0 || offset - symbol.offset < symbol.num_bytes);
    if (is_below && (nearest == nullptr || symbol.offset >= nearest->offset)) nearest = &symbol;
  }
  if (nearest == nullptr) return fmt::format("shared + {}", offset);
  return fmt::format("shared '{}' + {}", nearest->name, offset - nearest->offset);
}

Place Machine::State::place(const Context& ctx, int lane, std::string role) const {
  return {static_cast<std::uint32_t>(ctx.cta->linear), ctx.warp, lane, ctx.pc, std::move(role)};
}

std::string Machine::State::describe(const Target& target, std::uint64_t num_bytes) const {
  std::string text;
  switch (target.kind) {
    case Target::Kind::kGlobal:
      text = fmt::format("global '{}' + {}", target.allocation->name, target.offset);
      break;
    case Target::Kind::kShared:
      text = shared_name(target.offset);
      break;
    case Target::Kind::kLocal:
      text = fmt::format("local + {}", target.offset % std::max<std::uint64_t>(1, shape.local_bytes_per_thread));
      break;
  }
  if (target.kind == Target::Kind::kShared && target.cta->cluster->ctas.size() > 1)
    text += fmt::format(" of CTA rank {}", target.cta->rank);
  return num_bytes == 0 ? text : text + fmt::format(" ({} bytes)", num_bytes);
}

std::string Machine::State::describe_address(const Context& ctx, Space space, std::uint64_t address) const {
  if (space == Space::kGeneric && address - kSharedWindow < kWindowBytes) {
    space = Space::kSharedCluster;
    address -= kSharedWindow;
  }
  if (space == Space::kShared || space == Space::kSharedCluster) {
    const std::uint64_t offset = address & kSharedOffsetMask;
    const std::uint64_t rank = address >> kSharedRankShift;
    std::string text = offset < kSharedFirstByte ? fmt::format("shared address {:#x} (below the first byte)", address)
                                                 : shared_name(offset - kSharedFirstByte);
    if (rank != ctx.cta->rank) text += fmt::format(" of CTA rank {}", rank);
    return text;
  }
  if (space == Space::kLocal || (space == Space::kGeneric && address - kLocalWindow < kWindowBytes)) {
    return fmt::format("local + {}", address % kLocalWindow);
  }
  const Allocation* allocation = memory.nearest(address);
  if (allocation == nullptr) return fmt::format("global address {:#x}", address);
  const std::uint64_t offset = address - allocation->address;
  if (offset < allocation->num_bytes) return fmt::format("global '{}' + {}", allocation->name, offset);
  return fmt::format("global address {:#x}, {} bytes past the end of '{}' ({} bytes)", address, offset - allocation->num_bytes,
                     allocation->name, allocation->num_bytes);
}

void Machine::State::report(const Context& ctx, FindingKind kind, int lane, std::string message, std::string role, std::string remedy) {
  findings.add({kind, std::move(message), place(ctx, lane, std::move(role)), std::nullopt, std::move(remedy)});
}

Place Machine::State::place_of(const Stamp& stamp, const std::string& object) const {
  const std::uint32_t warps_per_cta = shape.num_warps();
  const std::uint32_t num_warps = warps_per_cta * shape.ctas_per_cluster();
  const std::uint32_t kind = stamp.agent / num_warps;
  const std::uint32_t warp = kind < static_cast<std::uint32_t>(AgentKind::kMbarrier) ? stamp.agent % num_warps : 0;
  static constexpr std::array<std::string_view, 6> kBy = {
      "", " by cp.async", " by a bulk store", " by a bulk store", " by wgmma", " by a copy that completes on an mbarrier"};
  Place place;
  place.cta = static_cast<std::uint32_t>(linear_of(stamp.cluster, warp / warps_per_cta));
  place.warp = warp % warps_per_cta;
  if (kind >= static_cast<std::uint32_t>(AgentKind::kMbarrier)) {
    // The agent is the mbarrier: the log knows who issued the copy.
    if (const auto issuer = issuer_of(stamp.cluster, stamp.pc)) std::tie(place.cta, place.warp) = *issuer;
  }
  place.pc = stamp.pc;
  place.role = fmt::format("{} {}{}", verb_of(stamp.access), object, kBy[std::min(kind, 5u)]);
  return place;
}

void Machine::State::report_conflict(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const AgentAccess& access,
                                     const Conflict& conflict) {
  const bool is_fence = conflict.verdict == Verdict::kNeedsProxyFence;
  const FindingKind kind = is_fence ? FindingKind::kMissingProxyFence : FindingKind::kRace;
  if (findings.count_again(kind, ctx.pc, conflict.earlier.pc)) return;
  const std::string object = describe(target, 0);
  Finding finding;
  finding.kind = kind;
  finding.where = place(ctx, lane, fmt::format("{} {} ({} bytes)", access.verb, object, num_bytes));
  finding.other = place_of(conflict.earlier, object);
  finding.passed = steps_between(ctx, conflict.earlier);
  const std::uint32_t num_warps = shape.num_warps() * shape.ctas_per_cluster();
  const std::uint32_t earlier_kind = conflict.earlier.agent / num_warps;
  if (is_fence) {
    finding.message = fmt::format("{}: written through the generic proxy and used by the async proxy without a fence between", object);
    finding.remedy = "fence.proxy.async by every writing thread, before the barrier that hands the data over";
  } else {
    finding.message = fmt::format("{}: nothing orders these two accesses", object);
    const bool is_other_cluster = conflict.earlier.cluster != static_cast<std::uint32_t>(ctx.cta->cluster->index);
    finding.remedy = remedy_for(earlier_kind, is_other_cluster, target.kind == Target::Kind::kGlobal);
  }
  findings.add(std::move(finding));
}

}  // namespace kw::simulate
