// Export: what the test of every export uses. Pasted into test_<op>.cu, inside its own namespace.
// The including file has <cuda_runtime.h>, <algorithm>, <cmath>, <cstdint>, <cstdio>, <cstdlib>, <cstring>, <limits>, <random> and
// <vector>, and defines kRoundoff (unit roundoff of the accumulate type) and kProductRoundoff (of one product) before it.
// SPDX-License-Identifier: Apache-2.0
// ---
// A value in double and a bound on what the kernel's arithmetic may differ from it.
struct Real {
  double value = 0;
  double bound = 0;
};
inline Real as_real(Real x) { return x; }
inline Real as_real(double x) { return {x, 0}; }
inline Real as_real(std::int64_t x) { return {static_cast<double>(x), 0}; }
inline Real as_real(bool x) { return {x ? 1.0 : 0.0, 0}; }
inline std::int64_t as_int(Real x) { return static_cast<std::int64_t>(x.value); }  // toward zero, as a cast does
inline std::int64_t as_int(std::int64_t x) { return x; }
inline std::int64_t as_int(bool x) { return x ? 1 : 0; }
inline bool as_bool(Real x) { return x.value != 0; }
inline bool as_bool(std::int64_t x) { return x != 0; }
inline bool as_bool(bool x) { return x; }
inline double number(Real x) { return x.value; }
inline double number(std::int64_t x) { return static_cast<double>(x); }
inline double number(bool x) { return x ? 1.0 : 0.0; }

inline Real add(Real a, Real b) { return {a.value + b.value, a.bound + b.bound + kRoundoff * std::fabs(a.value + b.value)}; }
inline Real subtract(Real a, Real b) { return add(a, {-b.value, b.bound}); }
inline Real multiply(Real a, Real b) {
  const double value = a.value * b.value;
  return {value, std::fabs(a.value) * b.bound + std::fabs(b.value) * a.bound + a.bound * b.bound + kProductRoundoff * std::fabs(value)};
}
inline Real divide(Real a, Real b) {
  const double value = a.value / b.value;
  return {value, (a.bound + std::fabs(value) * b.bound) / std::fabs(b.value) + 4 * kRoundoff * std::fabs(value)};
}
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }
inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) { return a - floor_divide(a, b) * b; }
inline Real floor_divide(Real a, Real b) { return {std::floor(a.value / b.value), 0}; }
inline Real floor_modulo(Real a, Real b) { return {a.value - std::floor(a.value / b.value) * b.value, a.bound + b.bound}; }

// NaN propagates through all of these, as the notation has it.
inline Real maximum(Real a, Real b) {
  const double value = std::isnan(a.value) || std::isnan(b.value) ? std::numeric_limits<double>::quiet_NaN() : std::max(a.value, b.value);
  return {value, std::max(a.bound, b.bound)};
}
inline Real minimum(Real a, Real b) {
  const double value = std::isnan(a.value) || std::isnan(b.value) ? std::numeric_limits<double>::quiet_NaN() : std::min(a.value, b.value);
  return {value, std::max(a.bound, b.bound)};
}
inline std::int64_t maximum(std::int64_t a, std::int64_t b) { return std::max(a, b); }
inline std::int64_t minimum(std::int64_t a, std::int64_t b) { return std::min(a, b); }

