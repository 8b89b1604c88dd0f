// cvt between integers and floating-point formats. Place: simulator/execute/decoder.h.
// Registers may be wider than the types (PTX ISA, "Operand Size Exceeding Instruction-Type Size"): sources are cut, results extended.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/float_formula.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

bool float_format(ScalarType type, FloatFormat& format) {
  switch (type) {
    case ScalarType::kF16:
    case ScalarType::kF16x2:
      format = FloatFormat::kF16;
      return true;
    case ScalarType::kBf16:
    case ScalarType::kBf16x2:
      format = FloatFormat::kBF16;
      return true;
    case ScalarType::kTf32:
      format = FloatFormat::kTF32;
      return true;
    case ScalarType::kE4m3x2:
      format = FloatFormat::kE4M3;
      return true;
    case ScalarType::kE5m2x2:
      format = FloatFormat::kE5M2;
      return true;
    case ScalarType::kF32:
      format = FloatFormat::kF32;
      return true;
    case ScalarType::kF64:
      format = FloatFormat::kF64;
      return true;
    default:
      return false;
  }
}

std::uint64_t cut(std::uint64_t bits, int width) { return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1); }

std::uint64_t extended(std::uint64_t bits, ScalarType type) {
  const int width = bits_of(type);
  if (!is_signed(type)) return cut(bits, width);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width));
}

/// .sat between integers: clamps to the target's range.
std::uint64_t clamped(std::uint64_t bits, ScalarType from, ScalarType to) {
  const int width = bits_of(to);
  const auto value = static_cast<std::int64_t>(bits);
  const bool is_negative = is_signed(from) && value < 0;
  if (is_signed(to)) {
    const std::int64_t top = width == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (width - 1)) - 1;
    if (is_negative) return static_cast<std::uint64_t>(std::max(value, -top - 1));
    return std::min(bits, static_cast<std::uint64_t>(top));
  }
  if (is_negative) return 0;
  return width == 64 ? bits : std::min(bits, (std::uint64_t{1} << width) - 1);
}

Outcome integer_to_integer(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    std::uint64_t bits = extended(frame.value(detail.a[0], lane), detail.source_type);
    if (detail.mode.saturates) bits = clamped(bits, detail.source_type, detail.type);
    frame.set_value(detail.d[0], lane, extended(bits, detail.type));
  });
  return Outcome::kDone;
}

/// The four conversions that address arithmetic is made of, without the general path's tests.
template <typename From, typename To>
Outcome direct(Frame& frame, const Instr& instr) {
  To* d = frame.at<To>(instr.d);
  const From* a = frame.at<From>(instr.a);
  for_lanes(frame.lanes, [=](int lane) { d[lane] = static_cast<To>(a[lane]); });
  return Outcome::kDone;
}

Outcome integer_to_float(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t bits = extended(frame.value(detail.a[0], lane), detail.source_type);
    const bool is_negative = is_signed(detail.source_type) && static_cast<std::int64_t>(bits) < 0;
    std::uint64_t result = encode_integer(detail.to, is_negative, is_negative ? ~bits + 1 : bits, detail.encode.rounding);
    if (detail.mode.saturates && detail.to == FloatFormat::kF32) {
      result = std::bit_cast<std::uint32_t>(saturated(std::bit_cast<float>(static_cast<std::uint32_t>(result))));
    }
    frame.set_value(detail.d[0], lane, result);
  });
  return Outcome::kDone;
}

double source_value(const Detail& detail, std::uint64_t bits) {
  bits = cut(bits, size_bits(detail.from));
  if (detail.mode.is_ftz && detail.from == FloatFormat::kF32) {
    return flushed(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  return decode(detail.from, bits);
}

Outcome float_to_integer(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const IntegerFormat target{bits_of(detail.type), is_signed(detail.type)};
  for_lanes(frame.lanes, [&](int lane) {
    const double value = source_value(detail, frame.value(detail.a[0], lane));
    frame.set_value(detail.d[0], lane, to_integer(target, value, detail.encode.rounding, detail.from == FloatFormat::kF64));
  });
  return Outcome::kDone;
}

/// option 1: rounds to an integral value of the same format (cvt.rni.f32.f32).
Outcome float_to_float(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    double value = source_value(detail, frame.value(detail.a[0], lane));
    if (instr.option == 1) value = round_to_integral(value, detail.encode.rounding);
    frame.set_value(detail.d[0], lane, encode(detail.to, value, detail.encode));
  });
  return Outcome::kDone;
}

