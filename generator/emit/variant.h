// A variant: config + the text that is compiled, timed and exported, and its launch plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/config.h"
#include "generator/base/launch_plan.h"
#include "generator/rewrite/template_info.h"
#include "generator/space/config_space.h"
#include "generator/spec/program.h"

namespace kw::generator {

struct Variant {
  std::string id;  ///< variant_id()
  Config config;
  std::string source;  ///< CUDA C++, self-contained: no include
  std::string source_hash;
  LaunchPlan plan;
};

/// All templates of the executable, parsed once; sorted by name.
class TemplateLibrary {
 public:
  /// Parses the embedded templates (or the folder `override_folder` when not empty). About 10 ms a template.
  static Result<TemplateLibrary> load(const std::string& override_folder = "");
  const std::vector<TemplateInfo>& templates() const;
  const SourceTree& sources() const;
  const TemplateInfo* find(std::string_view name) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// One template's reading of a program on an architecture: everything needed to enumerate configs and to emit variants of it.
class VariantFactory {
 public:
  /// Null Result error kNotSupported with the reason when the template cannot make the program ("gemm_sm80_mma: A is f64: ...").
  static Result<VariantFactory> create(const TemplateLibrary& library, const TemplateInfo& info, const Program& program, Arch arch);

  const TemplateInfo& info() const;
  /// Context for enumerate() and rank() on one problem.
  Result<SpaceContext> space_context(const Problem& problem, const DeviceLimits& limits) const;
  /// The launch plan of a config alone: what emit() gives without the text, in a fraction of the time.
  Result<LaunchPlan> plan(const Config& config) const;
  /// Emits one variant. `static_dims` lists dims compiled in (usually none). About 10 ms. Thread-safe.
  Result<Variant> emit(const Config& config) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Factories of every template that can make the program on `arch`; `refusals` gets one line for each that cannot.
std::vector<VariantFactory> factories_for(const TemplateLibrary& library, const Program& program, Arch arch,
                                          std::vector<std::string>& refusals);

}  // namespace kw::generator
