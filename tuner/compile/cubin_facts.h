// What a compiled kernel uses, read from the compiler's log (ptxas -v) and from the cubin's ELF sections, with no CUDA tool.
// The log is the first source; the ELF answers where the log is silent (an answer from the driver's cache has no ptxas lines).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tuner/compile/compiler.h"

namespace kw::tuner {

/// Fills registers, spills, stack and static shared memory of `kernel` from its log and cubin. False: the cubin holds no kernel of that
/// name.
bool read_kernel_facts(std::string_view kernel_name, int compute_capability, CompiledKernel& kernel);

/// The verdict on a compiled kernel: kOk, kSpillsRefused, or kRefused for wgmma that ptxas had to serialise (C7510 to C7519),
/// with the reason. The same for a fresh and a cached compile.
TrialStatus judge_compiled(const CompiledKernel& kernel, bool refuses_spills, std::string& reason);

/// The first line of a log that says "error" or "fatal"; else its first non-empty line.
std::string first_complaint(std::string_view log);

}  // namespace kw::tuner
