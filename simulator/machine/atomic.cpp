// Atomic read-modify-write operations, lane by lane, on global and shared memory.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "generator/base/dtype.h"
#include "simulator/machine/reduction.h"
#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

std::uint32_t size_of(AtomicType type) {
  switch (type) {
    case AtomicType::kF16:
    case AtomicType::kBF16:
    case AtomicType::kB16:
      return 2;
    case AtomicType::kU64:
    case AtomicType::kS64:
    case AtomicType::kF64:
    case AtomicType::kB64:
      return 8;
    case AtomicType::kB128:
      return 16;
    default:
      return 4;
  }
}

bool is_float(AtomicType type) {
  switch (type) {
    case AtomicType::kF32:
    case AtomicType::kF64:
    case AtomicType::kF16:
    case AtomicType::kBF16:
    case AtomicType::kF16x2:
    case AtomicType::kBF16x2:
      return true;
    default:
      return false;
  }
}

template <typename T>
T read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Unsigned is T's unsigned form: sums wrap in it.
template <typename T>
T combine_integer(AtomicOp op, T old, T operand) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case AtomicOp::kAdd:
      return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(operand));
    case AtomicOp::kMin:
      return std::min(old, operand);
    case AtomicOp::kMax:
      return std::max(old, operand);
    case AtomicOp::kInc:
      return old >= operand ? T{0} : static_cast<T>(old + 1);  // PTX ISA, atom: wraps at the operand
    case AtomicOp::kDec:
      return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
    case AtomicOp::kAnd:
      return old & operand;
    case AtomicOp::kOr:
      return old | operand;
    case AtomicOp::kXor:
      return old ^ operand;
    default:
      return operand;
  }
}

template <typename T>
void apply_integer(AtomicOp op, std::byte* memory, const std::byte* operand) {
  const T result = combine_integer(op, read_as<T>(memory), read_as<T>(operand));
  std::memcpy(memory, &result, sizeof result);
}

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

double combine_float(AtomicOp op, double old, double operand) {
  if (op == AtomicOp::kAdd) return old + operand;
  if (op == AtomicOp::kMin) return std::fmin(old, operand);
  if (op == AtomicOp::kMax) return std::fmax(old, operand);
  return operand;
}

void apply_half(AtomicOp op, DType dtype, int count, std::byte* memory, const std::byte* operand) {
  for (int element = 0; element < count; ++element) {
    // The sum of two halves is exact in double, so the store rounds once.
    const double result = combine_float(op, load_element(dtype, memory + 2 * element), load_element(dtype, operand + 2 * element));
    store_element(dtype, result, memory + 2 * element);
  }
}

void apply(const AtomicKind& kind, bool is_global, std::byte* memory, const std::byte* operand) {
  if (kind.op == AtomicOp::kExch) {
    std::memcpy(memory, operand, size_of(kind.type));
    return;
  }
  switch (kind.type) {
    case AtomicType::kU32:
    case AtomicType::kB32:
      apply_integer<std::uint32_t>(kind.op, memory, operand);
      break;
    case AtomicType::kS32:
      apply_integer<std::int32_t>(kind.op, memory, operand);
      break;
    case AtomicType::kU64:
    case AtomicType::kB64:
      apply_integer<std::uint64_t>(kind.op, memory, operand);
      break;
    case AtomicType::kS64:
      apply_integer<std::int64_t>(kind.op, memory, operand);
      break;
    case AtomicType::kB16:
      apply_integer<std::uint16_t>(kind.op, memory, operand);
      break;
    case AtomicType::kF32: {
      // PTX ISA, atom: f32 addition on global memory flushes subnormal inputs and results, on shared memory it does not.
      float old = read_as<float>(memory);
      float add = read_as<float>(operand);
      if (is_global) old = flushed(old), add = flushed(add);
      float result = kind.op == AtomicOp::kAdd ? old + add : static_cast<float>(combine_float(kind.op, old, add));
      if (is_global) result = flushed(result);
      std::memcpy(memory, &result, sizeof result);
      break;
    }
    case AtomicType::kF64: {
      const double result = combine_float(kind.op, read_as<double>(memory), read_as<double>(operand));
      std::memcpy(memory, &result, sizeof result);
      break;
    }
    case AtomicType::kF16:
      apply_half(kind.op, DType::kF16, 1, memory, operand);
      break;
    case AtomicType::kBF16:
      apply_half(kind.op, DType::kBF16, 1, memory, operand);
      break;
    case AtomicType::kF16x2:
      apply_half(kind.op, DType::kF16, 2, memory, operand);
      break;
    case AtomicType::kBF16x2:
      apply_half(kind.op, DType::kBF16, 2, memory, operand);
      break;
    case AtomicType::kB128:
      break;  // exch and cas only
  }
}

}  // namespace

void apply_reduction(const AtomicKind& kind, std::byte* memory, const std::byte* operand) { apply(kind, true, memory, operand); }
std::uint32_t atomic_bytes(AtomicType type) { return size_of(type); }

Outcome Machine::atomic(const Context& ctx, AtomicKind kind, const std::uint64_t* address, const std::byte* operand,
                        const std::byte* compare, std::byte* old) {
  State& s = *state_;
  const std::uint32_t num_bytes = size_of(kind.type);
  const char* verb = kind.is_reduction ? "reduces into" : "updates atomically";
  const State::AgentAccess access = s.access_of(ctx, AccessClass::kStrongUpdate, verb);
  // Sums of floats are not used as flags; leaving them out keeps large reductions cheap.
  const bool synchronises = s.options.checks_races && !is_float(kind.type);
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::size_t at = static_cast<std::size_t>(lane) * num_bytes;
    if (!s.check_aligned(ctx, kind.space, address[lane], num_bytes, lane, verb)) return Outcome::kFault;
    Target target;
    if (!s.resolve(ctx, kind.space, address[lane], num_bytes, lane, true, target)) return Outcome::kFault;
    if (target.kind == Target::Kind::kLocal) {
      s.report(ctx, FindingKind::kBadAddress, lane, "an atomic on local memory", verb, "atomics need global or shared memory");
      return Outcome::kFault;
    }
    if (kind.op != AtomicOp::kExch && s.options.checks_initialisation) s.check_initialised(ctx, target, num_bytes, lane, verb);
    if (synchronises) s.acquire_from(ctx, State::sync_key(target), kind.order, kind.scope);
    if (s.options.checks_races) s.shadow_range(ctx, target, num_bytes, lane, access);
    std::array<std::byte, 16> before{};
    std::memcpy(before.data(), target.bytes, num_bytes);
    if (old != nullptr) std::memcpy(old + at, before.data(), num_bytes);
    if (kind.op == AtomicOp::kCas) {
      if (std::memcmp(target.bytes, compare + at, num_bytes) == 0) std::memcpy(target.bytes, operand + at, num_bytes);
    } else {
      apply(kind, target.kind == Target::Kind::kGlobal, target.bytes, operand + at);
    }
    const bool has_written = kind.op != AtomicOp::kCas || std::memcmp(before.data(), compare + at, num_bytes) == 0;
    if (std::memcmp(before.data(), target.bytes, num_bytes) != 0) ++s.store_count;  // one that changes nothing may be a spin
    s.mark_initialised(target, num_bytes);
    if (synchronises && has_written) s.release_to(ctx, State::sync_key(target), kind.order, kind.scope);
  }
  return Outcome::kDone;
}

}  // namespace kw::simulate
