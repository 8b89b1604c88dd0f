// Operands of the decoder: registers of the right width, constants, addresses, and the words of modifiers.
// Place: simulator/execute/decoder.h. A register whose width does not fit the instruction's type is refused here.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "simulator/execute/decoder.h"

namespace kw::simulate {

tl::unexpected<Error> Decoder::refuse(std::string why, Code code) const {
  return fail(Stage::kVerify, code, form_->text + ": " + why, SourceRange{module_.file, now_->line, 0});
}

std::uint32_t Decoder::constant(Constant wanted) {
  const auto key =
      std::tuple(static_cast<int>(wanted.kind), static_cast<int>(wanted.slot.bits), wanted.bits, wanted.index, wanted.num_bytes);
  const auto known = constants_.find(key);
  if (known != constants_.end()) return known->second;
  const std::uint32_t bytes = wanted.slot.bits == 1 ? 64 : static_cast<std::uint32_t>(wanted.slot.bits) / 8 * kLanes;
  wanted.slot.offset = program_.register_bytes;
  program_.register_bytes += bytes;
  constants_.emplace(key, wanted.slot.offset);
  program_.constants.push_back(wanted);
  return wanted.slot.offset;
}

std::uint32_t Decoder::bits_constant(std::uint64_t bits, int width) {
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
  return constant(Constant{.kind = Constant::Kind::kBits, .slot = Slot{0, static_cast<std::uint8_t>(width)}, .bits = bits});
}

Result<Slot> Decoder::any_source(const Operand& operand, int immediate_bits, bool is_float) {
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      if (operand.is_negated) return refuse("a negated predicate is no value here", Code::kBadInput);
      return register_slots_[static_cast<std::size_t>(operand.index)];
    }
    case Operand::Kind::kImmediate: {
      std::uint64_t bits = operand.bits;
      if (operand.immediate_type == ScalarType::kF64 && immediate_bits == 32) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
      } else if (operand.immediate_type == ScalarType::kF32 && immediate_bits == 64 && is_float) {
        bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
      } else if (is_float && operand.immediate_type == ScalarType::kS64) {
        return refuse("a floating-point operand is written as a fraction or 0f...", Code::kBadInput);
      }
      return Slot{bits_constant(bits, immediate_bits), static_cast<std::uint8_t>(immediate_bits)};
    }
    case Operand::Kind::kSpecial: {
      const auto special = static_cast<SpecialRegister>(operand.index);
      if (special >= SpecialRegister::kClock) return refuse("a clock can only be read by mov");
      const Slot slot{0, static_cast<std::uint8_t>(special == SpecialRegister::kGridid ? 64 : 32)};
      // %gridid is 64 bits, but older texts read it as 32.
      const Slot read{0, special == SpecialRegister::kGridid ? static_cast<std::uint8_t>(immediate_bits) : slot.bits};
      return Slot{constant(Constant{.kind = Constant::Kind::kSpecial, .slot = read, .index = static_cast<std::uint32_t>(operand.index)}),
                  read.bits};
    }
    case Operand::Kind::kSymbol: {
      const Variable& variable = module_.symbol(kernel_, operand.index);
      const std::uint64_t offset = program_.layout.offset_by_symbol[static_cast<std::size_t>(operand.index)] + operand.bits;
      Constant wanted{.slot = Slot{0, static_cast<std::uint8_t>(immediate_bits)}, .bits = offset};
      if (immediate_bits != 32 && immediate_bits != 64) return refuse("an address has 32 or 64 bits", Code::kBadInput);
      switch (variable.space) {
        case StateSpace::kShared:
          wanted.kind = Constant::Kind::kShared;
          break;
        case StateSpace::kLocal:
          wanted.kind = Constant::Kind::kLocal;
          break;
        case StateSpace::kParam:
          wanted.kind = Constant::Kind::kParameterAddress;
          break;
        default:
          wanted.kind = Constant::Kind::kModuleVariable;
          wanted.index = static_cast<std::uint32_t>(operand.index);
      }
      if (immediate_bits == 32 && variable.space != StateSpace::kShared && variable.space != StateSpace::kLocal) {
        return refuse("the address of " + variable.name + " has 64 bits", Code::kBadInput);
      }
      return Slot{constant(wanted), static_cast<std::uint8_t>(immediate_bits)};
    }
    default:
      return refuse("an operand is no value", Code::kBadInput);
  }
}

Result<Slot> Decoder::any_destination(const Operand& operand, int sink_bits) {
  if (operand.kind == Operand::Kind::kSink) return Slot{scratch_.offset, static_cast<std::uint8_t>(sink_bits == 0 ? 128 : sink_bits)};
  if (operand.kind != Operand::Kind::kRegister) return refuse("the result must go to a register", Code::kBadInput);
  return register_slots_[static_cast<std::size_t>(operand.index)];
}

Result<std::uint32_t> Decoder::source(std::size_t i, int bits, bool is_float) { return source(operand(i), bits, is_float); }

Result<std::uint32_t> Decoder::source(const Operand& operand, int bits, bool is_float) {
  KW_TRY(const Slot slot, any_source(operand, bits, is_float));
  if (slot.bits != bits) {
    return refuse("operand " +
                      std::string(operand.kind == Operand::Kind::kRegister ? kernel_.registers[static_cast<std::size_t>(operand.index)].name
                                                                           : "value") +
                      " has " + std::to_string(slot.bits) + " bits, must have " + std::to_string(bits),
                  Code::kBadInput);
  }
  return slot.offset;
}

