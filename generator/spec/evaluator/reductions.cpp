// Reductions with error bounds; reductions.h states the rules.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/reductions.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

namespace kw::generator {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Relative error of exp(t − m), beyond that of t itself, as the device computes it.
double exp_error(double t, double m, const Rounding& r) {
  if (!std::isfinite(t)) return 0;
  return r.unit * (4 + 3 * std::min(std::abs(t - m), 1000.0) + 4 * (std::abs(t) + std::abs(m)));
}

/// Largest value; NaN if there is one; −inf for an empty row.
double largest_of(std::span<const double> value) {
  double largest = -kInf;
  for (const double t : value) {
    if (std::isnan(t)) return kNaN;
    largest = std::max(largest, t);
  }
  return largest;
}

bool has_undecided(std::span<const double> bound) {
  return std::any_of(bound.begin(), bound.end(), [](double e) { return std::isinf(e); });
}

double log_sum(std::span<const double> value, std::span<const double> bound, double direction) {
  double m = -kInf;
  for (size_t i = 0; i < value.size(); ++i) m = std::max(m, value[i] + direction * bound[i]);
  if (!std::isfinite(m)) return m;
  double sum = 0;
  for (size_t i = 0; i < value.size(); ++i) sum += std::exp(value[i] + direction * bound[i] - m);
  return m + std::log(sum);
}

}  // namespace

void Accumulator::add_sum(double block_sum) {
  plain_sum_ += block_sum;
  const double total = sum_ + block_sum;
  compensation_ += std::abs(sum_) >= std::abs(block_sum) ? (sum_ - total) + block_sum : (block_sum - total) + sum_;
  sum_ = total;
}

void Accumulator::add_products(const Block& a, const Block& b, int lanes) {
  num_terms_ += lanes;
  if (a.bound == nullptr && b.bound == nullptr && !a.is_uniform && !b.is_uniform) {
    double sum[4] = {}, sum_abs[4] = {}, squares[4] = {}, aa[4] = {}, bb[4] = {};
    const auto take = [&](int i, int part) {
      const double t = a.value[i] * b.value[i];
      sum[part] += t;
      sum_abs[part] += std::abs(t);
      squares[part] += t * t;
      aa[part] += a.value[i] * a.value[i];
      bb[part] += b.value[i] * b.value[i];
    };
    int i = 0;
    for (; i + 4 <= lanes; i += 4) {
      for (int part = 0; part < 4; ++part) take(i + part, part);
    }
    for (; i < lanes; ++i) take(i, i & 3);
    add_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    sum_abs_ += (sum_abs[0] + sum_abs[1]) + (sum_abs[2] + sum_abs[3]);
    sum_squares_ += (squares[0] + squares[1]) + (squares[2] + squares[3]);
    a_squares_ += (aa[0] + aa[1]) + (aa[2] + aa[3]);
    b_squares_ += (bb[0] + bb[1]) + (bb[2] + bb[3]);
    return;
  }
  double sum = 0;
  for (int i = 0; i < lanes; ++i) {
    const Bounded x = a.at(i), y = b.at(i);
    const Bounded t = multiply(x, y, {});  // products enter the sum unrounded; the sum's bound covers kernels that round them
    if (!is_judged(t)) {
      is_undecided_ = true;
      continue;
    }
    sum += t.value;
    sum_abs_ += std::abs(t.value);
    sum_squares_ += t.value * t.value;
    a_squares_ += x.value * x.value;
    b_squares_ += y.value * y.value;
    carried_ += t.bound;
  }
  add_sum(sum);
}

void Accumulator::add_terms(const Block& terms, int lanes) {
  double sum = 0;
  for (int i = 0; i < lanes; ++i) {
    const Bounded t = terms.at(i);
    const bool is_first = num_terms_ == 0;
    num_terms_ += 1;
    switch (node_.reduce_op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean:
        if (!is_judged(t)) {
          is_undecided_ = true;
          break;
        }
        sum += t.value;
        sum_abs_ += std::abs(t.value);
        carried_ += t.bound;
        break;
      case ReduceOp::kProd:
        is_undecided_ = is_undecided_ || !is_judged(t);
        product_ *= t.value;
        product_high_ *= std::abs(t.value) + t.bound;
        break;
      case ReduceOp::kMax:
      case ReduceOp::kMin: {
        const double sign = node_.reduce_op == ReduceOp::kMax ? 1 : -1;
        has_nan_ = has_nan_ || std::isnan(t.value);
        is_undecided_ = is_undecided_ || !is_judged(t);
        const double v = sign * t.value;
        best_ = is_first ? v : std::max(best_, v);
        best_low_ = is_first ? v - t.bound : std::max(best_low_, v - t.bound);
        best_high_ = is_first ? v + t.bound : std::max(best_high_, v + t.bound);
        break;
      }
      default:
        if (t.bound > 0) {
          num_undecided_ += 1;
        } else if (t.value != 0) {
          num_true_ += 1;
        }
    }
  }
  add_sum(sum);
}

