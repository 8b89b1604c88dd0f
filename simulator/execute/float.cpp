// f32 arithmetic: the plain forms (.rn, nothing else) lane by lane at full speed, all others by one function that reads the mode.
// Place: simulator/execute/decoder.h. Approximations and directed rounding are simulator/tensor's.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/float_formula.h"

#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"
#include "simulator/tensor/approximate.h"

namespace kw::simulate {
namespace {

struct Add {
  static float apply(float a, float b) { return canonical(a + b); }
};
struct Sub {
  static float apply(float a, float b) { return canonical(a - b); }
};
struct Mul {
  static float apply(float a, float b) { return canonical(a * b); }
};
struct Fma {
  static float apply(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
};
struct Min {
  static float apply(float a, float b) { return minimum(a, b, false); }
};
struct Max {
  static float apply(float a, float b) { return maximum(a, b, false); }
};
struct Abs {
  static std::uint32_t apply(std::uint32_t a) { return a & 0x7fffffffu; }
};
struct Neg {
  static std::uint32_t apply(std::uint32_t a) { return a ^ 0x80000000u; }
};
struct Copysign {
  // PTX: the sign of a, the magnitude of b.
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return (a & 0x80000000u) | (b & 0x7fffffffu); }
};

#if defined(__x86_64__)
// A call of fma() a lane is the slowest thing in a SIMT kernel: with the host's instruction the loop is a few vector operations.
__attribute__((target("avx2,fma"))) Outcome fma_by_hardware(Frame& frame, const Instr& instr) {
  float* d = frame.at<float>(instr.d);
  const float* a = frame.at<float>(instr.a);
  const float* b = frame.at<float>(instr.b);
  const float* c = frame.at<float>(instr.c);
  LaneMask lanes = frame.lanes;
  if (lanes == kAllLanes) {
    alignas(64) float result[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = __builtin_fmaf(a[lane], b[lane], c[lane]);
      result[lane] = value == value ? value : kCanonicalNan;
    }
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = result[lane];
    return Outcome::kDone;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const float value = __builtin_fmaf(a[lane], b[lane], c[lane]);
    d[lane] = value == value ? value : kCanonicalNan;
  }
  return Outcome::kDone;
}
#endif

Function plain_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &fma_by_hardware;
#endif
  return &ternary<float, float, float, float, Fma>;
}

/// A quotient or root that was rounded to nearest in f64, rounded to f32 as asked. `error`: sign of (rounded - exact) in f64.
float rounded_once(double nearest, double error, Rounding rounding) {
  if (error != 0.0 && std::isfinite(nearest) && static_cast<double>(static_cast<float>(nearest)) == nearest) {
    nearest = std::nextafter(nearest, error > 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(encode(FloatFormat::kF32, nearest, EncodeOptions{.rounding = rounding})));
}

float divide(float a, float b, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return a / b;
  const double quotient = static_cast<double>(a) / b;
  const double rest = std::fma(quotient, static_cast<double>(b), -static_cast<double>(a));
  return rounded_once(quotient, b < 0.0f ? -rest : rest, rounding);
}

float square_root(float a, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return std::sqrt(a);
  const double root = std::sqrt(static_cast<double>(a));
  return rounded_once(root, std::fma(root, root, -static_cast<double>(a)), rounding);
}

float formula(Op op, const FloatMode& mode, float a, float b, float c) {
  const Rounding rounding = mode.rounding;
  switch (op) {
    case Op::kAdd:
      return add_f32(a, b, rounding);
    case Op::kSub:
      return add_f32(a, -b, rounding);
    case Op::kMul:
      return mul_f32(a, b, rounding);
    case Op::kFma:
      return fma_f32(a, b, c, rounding);
    case Op::kMin:
      return minimum(a, b, mode.propagates_nan);
    case Op::kMax:
      return maximum(a, b, mode.propagates_nan);
    case Op::kAbs:
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) & 0x7fffffffu);
    case Op::kNeg:
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) ^ 0x80000000u);
    case Op::kDiv:
      if (mode.is_approximate) return div_approx(a, b, mode.is_ftz);
      return mode.is_full ? div_full(a, b, mode.is_ftz) : divide(a, b, rounding);
    case Op::kRcp:
      return mode.is_approximate ? rcp_approx(a, mode.is_ftz) : divide(1.0f, a, rounding);
    case Op::kSqrt:
      return mode.is_approximate ? sqrt_approx(a, mode.is_ftz) : square_root(a, rounding);
    case Op::kRsqrt:
      return rsqrt_approx(a, mode.is_ftz);
    case Op::kSin:
      return sin_approx(a, mode.is_ftz);
    case Op::kCos:
      return cos_approx(a, mode.is_ftz);
    case Op::kLg2:
      return lg2_approx(a, mode.is_ftz);
    case Op::kEx2:
      return ex2_approx(a, mode.is_ftz);
    case Op::kTanh:
      return tanh_approx(a);
    default:
      return kCanonicalNan;
  }
}