Result<std::uint32_t> Decoder::destination(std::size_t i, int bits) { return destination(operand(i), bits); }

Result<std::uint32_t> Decoder::destination(const Operand& operand, int bits) {
  KW_TRY(const Slot slot, any_destination(operand, bits));
  if (slot.bits != bits) {
    return refuse("result register " + kernel_.registers[static_cast<std::size_t>(operand.index)].name + " has " +
                      std::to_string(slot.bits) + " bits, must have " + std::to_string(bits),
                  Code::kBadInput);
  }
  return slot.offset;
}

Result<Decoder::Predicate> Decoder::predicate_source(const Operand& operand) {
  if (operand.kind == Operand::Kind::kImmediate) return Predicate{bits_constant(operand.bits == 0 ? 0 : 1, 1), 0};
  if (operand.kind == Operand::Kind::kRegister) {
    const Slot slot = register_slots_[static_cast<std::size_t>(operand.index)];
    if (slot.bits == 1) return Predicate{slot.offset, operand.is_negated ? kAllLanes : 0};
  }
  return refuse("a predicate is needed", Code::kBadInput);
}

Result<std::uint32_t> Decoder::predicate_destination(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSink) return scratch_predicate_.offset;
  if (operand.kind == Operand::Kind::kRegister) {
    const Slot slot = register_slots_[static_cast<std::size_t>(operand.index)];
    if (slot.bits == 1) return slot.offset;
  }
  return refuse("the result must go to a predicate", Code::kBadInput);
}

Result<std::vector<Slot>> Decoder::vector_sources(const Operand& operand, int bits, bool is_float) {
  std::vector<Slot> slots;
  const Operand* first = operand.kind == Operand::Kind::kVector ? operand.parts.data() : &operand;
  const std::size_t count = operand.kind == Operand::Kind::kVector ? operand.parts.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    KW_TRY(const Slot slot, any_source(first[i], bits == 0 ? 32 : bits, is_float));
    if (slot.bits == 1 || (bits != 0 && slot.bits != bits)) {
      return refuse("an element has " + std::to_string(slot.bits) + " bits, must have " + std::to_string(bits), Code::kBadInput);
    }
    slots.push_back(slot);
  }
  return slots;
}

Result<std::vector<Slot>> Decoder::vector_destinations(const Operand& operand, int bits) {
  std::vector<Slot> slots;
  const Operand* first = operand.kind == Operand::Kind::kVector ? operand.parts.data() : &operand;
  const std::size_t count = operand.kind == Operand::Kind::kVector ? operand.parts.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    KW_TRY(const Slot slot, any_destination(first[i], bits));
    if (slot.bits == 1 || (bits != 0 && slot.bits != bits)) {
      return refuse("an element has " + std::to_string(slot.bits) + " bits, must have " + std::to_string(bits), Code::kBadInput);
    }
    slots.push_back(slot);
  }
  return slots;
}

Result<Decoder::Address> Decoder::address(const Operand& operand) {
  const Operand& base = operand.parts[0];
  Address address{.offset = operand.bits};
  if (base.kind == Operand::Kind::kSymbol) address.variable = &module_.symbol(kernel_, base.index);
  KW_TRY(address.slot, any_source(base, 64));
  if (address.slot.bits != 32 && address.slot.bits != 64) return refuse("an address has 32 or 64 bits", Code::kBadInput);
  return address;
}

Status Decoder::arithmetic_operands(Instr& instr, int bits, bool is_float) {
  KW_TRY(instr.d, destination(0, bits));
  KW_TRY(instr.a, source(1, bits, is_float));
  instr.b = instr.c = instr.a;
  if (num_operands() > 2) {
    KW_TRY(instr.b, source(2, bits, is_float));
  }
  if (num_operands() > 3) {
    KW_TRY(instr.c, source(3, bits, is_float));
  }
  return {};
}

Detail& Decoder::new_detail(Instr& instr) {
  instr.detail = static_cast<std::uint32_t>(program_.details.size());
  return program_.details.emplace_back();
}

Rounding Decoder::rounding() const {
  if (has("rz")) return Rounding::kTowardZero;
  if (has("rm")) return Rounding::kDown;
  if (has("rp")) return Rounding::kUp;
  return Rounding::kNearestEven;
}

Space Decoder::space() const {
  if (has("shared::cluster")) return Space::kSharedCluster;
  if (has("shared") || has("shared::cta")) return Space::kShared;
  if (has("global") || has("const") || has("param")) return Space::kGlobal;
  if (has("local")) return Space::kLocal;
  return Space::kGeneric;
}

Order Decoder::order() const {
  if (has("volatile")) return Order::kVolatile;
  if (has("relaxed")) return Order::kRelaxed;
  if (has("acquire")) return Order::kAcquire;
  if (has("release")) return Order::kRelease;
  if (has("acq_rel")) return Order::kAcqRel;
  if (has("sc")) return Order::kSeqCst;
  return Order::kWeak;
}

Scope Decoder::scope(Scope otherwise) const {
  if (has("cta")) return Scope::kCta;
  if (has("cluster")) return Scope::kCluster;
  if (has("gpu")) return Scope::kGpu;
  if (has("sys")) return Scope::kSystem;
  return otherwise;
}

}  // namespace kw::simulate
