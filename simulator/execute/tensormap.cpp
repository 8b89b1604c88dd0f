// Tensor maps made on the device: tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap. Place: simulator/execute/decoder.h.
// The 128 bytes are simulator/tensor's own format; a program changes them through these instructions only.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"
#include "simulator/tensor/tensor_map.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kReplaceAlign = 128;  // PTX ISA, tensormap.replace: a .b1024 object
constexpr std::uint32_t kPartBytes = 16;

/// detail.address[0]: the map, in detail.access.space; detail.a[0]: the new global address.
Outcome replace_address(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  for (LaneMask left = frame.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    Context context = frame.context();
    context.lanes = LaneMask{1} << lane;
    const auto refuse = [&](FindingKind kind, std::string message) {
      frame.machine().report(Finding{.kind = kind,
                                     .message = std::move(message),
                                     .where = frame.machine().place(context, static_cast<int>(lane), "changes a tensor map"),
                                     .other = std::nullopt,
                                     .remedy = "copy a valid tensor map to 128-aligned memory first"});
      return Outcome::kFault;
    };
    const std::uint64_t first = addresses.at[lane];
    if (first % kReplaceAlign != 0) {
      return refuse(FindingKind::kMisaligned, frame.machine().describe_address(context, detail.access.space, first) +
                                                  ": tensormap.replace needs a multiple of 128 bytes");
    }
    std::array<std::uint8_t, kTensorMapBytes> bytes;
    std::byte data[kLanes * kPartBytes] = {};
    const auto move_all = [&](bool is_store) {
      for (std::uint32_t at = 0; at < kTensorMapBytes; at += kPartBytes) {
        addresses.at[lane] = first + at;
        std::byte* mine = data + lane * kPartBytes;
        if (is_store) std::memcpy(mine, bytes.data() + at, kPartBytes);
        const Outcome outcome = is_store ? frame.machine().store(context, detail.access, addresses.at, data)
                                         : frame.machine().load(context, detail.access, addresses.at, data);
        if (outcome != Outcome::kDone) return outcome;
        if (!is_store) std::memcpy(bytes.data() + at, mine, kPartBytes);
      }
      return Outcome::kDone;
    };
    if (const Outcome outcome = move_all(false); outcome != Outcome::kDone) return outcome;
    Result<TensorMap> map = unpack_tensor_map(bytes);
    if (!map) return refuse(FindingKind::kBadOperand, map.error().message);
    map->global_address = frame.value(detail.a[0], static_cast<int>(lane));
    bytes = pack_tensor_map(*map);
    if (const Outcome outcome = move_all(true); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

/// address[0]: global, address[1]: shared.
Outcome publish(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses global;
  LaneAddresses shared;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], global);
  fill_addresses(frame, detail.address[1], detail.address_offset[1], shared);
  const auto lane = static_cast<std::size_t>(std::countr_zero(frame.lanes));
  return frame.machine().publish_tensor_map(frame.context(), global.at[lane], static_cast<std::uint32_t>(shared.at[lane]), kTensorMapBytes,
                                            detail.scope);
}

Outcome acquire(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  return frame.machine().acquire_tensor_map(frame.context(), addresses.at, detail.scope);
}

}  // namespace

Status Decoder::decode_tensormap(Instr& instr) {
  Detail& detail = new_detail(instr);
  KW_TRY(const Address at, address(operand(0)));
  detail.address[0] = at.slot;
  detail.address_offset[0] = at.offset;
  detail.scope = scope(Scope::kGpu);
  if (op() == Op::kTensormapReplace) {
    detail.access = AccessKind{.space = space(), .bytes = kPartBytes};
    KW_TRY(const std::uint32_t value, source(1, 64));
    detail.a = {Slot{value, 64}};
    instr.function = &replace_address;
    return {};
  }
  const bool is_copy = op() == Op::kTensormapCopy;
  if (operand(is_copy ? 2 : 1).bits != kTensorMapBytes) return refuse("the size must be 128", Code::kBadInput);
  instr.function = is_copy ? &publish : &acquire;
  if (!is_copy) return {};
  KW_TRY(const Address from, address(operand(1)));
  detail.address[1] = from.slot;
  detail.address_offset[1] = from.offset;
  instr.kind = InstrKind::kAligned;
  return {};
}

}  // namespace kw::simulate
