// The variants whose text is kept under tests/golden: one for each way an epilogue or an operand can be. Each is a program built by
// hand, a template, and what its config changes of the template's defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "generator/emit/variant.h"
#include "generator/spec/program.h"

namespace kw::generator::testing {

struct GoldenCase {
  std::string template_name;
  Program program;
  IntBindings changes;  ///< of the default config
  Arch arch = Arch::kSm80;
};

std::vector<GoldenCase> golden_cases();
/// The templates of the source tree, parsed once for all tests of the executable.
const TemplateLibrary& library();
Result<Variant> emit(const GoldenCase& golden);
/// The config of a template with every tunable at its default.
Config default_config(const TemplateInfo& info);

}  // namespace kw::generator::testing
