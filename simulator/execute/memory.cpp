// Loads and stores of all spaces, vector forms, memory orders; parameters, which are constants of the launch; st.async.
// Place: simulator/execute/decoder.h. Checks of addresses, races and initialisation are the machine's.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kMaxAccessBytes = 16;  // 32-byte vectors need sm_100

Outcome load(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  alignas(64) std::byte data[kLanes * kMaxAccessBytes];
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  const Outcome outcome = frame.machine().load(frame.context(), detail.access, addresses.at, data);
  if (outcome == Outcome::kDone) scatter(frame, detail.d, detail.element_bytes, detail.is_signed, data);
  return outcome;
}

Outcome store(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  alignas(64) std::byte data[kLanes * kMaxAccessBytes];
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  gather(frame, detail.a, detail.element_bytes, data);
  return frame.machine().store(frame.context(), detail.access, addresses.at, data);
}

Outcome store_async(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  LaneAddresses mbarriers;
  alignas(64) std::byte data[kLanes * kMaxAccessBytes];
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  fill_addresses(frame, detail.address[1], detail.address_offset[1], mbarriers);
  gather(frame, detail.a, detail.element_bytes, data);
  return frame.machine().store_async(frame.context(), detail.access.bytes, addresses.at, data, mbarriers.at);
}

/// Elements of a parameter are constant slots of their own width; they are extended to the registers.
Outcome load_parameter(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const int shift = 64 - 8 * static_cast<int>(detail.element_bytes);
  for (std::size_t i = 0; i < detail.d.size(); ++i) {
    for_lanes(frame.lanes, [&](int lane) {
      std::uint64_t bits = frame.value(detail.a[i], lane);
      if (detail.is_signed) bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
      frame.set_value(detail.d[i], lane, bits);
    });
  }
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_load(Instr& instr) {
  Detail& detail = new_detail(instr);
  detail.element_bytes = static_cast<std::uint32_t>(bits_of(type())) / 8;
  detail.is_signed = is_signed(type());
  KW_TRY(detail.d, vector_destinations(operand(0), 0));
  const std::size_t wanted = has("v2") ? 2 : has("v4") ? 4 : 1;
  if (detail.d.size() != wanted) return refuse("the vector must have " + std::to_string(wanted) + " elements", Code::kBadInput);
  for (const Slot& slot : detail.d) {
    if (slot.bits < detail.element_bytes * 8) return refuse("a register is narrower than the element", Code::kBadInput);
  }
  const std::uint32_t bytes = detail.element_bytes * static_cast<std::uint32_t>(wanted);
  if (bytes > kMaxAccessBytes) return refuse("accesses of 32 bytes need sm_100");
  KW_TRY(const Address at, address(operand(1)));
  if (has("param") && at.variable != nullptr && at.variable->space == StateSpace::kParam) {
    const std::uint64_t offset = at.variable->offset_bytes + at.offset;
    if (at.offset > at.variable->size_bytes || at.offset + bytes > at.variable->size_bytes || offset % bytes != 0) {
      return refuse("parameter " + at.variable->name + " + " + std::to_string(static_cast<std::int64_t>(at.offset)) + ": " +
                        std::to_string(bytes) + " bytes are outside of it or not aligned",
                    Code::kBadInput);
    }
    if (detail.element_bytes > 8) return refuse("128-bit parameters are read by halves");
    for (std::size_t i = 0; i < wanted; ++i) {
      const auto width = static_cast<std::uint8_t>(std::max(detail.element_bytes * 8, 16u));
      const std::uint32_t constant_offset = constant(Constant{.kind = Constant::Kind::kParameter,
                                                              .slot = Slot{0, width},
                                                              .bits = offset + i * detail.element_bytes,
                                                              .num_bytes = detail.element_bytes});
      detail.a.push_back(Slot{constant_offset, width});
    }
    instr.function = &load_parameter;
    return {};
  }
  detail.address[0] = at.slot;
  detail.address_offset[0] = at.offset;
  detail.access = AccessKind{.space = space(),
                             .bytes = static_cast<std::uint8_t>(bytes),
                             .order = order(),
                             .scope = scope(Scope::kGpu),
                             .is_read_only = has("nc")};
  if (detail.access.order != Order::kWeak) program_.uses_global_atomics = true;
  instr.function = &load;
  instr.may_park = true;
  return {};
}

Status Decoder::decode_store(Instr& instr) {
  Detail& detail = new_detail(instr);
  const int bits = bits_of(type());
  detail.element_bytes = static_cast<std::uint32_t>(bits) / 8;
  const std::size_t wanted = has("v2") ? 2 : has("v4") ? 4 : 1;
  const Operand& value = operand(1);
  const bool has_numbers = value.kind == Operand::Kind::kImmediate || value.kind == Operand::Kind::kVector;
  if (has_numbers) {
    const Operand* first = value.kind == Operand::Kind::kVector ? value.parts.data() : &value;
    const std::size_t count = value.kind == Operand::Kind::kVector ? value.parts.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      KW_TRY(const Slot slot, any_source(first[i], std::max(bits, 16), is_float(type()) && bits >= 32));
      detail.a.push_back(slot);
    }
  } else {
    KW_TRY(const Slot slot, any_source(value, std::max(bits, 16)));
    detail.a.push_back(slot);
  }
  if (detail.a.size() != wanted) return refuse("the vector must have " + std::to_string(wanted) + " elements", Code::kBadInput);
  for (const Slot& slot : detail.a) {
    if (slot.bits < bits) return refuse("a register is narrower than the element", Code::kBadInput);
  }
  const std::uint32_t bytes = detail.element_bytes * static_cast<std::uint32_t>(wanted);
  if (bytes > kMaxAccessBytes) return refuse("accesses of 32 bytes need sm_100");
  KW_TRY(const Address at, address(operand(0)));
  detail.address[0] = at.slot;
  detail.address_offset[0] = at.offset;
  detail.access = AccessKind{.space = space(), .bytes = static_cast<std::uint8_t>(bytes), .order = order(), .scope = scope(Scope::kGpu)};
  instr.function = &store;
  instr.may_park = true;
  if (op() == Op::kStAsync) {
    KW_TRY(const Address mbarrier, address(operand(2)));
    detail.address[1] = mbarrier.slot;
    detail.address_offset[1] = mbarrier.offset;
    instr.function = &store_async;
  }
  return {};
}

}  // namespace kw::simulate
