// Random elements on the host: the arithmetic of templates/support/fill_inputs.cuh, written for whole rows. See random_input.h.
// Built without contraction to fused multiply-add, so that every product and sum is rounded as __fmul_rn and __fadd_rn do.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/random_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "generator/spec/evaluator/bounded.h"

namespace kw::tuner {
namespace {

using Kind = InputFill::Kind;

constexpr std::uint64_t kSeedOffset = 0x632be59bd9b4e019u;
constexpr std::uint64_t kCounterStep = 0x9e6d62d06f6a9a9bu;
constexpr std::int32_t kNormalMean = 262140;    // of eight fields in [0, 65535]
constexpr float kNormalScale = 1.8688068e-05f;  // 1 / standard deviation of their sum
constexpr double kNormalScaleDouble = 1.8688068e-05;

std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 29;
  x *= 0xa3b195354a39b70du;
  x ^= x >> 32;
  x *= 0x1b03738712fad5c9u;
  return x ^ (x >> 31);
}

std::uint64_t word_at(std::uint64_t key, std::int64_t offset, int which) {
  return mix_bits(key + (2 * static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(which)) * kCounterStep);
}

std::int32_t sum_of_fields(std::uint64_t word) {
  return static_cast<std::int32_t>((word & 0xffff) + ((word >> 16) & 0xffff) + ((word >> 32) & 0xffff) + (word >> 48));
}

std::int64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64));
}

std::uint64_t permute_position(std::uint64_t seed, std::uint64_t position, std::uint64_t span) {
  int num_bits = 1;
  while (num_bits < 62 && (std::uint64_t{1} << num_bits) < span) ++num_bits;
  const std::uint64_t mask = (std::uint64_t{1} << num_bits) - 1;
  const int shift = (num_bits + 1) / 2;
  std::uint64_t x = position % span;
  do {
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t key = mix_bits(seed + kSeedOffset + round);
      x = (x * (key | 1) + (key >> 32)) & mask;
      x ^= x >> shift;
    }
  } while (x >= span);
  return x;
}

std::int64_t integer_at(const InputFill& fill, std::uint64_t key, std::int64_t offset) {
  const auto first = static_cast<std::int64_t>(fill.low);
  const std::int64_t span = static_cast<std::int64_t>(fill.high) - first;
  if (span <= 1) return first;
  if (fill.kind == Kind::kUnique)
    return first +
           static_cast<std::int64_t>(permute_position(fill.seed, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(span)));
  const std::uint64_t word = word_at(key, offset, 0);
  if (fill.kind == Kind::kInteger) return first + multiply_high(word, static_cast<std::uint64_t>(span));
  if (offset <= 0) return first;
  if (offset >= fill.num_elements - 1) return first + span - 1;
  const std::int64_t quotient = span / fill.num_elements, rest = span % fill.num_elements;
  return first + offset * quotient + offset * rest / fill.num_elements + multiply_high(word, static_cast<std::uint64_t>(quotient));
}

float float_at(const InputFill& fill, std::uint64_t key, std::int64_t offset) {
  if (fill.kind == Kind::kNormal) {
    const std::int32_t sum = sum_of_fields(word_at(key, offset, 0)) + sum_of_fields(word_at(key, offset, 1)) - kNormalMean;
    return static_cast<float>(sum) * kNormalScale;
  }
  if (fill.kind != Kind::kUniform) return static_cast<float>(integer_at(fill, key, offset));
  const float unit = static_cast<float>(static_cast<std::int32_t>(word_at(key, offset, 0) >> 40)) * 0x1p-24f;
  const float span = static_cast<float>(fill.high) - static_cast<float>(fill.low);
  const float scaled = unit * span;
  return static_cast<float>(fill.low) + scaled;
}

double double_at(const InputFill& fill, std::uint64_t key, std::int64_t offset) {
  if (fill.kind == Kind::kNormal) {
    const std::int32_t sum = sum_of_fields(word_at(key, offset, 0)) + sum_of_fields(word_at(key, offset, 1)) - kNormalMean;
    return static_cast<double>(sum) * kNormalScaleDouble;
  }
  if (fill.kind != Kind::kUniform) return static_cast<double>(integer_at(fill, key, offset));
  const double unit = static_cast<double>(static_cast<std::int64_t>(word_at(key, offset, 0) >> 11)) * 0x1p-53;
  const double scaled = unit * (fill.high - fill.low);
  return fill.low + scaled;
}

/// Rounds to the nearest float with `kDropped` mantissa bits fewer, ties to even, for numbers in the format's normal range.
template <int kDropped>
float drop_bits(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += (1u << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1u);
  return std::bit_cast<float>(bits & ~((1u << kDropped) - 1));
}

/// f16 below 2^-14: multiples of 2^-24, which adding and subtracting 0.75 rounds to.
float round_to_f16(float value) {
  const float magnitude = std::abs(value);
  if (magnitude >= 0x1p-14f)
    return magnitude < 65504.0f ? drop_bits<13>(value) : static_cast<float>(generator::round_to(DType::kF16, static_cast<double>(value)));
  const float shifted = value + 0.75f;
  return shifted - 0.75f;
}

