// PTX text -> Module. The texts of NVRTC and nvcc 12.4 to 13.x for sm_80 to sm_90a, and inline assembly inside them.
// A form that the opcode table does not have is refused with its name and line, and so is anything else that is not understood:
// nothing is skipped silently but debug sections and pragmas. Bounded: no text makes the parser allocate more than a fixed multiple
// of its size and of the declared registers (at most kMaxRegisters a kernel).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "generator/base/error.h"
#include "simulator/ptx/module.h"

namespace kw::simulate {

constexpr int kMaxRegisters = 1 << 17;  // of one kernel, all types together; the largest seen needs 12,000

/// Errors: kBadInput for a broken text, kNotSupported for PTX that the simulator does not have; both with file and line.
Result<Module> parse_ptx(std::string_view text, std::string_view file);

}  // namespace kw::simulate
