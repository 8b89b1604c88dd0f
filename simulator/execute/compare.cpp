// setp, set, selp and slct. Place: simulator/execute/decoder.h.
// Ordered comparisons of floating-point values are false when a NaN takes part, the ones that end in u are true (PTX ISA, "Comparison").
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "simulator/execute/decoder.h"
#include "simulator/execute/float_formula.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

enum class Compare : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
constexpr std::array<std::string_view, 14> kCompareNames = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                            "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

/// lo, ls, hi, hs are the unsigned names of lt, le, gt, ge.
int compare_index(std::string_view name) {
  if (name == "lo") name = "lt";
  if (name == "ls") name = "le";
  if (name == "hi") name = "gt";
  if (name == "hs") name = "ge";
  for (std::size_t i = 0; i < kCompareNames.size(); ++i) {
    if (kCompareNames[i] == name) return static_cast<int>(i);
  }
  return -1;
}

template <Compare kCompare, typename T>
bool holds(T a, T b) {
  const bool is_unordered = a != a || b != b;
  switch (kCompare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b && !is_unordered;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
    case Compare::kEqu:
      return a == b || is_unordered;
    case Compare::kNeu:
      return a != b || is_unordered;
    case Compare::kLtu:
      return a < b || is_unordered;
    case Compare::kLeu:
      return a <= b || is_unordered;
    case Compare::kGtu:
      return a > b || is_unordered;
    case Compare::kGeu:
      return a >= b || is_unordered;
    case Compare::kNum:
      return !is_unordered;
    case Compare::kNan:
      return is_unordered;
  }
  return false;
}

/// detail.c[0]: the combined predicate (flip in `flip`), option: 0 none, 1 and, 2 or, 3 xor. d: p; detail's d[0], if there, is q.
template <typename T, Compare kCompare>
Outcome set_predicates(Frame& frame, const Instr& instr) {
  const T* a = frame.at<T>(instr.a);
  const T* b = frame.at<T>(instr.b);
  LaneMask result = 0;
  if (frame.lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) result |= static_cast<LaneMask>(holds<kCompare, T>(a[lane], b[lane])) << lane;
  } else {
    for_lanes(frame.lanes, [&](int lane) { result |= static_cast<LaneMask>(holds<kCompare, T>(a[lane], b[lane])) << lane; });
  }
  LaneMask other = ~result;
  if (instr.option != 0) {
    const LaneMask c = frame.predicate(instr.c) ^ instr.flip;
    const auto combine = [&](LaneMask value) { return instr.option == 1 ? value & c : instr.option == 2 ? value | c : value ^ c; };
    result = combine(result);
    other = combine(other);
  }
  frame.set_predicate(instr.d, result);
  if (instr.immediate != 0) frame.set_predicate(static_cast<std::uint32_t>(instr.immediate), other);
  return Outcome::kDone;
}

template <typename T, std::size_t... kIndex>
Function pick(int compare, std::index_sequence<kIndex...>) {
  constexpr Function kAll[] = {&set_predicates<T, static_cast<Compare>(kIndex)>...};
  return kAll[compare];
}
template <typename T>
Function set_predicates_for(int compare) {
  return pick<T>(compare, std::make_index_sequence<kCompareNames.size()>{});
}

template <typename T>
bool holds_any(int compare, T a, T b) {
  switch (static_cast<Compare>(compare)) {
    case Compare::kEq:
      return holds<Compare::kEq>(a, b);
    case Compare::kNe:
      return holds<Compare::kNe>(a, b);
    case Compare::kLt:
      return holds<Compare::kLt>(a, b);
    case Compare::kLe:
      return holds<Compare::kLe>(a, b);
    case Compare::kGt:
      return holds<Compare::kGt>(a, b);
    case Compare::kGe:
      return holds<Compare::kGe>(a, b);
    case Compare::kEqu:
      return holds<Compare::kEqu>(a, b);
    case Compare::kNeu:
      return holds<Compare::kNeu>(a, b);
    case Compare::kLtu:
      return holds<Compare::kLtu>(a, b);
    case Compare::kLeu:
      return holds<Compare::kLeu>(a, b);
    case Compare::kGtu:
      return holds<Compare::kGtu>(a, b);
    case Compare::kGeu:
      return holds<Compare::kGeu>(a, b);
    case Compare::kNum:
      return holds<Compare::kNum>(a, b);
    case Compare::kNan:
      return holds<Compare::kNan>(a, b);
  }
  return false;
}

