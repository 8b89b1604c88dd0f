// Which output elements are checked, and their reference values (protocol v1: whole tensors at small shapes, else 4,096 samples).
// Place in the pipeline: tuner/session makes them once per problem and seed; tuner/device compares them with what a kernel wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "generator/spec/program.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Coordinates of at most `max_samples` distinct elements, extents.size() numbers each, in row-major order; the same for the same
/// arguments. All elements when there are no more than that. Else a grid of about √max_samples rows (all axes but the last) by as many
/// columns, with corners, the last row and column, both sides of tile edges (multiples of 16 to 256) and random positions on each side,
/// which keeps the reference cheap since rows and columns of the inputs are shared; an eighth of the samples lies anywhere. Of at most
/// `max_rows` rows where that is fewer: all samples lie in them.
std::vector<std::int64_t> sample_coordinates(const std::vector<std::int64_t>& extents, std::int64_t max_samples, std::uint64_t seed,
                                             std::int64_t max_rows = std::numeric_limits<std::int64_t>::max());

/// Multiplications that whole rows of intermediates cost, which reductions read: of an output in a row of which one element is asked for,
/// as in a product of a product.
double whole_row_work(const generator::Program& program, const Problem& problem);

/// Reference values of every output (out and inout) at its sampled coordinates, on inputs as `fills` describe them.
/// For a list tensor the list position is the first coordinate and offsets are relative to that tensor's own pointer.
/// Errors: what check_input_fills refuses, what the evaluator refuses.
Result<std::vector<OutputSamples>> reference_samples(const generator::Program& program, const Problem& problem,
                                                     const std::vector<InputFill>& fills, const std::map<std::string, double>& scalars,
                                                     std::int64_t max_samples, std::uint64_t seed, int num_threads);

}  // namespace kw::tuner
