// mbarrier objects. PTX ISA, mbarrier: a phase completes when no arrivals are pending and the tx count is zero; the arrivals' clocks
// are published to those who wait. wait(P) succeeds while the current phase's parity is not P (seen on an H200).
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kMbarrierBytes = 8;

std::uint64_t state_of(const Mbarrier& barrier) { return barrier.phase << 32 | barrier.pending; }

}  // namespace

std::string Machine::State::describe_mbarrier(const Target& target) const { return "mbarrier at " + describe(target, 0); }

Mbarrier* Machine::State::find_mbarrier(const Context& ctx, Space space, std::uint64_t address, int lane, const char* verb,
                                        Target& target) {
  if (address % kMbarrierBytes != 0) {
    report(ctx, FindingKind::kMisaligned, lane,
           fmt::format("mbarrier at {}: must be 8-byte aligned", describe_address(ctx, space, address)), verb, "");
    return nullptr;
  }
  if (!resolve(ctx, space, address, kMbarrierBytes, lane, true, target)) return nullptr;
  if (target.kind != Target::Kind::kShared) {
    report(ctx, FindingKind::kBadAddress, lane, fmt::format("mbarrier at {}: must lie in shared memory", describe(target, 0)), verb, "");
    return nullptr;
  }
  const auto found = target.cta->mbarriers.find(static_cast<std::uint32_t>(target.offset));
  if (found == target.cta->mbarriers.end()) {
    report(ctx, FindingKind::kMbarrierMisuse, lane, fmt::format("{} is not initialised", describe_mbarrier(target)), verb,
           "mbarrier.init by one thread, a fence and a barrier before the first use");
    return nullptr;
  }
  Mbarrier& barrier = found->second;
  if (options.checks_races) {
    const Stamp& writer = target.cta->shared_shadow[target.offset / 4].writer;
    if (writer.pc != barrier.init.pc || writer.epoch != barrier.init.epoch || writer.agent != barrier.init.agent) {
      report(ctx, FindingKind::kMbarrierMisuse, lane,
             fmt::format("{} was overwritten by a plain store or a copy", describe_mbarrier(target)), verb, "");
      return nullptr;
    }
    const AgentAccess access = access_of(ctx, AccessClass::kStrongWrite, verb);
    const bool is_carried = barrier.init_generation != 0 && warp(ctx).cluster_generation >= barrier.init_generation;
    if (is_carried) return &barrier;
    if (const Verdict verdict = order_of(barrier.init, access.accessor); verdict != Verdict::kOrdered) {
      report_conflict(ctx, target, kMbarrierBytes, lane, access, {verdict, barrier.init});
    }
  }
  return &barrier;
}

void Machine::State::check_init_fenced(const Context& ctx, const Mbarrier& barrier, const Target& target, int lane) {
  if (barrier.is_init_fenced || !options.checks_races) return;
  report(ctx, FindingKind::kMissingProxyFence, lane,
         fmt::format("{}: initialised, but no fence has made that known to the async proxy", describe_mbarrier(target)),
         "copies with completion on", "fence.mbarrier_init.release.cluster after mbarrier.init, before the barrier that the others pass");
}

void Machine::State::mbarrier_check_complete(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.tx != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.published.join(barrier.arriving);
  barrier.published.seen.local.raise(barrier.agent, static_cast<std::uint32_t>(barrier.phase));
  barrier.arriving.clear();
  ++wake_count;
}

bool Machine::State::mbarrier_arrive(const Context& ctx, Mbarrier& barrier, const Target& target, std::uint32_t count, int lane) {
  if (count == 0 || count > barrier.pending) {
    report(ctx, FindingKind::kMbarrierMisuse, lane,
           fmt::format("{}: {} arrivals, but phase {} has {} of {} pending ({} bytes outstanding)", describe_mbarrier(target), count,
                       barrier.phase, barrier.pending, barrier.count, barrier.tx),
           "arrives", "give mbarrier.init the number of arrivals of one phase");
    return false;
  }
  barrier.pending -= count;
  return true;
}

bool Machine::State::mbarrier_add_tx(const Context& ctx, Mbarrier& barrier, const Target& target, std::int64_t bytes, int lane) {
  barrier.tx += bytes;
  if (barrier.tx >= -kMaxMbarrierTx && barrier.tx <= kMaxMbarrierTx) return true;
  report(ctx, FindingKind::kMbarrierMisuse, lane,
         fmt::format("{}: tx count {} leaves the range of +-(2^20 - 1)", describe_mbarrier(target), barrier.tx), "changes the tx count",
         "split the bytes over several phases or barriers");
  return false;
}

