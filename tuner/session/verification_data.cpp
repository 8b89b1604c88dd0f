// Making inputs and reference values.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/verification_data.h"

#include <algorithm>
#include <thread>

#include "generator/spec/op_spec.h"
#include "tuner/verify/random_input.h"
#include "tuner/verify/sampling.h"

namespace kw::tuner {
namespace {

constexpr std::size_t kSeedsPerProblem = 4;         // fresh inputs rotate over the checks of a run; each costs one reference
constexpr std::int64_t kMaxSamples = 4096;          // protocol v1, checking
constexpr std::int64_t kMaxWholeSamples = 1 << 17;  // of a small problem: all of it, even with a batch of 3; a reference takes milliseconds
constexpr std::int64_t kSmallDim = 8;               // a dim this small (a batch) stays as it is in a small problem
constexpr double kLaunchScalarValue = 0.8125;       // exact in every float type, and not a neutral value

int num_reference_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

/// Small extents in order of preference: odd ones off every tile grid, then multiples of 8 that wide copies accept.
const std::vector<std::vector<std::int64_t>>& small_extents() {
  static const std::vector<std::vector<std::int64_t>> lists = {{161, 137, 83}, {168, 136, 88}, {192, 128, 96}};
  return lists;
}

/// Below most tiles' extents; several tiles of the largest blocks, with a reduction that wraps the stages; then long along one axis each
/// (the dims are taken in the order of their names, so that K comes before M and N).
const std::vector<std::vector<std::vector<std::int64_t>>>& more_small_extents() {
  static const std::vector<std::vector<std::vector<std::int64_t>>> kinds = {
      {{33, 17, 70}, {40, 24, 72}, {64, 32, 64}, {528, 24, 72}},
      {{291, 133, 259}, {296, 136, 264}, {320, 192, 320}, {520, 136, 264}},
      {{7, 201, 5}, {8, 200, 8}, {16, 208, 16}, {520, 200, 8}},
      {{100, 1, 65}, {104, 8, 72}, {128, 16, 80}, {520, 8, 72}},
      {{601, 33, 41}, {600, 40, 48}, {640, 64, 64}, {1032, 40, 48}, {1544, 40, 48}},
  };
  return kinds;
}

/// `kept` is the dim that stays, if there is one.
Problem shrink(const generator::Program& program, const Problem& problem, const std::vector<std::int64_t>& extents,
               const std::string& kept) {
  Problem small = problem;
  small.strides.clear();
  std::size_t next = 0;
  for (auto& [name, value] : small.dims)
    if (value > kSmallDim && name != kept) value = std::min(value, extents[next++ % extents.size()]);
  for (const generator::Tensor& tensor : program.tensors) {
    if (!tensor.has_any_strides) continue;
    std::int64_t stride = 1;  // row-major; the order of the axes' strides of the tuning problem is kept by its own kernel's constraints
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      small.strides[tensor.name + ".stride" + std::to_string(axis)] = stride;
      const auto extent = tensor.shape[axis].evaluate(small.dims);
      stride *= extent ? std::max<std::int64_t>(*extent, 1) : 1;
    }
  }
  return small;
}

/// Whether the spec holds at the problem: outputs written whole and once, reads inside their axes. Dims that depend on each other (H = M //
/// 2 rows written twice) do not shrink one by one, and a kernel is not to blame for what such a shape leaves out.
bool is_problem_of(const generator::Program& program, const Problem& problem) {
  Diagnostics diagnostics;
  generator::check_problem(program, problem, diagnostics);
  return !diagnostics.has_errors();
}

}  // namespace

VerificationSource::VerificationSource(const generator::Program& program, Problem problem, std::uint64_t run_seed)
    : program_(program), problem_(std::move(problem)), run_seed_(run_seed) {}

Result<std::shared_ptr<const VerificationData>> VerificationSource::make(const Problem& problem, std::uint64_t seed,
                                                                         std::int64_t max_samples) const {
  auto data = std::make_shared<VerificationData>();
  data->problem = problem;
  KW_TRY_VOID(check_input_fills(program_, problem));
  data->fills = input_fills(program_, problem, seed);
  for (const generator::Scalar& scalar : program_.scalars)
    if (scalar.value == nullptr) data->scalars[scalar.name] = kLaunchScalarValue;
  KW_TRY(data->samples, reference_samples(program_, problem, data->fills, data->scalars, max_samples, seed, num_reference_threads()));
  return std::shared_ptr<const VerificationData>(std::move(data));
}

Result<std::shared_ptr<const VerificationData>> VerificationSource::at_problem(std::size_t ordinal) {
  auto& slot = by_seed_[ordinal % kSeedsPerProblem];
  if (slot == nullptr) {
    KW_TRY(slot, make(problem_, run_seed_ + ordinal % kSeedsPerProblem, kMaxSamples));
  }
  return slot;
}

std::shared_ptr<const VerificationData> VerificationSource::first_legal(const LaunchPlan& plan, const ExtentLists& lists) {
  std::vector<std::string> kept = {""};  // a kernel may be for one value of a dim
  for (const auto& [name, value] : problem_.dims) kept.push_back(name);
  for (const std::string& dim : kept) {
    for (const auto& extents : lists) {
      const Problem small = shrink(program_, problem_, extents, dim);
      if (small == problem_ || !is_problem_of(program_, small) || !first_broken_constraint(plan, small).empty()) continue;
      auto& slot = small_[small.to_text()];
      if (slot == nullptr) {
        auto made = make(small, run_seed_ ^ 0x5a17, kMaxWholeSamples);
        if (!made) continue;  // the extents of this op do not shrink independently (a gather's range, say)
        slot = std::move(*made);
      }
      return slot;
    }
  }
  return nullptr;
}

Result<std::shared_ptr<const VerificationData>> VerificationSource::at_small_problem(const LaunchPlan& plan) {
  return first_legal(plan, small_extents());
}

std::vector<std::shared_ptr<const VerificationData>> VerificationSource::at_small_problems(const LaunchPlan& plan, std::size_t max_count) {
  std::vector<std::shared_ptr<const VerificationData>> all;
  const auto add = [&](const ExtentLists& lists) {
    auto data = all.size() < max_count ? first_legal(plan, lists) : nullptr;
    if (data != nullptr && std::find(all.begin(), all.end(), data) == all.end()) all.push_back(std::move(data));
  };
  add(small_extents());
  for (const ExtentLists& lists : more_small_extents()) add(lists);
  return all;
}

}  // namespace kw::tuner
