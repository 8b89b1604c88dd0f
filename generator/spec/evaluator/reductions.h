// Reductions with error bounds. Sums, extremes, products and logic are streamed block by block; the others see the whole row.
// Bounds, u = unit roundoff of the accumulate type, K terms, c = 8 (protocol v1):
//   sum of a·b   c·√K·u·‖a‖·‖b‖ + Σ(|a|·eb + |b|·ea + ea·eb)      whatever the order of summation, split-K included
//   other sums   c·√K·u·Σ|t| + Σe                                  (‖t‖·‖1‖ would be looser: Σ|t| ≤ √K·‖t‖)
//   tf32 factors Each factor f is first rounded to f·(1 + δ), |δ| ≤ 2^-11. At worst the sum is off by 2^-11·Σ|ab| for each rounded factor.
//                Where every term reads its own elements, the δ of random inputs are independent and of mean zero, so Hoeffding gives
//                P(|error| > s·2^-11·‖ab‖) ≤ 2·exp(−s²/2) for one rounded factor, √2 more for two. s = c = 8 leaves 2e-14 per element;
//                the bound is the smaller of the two, with (1 + 2^-11) for the product of both δ.
//   product      Π(|t| + e)·(1 + 2u)^K − Π|t|
//   max, min     the extremes of the intervals t ± e
//   softmax, logsumexp   each exp is off by its argument's bound and by (4 + 3|t − m| + 4(|t| + |m|))·u relatively, which covers
//                exp2 of a pre-scaled difference; the sum adds c·√K·u.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/spec/evaluator/compiled_program.h"

namespace kw::generator {

constexpr int kBlockLanes = 256;
constexpr double kSumFactor = 8;  // c of protocol v1

/// Up to kBlockLanes values. `bound` null: exact. Uniform: entry 0 stands for all lanes.
struct Block {
  const double* value = nullptr;
  const double* bound = nullptr;
  bool is_uniform = false;

  Bounded at(int lane) const {
    const int i = is_uniform ? 0 : lane;
    return {value[i], bound == nullptr ? 0 : bound[i]};
  }
};

/// Streams a sum, mean, product, extreme, any, all or count.
class Accumulator {
 public:
  explicit Accumulator(const CompiledNode& node) : node_(node) {}
  void add_terms(const Block& terms, int lanes);
  void add_products(const Block& a, const Block& b, int lanes);
  Bounded finish() const;

 private:
  void add_sum(double block_sum);
  Bounded finish_sum() const;
  Bounded finish_extreme() const;
  Bounded finish_logic() const;

  const CompiledNode& node_;
  double num_terms_ = 0;
  double sum_ = 0, compensation_ = 0, plain_sum_ = 0;  // Neumaier; the plain sum decides what is inf or NaN
  double carried_ = 0;                                 // Σ e
  double sum_abs_ = 0, sum_squares_ = 0, a_squares_ = 0, b_squares_ = 0;
  double product_ = 1, product_high_ = 1;
  double best_ = 0, best_low_ = 0, best_high_ = 0;
  double num_true_ = 0, num_undecided_ = 0;
  bool is_undecided_ = false;  // a term is not judged
  bool has_nan_ = false;
};

/// Reductions over a whole row of terms.
Bounded argmax_of(std::span<const double> value, std::span<const double> bound);
Bounded logsumexp_of(std::span<const double> value, std::span<const double> bound, const Rounding& rounding);
/// Replaces the row by its softmax; `sink` null: none.
void softmax_in_place(std::vector<double>& value, std::vector<double>& bound, const Bounded* sink, const Rounding& rounding);
void cumsum_in_place(std::vector<double>& value, std::vector<double>& bound, const Rounding& rounding);
/// Value (or position) of the rank-th largest: ties go to the lower position, NaN is the largest. Not judged beyond the row.
Bounded topk_of(std::span<const double> value, std::span<const double> bound, std::int64_t rank, bool wants_index);

}  // namespace kw::generator
