// Reads the __device__ functions that a spec calls from a user's .cuh and lowers them to the expression IR.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/user_function.h"

namespace kw::generator {

/// `names` are the functions called in the body. Supported: scalar parameters and result, local const variables, assignments to locals,
/// if/else and ?:, arithmetic, comparisons, the CUDA math functions of the notation (expf, fmaxf, ...), calls of other functions of the
/// file. Refused by name with file and line: side effects (stores through pointers or to globals), recursion, loops, unknown calls, wrong
/// signatures, and before clang sees the file whatever user_text.h refuses. A refused function is in the result without a body.
UserFunctions read_user_functions(std::string_view text, const std::string& file_name, const std::vector<std::string>& names,
                                  Diagnostics& diagnostics);

}  // namespace kw::generator