FloatFormat format_of(ScalarType type) {
  switch (type) {
    case ScalarType::kF16:
    case ScalarType::kF16x2:
      return FloatFormat::kF16;
    case ScalarType::kBf16:
    case ScalarType::kBf16x2:
      return FloatFormat::kBF16;
    case ScalarType::kF64:
      return FloatFormat::kF64;
    default:
      return FloatFormat::kF32;
  }
}

/// Compares element `part` of two values of `type`, given as raw bits.
bool compare_bits(int compare, ScalarType type, std::uint64_t a, std::uint64_t b, int part, bool is_ftz) {
  if (is_float(type)) {
    const FloatFormat format = format_of(type);
    const auto element = [&](std::uint64_t bits) {
      const double value =
          decode(format, format == FloatFormat::kF16 || format == FloatFormat::kBF16 ? bits >> (16 * part) & 0xffff : bits);
      return is_ftz && format == FloatFormat::kF32 ? static_cast<double>(flushed(static_cast<float>(value))) : value;
    };
    return holds_any(compare, element(a), element(b));
  }
  if (is_signed(type)) {
    const int shift = 64 - bits_of(type);
    return holds_any(compare, static_cast<std::int64_t>(a << shift) >> shift, static_cast<std::int64_t>(b << shift) >> shift);
  }
  return holds_any(compare, a, b);
}

/// setp of the rarer types: halves, pairs and .ftz. For pairs p is the low and q the high element's result.
Outcome set_predicates_generally(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const bool is_pair = detail.type == ScalarType::kF16x2 || detail.type == ScalarType::kBf16x2;
  LaneMask results[2] = {0, 0};
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t a = frame.value(detail.a[0], lane);
    const std::uint64_t b = frame.value(detail.b[0], lane);
    const bool low = compare_bits(static_cast<int>(detail.element_bytes), detail.type, a, b, 0, detail.mode.is_ftz);
    const bool high = is_pair ? compare_bits(static_cast<int>(detail.element_bytes), detail.type, a, b, 1, detail.mode.is_ftz) : !low;
    results[0] |= static_cast<LaneMask>(low) << lane;
    results[1] |= static_cast<LaneMask>(high) << lane;
  });
  const LaneMask c = instr.option != 0 ? frame.predicate(instr.c) ^ instr.flip : 0;
  for (LaneMask& result : results) {
    result = instr.option == 1 ? result & c : instr.option == 2 ? result | c : instr.option == 3 ? result ^ c : result;
  }
  frame.set_predicate(instr.d, results[0]);
  if (instr.immediate != 0) frame.set_predicate(static_cast<std::uint32_t>(instr.immediate), results[1]);
  return Outcome::kDone;
}

/// set: all ones (integers) or 1.0 (floating) when the comparison holds.
Outcome set_value(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const ScalarType to = detail.type;
  const bool is_pair = to == ScalarType::kF16x2 || to == ScalarType::kBf16x2;
  const std::uint64_t yes = to == ScalarType::kF32                                 ? 0x3f800000u
                            : to == ScalarType::kF16 || to == ScalarType::kF16x2   ? 0x3c00u
                            : to == ScalarType::kBf16 || to == ScalarType::kBf16x2 ? 0x3f80u
                                                                                   : 0xffffffffu;
  const bool is_source_pair = detail.source_type == ScalarType::kF16x2 || detail.source_type == ScalarType::kBf16x2;
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t a = frame.value(detail.a[0], lane);
    const std::uint64_t b = frame.value(detail.b[0], lane);
    std::uint64_t result = 0;
    for (int part = 0; part < (is_source_pair ? 2 : 1); ++part) {
      if (!compare_bits(static_cast<int>(detail.element_bytes), detail.source_type, a, b, part, detail.mode.is_ftz)) continue;
      result |= is_pair ? yes << (16 * part) : is_source_pair ? std::uint64_t{0xffff} << (16 * part) : yes;
    }
    frame.set_value(detail.d[0], lane, result);
  });
  return Outcome::kDone;
}

template <typename T>
Outcome select(Frame& frame, const Instr& instr) {
  T* d = frame.at<T>(instr.d);
  const T* a = frame.at<T>(instr.a);
  const T* b = frame.at<T>(instr.b);
  const LaneMask c = frame.predicate(instr.c) ^ instr.flip;
  for_lanes(frame.lanes, [=](int lane) { d[lane] = (c >> lane & 1) != 0 ? a[lane] : b[lane]; });
  return Outcome::kDone;
}

