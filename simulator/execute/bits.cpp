// Bit operations: logic, shifts, fields, permutations, counts; and the logic of predicates.
// Place: simulator/execute/decoder.h. Shift amounts and field positions are clamped as PTX says, so no host shift is out of range.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

template <typename T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <typename T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <typename T>
struct Xor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
template <typename T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <typename T>
struct Cnot {
  static T apply(T a) { return a == 0 ? T{1} : T{0}; }
};
template <typename T>
struct ShiftLeft {
  static T apply(T a, std::uint32_t b) { return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<std::uint64_t>(a) << b); }
};
template <typename T>
struct ShiftRight {
  static T apply(T a, std::uint32_t b) {
    if (b >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> b);
  }
};
template <bool kIsLeft, bool kWraps>
struct Funnel {
  static std::uint32_t apply(std::uint32_t low, std::uint32_t high, std::uint32_t amount) {
    const std::uint32_t n = kWraps ? amount & 31 : std::min(amount, 32u);
    const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
    return static_cast<std::uint32_t>(kIsLeft ? both >> (32 - n) : both >> n);
  }
};
template <typename T>
struct Popc {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::popcount(a)); }
};
template <typename T>
struct Clz {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::countl_zero(a)); }
};
template <typename T>
struct Reverse {
  static T apply(T a) {
    T result = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (a >> i & 1));
    return result;
  }
};
/// The highest bit that differs from the sign; all ones when there is none. kIsShift: its distance from the top bit.
template <typename T, bool kIsShift>
struct FindHighest {
  static std::uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = std::is_signed_v<T> && a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
    if (bits == 0) return 0xffffffffu;
    const auto from_top = static_cast<std::uint32_t>(std::countl_zero(bits));
    return kIsShift ? from_top : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - from_top;
  }
};
/// PTX ISA, fns: the offset-th set bit at or above base (offset > 0), or below (offset < 0).
struct FindNth {
  static std::uint32_t apply(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
    if (base > 31) return 0xffffffffu;
    if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xffffffffu;
    const int step = offset > 0 ? 1 : -1;
    std::int64_t left = offset > 0 ? offset : -std::int64_t{offset};
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
    }
    return 0xffffffffu;
  }
};
template <typename T>
struct ExtractField {
  static T apply(T a, std::uint32_t b, std::uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr std::uint32_t kTop = 8 * sizeof(T) - 1;
    const std::uint32_t position = b & 0xff;
    const std::uint32_t length = c & 0xff;
    if (length == 0) return 0;
    const auto bits = static_cast<U>(a);
    const std::uint32_t sign_at = std::min(position + length - 1, kTop);
    const bool sign = std::is_signed_v<T> && (bits >> sign_at & 1) != 0;
    U field = position > kTop ? U{0} : static_cast<U>(bits >> position);
    if (length <= kTop) field = static_cast<U>(field & ((U{1} << length) - 1));
    const std::uint32_t filled = position > kTop ? 0 : std::min(length, kTop + 1 - position);
    if (sign && filled <= kTop) field = static_cast<U>(field | ~U{0} << filled);
    return static_cast<T>(field);
  }
};
struct Mask {
  static std::uint32_t clamp(std::uint32_t a, std::uint32_t b) {
    a = std::min(a, 32u);
    b = std::min(b, 32u);
    const std::uint64_t ones = ((std::uint64_t{1} << b) - 1) << a;
    return static_cast<std::uint32_t>(ones);
  }
};
struct MaskClamp {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return Mask::clamp(a, b); }
};
struct MaskWrap {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return Mask::clamp(a & 31, b & 31); }
};
template <bool kIsSigned, bool kWraps>
struct Extend {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    if (kWraps) b &= 31;
    if (b == 0) return 0;
    if (b >= 32) return a;
    const std::uint32_t ones = (1u << b) - 1;
    return kIsSigned && (a >> (b - 1) & 1) != 0 ? a | ~ones : a & ones;
  }
};

