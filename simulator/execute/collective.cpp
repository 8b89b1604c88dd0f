// Instructions in which the lanes of a warp exchange values: shfl, vote, match, elect, redux, activemask.
// Place: simulator/execute/decoder.h. The executor has gathered the lanes of the member mask before a function is called.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

enum Shuffle : std::uint8_t { kUp, kDown, kBfly, kIdx };

/// PTX ISA, shfl.sync: where lane reads from, and whether that is in range. A source outside reads its own value.
int shuffle_source(std::uint8_t mode, int lane, std::uint32_t b, std::uint32_t c, bool& is_in_range) {
  const int value = static_cast<int>(b & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int clamp = static_cast<int>(c & 31);
  const int last = (lane & segment) | (clamp & ~segment & 31);
  const int first = lane & segment;
  int from = lane;
  switch (mode) {
    case kUp:
      from = lane - value;
      is_in_range = from >= last;
      break;
    case kDown:
      from = lane + value;
      is_in_range = from <= last;
      break;
    case kBfly:
      from = lane ^ value;
      is_in_range = from <= last;
      break;
    default:
      from = first | (value & ~segment & 31);
      is_in_range = from <= last;
  }
  return is_in_range ? from & 31 : lane;
}

/// detail.extra[0]: c; immediate: the second result's predicate or 0.
Outcome shuffle(Frame& frame, const Instr& instr) {
  std::uint32_t values[kLanes];
  std::memcpy(values, frame.at<std::uint32_t>(instr.a), sizeof(values));
  LaneMask in_range = 0;
  for_lanes(frame.lanes, [&](int lane) {
    bool is_in_range = false;
    const int from =
        shuffle_source(instr.option, lane, frame.at<std::uint32_t>(instr.b)[lane], frame.at<std::uint32_t>(instr.c)[lane], is_in_range);
    in_range |= static_cast<LaneMask>(is_in_range) << lane;
    frame.at<std::uint32_t>(instr.d)[lane] = values[from];
  });
  if (instr.immediate != 0) frame.set_predicate(static_cast<std::uint32_t>(instr.immediate), in_range);
  return Outcome::kDone;
}

enum Vote : std::uint8_t { kAll, kAny, kUni, kBallot };

Outcome vote(Frame& frame, const Instr& instr) {
  const LaneMask yes = (frame.predicate(instr.a) ^ instr.flip) & frame.lanes;
  if (instr.option == kBallot) {
    for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = yes; });
    return Outcome::kDone;
  }
  const bool all = yes == frame.lanes;
  const bool result = instr.option == kAll ? all : instr.option == kAny ? yes != 0 : all || yes == 0;
  frame.set_predicate(instr.d, result ? kAllLanes : 0);
  return Outcome::kDone;
}

template <typename T>
Outcome match_any(Frame& frame, const Instr& instr) {
  T values[kLanes];
  std::memcpy(values, frame.at<T>(instr.a), sizeof(values));
  for_lanes(frame.lanes, [&](int lane) {
    LaneMask same = 0;
    for_lanes(frame.lanes, [&](int other) { same |= static_cast<LaneMask>(values[other] == values[lane]) << other; });
    frame.at<std::uint32_t>(instr.d)[lane] = same;
  });
  return Outcome::kDone;
}

template <typename T>
Outcome match_all(Frame& frame, const Instr& instr) {
  const T* values = frame.at<T>(instr.a);
  const T first = values[std::countr_zero(frame.lanes)];
  bool all = true;
  for_lanes(frame.lanes, [&](int lane) { all = all && values[lane] == first; });
  for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = all ? frame.lanes : 0; });
  if (instr.immediate != 0) frame.set_predicate(static_cast<std::uint32_t>(instr.immediate), all ? kAllLanes : 0);
  return Outcome::kDone;
}

Outcome activemask(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = frame.lanes; });
  return Outcome::kDone;
}

/// The lowest lane of the mask (seen on an H200).
Outcome elect(Frame& frame, const Instr& instr) {
  const auto leader = static_cast<std::uint32_t>(std::countr_zero(frame.lanes));
  for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = leader; });
  if (instr.immediate != 0) frame.set_predicate(static_cast<std::uint32_t>(instr.immediate), LaneMask{1} << leader);
  return Outcome::kDone;
}

enum Redux : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <typename T>
Outcome redux(Frame& frame, const Instr& instr) {
  const T* values = frame.at<T>(instr.a);
  T result = values[std::countr_zero(frame.lanes)];
  for_lanes(frame.lanes & (frame.lanes - 1), [&](int lane) {
    const T value = values[lane];
    switch (instr.option) {
      case kAdd:
        result = wrapping_add(result, value);
        break;
      case kMin:
        result = std::min(result, value);
        break;
      case kMax:
        result = std::max(result, value);
        break;
      case kAnd:
        result = static_cast<T>(result & value);
        break;
      case kOr:
        result = static_cast<T>(result | value);
        break;
      default:
        result = static_cast<T>(result ^ value);
    }
  });
  for_lanes(frame.lanes, [&](int lane) { frame.at<T>(instr.d)[lane] = result; });
  return Outcome::kDone;
}

std::uint8_t index_of(const Form& form, std::initializer_list<const char*> names) {
  std::uint8_t index = 0;
  for (const char* name : names) {
    if (form.has(name)) return index;
    ++index;
  }
  return 0;
}

}  // namespace

Status Decoder::decode_warp(Instr& instr) {
  if (op() == Op::kActivemask) {
    KW_TRY(instr.d, destination(0, 32));
    instr.function = &activemask;
    return {};
  }
  instr.kind = InstrKind::kMembers;
  KW_TRY(instr.members, source(num_operands() - 1, 32));
  const Operand& result = operand(0);
  const Operand& first = result.kind == Operand::Kind::kPair ? result.parts[0] : result;
  if (result.kind == Operand::Kind::kPair) {
    KW_TRY(instr.immediate, predicate_destination(result.parts[1]));
  }
  if (op() == Op::kVote) {
    instr.option = index_of(form(), {"all", "any", "uni", "ballot"});
    KW_TRY(const Predicate predicate, predicate_source(operand(1)));
    instr.a = predicate.offset;
    instr.flip = predicate.flip;
    instr.function = &vote;
    if (instr.option == kBallot) {
      KW_TRY(instr.d, destination(first, 32));
    } else {
      KW_TRY(instr.d, predicate_destination(first));
    }
    return {};
  }
  KW_TRY(instr.d, destination(first, 32));
  switch (op()) {
    case Op::kShfl: {
      instr.option = index_of(form(), {"up", "down", "bfly", "idx"});
      KW_TRY(instr.a, source(1, 32));
      KW_TRY(instr.b, source(2, 32));
      KW_TRY(instr.c, source(3, 32));
      instr.function = &shuffle;
      return {};
    }
    case Op::kMatch: {
      const int bits = bits_of(type());
      KW_TRY(instr.a, source(1, bits));
      instr.function = has("any") ? (bits == 32 ? &match_any<std::uint32_t> : &match_any<std::uint64_t>)
                                  : (bits == 32 ? &match_all<std::uint32_t> : &match_all<std::uint64_t>);
      return {};
    }
    case Op::kElect:
      instr.function = &elect;
      return {};
    case Op::kRedux: {
      instr.option = index_of(form(), {"add", "min", "max", "and", "or", "xor"});
      KW_TRY(instr.a, source(1, 32));
      instr.function = type() == ScalarType::kS32 ? &redux<std::int32_t> : &redux<std::uint32_t>;
      return {};
    }
    default:
      return refuse("no such instruction");
  }
}

}  // namespace kw::simulate
