// Random inputs, the same bits on host and device: element = f(seed, offset from the tensor's pointer in elements), so that the reference
// computes just the elements it needs. The device's side is templates/support/fill_inputs.cuh; a test compares the two.
// Place in the pipeline: tuner/session describes the inputs (input_fills), tuner/device fills buffers, sampling.h evaluates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "generator/spec/evaluator.h"
#include "generator/spec/program.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// One fill per input (and inout) tensor, in spec order. Honours range, sorted and unique; an integer tensor used as a subscript gets the
/// extent of the axis it indexes, a length bound (`below`) its index's extent, ragged offsets ascend from 0 to the extent.
/// `range = [low, high]` of the spec includes high for integers.
std::vector<InputFill> input_fills(const generator::Program& program, const Problem& problem, std::uint64_t seed);

/// Refuses what input_fills cannot derive: an integer tensor inside a subscript expression needs `range`; `unique` needs a range
/// as large as the tensor; sorted real numbers are not made.
Status check_input_fills(const generator::Program& program, const Problem& problem);

/// Element at `offset`, rounded to the fill's dtype.
double input_element(const InputFill& fill, std::int64_t offset);
/// Elements first, first + stride, ...
void input_row(const InputFill& fill, std::int64_t first, std::int64_t stride, std::span<double> out);

/// Elements [begin, end) in the fill's dtype, one after another at `out`, as a kernel reads them.
void encode_input(const InputFill& fill, std::int64_t begin, std::int64_t end, std::byte* out);

/// Other numbers of the same kind, those of no other fill of a run.
InputFill other_fill(const InputFill& fill);

/// The kernel of fill_inputs.cuh for this dtype: "fill_input_f16". Its arguments: pointer, number of elements (int64), kind (int32),
/// low, high (double), seed (uint64), num_elements of the fill (int64).
std::string fill_kernel_name(DType dtype);

/// Computes elements on the fly for the evaluator.
class RandomInputSource : public generator::InputSource {
 public:
  /// `fills` by tensor name; `scalars` hold every launch-time scalar. Errors: a tensor without a fill, a scalar without a value.
  static Result<RandomInputSource> create(const generator::Program& program, const Problem& problem, const std::vector<InputFill>& fills,
                                          const std::map<std::string, double>& scalars);

  double element(const generator::Tensor& tensor, std::span<const std::int64_t> coordinates) const override;
  double scalar(const generator::Scalar& scalar) const override;
  void row(const generator::Tensor& tensor, std::span<const std::int64_t> coordinates, int axis, std::span<double> out) const override;

 private:
  struct Entry {
    InputFill fill;
    std::vector<std::int64_t> strides;  ///< elements; of a list of tensors the distance between two comes first
  };
  const Entry& entry_of(const generator::Tensor& tensor) const;

  std::map<std::string, Entry> entries_;
  std::map<std::string, double> scalars_;
};

}  // namespace kw::tuner