template <typename U>
Outcome insert_field(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  for_lanes(frame.lanes, [&](int lane) {
    const U source = frame.at<U>(instr.a)[lane];
    const U target = frame.at<U>(instr.b)[lane];
    const std::uint32_t position = frame.at<std::uint32_t>(instr.c)[lane] & 0xff;
    const std::uint32_t length = frame.at<std::uint32_t>(detail.extra[0].offset)[lane] & 0xff;
    constexpr std::uint32_t kBits = 8 * sizeof(U);
    U mask = length >= kBits ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << length) - 1);
    mask = position >= kBits ? U{0} : static_cast<U>(mask << position);
    const U moved = position >= kBits ? U{0} : static_cast<U>(source << position);
    frame.at<U>(instr.d)[lane] = static_cast<U>((target & ~mask) | (moved & mask));
  });
  return Outcome::kDone;
}

/// immediate: the truth table; bit (4a + 2b + c) is the result.
Outcome lop3(Frame& frame, const Instr& instr) {
  std::uint32_t* d = frame.at<std::uint32_t>(instr.d);
  const std::uint32_t* a = frame.at<std::uint32_t>(instr.a);
  const std::uint32_t* b = frame.at<std::uint32_t>(instr.b);
  const std::uint32_t* c = frame.at<std::uint32_t>(instr.c);
  std::uint32_t term[8];
  for (int i = 0; i < 8; ++i) term[i] = (instr.immediate >> i & 1) != 0 ? ~0u : 0u;
  for_lanes(frame.lanes, [&](int lane) {
    std::uint32_t result = 0;
    for (int i = 0; i < 8; ++i) {
      result |= term[i] & ((i & 4) != 0 ? a[lane] : ~a[lane]) & ((i & 2) != 0 ? b[lane] : ~b[lane]) & ((i & 1) != 0 ? c[lane] : ~c[lane]);
    }
    d[lane] = result;
  });
  return Outcome::kDone;
}

std::uint32_t picked_byte(std::uint64_t bytes, std::uint32_t selector) {
  const auto byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7)) & 0xff);
  if ((selector & 8) == 0) return byte;
  return (byte & 0x80) != 0 ? 0xffu : 0u;  // the sign, replicated
}

/// The selectors that a mode of prmt stands for; mode 0 takes them from c.
std::uint32_t prmt_selectors(int mode, std::uint32_t c) {
  constexpr std::uint32_t kForward[4] = {0x3210, 0x4321, 0x5432, 0x6543};
  constexpr std::uint32_t kBackward[4] = {0x5670, 0x6701, 0x7012, 0x0123};
  constexpr std::uint32_t kReplicate[4] = {0x0000, 0x1111, 0x2222, 0x3333};
  constexpr std::uint32_t kEdgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
  constexpr std::uint32_t kEdgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
  constexpr std::uint32_t kHalves[4] = {0x1010, 0x3232, 0x1010, 0x3232};
  const std::uint32_t i = c & 3;
  switch (mode) {
    case 1:
      return kForward[i];
    case 2:
      return kBackward[i];
    case 3:
      return kReplicate[i];
    case 4:
      return kEdgeLeft[i];
    case 5:
      return kEdgeRight[i];
    case 6:
      return kHalves[i];
    default:
      return c;
  }
}

Outcome prmt(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) {
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(frame.at<std::uint32_t>(instr.b)[lane]) << 32 | frame.at<std::uint32_t>(instr.a)[lane];
    const std::uint32_t selectors = prmt_selectors(instr.option, frame.at<std::uint32_t>(instr.c)[lane]);
    std::uint32_t result = 0;
    for (int i = 0; i < 4; ++i) result |= picked_byte(bytes, selectors >> (4 * i) & 0xf) << (8 * i);
    frame.at<std::uint32_t>(instr.d)[lane] = result;
  });
  return Outcome::kDone;
}