bool Machine::State::times_out(const Context& ctx, const Wait& wait, std::uint64_t phase) {
  // PTX ISA, mbarrier.try_wait: it returns false after a time limit that depends on the system (up to 4 us on an H200), so a kernel
  // must loop. Eager takes the limit as infinite, lazy as zero once for each wait, so that a kernel without the loop is found.
  if (options.schedule.adversary == Adversary::kEager) return false;
  std::vector<TimedOut>& known = warp(ctx).timed_out;
  for (const TimedOut& one : known) {
    if (one.pc == ctx.pc && one.lanes == ctx.lanes && one.offset == wait.id_or_address && one.phase == phase) return false;
  }
  std::erase_if(known, [&](const TimedOut& one) { return one.pc == ctx.pc && (one.lanes & ctx.lanes) != 0; });
  known.push_back({ctx.pc, ctx.lanes, wait.id_or_address, phase});
  return options.schedule.adversary == Adversary::kLazy || random() % 2 == 0;
}

Outcome Machine::mbarrier_init(const Context& ctx, const std::uint64_t* address, const std::uint32_t* count) {
  State& s = *state_;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (address[lane] % kMbarrierBytes != 0) {
      s.report(ctx, FindingKind::kMisaligned, lane,
               fmt::format("mbarrier at {}: must be 8-byte aligned", s.describe_address(ctx, Space::kShared, address[lane])), "initialises",
               "");
      return Outcome::kFault;
    }
    Target target;
    if (!s.resolve(ctx, Space::kShared, address[lane], kMbarrierBytes, lane, true, target)) return Outcome::kFault;
    if (count[lane] == 0 || count[lane] > kMaxMbarrierCount) {
      s.report(ctx, FindingKind::kMbarrierMisuse, lane,
               fmt::format("{}: count {}: must be 1 to 2^20 - 1", s.describe_mbarrier(target), count[lane]), "initialises", "");
      return Outcome::kFault;
    }
    const auto offset = static_cast<std::uint32_t>(target.offset);
    if (ctx.cta->mbarriers.contains(offset)) {
      s.report(ctx, FindingKind::kMbarrierMisuse, lane,
               fmt::format("{} is initialised again without mbarrier.inval", s.describe_mbarrier(target)), "initialises",
               "initialise once, by one thread");
      return Outcome::kFault;
    }
    const State::AgentAccess access = s.access_of(ctx, AccessClass::kWeakWrite, "initialises an mbarrier at");
    if (s.options.checks_races) s.shadow_range(ctx, target, kMbarrierBytes, lane, access);
    s.mark_initialised(target, kMbarrierBytes);
    Mbarrier barrier;
    barrier.count = barrier.pending = count[lane];
    barrier.agent = static_cast<std::uint16_t>(ctx.cta->cluster->next_agent++);
    barrier.init = access.stamp;
    ctx.cta->mbarriers.emplace(offset, std::move(barrier));
  }
  ++s.store_count;
  return Outcome::kDone;
}

Outcome Machine::mbarrier_inval(const Context& ctx, const std::uint64_t* address) {
  State& s = *state_;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    if (s.find_mbarrier(ctx, Space::kShared, address[lane], lane, "invalidates", target) == nullptr) return Outcome::kFault;
    ctx.cta->mbarriers.erase(static_cast<std::uint32_t>(target.offset));
  }
  return Outcome::kDone;
}

