// A variant: config + the text that is compiled, timed and exported, and its launch plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/config.h"
#include "generator/base/launch_plan.h"
#include "generator/plan/partition.h"
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

/// Whether a kernel of a plan may begin while the one before it runs: it waits by itself before it reads or writes tensors, but those that
/// are declared `const` (programmatic dependent launch, sm_90 and newer).
enum class Overlap { kNone = 0, kDependent = 1 };

/// A program on an architecture as one template reads it, or as a plan of several kernels: what is needed to enumerate configs and to emit
/// variants.
class VariantFactory {
 public:
  /// Null Result error kNotSupported with the reason when the template cannot make the program ("gemm_sm80_mma: A is f64: ...").
  static Result<VariantFactory> create(const TemplateLibrary& library, const TemplateInfo& info, const Program& program, Arch arch);

  /// A plan of several kernels: `steps` has a factory for each step of the partition, which is number `cut` of the program's. Its config
  /// has the values of the steps' configs as "0.BLOCK_M", CUT, and DEPENDENT = 1 where kernels overlap; its template's name is those of the
  /// steps, "gemm_sm80_mma+row_sm80".
  static Result<VariantFactory> create_plan(const Program& program, const Partition& partition, std::size_t cut,
                                            std::vector<VariantFactory> steps, Arch arch);
  /// The factory that made a stored variant. Errors: a template that is no more, a cut that the program does not have any more.
  static Result<VariantFactory> create_named(const TemplateLibrary& library, const Config& config, const Program& program, Arch arch);

  const TemplateInfo& info() const;
  /// The steps of a plan of several kernels; empty for one kernel.
  const std::vector<VariantFactory>& steps() const;
  /// The config of a plan with these configs of its steps.
  Config joined(const std::vector<Config>& of_steps, Overlap overlap = Overlap::kNone) const;
  /// Whether a kernel of the plan can begin while the one before it runs.
  bool can_overlap() const;
  /// Whether a kernel of the config takes only one extent of a dim: is_for_one_extent() of config_space.h.
  bool is_for_one_extent(const Config& config) const;
  /// Names the variant and, where it is one kernel, the kernel.
  std::string id(const Config& config) const;
  /// Context for enumerate() and rank() on one problem; of one kernel.
  Result<SpaceContext> space_context(const Problem& problem, const DeviceLimits& limits) const;
  /// The launch plan of a config alone: what emit() gives without the text, in a fraction of the time.
  Result<LaunchPlan> plan(const Config& config) const;
  /// Emits one variant. About 10 ms a kernel. Thread-safe.
  Result<Variant> emit(const Config& config) const;

 private:
  struct Impl;
  struct OneKernel;
  struct SeveralKernels;
  static Result<VariantFactory> create_named_plan(const TemplateLibrary& library, const Config& config, const Program& program, Arch arch);
  std::shared_ptr<const Impl> impl_;
};

/// The cuts of a program for these templates on `arch`, those of one kernel too: a product of matrices is made by a template for it, or
/// row by row. The order is a function of program, templates and architecture. Error: the reason why no plan is made.
Result<std::vector<Partition>> partitions_for(const TemplateLibrary& library, const Program& program, Arch arch);

/// Factories of every template that can make the program on `arch`; `refusals` gets one line for each that cannot.
std::vector<VariantFactory> factories_for(const TemplateLibrary& library, const Program& program, Arch arch,
                                          std::vector<std::string>& refusals);

/// A piece of the workspace of a plan: intermediates whose lifetimes do not meet use it in turn.
struct WorkspacePart {
  std::string name;
  IntExpr bytes;  ///< over dims
  std::vector<std::string> intermediates;
};
std::vector<WorkspacePart> workspace_parts(const Partition& partition);

}  // namespace kw::generator