double rounded(DType dtype, float value) {
  switch (dtype) {
    case DType::kF32:
    case DType::kTF32:
      return static_cast<double>(value);
    case DType::kF16:
      return static_cast<double>(round_to_f16(value));
    case DType::kBF16:
      return static_cast<double>(drop_bits<16>(value));
    default:
      return generator::round_to(dtype, static_cast<double>(value));
  }
}

double element_at(const InputFill& fill, std::uint64_t key, std::int64_t offset) {
  if (fill.dtype == DType::kF64) return double_at(fill, key, offset);
  if (is_integer(fill.dtype) && fill.kind != Kind::kNormal && fill.kind != Kind::kUniform)
    return generator::round_to(fill.dtype, static_cast<double>(integer_at(fill, key, offset)));
  const float value = float_at(fill, key, offset);
  return rounded(fill.dtype, is_integer(fill.dtype) ? std::trunc(value) : value);
}

}  // namespace

double input_element(const InputFill& fill, std::int64_t offset) { return element_at(fill, mix_bits(fill.seed + kSeedOffset), offset); }

void input_row(const InputFill& fill, std::int64_t first, std::int64_t stride, std::span<double> out) {
  const std::uint64_t key = mix_bits(fill.seed + kSeedOffset);
  for (double& value : out) {
    value = element_at(fill, key, first);
    first += stride;
  }
}

void encode_input(const InputFill& fill, std::int64_t begin, std::int64_t end, std::byte* out) {
  constexpr std::int64_t chunk_elements = 1 << 16;
  const auto element_bytes = static_cast<std::size_t>(size_bytes(fill.dtype));
  std::vector<double> values(static_cast<std::size_t>(std::clamp<std::int64_t>(end - begin, 0, chunk_elements)));
  for (std::int64_t first = begin; first < end; first += chunk_elements) {
    const auto count = static_cast<std::size_t>(std::min(chunk_elements, end - first));
    input_row(fill, first, 1, std::span(values.data(), count));
    for (std::size_t index = 0; index < count; ++index) {
      store_element(fill.dtype, values[index], out + (static_cast<std::size_t>(first) + index) * element_bytes);
    }
  }
}

InputFill other_fill(const InputFill& fill) {
  constexpr std::uint64_t kOtherSeedStep = 0xd1b54a32d192ed03ull;  // odd and no step of any other stream of seeds
  InputFill result = fill;
  result.seed += kOtherSeedStep;
  return result;
}

std::string fill_kernel_name(DType dtype) {
  return "fill_input_" + std::string(dtype == DType::kTF32 ? to_text(DType::kF32) : to_text(dtype));
}

Result<RandomInputSource> RandomInputSource::create(const generator::Program& program, const Problem& problem,
                                                    const std::vector<InputFill>& fills, const std::map<std::string, double>& scalars) {
  RandomInputSource source;
  source.scalars_ = scalars;
  for (const generator::Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kOut) continue;
    const auto fill = std::find_if(fills.begin(), fills.end(), [&](const InputFill& f) { return f.tensor == tensor.name; });
    if (fill == fills.end()) return fail(Stage::kVerify, Code::kInternal, fmt::format("tensor {}: no fill describes it", tensor.name));
    KW_TRY(generator::TensorShape shape, generator::resolve_shape(tensor, problem));
    if (!tensor.list_dim.empty()) shape.strides.insert(shape.strides.begin(), shape.span());
    source.entries_.emplace(tensor.name, Entry{*fill, std::move(shape.strides)});
  }
  for (const generator::Scalar& scalar : program.scalars) {
    if (scalar.value == nullptr && !scalars.contains(scalar.name))
      return fail(Stage::kVerify, Code::kBadInput, fmt::format("scalar {}: has no value", scalar.name));
  }
  return source;
}

const RandomInputSource::Entry& RandomInputSource::entry_of(const generator::Tensor& tensor) const {
  const auto found = entries_.find(tensor.name);
  KW_CHECK(found != entries_.end(), "the evaluator reads inputs only");
  return found->second;
}

double RandomInputSource::element(const generator::Tensor& tensor, std::span<const std::int64_t> coordinates) const {
  double value = 0;
  row(tensor, coordinates, 0, std::span<double>(&value, 1));
  return value;
}

void RandomInputSource::row(const generator::Tensor& tensor, std::span<const std::int64_t> coordinates, int axis,
                            std::span<double> out) const {
  const Entry& entry = entry_of(tensor);
  std::int64_t offset = 0;
  for (size_t a = 0; a < entry.strides.size(); ++a) offset += coordinates[a] * entry.strides[a];
  input_row(entry.fill, offset, entry.strides.empty() ? 0 : entry.strides[static_cast<size_t>(axis)], out);
}

double RandomInputSource::scalar(const generator::Scalar& scalar) const { return scalars_.at(scalar.name); }

}  // namespace kw::tuner
