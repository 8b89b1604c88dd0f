// cp.reduce.async.bulk: which operation takes which type (PTX ISA), and the arithmetic on bytes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "simulator/tensor/convert.h"
#include "simulator/tensor/tensor_map.h"

namespace kw::simulate {
namespace {

constexpr std::string_view kOpNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

bool is_one_of(TensorMapType type, std::initializer_list<TensorMapType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool has_combination(BulkReduce op, TensorMapType type) {
  using enum TensorMapType;
  switch (op) {
    case BulkReduce::kAdd:
      return is_one_of(type, {kU32, kS32, kU64, kF16, kBF16, kF32, kF64});
    case BulkReduce::kMin:
    case BulkReduce::kMax:
      return is_one_of(type, {kU32, kS32, kU64, kS64, kF16, kBF16});
    case BulkReduce::kInc:
    case BulkReduce::kDec:
      return type == kU32;
    case BulkReduce::kAnd:
    case BulkReduce::kOr:
    case BulkReduce::kXor:
      return is_one_of(type, {kU32, kS32, kU64, kS64});
  }
  return false;
}

template <typename Integer>
Integer combine_integers(BulkReduce op, Integer old_value, Integer operand) {
  using Unsigned = std::make_unsigned_t<Integer>;
  const auto a = static_cast<Unsigned>(old_value), b = static_cast<Unsigned>(operand);
  switch (op) {
    case BulkReduce::kAdd:
      return static_cast<Integer>(a + b);
    case BulkReduce::kMin:
      return std::min(old_value, operand);
    case BulkReduce::kMax:
      return std::max(old_value, operand);
    case BulkReduce::kInc:
      return a >= b ? Integer{0} : static_cast<Integer>(a + 1);
    case BulkReduce::kDec:
      return a == 0 || a > b ? operand : static_cast<Integer>(a - 1);
    case BulkReduce::kAnd:
      return static_cast<Integer>(a & b);
    case BulkReduce::kOr:
      return static_cast<Integer>(a | b);
    case BulkReduce::kXor:
      return static_cast<Integer>(a ^ b);
  }
  return old_value;
}

std::uint64_t combine_floats(BulkReduce op, FloatFormat format, std::uint64_t old_bits, std::uint64_t operand_bits) {
  const double a = decode(format, old_bits), b = decode(format, operand_bits);
  if (op == BulkReduce::kMin) return encode(format, std::fmin(a, b));
  if (op == BulkReduce::kMax) return encode(format, std::fmax(a, b));
  return encode(format, a + b);  // f16, bf16, f32: a double's second rounding is innocuous, 53 >= 2 * 24 + 2
}

template <typename Word, typename Combine>
void for_elements(std::span<const std::uint8_t> source, std::span<std::uint8_t> destination, const Combine& combine) {
  for (std::size_t offset = 0; offset + sizeof(Word) <= destination.size(); offset += sizeof(Word)) {
    Word operand, old_value;
    std::memcpy(&operand, source.data() + offset, sizeof(Word));
    std::memcpy(&old_value, destination.data() + offset, sizeof(Word));
    const Word result = combine(old_value, operand);
    std::memcpy(destination.data() + offset, &result, sizeof(Word));
  }
}

template <typename Word>
void reduce_floats(BulkReduce op, FloatFormat format, std::span<const std::uint8_t> source, std::span<std::uint8_t> destination) {
  for_elements<Word>(source, destination, [&](Word a, Word b) { return static_cast<Word>(combine_floats(op, format, a, b)); });
}

template <typename Integer>
void reduce_integers(BulkReduce op, std::span<const std::uint8_t> source, std::span<std::uint8_t> destination) {
  for_elements<Integer>(source, destination, [&](Integer a, Integer b) { return combine_integers(op, a, b); });
}

}  // namespace

Status check_bulk_reduce(BulkReduce op, TensorMapType type) {
  if (has_combination(op, type)) return {};
  return fail(
      Stage::kVerify, Code::kNotSupported,
      fmt::format("cp.reduce.async.bulk.{} on {}: PTX has no such combination", kOpNames[static_cast<std::size_t>(op)], to_text(type)));
}

void bulk_reduce(BulkReduce op, TensorMapType type, std::span<const std::uint8_t> source, std::span<std::uint8_t> destination) {
  KW_CHECK(source.size() == destination.size(), "a bulk reduction has as many source as destination bytes");
  switch (type) {
    case TensorMapType::kU32:
      return reduce_integers<std::uint32_t>(op, source, destination);
    case TensorMapType::kS32:
      return reduce_integers<std::int32_t>(op, source, destination);
    case TensorMapType::kU64:
      return reduce_integers<std::uint64_t>(op, source, destination);
    case TensorMapType::kS64:
      return reduce_integers<std::int64_t>(op, source, destination);
    case TensorMapType::kF16:
      return reduce_floats<std::uint16_t>(op, FloatFormat::kF16, source, destination);
    case TensorMapType::kBF16:
      return reduce_floats<std::uint16_t>(op, FloatFormat::kBF16, source, destination);
    case TensorMapType::kF32:
      return reduce_floats<std::uint32_t>(op, FloatFormat::kF32, source, destination);
    case TensorMapType::kF64:
      return reduce_floats<std::uint64_t>(op, FloatFormat::kF64, source, destination);
    default:
      KW_CHECK(false, "check_bulk_reduce refuses this type");
  }
}

}  // namespace kw::simulate
