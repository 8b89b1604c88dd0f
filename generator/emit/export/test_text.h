// Export: the parts of test_<op>.cu, one function each. See model.h for the whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/emit/export/model.h"

namespace kw::generator {

/// What the elements of an integer tensor must be less than, where they are bounds of an index (`below`) or subscripts; then they are not
/// negative either. Empty: they may be anything.
std::vector<IntExpr> limits_of(const Program& program, const std::string& tensor);

/// struct Reference: dims, strides, data, the formula, and check_<i>() for each statement that writes an output.
Result<std::string> test_reference_text(const ExportModel& model);
/// Member function that makes the strides that the caller gives: row-major, with padding.
std::string test_set_strides_text(const ExportModel& model);
/// The shapes to test and run(), which tests one of them with every kernel that takes it.
std::string test_run_text(const ExportModel& model);

}  // namespace kw::generator
