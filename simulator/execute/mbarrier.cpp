// mbarrier objects: init, arrive, expect_tx, waits. Place: simulator/execute/decoder.h.
// try_wait parks the lanes until the phase completes, so a wait loop does not spin; test_wait answers at once.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"

namespace kw::simulate {
namespace {

struct LaneWords {
  std::uint32_t at[kLanes];
};

void fill_words(const Frame& frame, Slot slot, LaneWords& words) {
  for (int lane = 0; lane < kLanes; ++lane) words.at[lane] = static_cast<std::uint32_t>(frame.value(slot, lane));
}

Outcome init(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  LaneWords counts;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  fill_words(frame, detail.a[0], counts);
  return frame.machine().mbarrier_init(frame.context(), addresses.at, counts.at);
}

Outcome inval(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  return frame.machine().mbarrier_inval(frame.context(), addresses.at);
}

/// detail.a: the count or the bytes, if has_c; detail.d: the state's register, or empty.
Outcome arrive(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  LaneWords words;
  std::uint64_t states[kLanes] = {};
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  if (detail.has_c) fill_words(frame, detail.a[0], words);
  const bool is_count = detail.has_c && !detail.arrive.has_expect_tx;
  const Outcome outcome =
      frame.machine().mbarrier_arrive(frame.context(), detail.arrive, addresses.at, is_count ? words.at : nullptr,
                                      detail.arrive.has_expect_tx ? words.at : nullptr, detail.d.empty() ? nullptr : states);
  if (outcome == Outcome::kDone && !detail.d.empty()) {
    for_lanes(frame.lanes, [&](int lane) { frame.set_value(detail.d[0], lane, states[lane]); });
  }
  return outcome;
}

/// option 1: complete_tx, else expect_tx.
Outcome count_bytes(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  LaneWords bytes;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  fill_words(frame, detail.a[0], bytes);
  if (instr.option == 1) return frame.machine().mbarrier_complete_tx(frame.context(), detail.arrive.space, addresses.at, bytes.at);
  return frame.machine().mbarrier_expect_tx(frame.context(), detail.arrive.space, addresses.at, bytes.at);
}

Outcome wait(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  std::uint64_t states[kLanes] = {};
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  for_lanes(frame.lanes, [&](int lane) { states[lane] = frame.value(detail.a[0], lane); });
  LaneMask completed = 0;
  const Outcome outcome = frame.machine().mbarrier_wait(frame.context(), detail.wait, addresses.at, states, completed);
  if (outcome == Outcome::kDone) frame.set_predicate(instr.d, completed);
  return outcome;
}

Outcome pending_count(Frame& frame, const Instr& instr) {
  std::uint32_t counts[kLanes] = {};
  const Outcome outcome = frame.machine().mbarrier_pending_count(frame.context(), frame.at<std::uint64_t>(instr.a), counts);
  if (outcome == Outcome::kDone) {
    for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = counts[lane]; });
  }
  return outcome;
}

}  // namespace

Status Decoder::decode_mbarrier(Instr& instr) {
  if (op() == Op::kMbarrierPendingCount) {
    KW_TRY(instr.d, destination(0, 32));
    KW_TRY(instr.a, source(1, 64));
    instr.function = &pending_count;
    return {};
  }
  Detail& detail = new_detail(instr);
  const bool is_wait = op() == Op::kMbarrierTestWait || op() == Op::kMbarrierTryWait;
  const bool is_arrive = op() == Op::kMbarrierArrive || op() == Op::kMbarrierArriveExpectTx;
  const std::size_t first = is_wait || is_arrive ? 1 : 0;
  KW_TRY(const Address at, address(operand(first)));
  detail.address[0] = at.slot;
  detail.address_offset[0] = at.offset;
  const Space where = space();
  if (num_operands() > first + 1) {
    const bool is_state = is_wait && !has("parity");
    KW_TRY(const std::uint32_t value, source(first + 1, is_state ? 64 : 32));
    detail.a = {Slot{value, static_cast<std::uint8_t>(is_state ? 64 : 32)}};
    detail.has_c = true;
  }
  if (is_wait) {
    KW_TRY(instr.d, predicate_destination(operand(0)));
    detail.wait = WaitKind{.is_parity = has("parity"),
                           .may_park = op() == Op::kMbarrierTryWait,
                           .order = has("relaxed") ? Order::kRelaxed : Order::kAcquire,
                           .scope = scope(Scope::kCta)};
    instr.function = &wait;
    instr.may_park = op() == Op::kMbarrierTryWait;
    return {};
  }
  detail.arrive.space = where;
  if (is_arrive) {
    if (operand(0).kind != Operand::Kind::kSink) {
      if (where == Space::kSharedCluster) return refuse("a remote arrive has no state: its result must be _", Code::kBadInput);
      KW_TRY(const std::uint32_t state, destination(0, 64));
      detail.d = {Slot{state, 64}};
    }
    detail.arrive.has_expect_tx = op() == Op::kMbarrierArriveExpectTx;
    detail.arrive.is_drop = has("arrive_drop");
    detail.arrive.is_no_complete = has("noComplete");
    detail.arrive.order = has("relaxed") ? Order::kRelaxed : Order::kRelease;
    detail.arrive.scope = scope(Scope::kCta);
    instr.function = &arrive;
    return {};
  }
  switch (op()) {
    case Op::kMbarrierInit:
      instr.function = &init;
      break;
    case Op::kMbarrierInval:
      instr.function = &inval;
      break;
    default:
      instr.option = op() == Op::kMbarrierCompleteTx ? 1 : 0;
      instr.function = &count_bytes;
  }
  return {};
}

}  // namespace kw::simulate
