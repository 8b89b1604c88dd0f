// [tune] against the templates of an op: which values each of them takes, which it leaves, and which nobody has.
// Place in the pipeline: before the configs are enumerated. A template's rules bound the values that its source lists, and no others: a
// value outside the list (STAGES = 0) is refused here, not judged by them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "generator/emit/variant.h"

namespace kw::generator {

using TuneValues = std::map<std::string, std::vector<std::int64_t>>;

/// The [tune] values that narrow this template's space: of each name of its own those that it takes. A name that no template has is kept:
/// the enumeration refuses it with a suggestion. Error kNotSupported when it takes none of a name's values: it is left out.
Result<TuneValues> narrowed_values(const TemplateLibrary& library, const TemplateInfo& info, const Program& program);

/// One line for each template that serves the op on some architecture and does not take a value that another one takes. Error kBadInput,
/// with all places: values that no template takes which serves the op (where none that has the name does: no template at all).
Result<std::vector<std::string>> check_tune_values(const TemplateLibrary& library, const Program& program, Arch arch);

}  // namespace kw::generator