Bounded Accumulator::finish_sum() const {
  if (is_undecided_) return std::isnan(plain_sum_) ? Bounded{kNaN, 0} : not_judged();
  const Rounding& r = node_.rounding;
  if (!std::isfinite(plain_sum_)) return {plain_sum_, 0};
  double value = sum_ + compensation_;
  double bound = carried_;
  const double scale = node_.is_product_sum ? std::sqrt(a_squares_) * std::sqrt(b_squares_) : sum_abs_;
  bound += kSumFactor * std::sqrt(num_terms_) * r.unit * scale;
  if (node_.tf32_unit[0] > 0 || node_.tf32_unit[1] > 0) {
    const double unit = std::max(node_.tf32_unit[0], node_.tf32_unit[1]);
    const double factors = (node_.tf32_unit[0] > 0 ? 1 : 0) + (node_.tf32_unit[1] > 0 ? 1 : 0);
    const double worst = factors * unit * sum_abs_;
    const double likely = kSumFactor * std::sqrt(factors) * unit * std::sqrt(sum_squares_);
    bound += (node_.has_independent_factors ? std::min(worst, likely) : worst) * (1 + unit);
  }
  if (node_.reduce_op == ReduceOp::kMean) {
    if (num_terms_ == 0) return {kNaN, 0};
    value /= num_terms_;
    bound /= num_terms_;
    bound += 4 * r.unit * std::abs(value);
  }
  // Integers beyond 2^53 are not exact in a double.
  if (r.unit == 0 && sum_abs_ > 0x1p53) bound += sum_abs_ * DBL_EPSILON;
  return settle(value, bound, {}, {}, r);
}

Bounded Accumulator::finish_extreme() const {
  const double sign = node_.reduce_op == ReduceOp::kMax ? 1 : -1;
  if (num_terms_ == 0) return {-sign * kInf, 0};
  if (has_nan_) return {kNaN, 0};
  if (is_undecided_) return not_judged();
  if (std::isinf(best_)) return best_high_ == best_low_ || best_ > 0 ? Bounded{sign * best_, 0} : not_judged();
  return {sign * best_, std::max(best_high_ - best_, best_ - best_low_)};
}

Bounded Accumulator::finish_logic() const {
  switch (node_.reduce_op) {
    case ReduceOp::kAny:
      return {num_true_ > 0 ? 1.0 : 0.0, num_true_ == 0 && num_undecided_ > 0 ? 1.0 : 0.0};
    case ReduceOp::kAll: {
      const bool has_false = num_true_ + num_undecided_ < num_terms_;
      return {has_false ? 0.0 : 1.0, !has_false && num_undecided_ > 0 ? 1.0 : 0.0};
    }
    default:
      return {num_true_, num_undecided_};
  }
}

Bounded Accumulator::finish() const {
  switch (node_.reduce_op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return finish_sum();
    case ReduceOp::kMax:
    case ReduceOp::kMin:
      return finish_extreme();
    case ReduceOp::kProd: {
      if (std::isnan(product_)) return {kNaN, 0};
      if (is_undecided_) return not_judged();
      if (!std::isfinite(product_)) return {product_, 0};
      const double growth = std::expm1(2 * num_terms_ * node_.rounding.unit);
      const double bound =
          std::max(product_high_ - std::abs(product_), 0.0) + growth * product_high_ + (growth > 0 ? node_.rounding.smallest_normal : 0);
      return settle(product_, bound, {}, {}, node_.rounding);
    }
    default:
      return finish_logic();
  }
}

Bounded argmax_of(std::span<const double> value, std::span<const double> bound) { return topk_of(value, bound, 0, true); }