Outcome half_to_float(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const std::uint16_t* a = frame.at<std::uint16_t>(instr.a);
  float* d = frame.at<float>(instr.d);
  for_lanes(frame.lanes, [&](int lane) { d[lane] = canonical(static_cast<float>(decode(detail.from, a[lane]))); });
  return Outcome::kDone;
}

/// Two f32 -> one packed register, the first operand in the upper half (cvt.rn.bf16x2.f32 d, a, b: d = {b, a}).
Outcome floats_to_pair(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const int width = size_bits(detail.to);
  const auto value_of = [&](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    return static_cast<double>(detail.mode.is_ftz ? flushed(value) : value);
  };
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t high = encode(detail.to, value_of(frame.at<std::uint32_t>(instr.a)[lane]), detail.encode);
    const std::uint64_t low = encode(detail.to, value_of(frame.at<std::uint32_t>(instr.b)[lane]), detail.encode);
    frame.set_value(detail.d[0], lane, high << width | low);
  });
  return Outcome::kDone;
}

/// f16x2 <-> e4m3x2, e5m2x2: element by element.
Outcome pair_to_pair(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const int from_width = size_bits(detail.from);
  const int to_width = size_bits(detail.to);
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t bits = frame.value(detail.a[0], lane);
    const std::uint64_t low = encode(detail.to, decode(detail.from, cut(bits, from_width)), detail.encode);
    const std::uint64_t high = encode(detail.to, decode(detail.from, cut(bits >> from_width, from_width)), detail.encode);
    frame.set_value(detail.d[0], lane, high << to_width | low);
  });
  return Outcome::kDone;
}

/// cvt.pack: b saturated in the low bits, a above it; for bytes c moves up behind both.
Outcome pack_saturated(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const int width = bits_of(detail.type);
  for_lanes(frame.lanes, [&](int lane) {
    const auto part = [&](std::uint32_t offset) {
      const std::uint64_t bits = extended(frame.at<std::uint32_t>(offset)[lane], ScalarType::kS32);
      return cut(clamped(bits, ScalarType::kS32, detail.type), width);
    };
    std::uint64_t result = part(instr.a) << width | part(instr.b);
    if (width == 8) result |= static_cast<std::uint64_t>(frame.at<std::uint32_t>(instr.c)[lane]) << 16;
    frame.at<std::uint32_t>(instr.d)[lane] = static_cast<std::uint32_t>(result);
  });
  return Outcome::kDone;
}

Function direct_for(ScalarType from, ScalarType to) {
  const int from_bits = bits_of(from);
  const int to_bits = bits_of(to);
  if (from_bits == 32 && to_bits == 64)
    return is_signed(from) ? &direct<std::int32_t, std::int64_t> : &direct<std::uint32_t, std::uint64_t>;
  if (from_bits == 64 && to_bits == 32) return &direct<std::uint64_t, std::uint32_t>;
  if (from_bits == 16 && to_bits == 32)
    return is_signed(from) ? &direct<std::int16_t, std::int32_t> : &direct<std::uint16_t, std::uint32_t>;
  if (from_bits == 32 && to_bits == 16) return &direct<std::uint32_t, std::uint16_t>;
  return nullptr;
}

bool is_pair(ScalarType type) {
  return type == ScalarType::kF16x2 || type == ScalarType::kBf16x2 || type == ScalarType::kE4m3x2 || type == ScalarType::kE5m2x2;
}

}  // namespace

