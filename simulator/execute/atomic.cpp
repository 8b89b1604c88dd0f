// atom, red and the fences. Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kMaxElementBytes = 16;

/// A vector form is one atomic operation an element (PTX ISA, atom: "atomicity is guaranteed separately for each").
Outcome atomic(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  alignas(64) std::byte operand[kLanes * kMaxElementBytes];
  alignas(64) std::byte compare[kLanes * kMaxElementBytes];
  alignas(64) std::byte old[kLanes * kMaxElementBytes];
  for (std::size_t i = 0; i < detail.b.size(); ++i) {
    gather(frame, {detail.b[i]}, detail.element_bytes, operand);
    if (!detail.c.empty()) gather(frame, {detail.c[i]}, detail.element_bytes, compare);
    const Outcome outcome = frame.machine().atomic(frame.context(), detail.atomic, addresses.at, operand,
                                                   detail.c.empty() ? nullptr : compare, detail.atomic.is_reduction ? nullptr : old);
    if (outcome != Outcome::kDone) return outcome;
    if (!detail.d.empty()) scatter(frame, {detail.d[i]}, detail.element_bytes, false, old);
    for (std::uint64_t& address : addresses.at) address += detail.element_bytes;
  }
  return Outcome::kDone;
}

Outcome fence(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  frame.machine().fence(frame.context(), detail.order, detail.scope);
  return Outcome::kDone;
}

Outcome fence_proxy(Frame& frame, const Instr&) {
  frame.machine().fence_proxy_async(frame.context());
  return Outcome::kDone;
}

Outcome fence_mbarrier(Frame& frame, const Instr&) {
  frame.machine().fence_mbarrier_init(frame.context());
  return Outcome::kDone;
}

bool atomic_type(ScalarType type, AtomicOp op, AtomicType& result) {
  const bool is_bitwise = op == AtomicOp::kAnd || op == AtomicOp::kOr || op == AtomicOp::kXor;
  const bool moves = op == AtomicOp::kExch || op == AtomicOp::kCas;
  switch (type) {
    case ScalarType::kU32:
      result = AtomicType::kU32;
      return !is_bitwise && !moves;
    case ScalarType::kS32:
      result = AtomicType::kS32;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kU64:
      result = AtomicType::kU64;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kS64:
      result = AtomicType::kS64;
      return op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kF32:
      result = AtomicType::kF32;
      return op == AtomicOp::kAdd;
    case ScalarType::kF64:
      result = AtomicType::kF64;
      return op == AtomicOp::kAdd;
    case ScalarType::kF16:
      result = AtomicType::kF16;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kBf16:
      result = AtomicType::kBF16;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kF16x2:
      result = AtomicType::kF16x2;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kBf16x2:
      result = AtomicType::kBF16x2;
      return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax;
    case ScalarType::kB16:
      result = AtomicType::kB16;
      return op == AtomicOp::kCas;
    case ScalarType::kB32:
      result = AtomicType::kB32;
      return is_bitwise || moves;
    case ScalarType::kB64:
      result = AtomicType::kB64;
      return is_bitwise || moves;
    case ScalarType::kB128:
      result = AtomicType::kB128;
      return moves;
    default:
      return false;
  }
}

AtomicOp atomic_op(const Form& form) {
  constexpr std::pair<const char*, AtomicOp> kNames[] = {
      {"add", AtomicOp::kAdd}, {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax}, {"inc", AtomicOp::kInc},   {"dec", AtomicOp::kDec},
      {"and", AtomicOp::kAnd}, {"or", AtomicOp::kOr},   {"xor", AtomicOp::kXor}, {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas}};
  for (const auto& [name, op] : kNames) {
    if (form.has(name)) return op;
  }
  return AtomicOp::kAdd;
}

}  // namespace

Status Decoder::decode_atomic(Instr& instr) {
  Detail& detail = new_detail(instr);
  const bool is_reduction = op() == Op::kRed;
  detail.atomic.op = atomic_op(form());
  detail.atomic.space = space();
  detail.atomic.order = order() == Order::kWeak ? Order::kRelaxed : order();
  detail.atomic.scope = scope(Scope::kGpu);
  detail.atomic.is_reduction = is_reduction;
  if (!atomic_type(type(), detail.atomic.op, detail.atomic.type)) return refuse("no such atomic operation on this type");
  const int bits = bits_of(type());
  detail.element_bytes = static_cast<std::uint32_t>(bits) / 8;
  const std::size_t wanted = has("v2") ? 2 : has("v4") ? 4 : has("v8") ? 8 : 1;
  const std::size_t first = is_reduction ? 0 : 1;
  const bool is_float_number = is_float(type()) && bits >= 32 && type() != ScalarType::kF16x2 && type() != ScalarType::kBf16x2;
  if (!is_reduction) {
    KW_TRY(detail.d, vector_destinations(operand(0), bits));
  }
  KW_TRY(const Address at, address(operand(first)));
  KW_TRY(detail.b, vector_sources(operand(first + 1), bits, is_float_number));
  if (detail.atomic.op == AtomicOp::kCas) {
    if (num_operands() < 4) return refuse("operand 4 is missing: the new value", Code::kBadInput);
    // PTX: cas takes the value to compare first, the new value second.
    detail.c = std::move(detail.b);
    KW_TRY(detail.b, vector_sources(operand(3), bits));
  }
  if (detail.b.size() != wanted || (!is_reduction && detail.d.size() != wanted) || (!detail.c.empty() && detail.c.size() != wanted)) {
    return refuse("the vector must have " + std::to_string(wanted) + " elements", Code::kBadInput);
  }
  if (wanted > 1 && detail.atomic.space != Space::kGlobal) return refuse("vectors are for global memory");
  detail.address[0] = at.slot;
  detail.address_offset[0] = at.offset;
  if (detail.atomic.space == Space::kGlobal || detail.atomic.space == Space::kGeneric) program_.uses_global_atomics = true;
  instr.function = &atomic;
  // A vector's elements must not be added twice: the machine never parks an atomic operation.
  instr.may_park = wanted == 1;
  return {};
}

Status Decoder::decode_fence(Instr& instr) {
  if (op() == Op::kFenceProxy) {
    instr.function = &fence_proxy;
    return {};
  }
  if (op() == Op::kFenceMbarrierInit) {
    instr.function = &fence_mbarrier;
    return {};
  }
  if (op() != Op::kFence) return refuse("this fence is not supported");
  Detail& detail = new_detail(instr);
  const bool is_membar = form().row->base == "membar";
  // PTX ISA, membar: a synonym of fence.sc; fence without an order is fence.acq_rel.
  detail.order = is_membar || has("sc") ? Order::kSeqCst : order() == Order::kWeak ? Order::kAcqRel : order();
  detail.scope = has("gl") ? Scope::kGpu : scope(Scope::kGpu);
  instr.function = &fence;
  return {};
}

}  // namespace kw::simulate
