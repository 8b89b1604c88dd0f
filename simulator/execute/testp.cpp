// testp: a property of a floating-point value as a predicate.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

template <typename T>
bool has_property(T value, std::uint8_t property) {
  switch (property) {
    case 0:
      return std::isfinite(value);
    case 1:
      return std::isinf(value);
    case 2:
      return !std::isnan(value);
    case 3:
      return std::isnan(value);
    case 4:
      return std::isnormal(value);
    default:
      return std::fpclassify(value) == FP_SUBNORMAL;
  }
}

template <typename T>
Outcome test_property(Frame& frame, const Instr& instr) {
  const T* a = frame.at<T>(instr.a);
  LaneMask result = 0;
  for_lanes(frame.lanes, [&](int lane) { result |= static_cast<LaneMask>(has_property(a[lane], instr.option) ? 1 : 0) << lane; });
  frame.set_predicate(instr.d, result);
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_testp(Instr& instr) {
  constexpr const char* kProperties[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (std::uint8_t i = 0; i < std::size(kProperties); ++i) {
    if (has(kProperties[i])) instr.option = i;
  }
  const bool is_double = type() == ScalarType::kF64;
  instr.function = is_double ? &test_property<double> : &test_property<float>;
  KW_TRY(instr.d, predicate_destination(operand(0)));
  KW_TRY(instr.a, source(1, is_double ? 64 : 32, true));
  return {};
}

}  // namespace kw::simulate
