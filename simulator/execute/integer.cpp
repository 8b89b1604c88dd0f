// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg, sad, mul24, the carry chain, dp4a and dp2a.
// Place: simulator/execute/decoder.h. Results wrap; division by zero gives what the hardware gives: all ones, and the dividend as the rest.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

template <typename T>
struct Add {
  static T apply(T a, T b) { return wrapping_add(a, b); }
};
template <typename T>
struct Sub {
  static T apply(T a, T b) { return wrapping_sub(a, b); }
};
template <typename T>
struct MulLow {
  static T apply(T a, T b) { return wrapping_mul(a, b); }
};
template <typename T>
struct MulHigh {
  static T apply(T a, T b) {
    using W = typename Wide<T>::type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
  }
};
template <typename T>
struct MulWide {
  static auto apply(T a, T b) {
    using W = typename Wide<T>::type;
    return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
  }
};
template <typename T>
struct MadLow {
  static T apply(T a, T b, T c) { return wrapping_add(wrapping_mul(a, b), c); }
};
template <typename T>
struct MadHigh {
  static T apply(T a, T b, T c) { return wrapping_add(MulHigh<T>::apply(a, b), c); }
};
template <typename T>
struct MadWide {
  using W = typename Wide<T>::type;
  static W apply(T a, T b, W c) { return wrapping_add(MulWide<T>::apply(a, b), c); }
};
template <typename T>
struct Div {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapping_sub(T{0}, a);
    return static_cast<T>(a / b);
  }
};
template <typename T>
struct Rem {
  static T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
template <typename T>
struct Min {
  static T apply(T a, T b) { return std::min(a, b); }
};
template <typename T>
struct Max {
  static T apply(T a, T b) { return std::max(a, b); }
};
template <typename T>
struct Abs {
  static T apply(T a) { return a < 0 ? wrapping_sub(T{0}, a) : a; }
};
template <typename T>
struct Neg {
  static T apply(T a) { return wrapping_sub(T{0}, a); }
};
template <typename T>
struct Sad {
  static T apply(T a, T b, T c) { return wrapping_add(c, a < b ? wrapping_sub(b, a) : wrapping_sub(a, b)); }
};

std::int32_t saturated(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}
struct AddSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b) { return saturated(std::int64_t{a} + b); }
};
struct SubSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b) { return saturated(std::int64_t{a} - b); }
};
struct MadHighSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) { return saturated((std::int64_t{a} * b >> 32) + c); }
};

/// The low 24 bits, with the sign of bit 23 for s32.
template <typename T>
std::int64_t low24(T a) {
  const auto bits = static_cast<std::uint32_t>(a) & 0xffffffu;
  return std::is_signed_v<T> && (bits & 0x800000u) != 0 ? static_cast<std::int64_t>(bits) - 0x1000000 : bits;
}
template <typename T>
struct Mul24Low {
  static T apply(T a, T b) { return static_cast<T>(low24(a) * low24(b)); }
};
template <typename T>
struct Mul24High {
  static T apply(T a, T b) { return static_cast<T>(low24(a) * low24(b) >> 16); }
};
template <typename T>
struct Mad24Low {
  static T apply(T a, T b, T c) { return wrapping_add(Mul24Low<T>::apply(a, b), c); }
};
template <typename T>
struct Mad24High {
  static T apply(T a, T b, T c) { return wrapping_add(Mul24High<T>::apply(a, b), c); }
};

template <typename A, typename B>
struct Dp4a {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int i = 0; i < 4; ++i) c += static_cast<std::uint32_t>(static_cast<A>(a >> (8 * i)) * static_cast<B>(b >> (8 * i)));
    return c;
  }
};
template <typename A, typename B, bool kIsHigh>
struct Dp2a {
  using A16 = std::conditional_t<std::is_signed_v<A>, std::int16_t, std::uint16_t>;
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int i = 0; i < 2; ++i) {
      c += static_cast<std::uint32_t>(static_cast<A16>(a >> (16 * i)) * static_cast<B>(b >> (8 * i + (kIsHigh ? 16 : 0))));
    }
    return c;
  }
};

// The carry chain. option: bit 0 takes the carry in, bit 1 keeps the carry out.
template <typename U, bool kSubtracts>
Outcome carry_add(Frame& frame, const Instr& instr) {
  U* d = frame.at<U>(instr.d);
  const U* a = frame.at<U>(instr.a);
  const U* b = frame.at<U>(instr.b);
  const bool takes = (instr.option & 1) != 0;
  LaneMask out = 0;
  for_lanes(frame.lanes, [&](int lane) {
    const U carry = takes && (frame.warp.carry >> lane & 1) != 0 ? 1 : 0;
    // PTX keeps a borrow in the same flag.
    using W = typename Wide<U>::type;
    const W wide = kSubtracts ? static_cast<W>(a[lane]) - b[lane] - carry : static_cast<W>(a[lane]) + b[lane] + carry;
    d[lane] = static_cast<U>(wide);
    out |= static_cast<LaneMask>((wide >> (8 * sizeof(U))) != 0 ? 1u : 0u) << lane;
  });
  if ((instr.option & 2) != 0) frame.warp.carry = (frame.warp.carry & ~frame.lanes) | out;
  return Outcome::kDone;
}

