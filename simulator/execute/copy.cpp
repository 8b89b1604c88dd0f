// cp.async: copies of 4, 8 or 16 bytes a lane from global to shared memory, their groups, and their arrival at an mbarrier.
// Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"

namespace kw::simulate {
namespace {

/// option: 0 whole copies, 1 source size in detail.a, 2 a predicate (instr.c) that says: take zeros.
Outcome cp_async(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses shared;
  LaneAddresses global;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], shared);
  fill_addresses(frame, detail.address[1], detail.address_offset[1], global);
  std::uint32_t size[kLanes] = {};
  if (instr.option == 1) {
    for_lanes(frame.lanes, [&](int lane) { size[lane] = static_cast<std::uint32_t>(frame.value(detail.a[0], lane)); });
  } else if (instr.option == 2) {
    const LaneMask ignored = frame.predicate(instr.c) ^ instr.flip;
    for_lanes(frame.lanes, [&](int lane) { size[lane] = (ignored >> lane & 1) != 0 ? 0 : detail.element_bytes; });
  }
  if (instr.option == 1) {
    for (LaneMask left = frame.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (size[lane] <= detail.element_bytes) continue;
      frame.machine().report(Finding{.kind = FindingKind::kBadOperand,
                                     .message = "cp.async: source size " + std::to_string(size[lane]) + " is larger than the copy of " +
                                                std::to_string(detail.element_bytes) + " bytes",
                                     .where = frame.machine().place(frame.context(), lane, "copies asynchronously"),
                                     .other = std::nullopt,
                                     .remedy = "PTX ISA, cp.async: src-size is at most cp-size"});
      return Outcome::kFault;
    }
  }
  return frame.machine().cp_async(frame.context(), detail.element_bytes, shared.at, global.at, instr.option == 0 ? nullptr : size);
}

Outcome commit(Frame& frame, const Instr&) { return frame.machine().cp_async_commit(frame.context()); }
Outcome wait(Frame& frame, const Instr& instr) {
  return frame.machine().cp_async_wait(frame.context(), static_cast<std::uint32_t>(instr.immediate));
}
Outcome wait_all(Frame& frame, const Instr&) { return frame.machine().cp_async_wait_all(frame.context()); }

/// option 1: .noinc
Outcome arrive(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  return frame.machine().cp_async_mbarrier_arrive(frame.context(), addresses.at, instr.option == 1);
}

}  // namespace

Status Decoder::decode_copy(Instr& instr) {
  switch (op()) {
    case Op::kCpAsyncCommit:
      instr.function = &commit;
      return {};
    case Op::kCpAsyncWaitAll:
      instr.function = &wait_all;
      instr.may_park = true;
      return {};
    case Op::kCpAsyncWait:
      instr.function = &wait;
      instr.may_park = true;
      instr.immediate = operand(0).bits;
      if (instr.immediate > 0x7fffffff) return refuse("a number of groups must not be negative", Code::kBadInput);
      return {};
    default:
      break;
  }
  Detail& detail = new_detail(instr);
  KW_TRY(const Address first, address(operand(0)));
  detail.address[0] = first.slot;
  detail.address_offset[0] = first.offset;
  if (op() == Op::kCpAsyncMbarrierArrive) {
    instr.function = &arrive;
    instr.option = has("noinc") ? 1 : 0;
    return {};
  }
  KW_TRY(const Address second, address(operand(1)));
  detail.address[1] = second.slot;
  detail.address_offset[1] = second.offset;
  const std::uint64_t bytes = operand(2).bits;
  if (bytes != 16 && (has("cg") || (bytes != 4 && bytes != 8))) {
    return refuse("copies of " + std::to_string(bytes) + " bytes: .cg takes 16, .ca takes 4, 8 or 16", Code::kBadInput);
  }
  detail.element_bytes = static_cast<std::uint32_t>(bytes);
  instr.function = &cp_async;
  // The fourth operand is a source size or a predicate; a cache policy (64 bits) comes last.
  if (num_operands() > 3 && !(has("L2::cache_hint") && num_operands() == 4)) {
    const Operand& fourth = operand(3);
    const bool is_predicate_register =
        fourth.kind == Operand::Kind::kRegister && register_slots_[static_cast<std::size_t>(fourth.index)].bits == 1;
    if (is_predicate_register) {
      KW_TRY(const Predicate predicate, predicate_source(fourth));
      instr.c = predicate.offset;
      instr.flip = predicate.flip;
      instr.option = 2;
    } else {
      KW_TRY(const std::uint32_t size, source(3, 32));
      detail.a = {Slot{size, 32}};
      instr.option = 1;
    }
  }
  return {};
}

}  // namespace kw::simulate