Outcome Machine::mbarrier_arrive(const Context& ctx, const ArriveKind& kind, const std::uint64_t* address, const std::uint32_t* count,
                                 const std::uint32_t* tx_bytes, std::uint64_t* state) {
  State& s = *state_;
  const Mbarrier* last = nullptr;
  std::uint64_t last_phase = 0;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    Mbarrier* barrier = s.find_mbarrier(ctx, kind.space, address[lane], lane, "arrives", target);
    if (barrier == nullptr) return Outcome::kFault;
    const std::uint32_t num_arrivals = count != nullptr ? count[lane] : kind.count;
    if (state != nullptr) state[lane] = state_of(*barrier);
    // PTX ISA, mbarrier.arrive.expect_tx: the expect-tx operation comes before the arrive-on.
    if (kind.has_expect_tx && !s.mbarrier_add_tx(ctx, *barrier, target, tx_bytes != nullptr ? tx_bytes[lane] : kind.tx_bytes, lane))
      return Outcome::kFault;
    if (barrier != last || barrier->phase != last_phase) barrier->arriving.join(s.warp(ctx).clock);
    if (target.cta != ctx.cta) {
      const Stamp stamp = s.access_of(ctx, AccessClass::kStrongWrite, "arrives").stamp;
      barrier->remote_arrives[stamp.agent] = stamp;
    }
    last = barrier;
    last_phase = barrier->phase;
    s.note(ctx, SyncKind::kMbarrierArrive, mbarrier_object(target), barrier->phase);
    if (!s.mbarrier_arrive(ctx, *barrier, target, num_arrivals, lane)) return Outcome::kFault;
    if (kind.is_drop) barrier->count -= std::min(barrier->count, num_arrivals);
    if (kind.is_no_complete && barrier->pending == 0) {
      s.report(ctx, FindingKind::kMbarrierMisuse, lane,
               fmt::format("{}: a .noComplete arrive completes the phase", s.describe_mbarrier(target)), "arrives", "");
      return Outcome::kFault;
    }
    s.mbarrier_check_complete(*barrier);
  }
  s.advance(ctx);
  ++s.store_count;
  return Outcome::kDone;
}

Outcome Machine::mbarrier_expect_tx(const Context& ctx, Space space, const std::uint64_t* address, const std::uint32_t* tx_bytes) {
  State& s = *state_;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    Mbarrier* barrier = s.find_mbarrier(ctx, space, address[lane], lane, "expects bytes", target);
    if (barrier == nullptr || !s.mbarrier_add_tx(ctx, *barrier, target, tx_bytes[lane], lane)) return Outcome::kFault;
  }
  ++s.store_count;
  return Outcome::kDone;
}

Outcome Machine::mbarrier_complete_tx(const Context& ctx, Space space, const std::uint64_t* address, const std::uint32_t* tx_bytes) {
  State& s = *state_;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    Mbarrier* barrier = s.find_mbarrier(ctx, space, address[lane], lane, "completes bytes", target);
    if (barrier == nullptr || !s.mbarrier_add_tx(ctx, *barrier, target, -std::int64_t{tx_bytes[lane]}, lane)) return Outcome::kFault;
    s.mbarrier_check_complete(*barrier);
  }
  ++s.store_count;
  return Outcome::kDone;
}

Outcome Machine::mbarrier_wait(const Context& ctx, const WaitKind& kind, const std::uint64_t* address, const std::uint64_t* state_or_parity,
                               LaneMask& completed) {
  State& s = *state_;
  completed = 0;
  Wait wait{.kind = Wait::Kind::kMbarrier, .is_parity = kind.is_parity};
  std::uint64_t phase = 0;  // of the barrier that the last incomplete lane waits for
  const Mbarrier* last = nullptr;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    const Mbarrier* barrier = s.find_mbarrier(ctx, Space::kShared, address[lane], lane, "waits", target);
    if (barrier == nullptr) return Outcome::kFault;
    const bool is_complete =
        kind.is_parity ? (barrier->phase & 1) != (state_or_parity[lane] & 1) : barrier->phase != state_or_parity[lane] >> 32;
    if (!is_complete) {
      wait.id_or_address = static_cast<std::uint32_t>(target.offset);
      wait.parity_or_state = state_or_parity[lane];
      phase = barrier->phase;
      continue;
    }
    completed |= LaneMask{1} << lane;
    if (barrier != last) {
      if (kind.order != Order::kRelaxed) s.warp(ctx).clock.join(barrier->published);
      s.note(ctx, SyncKind::kMbarrierPass, mbarrier_object(target), barrier->phase - 1);
    }
    last = barrier;
  }
  if (completed == 0 && kind.may_park && !s.times_out(ctx, wait, phase)) {
    s.park(ctx, wait);
    return Outcome::kParked;
  }
  s.unpark(ctx);
  return Outcome::kDone;
}

Outcome Machine::mbarrier_pending_count(const Context& ctx, const std::uint64_t* state, std::uint32_t* count) {
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    count[lane] = static_cast<std::uint32_t>(state[lane] & 0xffffffffu);
  }
  return Outcome::kDone;
}

void Machine::fence_mbarrier_init(const Context& ctx) {
  // The barriers that this warp has initialised become known to the other CTAs and to the async proxy.
  const auto agent = static_cast<std::uint16_t>(state_->own_agent(ctx));
  for (auto& [offset, barrier] : ctx.cta->mbarriers) barrier.is_init_fenced = barrier.is_init_fenced || barrier.init.agent == agent;
}

}  // namespace kw::simulate
