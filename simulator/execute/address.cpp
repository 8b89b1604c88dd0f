// Address spaces: cvta, isspacep, mapa, getctarank. Place: simulator/execute/decoder.h.
// Global, constant and parameter memory are addressed as they are; shared and local memory have windows (simulator/machine/types.h).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

Outcome copy64(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint64_t>(instr.d)[lane] = frame.at<std::uint64_t>(instr.a)[lane]; });
  return Outcome::kDone;
}

/// immediate: the window's first address.
Outcome to_generic(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes,
            [&](int lane) { frame.at<std::uint64_t>(instr.d)[lane] = frame.at<std::uint64_t>(instr.a)[lane] + instr.immediate; });
  return Outcome::kDone;
}
Outcome from_generic(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes,
            [&](int lane) { frame.at<std::uint64_t>(instr.d)[lane] = frame.at<std::uint64_t>(instr.a)[lane] - instr.immediate; });
  return Outcome::kDone;
}

bool is_in(std::uint64_t address, std::uint64_t window) { return address >= window && address - window < kWindowBytes; }

/// option: the Space asked for.
Outcome is_space(Frame& frame, const Instr& instr) {
  const auto space = static_cast<Space>(instr.option);
  LaneMask result = 0;
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t address = frame.at<std::uint64_t>(instr.a)[lane];
    const bool is_shared = is_in(address, kSharedWindow);
    const bool is_local = is_in(address, kLocalWindow);
    bool holds = !is_shared && !is_local;
    if (space == Space::kLocal) holds = is_local;
    if (space == Space::kSharedCluster) holds = is_shared;
    if (space == Space::kShared) {
      const auto rank = static_cast<std::uint32_t>(address - kSharedWindow) >> kSharedRankShift;
      holds = is_shared && rank == frame.machine().rank_in_cluster(*frame.warp.cta);
    }
    result |= static_cast<LaneMask>(holds ? 1u : 0u) << lane;
  });
  frame.set_predicate(instr.d, result);
  return Outcome::kDone;
}

/// option 1: addresses are generic.
Outcome map_rank(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  Outcome outcome = Outcome::kDone;
  for_lanes(frame.lanes, [&](int lane) {
    std::uint64_t address = frame.value(detail.a[0], lane);
    if (instr.option == 1) address -= kSharedWindow;
    std::uint32_t mapped = 0;
    Context context = frame.context();
    context.lanes = LaneMask{1} << lane;
    const auto rank = static_cast<std::uint32_t>(frame.value(detail.b[0], lane));
    if (outcome == Outcome::kDone) outcome = frame.machine().map_to_rank(context, static_cast<std::uint32_t>(address), rank, mapped);
    frame.set_value(detail.d[0], lane, instr.option == 1 ? kSharedWindow + mapped : mapped);
  });
  return outcome;
}

Outcome rank_of(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t address = frame.value(detail.a[0], lane);
    const std::uint64_t offset = instr.option == 1 ? address - kSharedWindow : address;
    frame.set_value(detail.d[0], lane, static_cast<std::uint32_t>(offset) >> kSharedRankShift);
  });
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_address(Instr& instr) {
  if (op() == Op::kCvta) {
    const Space to = space();
    const std::uint64_t window = to == Space::kShared || to == Space::kSharedCluster ? kSharedWindow
                                 : to == Space::kLocal                               ? kLocalWindow
                                                                                     : 0;
    KW_TRY(instr.d, destination(0, 64));
    KW_TRY(instr.a, source(1, 64));
    instr.immediate = window;
    instr.function = window == 0 ? &copy64 : has("to") ? &from_generic : &to_generic;
    return {};
  }
  if (op() == Op::kIsspacep) {
    KW_TRY(instr.d, predicate_destination(operand(0)));
    KW_TRY(instr.a, source(1, 64));
    instr.option = static_cast<std::uint8_t>(has("shared") ? Space::kSharedCluster : space());
    instr.function = &is_space;
    return {};
  }
  const int bits = bits_of(type());
  const bool is_generic = !has("shared::cluster");
  Detail& detail = new_detail(instr);
  instr.option = is_generic ? 1 : 0;
  if (op() == Op::kMapa) {
    KW_TRY(const std::uint32_t d, destination(0, bits));
    KW_TRY(const std::uint32_t a, source(1, bits));
    KW_TRY(const std::uint32_t b, source(2, 32));
    detail.d = {Slot{d, static_cast<std::uint8_t>(bits)}};
    detail.a = {Slot{a, static_cast<std::uint8_t>(bits)}};
    detail.b = {Slot{b, 32}};
    instr.function = &map_rank;
    return {};
  }
  KW_TRY(const std::uint32_t d, destination(0, 32));
  KW_TRY(const std::uint32_t a, source(1, bits));
  detail.d = {Slot{d, 32}};
  detail.a = {Slot{a, static_cast<std::uint8_t>(bits)}};
  instr.function = &rank_of;
  return {};
}

}  // namespace kw::simulate
