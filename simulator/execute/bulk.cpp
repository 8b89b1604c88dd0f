// Bulk and tensor copies (TMA): the operands' rules, expansion of a tensor map's box into pieces, groups. Place:
// simulator/execute/decoder.h. Each executing lane issues its own copy. Hardware traps (PTX ISA and seen on an H200) are findings that name
// the rule. SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"
#include "simulator/tensor/tensor_map.h"

namespace kw::simulate {
namespace {

enum Direction : std::uint8_t { kLoad, kStore, kBetweenCtas };

constexpr std::uint32_t kBulkAlign = 16;
constexpr std::uint64_t kMapAlign = 64;

Outcome report(const Frame& frame, const Context& context, FindingKind kind, std::string message, std::string remedy) {
  frame.machine().report(Finding{.kind = kind,
                                 .message = std::move(message),
                                 .where = frame.machine().place(context, std::countr_zero(context.lanes), "issues a bulk copy"),
                                 .other = std::nullopt,
                                 .remedy = std::move(remedy)});
  return Outcome::kFault;
}

std::uint64_t lane_address(const Frame& frame, const Detail& detail, std::size_t i, int lane) {
  const std::uint64_t sum = frame.value(detail.address[i], lane) + detail.address_offset[i];
  return detail.address[i].bits == 32 ? static_cast<std::uint32_t>(sum) : sum;
}

/// Calls body(context, lane) for each executing lane with a context of that lane alone.
template <typename Body>
Outcome for_each_issuer(const Frame& frame, Body&& body) {
  for (LaneMask left = frame.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    Context context = frame.context();
    context.lanes = LaneMask{1} << lane;
    if (const Outcome outcome = body(context, lane); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

/// address[0] destination, [1] source, [2] mbarrier; extra[0] size, extra[1] mask if has_c. option: Direction.
Outcome bulk_copy(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  return for_each_issuer(frame, [&](const Context& context, int lane) {
    const std::uint64_t to = lane_address(frame, detail, 0, lane);
    const std::uint64_t from = lane_address(frame, detail, 1, lane);
    const auto bytes = static_cast<std::uint32_t>(frame.value(detail.extra[0], lane));
    if (bytes % kBulkAlign != 0) {
      return report(frame, context, FindingKind::kBadOperand,
                    "a bulk copy of " + std::to_string(bytes) +
                        " bytes: the size must be a multiple of 16; the device gives no error and never completes it",
                    "PTX ISA, cp.async.bulk: size is a multiple of 16");
    }
    if (to % kBulkAlign != 0 || from % kBulkAlign != 0) {
      return report(frame, context, FindingKind::kMisaligned, "a bulk copy: both addresses must be multiples of 16",
                    "PTX ISA, cp.async.bulk: addresses are 16-byte aligned");
    }
    if (bytes == 0) return report(frame, context, FindingKind::kBadOperand, "a bulk copy of 0 bytes", "");
    if (instr.option == kStore) {
      const CopyPiece piece{.global = to, .shared = static_cast<std::uint32_t>(from), .num_bytes = bytes};
      return frame.machine().bulk_store(context, std::span(&piece, 1), detail.has_c ? &detail.atomic : nullptr);
    }
    const auto mbarrier = static_cast<std::uint32_t>(lane_address(frame, detail, 2, lane));
    if (instr.option == kBetweenCtas) {
      return frame.machine().bulk_copy_shared(context, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from), bytes, mbarrier);
    }
    const std::uint16_t mask = detail.has_c ? static_cast<std::uint16_t>(frame.value(detail.extra[1], lane)) : 0;
    const CopyPiece piece{.global = from, .shared = static_cast<std::uint32_t>(to), .num_bytes = bytes};
    return frame.machine().bulk_load(context, std::span(&piece, 1), mbarrier, bytes, mask);
  });
}

/// Reads the map at a generic address: a parameter, a constant or global memory.
bool read_map(const Frame& frame, const Context& context, std::uint64_t address, TensorMap& map) {
  if (address % kMapAlign != 0) {
    report(frame, context, FindingKind::kMisaligned, "a tensor map must lie at a multiple of 64 bytes", "alignas(64) CUtensorMap");
    return false;
  }
  if (frame.machine().global().find(address, kTensorMapBytes) == nullptr) {
    report(frame, context, FindingKind::kBadAddress,
           frame.machine().describe_address(context, Space::kGeneric, address) + ": no tensor map there",
           "pass the map as a __grid_constant__ parameter, or in constant or global memory");
    return false;
  }
  std::array<std::uint8_t, kTensorMapBytes> bytes;
  if (frame.machine().read_tensor_map(context, address, std::as_writable_bytes(std::span(bytes))) != Outcome::kDone) return false;
  const Result<TensorMap> decoded = decode_tensor_map(bytes);
  if (!decoded) {
    report(frame, context, FindingKind::kBadOperand, decoded.error().message, "");
    return false;
  }
  map = *decoded;
  return true;
}

AtomicType atomic_type_of(TensorMapType type) {
  switch (type) {
    case TensorMapType::kU64:
      return AtomicType::kU64;
    case TensorMapType::kS32:
      return AtomicType::kS32;
    case TensorMapType::kS64:
      return AtomicType::kS64;
    case TensorMapType::kF16:
      return AtomicType::kF16;
    case TensorMapType::kBF16:
      return AtomicType::kBF16;
    case TensorMapType::kF32:
    case TensorMapType::kF32Ftz:
      return AtomicType::kF32;
    case TensorMapType::kF64:
      return AtomicType::kF64;
    default:
      return AtomicType::kU32;
  }
}

/// The operation as the machine's reduction on this map's elements; false when PTX does not have it.
bool reduction_of(const Detail& detail, const TensorMap& map, AtomicKind& kind) {
  constexpr std::pair<AtomicOp, BulkReduce> kOps[] = {{AtomicOp::kAdd, BulkReduce::kAdd}, {AtomicOp::kMin, BulkReduce::kMin},
                                                      {AtomicOp::kMax, BulkReduce::kMax}, {AtomicOp::kInc, BulkReduce::kInc},
                                                      {AtomicOp::kDec, BulkReduce::kDec}, {AtomicOp::kAnd, BulkReduce::kAnd},
                                                      {AtomicOp::kOr, BulkReduce::kOr},   {AtomicOp::kXor, BulkReduce::kXor}};
  kind = detail.atomic;
  kind.type = atomic_type_of(map.type);
  const bool is_bitwise = kind.op == AtomicOp::kAnd || kind.op == AtomicOp::kOr || kind.op == AtomicOp::kXor;
  if (is_bitwise) kind.type = size_bytes(map.type) == 8 ? AtomicType::kB64 : AtomicType::kB32;
  for (const auto& [atomic, bulk] : kOps) {
    if (atomic == kind.op) return check_bulk_reduce(bulk, map.type).has_value();
  }
  return false;
}

/// The pieces of a box; false after a finding. `shared`: 32-bit shared address with the CTA's rank.
bool plan_box(const Frame& frame, const Context& context, const Detail& detail, const TensorMap& map, TileDirection direction, int lane,
              std::uint32_t shared, std::vector<CopyPiece>& pieces) {
  if (static_cast<std::size_t>(map.rank) != detail.b.size()) {
    report(frame, context, FindingKind::kBadOperand,
           "the instruction has " + std::to_string(detail.b.size()) + " coordinates, the tensor map " + std::to_string(map.rank) +
               " dimensions",
           "");
    return false;
  }
  std::int32_t coordinates[kMaxTensorRank] = {};
  for (std::size_t i = 0; i < detail.b.size(); ++i) coordinates[i] = static_cast<std::int32_t>(frame.value(detail.b[i], lane));
  const TilePlan plan = plan_tile(map, direction, std::span(coordinates, detail.b.size()), shared & kSharedOffsetMask);
  if (!plan.traps.empty()) {
    const TileTrap& trap = plan.traps.front();
    const bool is_misaligned = trap.kind == TileTrap::Kind::kMisalignedAddress;
    report(frame, context, is_misaligned ? FindingKind::kMisaligned : FindingKind::kBadOperand,
           std::string("a tensor copy that the device ends with ") + (is_misaligned ? "a misaligned address" : "an illegal instruction") +
               ": " + trap.rule,
           "");
    return false;
  }
  const std::uint32_t window = shared & ~kSharedOffsetMask;
  const auto fill = static_cast<std::uint16_t>(fill_pattern(map));
  pieces.reserve(plan.segments.size());
  for (const TileSegment& segment : plan.segments) {
    pieces.push_back(CopyPiece{.global = segment.global_address,
                               .shared = window | segment.smem_address,
                               .num_bytes = segment.bytes,
                               .is_fill = segment.is_out_of_bounds,
                               .fill = fill});
  }
  return true;
}

/// address[0] shared, [1] map, [2] mbarrier (loads); b: coordinates; extra[1] mask if has_c (loads); has_c (stores): a reduction.
Outcome tensor_copy(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  return for_each_issuer(frame, [&](const Context& context, int lane) {
    TensorMap map;
    if (!read_map(frame, context, lane_address(frame, detail, 1, lane), map)) return Outcome::kFault;
    const auto shared = static_cast<std::uint32_t>(lane_address(frame, detail, 0, lane));
    std::vector<CopyPiece> pieces;
    const TileDirection direction = instr.option == kLoad ? TileDirection::kLoad : TileDirection::kStore;
    if (!plan_box(frame, context, detail, map, direction, lane, shared, pieces)) return Outcome::kFault;
    if (instr.option == kLoad) {
      const std::uint16_t mask = detail.has_c ? static_cast<std::uint16_t>(frame.value(detail.extra[1], lane)) : 0;
      const auto mbarrier = static_cast<std::uint32_t>(lane_address(frame, detail, 2, lane));
      return frame.machine().bulk_load(context, pieces, mbarrier, box_bytes(map), mask);
    }
    AtomicKind kind;
    if (detail.has_c && !reduction_of(detail, map, kind)) {
      return report(frame, context, FindingKind::kBadOperand, "cp.reduce.async.bulk.tensor: no such reduction on the map's type", "");
    }
    return frame.machine().bulk_store(context, pieces, detail.has_c ? &kind : nullptr);
  });
}

Outcome commit(Frame& frame, const Instr&) { return frame.machine().bulk_commit(frame.context()); }

/// option 1: .read
Outcome wait(Frame& frame, const Instr& instr) {
  return frame.machine().bulk_wait(frame.context(), static_cast<std::uint32_t>(instr.immediate), instr.option == 1);
}

Outcome prefetch(Frame&, const Instr&) { return Outcome::kDone; }

AtomicOp reduction_op(const Form& form) {
  constexpr std::pair<const char*, AtomicOp> kNames[] = {{"add", AtomicOp::kAdd}, {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax},
                                                         {"inc", AtomicOp::kInc}, {"dec", AtomicOp::kDec}, {"and", AtomicOp::kAnd},
                                                         {"or", AtomicOp::kOr},   {"xor", AtomicOp::kXor}};
  for (const auto& [name, op] : kNames) {
    if (form.has(name)) return op;
  }
  return AtomicOp::kAdd;
}

bool map_type_of(ScalarType type, TensorMapType& result) {
  switch (type) {
    case ScalarType::kB32:
    case ScalarType::kU32:
      result = TensorMapType::kU32;
      return true;
    case ScalarType::kS32:
      result = TensorMapType::kS32;
      return true;
    case ScalarType::kB64:
    case ScalarType::kU64:
      result = TensorMapType::kU64;
      return true;
    case ScalarType::kS64:
      result = TensorMapType::kS64;
      return true;
    case ScalarType::kF16:
      result = TensorMapType::kF16;
      return true;
    case ScalarType::kBf16:
      result = TensorMapType::kBF16;
      return true;
    case ScalarType::kF32:
      result = TensorMapType::kF32;
      return true;
    case ScalarType::kF64:
      result = TensorMapType::kF64;
      return true;
    default:
      return false;
  }
}

}  // namespace

Status Decoder::decode_bulk(Instr& instr) {
  if (op() == Op::kCpBulkCommit) {
    instr.function = &commit;
    return {};
  }
  if (op() == Op::kCpBulkWait) {
    instr.function = &wait;
    instr.may_park = true;
    instr.option = has("read") ? 1 : 0;
    instr.immediate = operand(0).bits;
    if (instr.immediate > 0x7fffffff) return refuse("a number of groups must not be negative", Code::kBadInput);
    return {};
  }
  if (op() == Op::kCpBulkPrefetch || op() == Op::kCpBulkPrefetchTensor) {
    instr.function = &prefetch;
    return {};
  }
  Detail& detail = new_detail(instr);
  const bool is_tensor = op() == Op::kCpBulkTensor || op() == Op::kCpReduceBulkTensor;
  const bool is_reduction = op() == Op::kCpReduceBulk || op() == Op::kCpReduceBulkTensor;
  const bool is_store = has("bulk_group");
  instr.option = is_store ? kStore : has("global") ? kLoad : kBetweenCtas;
  const auto set_address = [&](std::size_t i, const Operand& from) -> Status {
    KW_TRY(const Address at, address(from));
    detail.address[i] = at.slot;
    detail.address_offset[i] = at.offset;
    return {};
  };
  detail.atomic = AtomicKind{.op = reduction_op(form()), .type = AtomicType::kU32, .space = Space::kGlobal, .is_reduction = true};
  const std::size_t mbarrier = is_tensor ? 2 : 3;
  if (!is_store) KW_TRY_VOID(set_address(2, operand(mbarrier)));
  if (is_tensor) {
    const Operand& at_map = operand(is_store ? 0 : 1);
    KW_TRY_VOID(set_address(0, operand(is_store ? 1 : 0)));
    KW_TRY_VOID(set_address(1, at_map));
    KW_TRY(detail.b, vector_sources(at_map.parts[1], 32));
    for (const std::string& modifier : form().modifiers) {
      if (modifier.size() == 2 && modifier[1] == 'd' && detail.b.size() != static_cast<std::size_t>(modifier[0] - '0')) {
        return refuse("needs " + modifier.substr(0, 1) + " coordinates", Code::kBadInput);
      }
    }
    instr.function = &tensor_copy;
    detail.has_c = is_reduction;
  } else {
    KW_TRY_VOID(set_address(0, operand(0)));
    KW_TRY_VOID(set_address(1, operand(1)));
    KW_TRY(const std::uint32_t bytes, source(2, 32));
    detail.extra[0] = Slot{bytes, 32};
    instr.function = &bulk_copy;
    if (is_reduction) {
      detail.has_c = true;
      TensorMap map;
      if (!map_type_of(type(), map.type) || !reduction_of(detail, map, detail.atomic)) return refuse("no such reduction on this type");
    }
  }
  if (has("multicast::cluster")) {
    if (num_operands() <= mbarrier + 1) return refuse("the mask of the multicast is missing", Code::kBadInput);
    KW_TRY(const std::uint32_t mask, source(mbarrier + 1, 16));
    detail.extra[1] = Slot{mask, 16};
    detail.has_c = true;
  }
  return {};
}

}  // namespace kw::simulate