// f at x; the bound takes what f makes of the bound of x, and `ulps` roundings of the result and of the argument.
template <typename F>
inline Real apply(F f, Real x, double ulps) {
  const double value = f(x.value);
  double change = std::max(std::fabs(f(x.value + x.bound) - value), std::fabs(f(x.value - x.bound) - value));
  if (!(change >= 0)) change = x.bound;  // a NaN beside the point
  return {value, change + ulps * kRoundoff * (std::fabs(value) * (1 + std::fabs(x.value)) + std::fabs(x.value))};
}
inline double relu_of(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
inline double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); }
inline double gelu_tanh_of(double x) { return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
inline double silu_of(double x) { return x / (1 + std::exp(-x)); }
inline double negate_of(double x) { return -x; }
inline double rsqrt_of(double x) { return 1 / std::sqrt(x); }
inline double absolute_of(double x) { return std::fabs(x); }
inline double exp_of(double x) { return std::exp(x); }
inline double log_of(double x) { return std::log(x); }
inline double sqrt_of(double x) { return std::sqrt(x); }
inline double tanh_of(double x) { return std::tanh(x); }
inline double erf_of(double x) { return std::erf(x); }
inline double sin_of(double x) { return std::sin(x); }
inline double cos_of(double x) { return std::cos(x); }
inline double floor_of(double x) { return std::floor(x); }
inline Real power(Real a, Real b) {
  const auto base = [&](double x) { return std::pow(x, b.value); };
  const auto exponent = [&](double x) { return std::pow(a.value, x); };
  const Real by_base = apply(base, a, 8), by_exponent = apply(exponent, b, 8);
  return {by_base.value, by_base.bound + by_exponent.bound};
}

// Rounding to `digits` binary digits, the least exponent of which is `min_exponent` (subnormals); ties to even.
inline double round_to(double x, int digits, int min_exponent, double max_finite) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent - digits, min_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::fabs(rounded) > max_finite ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

inline Real cast(Real x, int digits, int min_exponent, double max_finite) {
  return {round_to(x.value, digits, min_exponent, max_finite), x.bound + std::ldexp(std::fabs(x.value), -digits)};
}
// What an integer output holds: toward zero, held inside its range.
inline Real to_integer(Real x, double low, double high) {
  return {std::isnan(x.value) ? 0.0 : std::trunc(std::min(std::max(x.value, low), high)), x.bound > 0 ? x.bound + 1 : 0};
}

// A sum of n terms in any order: 8 sqrt(n) roundoffs of the sum of magnitudes.
struct Sum {
  double value = 0, bound = 0, magnitude = 0, count = 0;
  void add(Real x) {
    value += x.value;
    bound += x.bound;
    magnitude += std::fabs(x.value);
    count += 1;
  }
  Real result() const { return {value, bound + 8 * std::sqrt(count) * kRoundoff * magnitude}; }
};

// The kernel's value against the reference, whose bound gets the final rounding to the output's type.
struct Comparison {
  std::int64_t count = 0;
  double worst_ratio = 0;
  bool check(double out, Real reference, double roundoff, double subnormal, double max_finite) {
    ++count;
    if (std::isnan(reference.value)) return std::isnan(out);
    const double bound = reference.bound + roundoff * std::fabs(reference.value) + subnormal;
    if (std::isinf(out)) return std::isinf(reference.value) ? out == reference.value : std::fabs(reference.value) + bound >= max_finite;
    if (!(bound < std::numeric_limits<double>::infinity())) return !std::isnan(out);
    const double ratio = bound > 0 ? std::fabs(out - reference.value) / bound : (out == reference.value ? 0.0 : 1e30);
    if (!(ratio <= 1)) return false;
    worst_ratio = std::max(worst_ratio, ratio);
    return true;
  }
};

#define CHECK_CUDA(call)                                                                                \
  do {                                                                                                  \
    const cudaError_t check_error = (call);                                                             \
    if (check_error != cudaSuccess) {                                                                   \
      std::printf("FAIL: %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(check_error)); \
      std::exit(1);                                                                                     \
    }                                                                                                   \
  } while (false)

// Device memory with a guard of kGuardBytes behind it.
constexpr std::size_t kGuardBytes = 4096;
struct Buffer {
  void* pointer = nullptr;
  std::size_t bytes = 0;
  explicit Buffer(std::size_t size) : bytes(size) {
    CHECK_CUDA(cudaMalloc(&pointer, bytes + kGuardBytes));
    CHECK_CUDA(cudaMemset(pointer, 0xff, bytes + kGuardBytes));  // NaN in every floating-point type
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(pointer); }
  template <typename T>
  void upload(const std::vector<T>& host) {
    if (!host.empty()) CHECK_CUDA(cudaMemcpy(pointer, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  template <typename T>
  void download(std::vector<T>& host) const {
    if (!host.empty()) CHECK_CUDA(cudaMemcpy(host.data(), pointer, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
  }
  bool has_whole_guard() const {
    std::vector<unsigned char> guard(kGuardBytes);
    CHECK_CUDA(cudaMemcpy(guard.data(), static_cast<const char*>(pointer) + bytes, kGuardBytes, cudaMemcpyDeviceToHost));
    return std::all_of(guard.begin(), guard.end(), [](unsigned char byte) { return byte == 0xff; });
  }
};

template <typename T>
inline bool is_bit_equal(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Positions 0 .. count - 1 to check: all of them, or the ends and between them random runs of `run` neighbours, which share intermediates.
inline std::vector<std::int64_t> positions(std::int64_t count, std::int64_t run, std::mt19937_64& random) {
  constexpr std::int64_t kMaxPositions = 4096;
  std::vector<std::int64_t> chosen;
  if (count <= kMaxPositions) {
    for (std::int64_t i = 0; i < count; ++i) chosen.push_back(i);
    return chosen;
  }
  for (std::int64_t i = 0; i < 64; ++i) chosen.insert(chosen.end(), {i, count - 1 - i});
  while (static_cast<std::int64_t>(chosen.size()) < kMaxPositions) {
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
    for (std::int64_t i = first; i < std::min(first + run, count); ++i) chosen.push_back(i);
  }
  return chosen;
}

// Random elements: standard normal when low == high, else uniform in [low, high).
struct Fill {
  double low, high;
  bool is_whole, is_sorted;
};
template <typename T>
inline void fill(std::vector<T>& data, Fill how, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(how.low, how.high > how.low ? how.high : how.low + 1);
  std::vector<double> values(data.size());
  for (double& value : values) {
    value = how.low == how.high ? normal(random) : uniform(random);
    if (how.is_whole) value = std::floor(value);
  }
  if (how.is_sorted) std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < data.size(); ++i) encode(values[i], data[i]);
}

// Elements from the first to the last one of a tensor, both counted; 0 when it is empty.
inline std::int64_t span(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
  std::int64_t elements = 1;
  const std::int64_t* stride = strides.begin();
  for (const std::int64_t extent : shape) {
    if (extent <= 0) return 0;
    elements += (extent - 1) * *stride++;
  }
  return elements;
}
