// What every kind of variant factory answers: of one kernel (variant_factory.cpp) and of several (several_kernels.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "generator/emit/variant.h"

namespace kw::generator {

/// A kernel as a part of a variant: what the text calls it and its dynamic shared memory, and its neighbours in a plan.
struct KernelPlace {
  std::string kernel = {};    ///< empty: the variant's id
  std::string smem = {};      ///< empty: as the template calls it
  bool is_dependent = false;  ///< may begin while the kernel before it runs
  bool is_followed = false;   ///< the kernel after it may begin while it runs
};

struct VariantFactory::Impl {
  virtual ~Impl() = default;
  virtual const TemplateInfo& info() const = 0;
  virtual std::string id(const Config& config) const = 0;
  virtual bool is_for_one_extent(const Config& config) const { return generator::is_for_one_extent(info(), config); }
  virtual Result<SpaceContext> space_context(const Problem& problem, const DeviceLimits& limits) const = 0;
  virtual Result<LaunchPlan> plan(const Config& config, const KernelPlace& place) const = 0;
  virtual Result<Variant> emit(const Config& config, const KernelPlace& place) const = 0;
  virtual bool can_overlap() const { return false; }
  virtual const std::vector<VariantFactory>& steps() const {
    static const std::vector<VariantFactory> none;
    return none;
  }
  virtual Config joined(const std::vector<Config>& of_steps, Overlap) const { return of_steps.front(); }
};

}  // namespace kw::generator
