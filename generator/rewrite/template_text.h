// The textual half of specialise(): includes flattened, values and types put into Config, hooks filled, annotations taken out.
// No parse happens here; what comes out is plain CUDA C++ for the folding step (fold.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/rewrite/specialise.h"

namespace kw::generator {

/// Names of the annotation macros of templates/parts/annotations.cuh.
const std::vector<std::string>& annotation_names();

/// Moves annotations that stand before `template <...>`, `extern "C"` or `struct` behind them, where C++ allows an attribute.
std::string move_annotations_inward(std::string_view text);

/// Errors: a capitalised call where only an annotation can stand (nearest name suggested).
Status check_annotation_names(std::string_view text, const std::string& file);

/// The opening comment of a file without comment marks and SPDX line.
std::string opening_comment(std::string_view text);

/// The file and all it includes as one text, each file once, where it is first included; opening comments, `#pragma once` and
/// include lines are gone. Errors: an include that is not in the tree, another preprocessor line than #pragma.
Result<std::string> flatten_includes(const SourceTree& sources, const std::string& file);

/// Values, types, hooks, prologue and kernel name put into a flattened template. Nothing is changed half: any misfit is an error.
Result<std::string> fill_template(const std::string& flat, const SpecialiseRequest& request);

}  // namespace kw::generator