Bounded topk_of(std::span<const double> value, std::span<const double> bound, std::int64_t rank, bool wants_index) {
  if (rank < 0 || rank >= static_cast<std::int64_t>(value.size())) return not_judged();
  const auto key = [&](size_t i) { return std::isnan(value[i]) ? kInf : value[i]; };
  const auto is_before = [&](size_t a, size_t b) {
    const bool a_nan = std::isnan(value[a]), b_nan = std::isnan(value[b]);
    if (a_nan != b_nan) return a_nan;
    return key(a) != key(b) ? key(a) > key(b) : a < b;
  };
  std::vector<size_t> order(value.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::nth_element(order.begin(), order.begin() + rank, order.end(), is_before);
  const size_t chosen = order[static_cast<size_t>(rank)];
  if (!wants_index) {
    if (!std::isfinite(value[chosen])) return has_undecided(bound) ? not_judged() : Bounded{value[chosen], 0};
    std::vector<double> high(value.size()), low(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      high[i] = key(i) + bound[i];
      low[i] = key(i) - bound[i];
    }
    std::nth_element(high.begin(), high.begin() + rank, high.end(), std::greater<>());
    std::nth_element(low.begin(), low.begin() + rank, low.end(), std::greater<>());
    const double v = value[chosen];
    return {v, std::max(high[static_cast<size_t>(rank)] - v, v - low[static_cast<size_t>(rank)])};
  }
  // Another position may come out where its interval meets the chosen one's, unless both are exact.
  double spread = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const double reach = bound[i] + bound[chosen];
    if (i == chosen || reach == 0 || !(std::abs(key(i) - key(chosen)) <= reach)) continue;
    spread = std::max(spread, std::abs(static_cast<double>(i) - static_cast<double>(chosen)));
  }
  return {static_cast<double>(chosen), spread};
}

Bounded logsumexp_of(std::span<const double> value, std::span<const double> bound, const Rounding& r) {
  const double m = largest_of(value);
  if (std::isnan(m)) return {kNaN, 0};
  if (has_undecided(bound)) return not_judged();
  if (std::isinf(m)) return {m, 0};
  const double v = log_sum(value, bound, 0);
  double e = std::max(log_sum(value, bound, 1) - v, v - log_sum(value, bound, -1));
  double weighted = 0;
  for (const double t : value) weighted += std::exp(t - v) * exp_error(t, m, r);
  e += weighted + kSumFactor * std::sqrt(static_cast<double>(value.size())) * r.unit;
  e += r.unit * (8 * std::max(1.0, std::abs(v - m)) + 4 * (std::abs(v) + std::abs(m)));
  return settle(v, e, {}, {}, r);
}

void softmax_in_place(std::vector<double>& value, std::vector<double>& bound, const Bounded* sink, const Rounding& r) {
  double m = largest_of(value);
  if (sink != nullptr) m = std::isnan(sink->value) ? kNaN : std::isnan(m) ? m : std::max(m, sink->value);
  const bool is_undecided = has_undecided(bound) || (sink != nullptr && !is_judged(*sink));
  if (std::isnan(m) || is_undecided || m == kInf) {
    const Bounded all = std::isnan(m) || !is_undecided ? Bounded{kNaN, 0} : not_judged();  // inf − inf is NaN in the row's arithmetic
    std::fill(value.begin(), value.end(), all.value);
    std::fill(bound.begin(), bound.end(), all.bound);
    return;
  }
  if (m == -kInf) {  // fully masked: 0 by the notation's rule
    std::fill(value.begin(), value.end(), 0.0);
    std::fill(bound.begin(), bound.end(), 0.0);
    return;
  }
  double sum = 0, sum_error = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const double term = std::exp(value[i] - m);
    sum += term;
    const double relative = std::expm1(std::min(bound[i] + exp_error(value[i], m, r), 700.0));
    if (term > 0) sum_error += term * relative;
  }
  if (sink != nullptr) {
    const double term = std::exp(sink->value - m);
    sum += term;
    if (term > 0) sum_error += term * std::expm1(std::min(sink->bound + exp_error(sink->value, m, r), 700.0));
  }
  const double sum_relative = sum_error / sum + kSumFactor * std::sqrt(static_cast<double>(value.size())) * r.unit;
  for (size_t i = 0; i < value.size(); ++i) {
    const double p = std::exp(value[i] - m) / sum;
    if (value[i] == -kInf) {
      value[i] = 0;
      bound[i] = 0;
      continue;
    }
    const double relative = std::expm1(std::min(bound[i] + exp_error(value[i], m, r), 700.0));
    const double e = sum_relative < 0.5 ? p * (relative + sum_relative) / (1 - sum_relative) + 4 * r.unit * p : 1.0;
    bound[i] = std::min(e, 1.0) + r.smallest_normal;
    value[i] = p;
  }
}

void cumsum_in_place(std::vector<double>& value, std::vector<double>& bound, const Rounding& r) {
  double sum = 0, sum_abs = 0, carried = 0, num_terms = 0;
  bool is_undecided = false;
  for (size_t i = 0; i < value.size(); ++i) {
    is_undecided = is_undecided || std::isinf(bound[i]);
    num_terms += 1;
    sum += value[i];
    sum_abs += std::abs(value[i]);
    carried += bound[i];
    const Bounded result =
        is_undecided ? not_judged() : settle(sum, carried + kSumFactor * std::sqrt(num_terms) * r.unit * sum_abs, {}, {}, r);
    value[i] = result.value;
    bound[i] = result.bound;
  }
}

}  // namespace kw::generator
