// See compare_output.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/compare_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tuner/device/guarded_buffer.h"

namespace kw::tuner {
namespace {

/// The reference as the output's type would hold it: a value beyond its range is an infinity there.
double rounded_to(DType dtype, double value) {
  std::byte bytes[8] = {};
  store_element(dtype, value, bytes);
  return load_element(dtype, bytes);
}

bool is_poison(const std::byte* address, int num_bytes) {
  return std::all_of(address, address + num_bytes, [](std::byte byte) { return byte == std::byte{kPoisonByte}; });
}

}  // namespace

OutputComparison::OutputComparison(const TensorStorage& tensor, const OutputSamples& samples)
    : tensor_(tensor), samples_(samples), order_(samples.offsets.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return samples.offsets[a] != samples.offsets[b] ? samples.offsets[a] < samples.offsets[b] : a < b;
  });
  // An infinite bound: the element is not decided, or not written.
  may_keep_poison_ = std::any_of(samples.bounds.begin(), samples.bounds.end(), [](double bound) { return std::isinf(bound); });
  may_hold_nan_ = std::any_of(samples.values.begin(), samples.values.end(), [](double value) { return !std::isfinite(value); });
  if (!tensor.is_dense) is_covered_ = covered_elements(tensor);
}

void OutputComparison::add(std::size_t first_byte, std::span<const std::byte> first_launch, std::span<const std::byte> second_launch) {
  const auto element_bytes = static_cast<std::size_t>(size_bytes(tensor_.dtype));
  const std::size_t first_element = first_byte / element_bytes;
  if (unstable_element_ < 0 && std::memcmp(first_launch.data(), second_launch.data(), first_launch.size()) != 0) {
    const auto difference = std::mismatch(first_launch.begin(), first_launch.end(), second_launch.begin()).first - first_launch.begin();
    unstable_element_ = static_cast<std::int64_t>(first_element + static_cast<std::size_t>(difference) / element_bytes);
  }
  check_poison(first_element, second_launch);
  const std::size_t end_element = first_element + second_launch.size() / element_bytes;
  for (; next_ < order_.size(); ++next_) {
    const auto offset = static_cast<std::size_t>(samples_.offsets[order_[next_]]);
    if (offset >= end_element) break;
    check_sample(order_[next_], second_launch.data() + (offset - first_element) * element_bytes);
  }
}

/// Outputs are poisoned before each launch: what still is was not written, and what is not but lies in a gap should not have been.
void OutputComparison::check_poison(std::size_t first_element, std::span<const std::byte> bytes) {
  const int element_bytes = size_bytes(tensor_.dtype);
  const bool finds_unwritten = is_float(tensor_.dtype) && !may_hold_nan_ && !may_keep_poison_ && tensor_.role == TensorRole::kOut;
  const bool finds_stray = !tensor_.is_dense && tensor_.role == TensorRole::kOut;
  if ((!finds_unwritten && !finds_stray) || element_bytes == 1) return;  // one byte of poison may well be a value
  const std::size_t num_elements = bytes.size() / static_cast<std::size_t>(element_bytes);
  for (std::size_t element = 0; element < num_elements; ++element) {
    const std::byte* address = bytes.data() + element * static_cast<std::size_t>(element_bytes);
    const bool is_poisoned = *address == std::byte{kPoisonByte} && is_poison(address, element_bytes);
    const bool is_covered = tensor_.is_dense || is_covered_[first_element + element];
    if (finds_unwritten && is_poisoned && is_covered && unwritten_element_ < 0)
      unwritten_element_ = static_cast<std::int64_t>(first_element + element);
    if (finds_stray && !is_poisoned && !is_covered && stray_element_ < 0)
      stray_element_ = static_cast<std::int64_t>(first_element + element);
  }
}

void OutputComparison::check_sample(std::size_t sample, const std::byte* address) {
  const double reference = samples_.values[sample], bound = samples_.bounds[sample];
  if (std::isinf(bound) && std::isfinite(reference) && is_poison(address, size_bytes(tensor_.dtype)))
    return;  // not written, nor need it be
  const double value = load_element(tensor_.dtype, address);
  const double held = rounded_to(tensor_.dtype, reference);
  bool is_right = false;
  double error_over_bound = 0;
  if (std::isnan(reference) || std::isinf(held)) {
    // An infinity by overflow may stay just below it: within the bound of the unrounded value it is right as well.
    is_right =
        std::isnan(reference) ? std::isnan(value) : value == held || (std::isfinite(reference) && std::abs(value - reference) <= bound);
    error_over_bound = is_right ? 0 : std::numeric_limits<double>::infinity();
  } else {
    const double error = std::abs(value - reference);
    const bool overflows_within_bound = std::isinf(value) && std::isinf(rounded_to(tensor_.dtype, reference + std::copysign(bound, value)));
    is_right = error <= bound || overflows_within_bound;
    error_over_bound = overflows_within_bound ? 1
                       : error == 0           ? 0
                       : std::isnan(error)    ? std::numeric_limits<double>::infinity()
                                              : error / bound;
    if (std::isfinite(value)) {
      squared_error_ += error * error;
      squared_reference_ += reference * reference;
    }
  }
  max_error_over_bound_ = std::max(max_error_over_bound_, error_over_bound);
  if (is_right) return;
  if (num_wrong_ == 0 || sample < first_wrong_sample_) {
    first_wrong_sample_ = sample;
    describe_sample(sample, value);
  }
  ++num_wrong_;
}

void OutputComparison::describe_sample(std::size_t sample, double value) {
  const auto rank = static_cast<std::size_t>(samples_.rank);
  std::vector<std::int64_t> coordinates;
  for (std::size_t axis = 0; axis < rank && (sample + 1) * rank <= samples_.coordinates.size(); ++axis)
    coordinates.push_back(samples_.coordinates[sample * rank + axis]);
  sample_text_ =
      fmt::format("{}[{}] = {:.9g}: reference {:.9g}, |difference| {:.3g}, bound {:.3g}", tensor_.name, fmt::join(coordinates, ","), value,
                  samples_.values[sample], std::abs(value - samples_.values[sample]), samples_.bounds[sample]);
}

std::string OutputComparison::verdict() const {
  if (num_wrong_ > 0) return fmt::format("{}; {} of {} samples are wrong", sample_text_, num_wrong_, order_.size());
  if (next_ != order_.size())
    return fmt::format("{}: sample at element {}: outside the tensor of {} elements", tensor_.name, samples_.offsets[order_[next_]],
                       tensor_.num_elements);
  if (unwritten_element_ >= 0)
    return fmt::format("{}: element {} was not written: it still holds the poison", tensor_.name, unwritten_element_);
  if (stray_element_ >= 0) return fmt::format("{}: element {} lies between the rows and was written", tensor_.name, stray_element_);
  if (unstable_element_ >= 0)
    return fmt::format("{}: element {} differs between two launches on the same inputs", tensor_.name, unstable_element_);
  return {};
}

}  // namespace kw::tuner