template <typename T, bool kIsHigh>
Outcome carry_mad(Frame& frame, const Instr& instr) {
  using U = std::make_unsigned_t<T>;
  T* d = frame.at<T>(instr.d);
  const T* a = frame.at<T>(instr.a);
  const T* b = frame.at<T>(instr.b);
  const T* c = frame.at<T>(instr.c);
  const bool takes = (instr.option & 1) != 0;
  LaneMask out = 0;
  for_lanes(frame.lanes, [&](int lane) {
    const U carry = takes && (frame.warp.carry >> lane & 1) != 0 ? 1 : 0;
    using W = typename Wide<U>::type;
    const auto product = static_cast<U>(kIsHigh ? MulHigh<T>::apply(a[lane], b[lane]) : wrapping_mul(a[lane], b[lane]));
    const W wide = static_cast<W>(product) + static_cast<U>(c[lane]) + carry;
    d[lane] = static_cast<T>(static_cast<U>(wide));
    out |= static_cast<LaneMask>((wide >> (8 * sizeof(U))) != 0 ? 1u : 0u) << lane;
  });
  if ((instr.option & 2) != 0) frame.warp.carry = (frame.warp.carry & ~frame.lanes) | out;
  return Outcome::kDone;
}

template <template <typename> typename F>
Function unary_for(ScalarType type) {
  switch (type) {
    case ScalarType::kS16:
      return &unary<std::int16_t, std::int16_t, F<std::int16_t>>;
    case ScalarType::kS32:
      return &unary<std::int32_t, std::int32_t, F<std::int32_t>>;
    case ScalarType::kS64:
      return &unary<std::int64_t, std::int64_t, F<std::int64_t>>;
    default:
      return nullptr;
  }
}

template <typename T, template <typename> typename F>
constexpr Function kBinary = &binary<T, T, T, F<T>>;
template <typename T, template <typename> typename F>
constexpr Function kTernary = &ternary<T, T, T, T, F<T>>;

template <template <typename> typename F>
Function binary_for(ScalarType type) {
  switch (type) {
    case ScalarType::kU16:
      return kBinary<std::uint16_t, F>;
    case ScalarType::kS16:
      return kBinary<std::int16_t, F>;
    case ScalarType::kU32:
      return kBinary<std::uint32_t, F>;
    case ScalarType::kS32:
      return kBinary<std::int32_t, F>;
    case ScalarType::kU64:
      return kBinary<std::uint64_t, F>;
    case ScalarType::kS64:
      return kBinary<std::int64_t, F>;
    default:
      return nullptr;
  }
}

template <template <typename> typename F>
Function ternary_for(ScalarType type) {
  switch (type) {
    case ScalarType::kU16:
      return kTernary<std::uint16_t, F>;
    case ScalarType::kS16:
      return kTernary<std::int16_t, F>;
    case ScalarType::kU32:
      return kTernary<std::uint32_t, F>;
    case ScalarType::kS32:
      return kTernary<std::int32_t, F>;
    case ScalarType::kU64:
      return kTernary<std::uint64_t, F>;
    case ScalarType::kS64:
      return kTernary<std::int64_t, F>;
    default:
      return nullptr;
  }
}

template <typename T>
constexpr Function kMulWide = &binary<typename Wide<T>::type, T, T, MulWide<T>>;
template <typename T>
constexpr Function kMadWide = &ternary<typename Wide<T>::type, T, T, typename Wide<T>::type, MadWide<T>>;

Function mul_wide(ScalarType type) {
  switch (type) {
    case ScalarType::kU16:
      return kMulWide<std::uint16_t>;
    case ScalarType::kS16:
      return kMulWide<std::int16_t>;
    case ScalarType::kU32:
      return kMulWide<std::uint32_t>;
    default:
      return kMulWide<std::int32_t>;
  }
}

Function mad_wide(ScalarType type) {
  switch (type) {
    case ScalarType::kU16:
      return kMadWide<std::uint16_t>;
    case ScalarType::kS16:
      return kMadWide<std::int16_t>;
    case ScalarType::kU32:
      return kMadWide<std::uint32_t>;
    default:
      return kMadWide<std::int32_t>;
  }
}

template <template <typename> typename Low, template <typename> typename High>
Function for_24_bits(bool is_high, bool is_signed, bool is_mad) {
  if (is_mad) return nullptr;
  if (is_high) return is_signed ? kBinary<std::int32_t, High> : kBinary<std::uint32_t, High>;
  return is_signed ? kBinary<std::int32_t, Low> : kBinary<std::uint32_t, Low>;
}

template <bool kIsHigh>
Function carry_mad_for(ScalarType type) {
  switch (type) {
    case ScalarType::kU32:
      return &carry_mad<std::uint32_t, kIsHigh>;
    case ScalarType::kS32:
      return &carry_mad<std::int32_t, kIsHigh>;
    case ScalarType::kU64:
      return &carry_mad<std::uint64_t, kIsHigh>;
    default:
      return &carry_mad<std::int64_t, kIsHigh>;
  }
}