template <template <typename> typename F>
Function logic_for(int bits) {
  if (bits == 16) return &binary<std::uint16_t, std::uint16_t, std::uint16_t, F<std::uint16_t>>;
  if (bits == 32) return &binary<std::uint32_t, std::uint32_t, std::uint32_t, F<std::uint32_t>>;
  return &binary<std::uint64_t, std::uint64_t, std::uint64_t, F<std::uint64_t>>;
}
template <template <typename> typename F>
Function unary_logic_for(int bits) {
  if (bits == 16) return &unary<std::uint16_t, std::uint16_t, F<std::uint16_t>>;
  if (bits == 32) return &unary<std::uint32_t, std::uint32_t, F<std::uint32_t>>;
  return &unary<std::uint64_t, std::uint64_t, F<std::uint64_t>>;
}
template <template <typename> typename F, bool kIsSigned>
Function shift_for(int bits) {
  using S16 = std::conditional_t<kIsSigned, std::int16_t, std::uint16_t>;
  using S32 = std::conditional_t<kIsSigned, std::int32_t, std::uint32_t>;
  using S64 = std::conditional_t<kIsSigned, std::int64_t, std::uint64_t>;
  if (bits == 16) return &binary<S16, S16, std::uint32_t, F<S16>>;
  if (bits == 32) return &binary<S32, S32, std::uint32_t, F<S32>>;
  return &binary<S64, S64, std::uint32_t, F<S64>>;
}
template <template <typename> typename F>
Function count_for(int bits) {
  return bits == 32 ? &unary<std::uint32_t, std::uint32_t, F<std::uint32_t>> : &unary<std::uint32_t, std::uint64_t, F<std::uint64_t>>;
}
template <bool kIsShift>
Function find_highest_for(ScalarType type) {
  switch (type) {
    case ScalarType::kU32:
      return &unary<std::uint32_t, std::uint32_t, FindHighest<std::uint32_t, kIsShift>>;
    case ScalarType::kS32:
      return &unary<std::uint32_t, std::int32_t, FindHighest<std::int32_t, kIsShift>>;
    case ScalarType::kU64:
      return &unary<std::uint32_t, std::uint64_t, FindHighest<std::uint64_t, kIsShift>>;
    default:
      return &unary<std::uint32_t, std::int64_t, FindHighest<std::int64_t, kIsShift>>;
  }
}
template <typename T>
constexpr Function kExtract = &ternary<T, T, std::uint32_t, std::uint32_t, ExtractField<T>>;
Function extract_for(ScalarType type) {
  switch (type) {
    case ScalarType::kU32:
      return kExtract<std::uint32_t>;
    case ScalarType::kS32:
      return kExtract<std::int32_t>;
    case ScalarType::kU64:
      return kExtract<std::uint64_t>;
    default:
      return kExtract<std::int64_t>;
  }
}
Function funnel_for(bool is_left, bool wraps) {
  using U = std::uint32_t;
  if (is_left) return wraps ? &ternary<U, U, U, U, Funnel<true, true>> : &ternary<U, U, U, U, Funnel<true, false>>;
  return wraps ? &ternary<U, U, U, U, Funnel<false, true>> : &ternary<U, U, U, U, Funnel<false, false>>;
}
Function extend_for(bool is_signed_type, bool wraps) {
  using U = std::uint32_t;
  if (is_signed_type) return wraps ? &binary<U, U, U, Extend<true, true>> : &binary<U, U, U, Extend<true, false>>;
  return wraps ? &binary<U, U, U, Extend<false, true>> : &binary<U, U, U, Extend<false, false>>;
}

