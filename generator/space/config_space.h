// From a template and a problem to the configs worth compiling: enumerate, refuse by named rule, rank by the analytic model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/config.h"
#include "generator/rewrite/template_info.h"

namespace kw::generator {

/// A config that a rule refused, with the numbers: "smem_fits: the stages must fit one CTA's shared memory: 245760 <= 232448".
struct RefusedConfig {
  std::uint64_t ordinal = 0;  ///< position in the enumeration order; config_at() gives the config
  int rule = 0;               ///< index into TemplateInfo::rules, or -1 - i for the i-th problem rule
};

/// Everything the rules may name besides tunables.
struct SpaceContext {
  const TemplateInfo* info = nullptr;
  IntBindings bindings;  ///< numeric bindings and "size_bytes.ElementA"
  IntBindings problem;   ///< the template's problem variables: M, N, K, batch, a_stride_m, ...
  DeviceLimits limits;
  std::map<std::string, std::vector<std::int64_t>> overrides;  ///< [tune]: replaces a tunable's values
  std::map<std::string, SourceRange> override_places;          ///< where the spec gives them, for errors
  std::int64_t epilogue_bytes = 0;                             ///< outputs and tensors the epilogue reads: DRAM traffic for the model
};

class ConfigSpace {
 public:
  /// Errors: an override names no tunable (nearest suggested), a rule names an unknown variable, more than 2^22 points
  /// (every refused one is kept: 16 bytes each).
  static Result<ConfigSpace> enumerate(const SpaceContext& context);

  std::uint64_t num_points() const;
  const std::vector<std::uint64_t>& kept() const;  ///< ordinals
  const std::vector<RefusedConfig>& refused() const;
  Config config_at(std::uint64_t ordinal) const;
  std::string refusal_text(const RefusedConfig& refused) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Whether the config has a value of the problem where the template has one for every problem: its kernel takes no other extent.
bool is_for_one_extent(const TemplateInfo& info, const Config& config);

/// What the model says of one config on one problem.
struct Prediction {
  double time_us = 0;
  double math_us = 0, dram_us = 0, l2_us = 0, smem_us = 0, overhead_us = 0;  ///< the bounds it was made of
  double num_waves = 0;
  int ctas_per_sm = 0;
};

struct RankedConfig {
  Config config;
  Prediction prediction;
  bool is_dominated = false;  ///< another legal config does as well: after all that are not, of other templates too
};

/// Whether `a` is to be tried before `b`.
bool is_ranked_before(const RankedConfig& a, const RankedConfig& b);

/// All kept configs, best first; configs that the template's estimate is_dominated marks come after all others; ties broken by the config's
/// text, so that the order is a function of the inputs alone. Of a problem whose output is empty the first alone: all of them do nothing.
std::vector<RankedConfig> rank(const ConfigSpace& space, const SpaceContext& context);

/// "gemm_sm80_mma__m128_n128_k32_s4_...": template, then key+value of each tunable in source order.
std::string variant_id(const TemplateInfo& info, const Config& config);

}  // namespace kw::generator