Function dot_product(bool is_four, bool is_a_signed, bool is_b_signed, bool is_high) {
  using U = std::uint32_t;
  using U8 = std::uint8_t;
  using S8 = std::int8_t;
  if (is_four) {
    if (is_a_signed) return is_b_signed ? &ternary<U, U, U, U, Dp4a<S8, S8>> : &ternary<U, U, U, U, Dp4a<S8, U8>>;
    return is_b_signed ? &ternary<U, U, U, U, Dp4a<U8, S8>> : &ternary<U, U, U, U, Dp4a<U8, U8>>;
  }
  if (is_high) {
    if (is_a_signed) return is_b_signed ? &ternary<U, U, U, U, Dp2a<S8, S8, true>> : &ternary<U, U, U, U, Dp2a<S8, U8, true>>;
    return is_b_signed ? &ternary<U, U, U, U, Dp2a<U8, S8, true>> : &ternary<U, U, U, U, Dp2a<U8, U8, true>>;
  }
  if (is_a_signed) return is_b_signed ? &ternary<U, U, U, U, Dp2a<S8, S8, false>> : &ternary<U, U, U, U, Dp2a<S8, U8, false>>;
  return is_b_signed ? &ternary<U, U, U, U, Dp2a<U8, S8, false>> : &ternary<U, U, U, U, Dp2a<U8, U8, false>>;
}

Function function_of(Op op, ScalarType type, const Form& form) {
  const bool is_high = form.has("hi");
  switch (op) {
    case Op::kAdd:
      return form.has("sat") ? &binary<std::int32_t, std::int32_t, std::int32_t, AddSaturated> : binary_for<Add>(type);
    case Op::kSub:
      return form.has("sat") ? &binary<std::int32_t, std::int32_t, std::int32_t, SubSaturated> : binary_for<Sub>(type);
    case Op::kMul:
      return form.has("wide") ? mul_wide(type) : is_high ? binary_for<MulHigh>(type) : binary_for<MulLow>(type);
    case Op::kMad:
      if (form.has("sat")) return &ternary<std::int32_t, std::int32_t, std::int32_t, std::int32_t, MadHighSaturated>;
      return form.has("wide") ? mad_wide(type) : is_high ? ternary_for<MadHigh>(type) : ternary_for<MadLow>(type);
    case Op::kMul24:
      return for_24_bits<Mul24Low, Mul24High>(is_high, is_signed(type), false);
    case Op::kMad24:
      if (is_high) return is_signed(type) ? kTernary<std::int32_t, Mad24High> : kTernary<std::uint32_t, Mad24High>;
      return is_signed(type) ? kTernary<std::int32_t, Mad24Low> : kTernary<std::uint32_t, Mad24Low>;
    case Op::kDiv:
      return binary_for<Div>(type);
    case Op::kRem:
      return binary_for<Rem>(type);
    case Op::kMin:
      return binary_for<Min>(type);
    case Op::kMax:
      return binary_for<Max>(type);
    case Op::kAbs:
      return unary_for<Abs>(type);
    case Op::kNeg:
      return unary_for<Neg>(type);
    case Op::kSad:
      return ternary_for<Sad>(type);
    case Op::kAddCarry:
      return bits_of(type) == 32 ? &carry_add<std::uint32_t, false> : &carry_add<std::uint64_t, false>;
    case Op::kSubCarry:
      return bits_of(type) == 32 ? &carry_add<std::uint32_t, true> : &carry_add<std::uint64_t, true>;
    case Op::kMadCarry:
      return is_high ? carry_mad_for<true>(type) : carry_mad_for<false>(type);
    case Op::kDp4a:
      return dot_product(true, is_signed(form.type_from_end(1)), is_signed(type), false);
    case Op::kDp2a:
      return dot_product(false, is_signed(form.type_from_end(1)), is_signed(type), is_high);
    default:
      return nullptr;
  }
}

}  // namespace

Status Decoder::decode_integer(Instr& instr) {
  const int bits = bits_of(type());
  const int wide_bits = has("wide") ? 2 * bits : bits;
  instr.function = function_of(op(), type(), form());
  if (instr.function == nullptr) return refuse("no such integer operation");
  if (op() == Op::kAddCarry || op() == Op::kSubCarry || op() == Op::kMadCarry) {
    const bool takes = form().row->base.ends_with('c');
    instr.option = static_cast<std::uint8_t>((takes ? 1 : 0) | (has("cc") ? 2 : 0));
  }
  KW_TRY(instr.d, destination(0, wide_bits));
  KW_TRY(instr.a, source(1, bits));
  if (num_operands() > 2) {
    KW_TRY(instr.b, source(2, bits));
  }
  if (num_operands() > 3) {
    KW_TRY(instr.c, source(3, wide_bits));
  }
  return {};
}

}  // namespace kw::simulate
