// mov: copies, packing and unpacking of vectors, clocks. Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

template <typename T>
Outcome copy(Frame& frame, const Instr& instr) {
  T* d = frame.at<T>(instr.d);
  const T* a = frame.at<T>(instr.a);
  if (frame.lanes == kAllLanes) {
    std::memmove(d, a, sizeof(T) * kLanes);
    return Outcome::kDone;
  }
  for_lanes(frame.lanes, [=](int lane) { d[lane] = a[lane]; });
  return Outcome::kDone;
}

struct Bits128 {
  std::uint64_t half[2];
};

Outcome copy_predicate(Frame& frame, const Instr& instr) {
  frame.set_predicate(instr.d, frame.predicate(instr.a) ^ instr.flip);
  return Outcome::kDone;
}

/// {lo, hi} -> a register of twice the width.
template <typename Half, typename Whole>
Outcome pack2(Frame& frame, const Instr& instr) {
  Half* d = frame.at<Half>(instr.d);  // the whole register, seen as halves
  const Half* a = frame.at<Half>(instr.a);
  const Half* b = frame.at<Half>(instr.b);
  static_assert(sizeof(Whole) == 2 * sizeof(Half));
  for_lanes(frame.lanes, [=](int lane) {
    const Half low = a[lane];
    const Half high = b[lane];
    d[2 * lane] = low;
    d[2 * lane + 1] = high;
  });
  return Outcome::kDone;
}

template <typename Half>
Outcome unpack2(Frame& frame, const Instr& instr) {
  const Half* a = frame.at<Half>(instr.a);
  Half* low = frame.at<Half>(instr.d);
  Half* high = frame.at<Half>(instr.b);
  for_lanes(frame.lanes, [=](int lane) {
    const Half first = a[2 * lane];
    const Half second = a[2 * lane + 1];
    low[lane] = first;
    high[lane] = second;
  });
  return Outcome::kDone;
}

/// Any other vector: bits are gathered from the sources, lowest first, and dealt out to the destinations.
Outcome repack(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    unsigned __int128 bits = 0;
    int at = 0;
    for (const Slot& slot : detail.a) {
      unsigned __int128 part = frame.value(slot, lane);
      if (slot.bits == 128) part |= static_cast<unsigned __int128>(frame.at<std::uint64_t>(slot.offset)[2 * lane + 1]) << 64;
      bits |= part << at;
      at += slot.bits;
    }
    at = 0;
    for (const Slot& slot : detail.d) {
      const unsigned __int128 part = bits >> at;
      frame.set_value(slot, lane, static_cast<std::uint64_t>(part));
      if (slot.bits == 128) frame.at<std::uint64_t>(slot.offset)[2 * lane + 1] = static_cast<std::uint64_t>(part >> 64);
      at += slot.bits;
    }
  });
  return Outcome::kDone;
}

/// option: 32 or 64. The clock counts warp instructions of the launch; it only grows.
Outcome read_clock(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const std::uint64_t now = *frame.facts.instruction_clock + frame.warp.num_executed;
  const auto special = static_cast<SpecialRegister>(instr.option);
  const std::uint64_t value = special == SpecialRegister::kClockHi ? now >> 32 : now;
  for_lanes(frame.lanes, [&](int lane) { frame.set_value(detail.d[0], lane, value); });
  return Outcome::kDone;
}

int total_bits(const std::vector<Slot>& slots) {
  int bits = 0;
  for (const Slot& slot : slots) bits += slot.bits;
  return bits;
}

}  // namespace

Status Decoder::decode_move(Instr& instr) {
  if (type() == ScalarType::kPred) {
    KW_TRY(instr.d, predicate_destination(operand(0)));
    KW_TRY(const Predicate predicate, predicate_source(operand(1)));
    instr.a = predicate.offset;
    instr.flip = predicate.flip;
    instr.function = &copy_predicate;
    return {};
  }
  const int bits = bits_of(type());
  if (operand(1).kind == Operand::Kind::kSpecial && operand(1).index >= static_cast<int>(SpecialRegister::kClock)) {
    Detail& detail = new_detail(instr);
    KW_TRY(const std::uint32_t d, destination(0, bits));
    detail.d = {Slot{d, static_cast<std::uint8_t>(bits)}};
    instr.option = static_cast<std::uint8_t>(operand(1).index);
    instr.function = &read_clock;
    return {};
  }
  const bool is_vector = operand(0).kind == Operand::Kind::kVector || operand(1).kind == Operand::Kind::kVector;
  if (!is_vector) {
    KW_TRY(instr.d, destination(0, bits));
    KW_TRY(instr.a, source(1, bits, is_float(type()) && bits >= 32));
    instr.function = bits == 16   ? &copy<std::uint16_t>
                     : bits == 32 ? &copy<std::uint32_t>
                     : bits == 64 ? &copy<std::uint64_t>
                                  : &copy<Bits128>;
    return {};
  }
  const auto part_bits = [&](const Operand& vector) {
    return vector.kind == Operand::Kind::kVector ? bits / static_cast<int>(vector.parts.size()) : bits;
  };
  if (part_bits(operand(0)) < 16 || part_bits(operand(1)) < 16) return refuse("elements of 8 bits are not supported");
  KW_TRY(std::vector<Slot> from, vector_sources(operand(1), part_bits(operand(1))));
  KW_TRY(std::vector<Slot> to, vector_destinations(operand(0), part_bits(operand(0))));
  if (total_bits(from) != bits || total_bits(to) != bits) {
    return refuse("the elements make up " + std::to_string(total_bits(from)) + " and " + std::to_string(total_bits(to)) +
                      " bits, must be " + std::to_string(bits),
                  Code::kBadInput);
  }
  if (from.size() == 2 && to.size() == 1 && bits <= 64) {
    instr.d = to[0].offset;
    instr.a = from[0].offset;
    instr.b = from[1].offset;
    instr.function = bits == 32 ? &pack2<std::uint16_t, std::uint32_t> : &pack2<std::uint32_t, std::uint64_t>;
    return {};
  }
  if (from.size() == 1 && to.size() == 2 && bits <= 64) {
    instr.a = from[0].offset;
    instr.d = to[0].offset;
    instr.b = to[1].offset;
    instr.function = bits == 32 ? &unpack2<std::uint16_t> : &unpack2<std::uint32_t>;
    return {};
  }
  Detail& detail = new_detail(instr);
  detail.a = std::move(from);
  detail.d = std::move(to);
  instr.function = &repack;
  return {};
}

}  // namespace kw::simulate
