// A user function: a __device__ function of a .cuh file, lowered to the expression IR by generator/rewrite and inlined by the checker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

struct UserFunction {
  std::string name;
  std::vector<DType> parameter_types;  ///< f32, f64, i32, i64 or bool
  DType return_type = DType::kF32;
  ExprRef body;  ///< over kParameter nodes; null for a function that was refused, with the reason told where it was read
};
using UserFunctions = std::map<std::string, UserFunction>;

}  // namespace kw::generator
