// f16 and bf16 arithmetic, single and in pairs, rounded once (simulator/tensor/convert.h does the rounding).
// Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/float_formula.h"
#include "simulator/execute/lane_functions.h"
#include "simulator/tensor/approximate.h"

namespace kw::simulate {
namespace {

constexpr std::uint16_t kSign = 0x8000;

std::uint16_t one_of(FloatFormat format) { return format == FloatFormat::kF16 ? 0x3c00 : 0x3f80; }
std::uint16_t minus_one_of(FloatFormat format) { return static_cast<std::uint16_t>(one_of(format) | kSign); }

std::uint16_t flushed16(FloatFormat format, std::uint16_t bits) {
  const std::uint16_t exponent = format == FloatFormat::kF16 ? 0x7c00 : 0x7f80;
  return (bits & exponent) == 0 ? static_cast<std::uint16_t>(bits & kSign) : bits;
}

std::uint16_t extreme(FloatFormat format, std::uint16_t a, std::uint16_t b, bool is_minimum, bool is_nan_kept) {
  const double x = decode(format, a);
  const double y = decode(format, b);
  const double result = is_minimum ? minimum(x, y, is_nan_kept) : maximum(x, y, is_nan_kept);
  return static_cast<std::uint16_t>(encode(format, result));
}

std::uint16_t formula(Op op, FloatFormat format, const EncodeOptions& options, bool is_nan_kept, std::uint16_t a, std::uint16_t b,
                      std::uint16_t c) {
  switch (op) {
    case Op::kAdd:
      return fma_16bit(format, a, one_of(format), b, options);
    case Op::kSub:
      return fma_16bit(format, b, minus_one_of(format), a, options);
    case Op::kMul:
      return fma_16bit(format, a, b, kSign, options);  // -0: keeps the sign of a zero product
    case Op::kFma:
      return fma_16bit(format, a, b, c, options);
    case Op::kMin:
      return extreme(format, a, b, true, is_nan_kept);
    case Op::kMax:
      return extreme(format, a, b, false, is_nan_kept);
    case Op::kAbs:
      return static_cast<std::uint16_t>(a & ~kSign);
    case Op::kNeg:
      return static_cast<std::uint16_t>(a ^ kSign);
    case Op::kEx2:
      return ex2_approx_16bit(format, a);
    case Op::kTanh:
      return tanh_approx_16bit(format, a);
    default:
      return 0x7fff;
  }
}

/// option: the Op. a_bits: 16, or 32 for pairs.
Outcome half_operation(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  const Op op = static_cast<Op>(instr.option);
  const bool is_ftz = detail.mode.is_ftz;
  const auto one = [&](std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    if (is_ftz) {
      a = flushed16(detail.from, a);
      b = flushed16(detail.from, b);
      c = flushed16(detail.from, c);
    }
    const std::uint16_t result = formula(op, detail.from, detail.encode, detail.mode.propagates_nan, a, b, c);
    return is_ftz ? flushed16(detail.from, result) : result;
  };
  const std::uint32_t num = instr.a_bits == 32 ? 2u : 1u;
  std::uint16_t* d = frame.at<std::uint16_t>(instr.d);
  const std::uint16_t* a = frame.at<std::uint16_t>(instr.a);
  const std::uint16_t* b = frame.at<std::uint16_t>(instr.b);
  const std::uint16_t* c = frame.at<std::uint16_t>(instr.c);
  for_lanes(frame.lanes, [&](int lane) {
    for (std::uint32_t i = 0; i < num; ++i) {
      const std::size_t at = static_cast<std::size_t>(lane) * num + i;
      d[at] = one(a[at], b[at], c[at]);
    }
  });
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_half(Instr& instr) {
  const ScalarType t = type();
  const int bits = bits_of(t);
  Detail& detail = new_detail(instr);
  detail.from = t == ScalarType::kF16 || t == ScalarType::kF16x2 ? FloatFormat::kF16 : FloatFormat::kBF16;
  detail.mode.is_ftz = has("ftz");
  detail.mode.propagates_nan = has("NaN");
  detail.encode.has_sat = has("sat");
  detail.encode.has_relu = has("relu");
  instr.function = &half_operation;
  instr.option = static_cast<std::uint8_t>(op());
  instr.a_bits = static_cast<std::uint8_t>(bits);
  return arithmetic_operands(instr, bits, false);
}

}  // namespace kw::simulate
