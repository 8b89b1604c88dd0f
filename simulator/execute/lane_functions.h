// Shapes of lane-wise functions: one result from one, two or three operands of given types, for every executing lane.
// A family's file supplies the formula as a type with a static `apply`; the decoder picks the instance for the instruction's type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "simulator/execute/warp.h"

namespace kw::simulate {

template <typename R, typename A, typename F>
Outcome unary(Frame& frame, const Instr& instr) {
  R* d = frame.at<R>(instr.d);
  const A* a = frame.at<A>(instr.a);
  for_lanes(frame.lanes, [=](int lane) { d[lane] = static_cast<R>(F::apply(a[lane])); });
  return Outcome::kDone;
}

template <typename R, typename A, typename B, typename F>
Outcome binary(Frame& frame, const Instr& instr) {
  R* d = frame.at<R>(instr.d);
  const A* a = frame.at<A>(instr.a);
  const B* b = frame.at<B>(instr.b);
  for_lanes(frame.lanes, [=](int lane) { d[lane] = static_cast<R>(F::apply(a[lane], b[lane])); });
  return Outcome::kDone;
}

template <typename R, typename A, typename B, typename C, typename F>
Outcome ternary(Frame& frame, const Instr& instr) {
  R* d = frame.at<R>(instr.d);
  const A* a = frame.at<A>(instr.a);
  const B* b = frame.at<B>(instr.b);
  const C* c = frame.at<C>(instr.c);
  for_lanes(frame.lanes, [=](int lane) { d[lane] = static_cast<R>(F::apply(a[lane], b[lane], c[lane])); });
  return Outcome::kDone;
}

/// The type of twice the size.
template <typename T>
struct Wide;
template <>
struct Wide<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wide<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wide<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wide<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Wide<std::uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Wide<std::int64_t> {
  using type = __int128;
};

/// Sum and difference that wrap, without the promotion of 16-bit values to int.
template <typename T>
constexpr T wrapping_add(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}
template <typename T>
constexpr T wrapping_sub(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
}
template <typename T>
constexpr T wrapping_mul(T a, T b) {
  // 16-bit operands become int, whose product may overflow: 64 bits hold all three sizes' low halves.
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace kw::simulate
