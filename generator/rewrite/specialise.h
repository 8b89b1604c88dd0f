// The source-to-source step: template text + values + hook bodies -> one readable, self-contained .cu.
// Substitute, re-parse, fold `if constexpr` and dead branches, drop what is unused, flatten the includes, format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "generator/rewrite/template_info.h"

namespace kw::generator {

struct SpecialiseRequest {
  const SourceTree* sources = nullptr;
  const TemplateInfo* info = nullptr;
  IntBindings values;                        ///< every tunable and every numeric binding
  std::map<std::string, std::string> types;  ///< type binding -> C++ type of templates/parts ("ElementA" -> "Half")
  std::map<std::string, std::string>
      hooks;                ///< hook name -> text that replaces the body ("{...}", function or struct); absent: identity stays
  std::string prologue;     ///< support functions made by generator/lower: stand before the first hook, so behind the template's element
                            ///< types; before everything in a template without hooks
  std::string kernel_name;  ///< new extern "C" name
  std::string banner;       ///< comment block for the top, without comment marks
  /// New name of the array `smem`, the dynamic shared memory; empty: it stays. In an extern "C" function it has C linkage, so kernels of
  /// one text that align it differently must call it differently.
  std::string smem_name = {};
};

/// The .cu text, formatted. Same request, same bytes. Thread-safe: each call has its own compiler instance.
Result<std::string> specialise(const SpecialiseRequest& request);

}  // namespace kw::generator