/// option: 0 and, 1 or, 2 xor, 3 not (of a).
Outcome predicate_logic(Frame& frame, const Instr& instr) {
  const LaneMask a = frame.predicate(instr.a) ^ instr.flip;
  const LaneMask b = frame.predicate(instr.b) ^ static_cast<LaneMask>(instr.immediate);
  const LaneMask result = instr.option == 0 ? a & b : instr.option == 1 ? a | b : instr.option == 2 ? a ^ b : ~a;
  frame.set_predicate(instr.d, result);
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_predicate_logic(Instr& instr) {
  instr.function = &predicate_logic;
  instr.option = op() == Op::kAnd ? 0 : op() == Op::kOr ? 1 : op() == Op::kXor ? 2 : 3;
  KW_TRY(instr.d, predicate_destination(operand(0)));
  KW_TRY(const Predicate a, predicate_source(operand(1)));
  instr.a = a.offset;
  instr.flip = a.flip;
  if (num_operands() > 2) {
    KW_TRY(const Predicate b, predicate_source(operand(2)));
    instr.b = b.offset;
    instr.immediate = b.flip;
  }
  return {};
}

Status Decoder::decode_bits(Instr& instr) {
  const int bits = bits_of(type());
  int d_bits = bits;
  int b_bits = bits;
  int c_bits = bits;
  switch (op()) {
    case Op::kAnd:
      instr.function = logic_for<And>(bits);
      break;
    case Op::kOr:
      instr.function = logic_for<Or>(bits);
      break;
    case Op::kXor:
      instr.function = logic_for<Xor>(bits);
      break;
    case Op::kNot:
      instr.function = unary_logic_for<Not>(bits);
      break;
    case Op::kCnot:
      instr.function = unary_logic_for<Cnot>(bits);
      break;
    case Op::kBrev:
      instr.function = unary_logic_for<Reverse>(bits);
      break;
    case Op::kShl:
      instr.function = shift_for<ShiftLeft, false>(bits);
      b_bits = 32;
      break;
    case Op::kShr:
      instr.function = is_signed(type()) ? shift_for<ShiftRight, true>(bits) : shift_for<ShiftRight, false>(bits);
      b_bits = 32;
      break;
    case Op::kShf:
      instr.function = funnel_for(has("l"), has("wrap"));
      break;
    case Op::kPopc:
      instr.function = count_for<Popc>(bits);
      d_bits = 32;
      break;
    case Op::kClz:
      instr.function = count_for<Clz>(bits);
      d_bits = 32;
      break;
    case Op::kBfind:
      instr.function = has("shiftamt") ? find_highest_for<true>(type()) : find_highest_for<false>(type());
      d_bits = 32;
      break;
    case Op::kFns:
      instr.function = &ternary<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t, FindNth>;
      break;
    case Op::kBfe:
      instr.function = extract_for(type());
      b_bits = c_bits = 32;
      break;
    case Op::kBfi: {
      instr.function = bits == 32 ? &insert_field<std::uint32_t> : &insert_field<std::uint64_t>;
      c_bits = 32;
      KW_TRY(const std::uint32_t length, source(4, 32));
      new_detail(instr).extra[0] = Slot{length, 32};
      break;
    }
    case Op::kBmsk:
      instr.function = has("wrap") ? &binary<std::uint32_t, std::uint32_t, std::uint32_t, MaskWrap>
                                   : &binary<std::uint32_t, std::uint32_t, std::uint32_t, MaskClamp>;
      break;
    case Op::kSzext:
      instr.function = extend_for(is_signed(type()), has("wrap"));
      break;
    case Op::kLop3:
      instr.function = &lop3;
      instr.immediate = operand(4).bits;
      if (instr.immediate > 255) return refuse("the truth table has 8 bits", Code::kBadInput);
      break;
    case Op::kPrmt: {
      instr.function = &prmt;
      constexpr const char* kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
      for (int i = 0; i < 6; ++i) {
        if (has(kModes[i])) instr.option = static_cast<std::uint8_t>(i + 1);
      }
      break;
    }
    default:
      return refuse("no such bit operation");
  }
  KW_TRY(instr.d, destination(0, d_bits));
  KW_TRY(instr.a, source(1, bits));
  if (num_operands() > 2) {
    KW_TRY(instr.b, source(2, b_bits));
  }
  if (num_operands() > 3) {
    KW_TRY(instr.c, source(3, c_bits));
  }
  return {};
}

}  // namespace kw::simulate
