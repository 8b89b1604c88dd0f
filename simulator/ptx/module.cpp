// Small questions to a parsed module: names of spaces and special registers, look-ups.
// Place: simulator/ptx/module.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/module.h"

#include <algorithm>
#include <array>
#include <utility>

#include "generator/base/error.h"

namespace kw::simulate {
namespace {

using enum SpecialRegister;
constexpr std::array kSpecialNames = {
    std::pair{kTidX, std::string_view("%tid.x")},
    std::pair{kTidY, std::string_view("%tid.y")},
    std::pair{kTidZ, std::string_view("%tid.z")},
    std::pair{kNtidX, std::string_view("%ntid.x")},
    std::pair{kNtidY, std::string_view("%ntid.y")},
    std::pair{kNtidZ, std::string_view("%ntid.z")},
    std::pair{kCtaidX, std::string_view("%ctaid.x")},
    std::pair{kCtaidY, std::string_view("%ctaid.y")},
    std::pair{kCtaidZ, std::string_view("%ctaid.z")},
    std::pair{kNctaidX, std::string_view("%nctaid.x")},
    std::pair{kNctaidY, std::string_view("%nctaid.y")},
    std::pair{kNctaidZ, std::string_view("%nctaid.z")},
    std::pair{kLaneid, std::string_view("%laneid")},
    std::pair{kWarpid, std::string_view("%warpid")},
    std::pair{kNwarpid, std::string_view("%nwarpid")},
    std::pair{kSmid, std::string_view("%smid")},
    std::pair{kNsmid, std::string_view("%nsmid")},
    std::pair{kGridid, std::string_view("%gridid")},
    std::pair{kClusteridX, std::string_view("%clusterid.x")},
    std::pair{kClusteridY, std::string_view("%clusterid.y")},
    std::pair{kClusteridZ, std::string_view("%clusterid.z")},
    std::pair{kNclusteridX, std::string_view("%nclusterid.x")},
    std::pair{kNclusteridY, std::string_view("%nclusterid.y")},
    std::pair{kNclusteridZ, std::string_view("%nclusterid.z")},
    std::pair{kClusterCtaidX, std::string_view("%cluster_ctaid.x")},
    std::pair{kClusterCtaidY, std::string_view("%cluster_ctaid.y")},
    std::pair{kClusterCtaidZ, std::string_view("%cluster_ctaid.z")},
    std::pair{kClusterNctaidX, std::string_view("%cluster_nctaid.x")},
    std::pair{kClusterNctaidY, std::string_view("%cluster_nctaid.y")},
    std::pair{kClusterNctaidZ, std::string_view("%cluster_nctaid.z")},
    std::pair{kClusterCtarank, std::string_view("%cluster_ctarank")},
    std::pair{kClusterNctarank, std::string_view("%cluster_nctarank")},
    std::pair{kIsExplicitCluster, std::string_view("%is_explicit_cluster")},
    std::pair{kLanemaskEq, std::string_view("%lanemask_eq")},
    std::pair{kLanemaskLe, std::string_view("%lanemask_le")},
    std::pair{kLanemaskLt, std::string_view("%lanemask_lt")},
    std::pair{kLanemaskGe, std::string_view("%lanemask_ge")},
    std::pair{kLanemaskGt, std::string_view("%lanemask_gt")},
    std::pair{kDynamicSmemSize, std::string_view("%dynamic_smem_size")},
    std::pair{kTotalSmemSize, std::string_view("%total_smem_size")},
    std::pair{kClock, std::string_view("%clock")},
    std::pair{kClockHi, std::string_view("%clock_hi")},
    std::pair{kClock64, std::string_view("%clock64")},
    std::pair{kGlobaltimer, std::string_view("%globaltimer")},
    std::pair{kGlobaltimerLo, std::string_view("%globaltimer_lo")},
};

}  // namespace

std::string_view to_text(StateSpace space) {
  constexpr std::array<std::string_view, 5> kNames = {"global", "const", "shared", "local", "param"};
  return kNames[static_cast<std::size_t>(space)];
}

std::optional<SpecialRegister> special_register_from_text(std::string_view name) {
  for (const auto& [special, text] : kSpecialNames) {
    if (text == name) return special;
  }
  return std::nullopt;
}

std::string_view to_text(SpecialRegister name) {
  for (const auto& [special, text] : kSpecialNames) {
    if (special == name) return text;
  }
  return "?";
}

bool Form::has(std::string_view modifier) const { return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end(); }

ScalarType Form::type_from_end(int n) const {
  for (auto modifier = modifiers.rbegin(); modifier != modifiers.rend(); ++modifier) {
    const auto type = scalar_type_from_text(*modifier);
    if (type && n-- == 0) return *type;
  }
  return ScalarType::kNone;
}

const Kernel* Module::find_kernel(std::string_view name) const {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

const Variable& Module::symbol(const Kernel& kernel, int index) const {
  auto at = static_cast<std::size_t>(index);
  if (at < kernel.num_module_variables) return variables[at];
  at -= kernel.num_module_variables;
  if (at < kernel.parameters.size()) return kernel.parameters[at];
  at -= kernel.parameters.size();
  KW_CHECK(at < kernel.variables.size(), "the parser resolves names to variables of the module or the kernel");
  return kernel.variables[at];
}

}  // namespace kw::simulate
