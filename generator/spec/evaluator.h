// The fp64 reference: evaluates a program element by element on the host, with an error bound derived from the arithmetic.
// Used to verify every kernel (protocol v1). Inputs come through InputSource, so that sampled elements need no whole tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// Gives input elements, already rounded to the tensor's dtype. Must be safe to call from several threads.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Element of tensor `name` at `coordinates` (one per axis). For a list tensor the list position comes first.
  virtual double element(const Tensor& tensor, std::span<const std::int64_t> coordinates) const = 0;
  /// Value of a launch-time scalar.
  virtual double scalar(const Scalar& scalar) const = 0;
  /// Many elements along one axis: coordinates[axis] = first .. first + out.size() - 1. Default: element() in a loop.
  virtual void row(const Tensor& tensor, std::span<const std::int64_t> coordinates, int axis, std::span<double> out) const;
};

/// A tensor's extents and strides at one problem. Strides the problem does not name are row-major ones.
struct TensorShape {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;  ///< elements
  std::int64_t num_in_list = 1;       ///< tensors of a list tensor; each has these extents
  std::int64_t num_elements() const;  ///< of one tensor, product of extents
  std::int64_t span() const;          ///< of one tensor, from its first element to its last; a list's tensors lie so far apart
};
/// Errors: dims missing, negative extents, more than 2^62 elements.
Result<TensorShape> resolve_shape(const Tensor& tensor, const Problem& problem);

/// One reference value before the output's final rounding, and what |out - value| may be by the arithmetic of the kernel.
/// NaN: the output must be NaN. ±inf: the output must be that inf; a value beyond the output's largest number is given as what
/// rounding makes of it (f16: inf), a saturating type's largest number likewise. A bound of +inf (with a finite value) means that the
/// arithmetic does not decide the element (it may or may not overflow, or is not written): any output passes.
struct ReferenceValue {
  double value = 0;
  double bound = 0;  ///< absolute; includes the final rounding to the output's dtype
};
/// Whether `out` is right: the rules above.
bool is_within_bound(double out, const ReferenceValue& reference);

/// Evaluates outputs at given coordinates. `inputs` and `program` must outlive it. Errors: unknown tensor, dims missing, an index out of
/// range in a gather, K too large (> 2^40 terms).
class Evaluator {
 public:
  static Result<Evaluator> create(const Program& program, const Problem& problem, const InputSource& inputs);
  /// `coordinates` holds rank(tensor) numbers per element, the list position first for a list tensor. Reductions are kept
  /// between calls, so outputs that share them at the same coordinates share the work. Runs on `num_threads` threads.
  Result<std::vector<ReferenceValue>> evaluate(const std::string& output_tensor, std::span<const std::int64_t> coordinates,
                                               int num_threads = 1) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Counts of one problem, from the program itself (protocol: the roofline).
struct WorkCounts {
  double flops = 0;                   ///< multiply and add counted apart; pointwise functions 1 each
  double contraction_flops = 0;       ///< of the reductions over products only
  double min_bytes = 0;               ///< each input read once, each output written once
  double fused_bytes = 0;             ///< no-cache model, all statements in one kernel
  double unfused_bytes = 0;           ///< no-cache model, one kernel per operation, every intermediate through HBM in the output's dtype
  double unfused_l2_aware_bytes = 0;  ///< as unfused, but an intermediate that fits `l2_bytes` is not read back from HBM
};
Result<WorkCounts> count_work(const Program& program, const Problem& problem, std::int64_t l2_bytes);

}  // namespace kw::generator
