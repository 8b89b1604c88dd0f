// The second step of the line: OpSpec -> Program. Declarations, sugar, statements, extents and shapes, in this order; a step
// goes on after a mistake, so that one run reports them all.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "generator/spec/checker.h"
#include "generator/spec/op_spec.h"
#include "generator/spec/sugar.h"

namespace kw::generator {

namespace {

std::shared_ptr<const Program> check(const OpSpec& spec, const UserFunctions& functions, Diagnostics& diagnostics, bool is_partial) {
  Diagnostics found;
  CheckContext context{.spec = spec, .syntax = *spec.syntax, .functions = functions, .diagnostics = found, .is_partial = is_partial};
  context.program.name = spec.name;
  context.program.tune = spec.syntax->tune;
  declare_accumulate(context);
  declare_dims(context);
  declare_scalars(context);
  declare_tensors(context);
  declare_indices(context);
  if (!spec.syntax->has_body_errors) {
    check_statements(context, expand_sugar(context));
    finish_indices(context);
  }
  if (!is_partial) check_all_used(context);
  make_problems(context);
  for (const Error& error : found.errors()) diagnostics.add(error);
  if (found.has_errors() || is_partial) return nullptr;
  return std::make_shared<const Program>(std::move(context.program));
}

}  // namespace

std::shared_ptr<const Program> check_op_spec(const OpSpec& spec, const UserFunctions& functions, Diagnostics& diagnostics) {
  // What follows from the refusal of a called function is not reported again.
  const bool has_refused = std::any_of(spec.called_names.begin(), spec.called_names.end(), [&](const std::string& name) {
    const auto function = functions.find(name);
    return function != functions.end() && function->second.body == nullptr;
  });
  return check(spec, functions, diagnostics, has_refused);
}

void check_what_parsed(const OpSpec& spec, Diagnostics& diagnostics) { check(spec, {}, diagnostics, true); }

}  // namespace kw::generator