Status Decoder::decode_convert(Instr& instr) {
  if (op() == Op::kCvtPack) {
    new_detail(instr).type = num_operands() == 4 ? type(2) : type(1);
    KW_TRY(instr.d, destination(0, 32));
    KW_TRY(instr.a, source(1, 32));
    KW_TRY(instr.b, source(2, 32));
    instr.c = instr.b;
    if (num_operands() == 4) {
      KW_TRY(instr.c, source(3, 32));
    }
    instr.function = &pack_saturated;
    return {};
  }
  const ScalarType to = type(0 + 1);
  const ScalarType from = type(0);
  Detail& detail = new_detail(instr);
  detail.type = to;
  detail.source_type = from;
  const bool is_to_float = float_format(to, detail.to);
  const bool is_from_float = float_format(from, detail.from);
  const bool is_integral = has("rni") || has("rzi") || has("rmi") || has("rpi");
  detail.encode.rounding = has("rz") || has("rzi")   ? Rounding::kTowardZero
                           : has("rm") || has("rmi") ? Rounding::kDown
                           : has("rp") || has("rpi") ? Rounding::kUp
                           : has("rna")              ? Rounding::kNearestAway
                                                     : Rounding::kNearestEven;
  detail.encode.saturates_to_finite = has("satfinite");
  detail.encode.has_relu = has("relu");
  detail.encode.has_sat = has("sat");
  detail.encode.flushes_subnormals = has("ftz") && to == ScalarType::kF32;
  detail.mode.is_ftz = has("ftz");
  detail.mode.saturates = has("sat");
  const int to_bits = bits_of(to);
  const int from_bits = bits_of(from);
  KW_TRY(const Slot d, any_destination(operand(0), std::max(to_bits, 16)));
  KW_TRY(const Slot a, any_source(operand(1), std::max(from_bits, 16), is_from_float && from_bits >= 32));
  if (d.bits == 1 || a.bits == 1) return refuse("predicates are not converted", Code::kBadInput);
  if (d.bits < to_bits || a.bits < from_bits) return refuse("a register is narrower than its type", Code::kBadInput);
  // Floating-point types need registers of exactly their size.
  if ((is_to_float && d.bits != to_bits) || (is_from_float && a.bits != from_bits)) {
    return refuse("a floating-point value needs a register of its size", Code::kBadInput);
  }
  detail.d = {d};
  detail.a = {a};
  instr.d = d.offset;
  instr.a = a.offset;
  if (is_pair(to)) {
    if (num_operands() == 3) {
      if (from != ScalarType::kF32) return refuse("two operands must be f32");
      KW_TRY(instr.b, source(2, 32, true));
      instr.function = &floats_to_pair;
      return {};
    }
    const bool is_f8_pair = (to == ScalarType::kF16x2 && (from == ScalarType::kE4m3x2 || from == ScalarType::kE5m2x2)) ||
                            (from == ScalarType::kF16x2 && (to == ScalarType::kE4m3x2 || to == ScalarType::kE5m2x2));
    if (!is_f8_pair) return refuse("no such conversion of pairs");
    instr.function = &pair_to_pair;
    return {};
  }
  if (num_operands() == 3 || is_pair(from)) return refuse("no such conversion");
  if (to == ScalarType::kTf32 && from != ScalarType::kF32) return refuse("tf32 is made from f32 only");
  if (from == ScalarType::kTf32) return refuse("tf32 is no source of cvt");
  if (!is_to_float && !is_from_float) {
    instr.function = &integer_to_integer;
    if (!has("sat") && d.bits == to_bits && a.bits == from_bits && direct_for(from, to) != nullptr) instr.function = direct_for(from, to);
  } else if (!is_from_float) {
    instr.function = &integer_to_float;
  } else if (!is_to_float) {
    if (!is_integral) return refuse("a conversion to integer needs .rni, .rzi, .rmi or .rpi", Code::kBadInput);
    instr.function = &float_to_integer;
  } else {
    instr.option = is_integral || (from == to && form().modifiers[0][0] == 'r') ? 1 : 0;
    const bool is_half = from == ScalarType::kF16 || from == ScalarType::kBf16;
    instr.function = is_half && to == ScalarType::kF32 && !has("sat") && !has("ftz") && !is_integral ? &half_to_float : &float_to_float;
  }
  return {};
}

}  // namespace kw::simulate