/// min and max .xorsign.abs: of the magnitudes, with the signs of both operands XORed (PTX ISA, min).
template <Op kOp>
Outcome of_magnitudes(Frame& frame, const Instr& instr) {
  const FloatMode& mode = frame.detail(instr).mode;
  for_lanes(frame.lanes, [&](int lane) {
    float a = frame.at<float>(instr.a)[lane];
    float b = frame.at<float>(instr.b)[lane];
    if (mode.is_ftz) {
      a = flushed(a);
      b = flushed(b);
    }
    const std::uint32_t sign = (std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b)) & 0x80000000u;
    const float result = kOp == Op::kMin ? minimum(std::fabs(a), std::fabs(b), mode.propagates_nan)
                                         : maximum(std::fabs(a), std::fabs(b), mode.propagates_nan);
    frame.at<std::uint32_t>(instr.d)[lane] = result == result ? std::bit_cast<std::uint32_t>(result) | sign : 0x7fffffffu;
  });
  return Outcome::kDone;
}

template <Op kOp>
Outcome general(Frame& frame, const Instr& instr) {
  const FloatMode& mode = frame.detail(instr).mode;
  float* d = frame.at<float>(instr.d);
  const float* a = frame.at<float>(instr.a);
  const float* b = frame.at<float>(instr.b);
  const float* c = frame.at<float>(instr.c);
  for_lanes(frame.lanes, [&](int lane) {
    float result = mode.is_ftz ? formula(kOp, mode, flushed(a[lane]), flushed(b[lane]), flushed(c[lane]))
                               : formula(kOp, mode, a[lane], b[lane], c[lane]);
    if (kOp != Op::kAbs && kOp != Op::kNeg) result = canonical(result);
    if (mode.is_ftz) result = flushed(result);
    d[lane] = mode.saturates ? saturated(result) : result;
  });
  return Outcome::kDone;
}

Function general_for(Op op) {
  switch (op) {
    case Op::kAdd:
      return &general<Op::kAdd>;
    case Op::kSub:
      return &general<Op::kSub>;
    case Op::kMul:
      return &general<Op::kMul>;
    case Op::kFma:
      return &general<Op::kFma>;
    case Op::kMin:
      return &general<Op::kMin>;
    case Op::kMax:
      return &general<Op::kMax>;
    case Op::kAbs:
      return &general<Op::kAbs>;
    case Op::kNeg:
      return &general<Op::kNeg>;
    case Op::kDiv:
      return &general<Op::kDiv>;
    case Op::kRcp:
      return &general<Op::kRcp>;
    case Op::kSqrt:
      return &general<Op::kSqrt>;
    case Op::kRsqrt:
      return &general<Op::kRsqrt>;
    case Op::kSin:
      return &general<Op::kSin>;
    case Op::kCos:
      return &general<Op::kCos>;
    case Op::kLg2:
      return &general<Op::kLg2>;
    case Op::kEx2:
      return &general<Op::kEx2>;
    case Op::kTanh:
      return &general<Op::kTanh>;
    default:
      return nullptr;
  }
}

/// The function of a form without any mode, or null.
Function plain_for(Op op) {
  switch (op) {
    case Op::kAdd:
      return &binary<float, float, float, Add>;
    case Op::kSub:
      return &binary<float, float, float, Sub>;
    case Op::kMul:
      return &binary<float, float, float, Mul>;
    case Op::kFma:
      return plain_fma();
    case Op::kMin:
      return &binary<float, float, float, Min>;
    case Op::kMax:
      return &binary<float, float, float, Max>;
    case Op::kAbs:
      return &unary<std::uint32_t, std::uint32_t, Abs>;
    case Op::kNeg:
      return &unary<std::uint32_t, std::uint32_t, Neg>;
    case Op::kCopysign:
      return &binary<std::uint32_t, std::uint32_t, std::uint32_t, Copysign>;
    default:
      return nullptr;
  }
}

}  // namespace

Status Decoder::decode_float(Instr& instr) {
  FloatMode mode;
  mode.rounding = rounding();
  mode.is_ftz = has("ftz");
  mode.saturates = has("sat");
  mode.propagates_nan = has("NaN");
  mode.is_approximate = has("approx");
  mode.is_full = has("full");
  const bool is_plain = mode.rounding == Rounding::kNearestEven && !mode.is_ftz && !mode.saturates && !mode.propagates_nan;
  const bool is_of_magnitudes = has("xorsign") && has("abs");
  if (has("xorsign") != (has("abs") && form().modifiers.size() > 1)) return refuse(".xorsign goes with .abs");
  instr.function = is_plain && !is_of_magnitudes ? plain_for(op()) : nullptr;
  if (instr.function == nullptr) {
    instr.function = general_for(op());
    if (is_of_magnitudes) instr.function = op() == Op::kMin ? &of_magnitudes<Op::kMin> : &of_magnitudes<Op::kMax>;
    if (instr.function == nullptr) return refuse("no such f32 operation");
    new_detail(instr).mode = mode;
  }
  return arithmetic_operands(instr, 32, true);
}

}  // namespace kw::simulate