/// option 1: c is f32. c >= 0 picks a.
Outcome select_by_sign(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    const bool is_a = instr.option == 1 ? frame.at<float>(instr.c)[lane] >= 0.0f : frame.at<std::int32_t>(instr.c)[lane] >= 0;
    frame.set_value(detail.d[0], lane, frame.value(is_a ? detail.a[0] : detail.b[0], lane));
  });
  return Outcome::kDone;
}

Function compare_function(ScalarType type, int compare) {
  switch (type) {
    case ScalarType::kB16:
    case ScalarType::kU16:
      return set_predicates_for<std::uint16_t>(compare);
    case ScalarType::kS16:
      return set_predicates_for<std::int16_t>(compare);
    case ScalarType::kB32:
    case ScalarType::kU32:
      return set_predicates_for<std::uint32_t>(compare);
    case ScalarType::kS32:
      return set_predicates_for<std::int32_t>(compare);
    case ScalarType::kB64:
    case ScalarType::kU64:
      return set_predicates_for<std::uint64_t>(compare);
    case ScalarType::kS64:
      return set_predicates_for<std::int64_t>(compare);
    case ScalarType::kF32:
      return set_predicates_for<float>(compare);
    case ScalarType::kF64:
      return set_predicates_for<double>(compare);
    default:
      return nullptr;
  }
}

}  // namespace

Status Decoder::decode_compare(Instr& instr) {
  const int bits = bits_of(type());
  if (op() == Op::kSelp) {
    instr.function = bits == 16 ? &select<std::uint16_t> : bits == 32 ? &select<std::uint32_t> : &select<std::uint64_t>;
    KW_TRY(instr.d, destination(0, bits));
    KW_TRY(instr.a, source(1, bits));
    KW_TRY(instr.b, source(2, bits));
    KW_TRY(const Predicate predicate, predicate_source(operand(3)));
    instr.c = predicate.offset;
    instr.flip = predicate.flip;
    return {};
  }
  if (op() == Op::kSlct) {
    const int value_bits = bits_of(type(1));
    Detail& detail = new_detail(instr);
    instr.function = &select_by_sign;
    instr.option = type() == ScalarType::kF32 ? 1 : 0;
    KW_TRY(const std::uint32_t d, destination(0, value_bits));
    KW_TRY(const std::uint32_t a, source(1, value_bits));
    KW_TRY(const std::uint32_t b, source(2, value_bits));
    KW_TRY(instr.c, source(3, 32));
    const auto width = static_cast<std::uint8_t>(value_bits);
    detail.d = {Slot{d, width}};
    detail.a = {Slot{a, width}};
    detail.b = {Slot{b, width}};
    return {};
  }
  const int compare = compare_index(form().modifiers[0]);
  if (compare >= static_cast<int>(Compare::kEqu) && !is_float(type())) return refuse("integers have no unordered comparison");
  const bool is_float_type = is_float(type());
  const bool is_plain = op() == Op::kSetp && !has("ftz") && compare_function(type(), compare) != nullptr;
  KW_TRY(instr.a, source(1, bits, is_float_type && bits >= 32));
  KW_TRY(instr.b, source(2, bits, is_float_type && bits >= 32));
  if (!is_plain) {
    Detail& detail = new_detail(instr);
    detail.a = {Slot{instr.a, static_cast<std::uint8_t>(bits)}};
    detail.b = {Slot{instr.b, static_cast<std::uint8_t>(bits)}};
    detail.mode.is_ftz = has("ftz");
    detail.element_bytes = static_cast<std::uint32_t>(compare);
    detail.type = op() == Op::kSet ? type(1) : type();
    detail.source_type = type();
  }
  if (op() == Op::kSet) {
    instr.function = &set_value;
    const int d_bits = bits_of(type(1));
    KW_TRY(const std::uint32_t d, destination(0, d_bits));
    program_.details[instr.detail].d = {Slot{d, static_cast<std::uint8_t>(d_bits)}};
    return {};
  }
  instr.function = is_plain ? compare_function(type(), compare) : &set_predicates_generally;
  const Operand& result = operand(0);
  KW_TRY(instr.d, predicate_destination(result.kind == Operand::Kind::kPair ? result.parts[0] : result));
  if (result.kind == Operand::Kind::kPair) {
    KW_TRY(instr.immediate, predicate_destination(result.parts[1]));
  }
  if (num_operands() > 3) {
    KW_TRY(const Predicate predicate, predicate_source(operand(3)));
    instr.c = predicate.offset;
    instr.flip = predicate.flip;
    instr.option = has("and") ? 1 : has("or") ? 2 : 3;
  }
  return {};
}

}  // namespace kw::simulate
