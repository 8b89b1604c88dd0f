// Parser of the index notation: statements of a body, single expressions (shapes, scalars) and chains.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "generator/spec/lexer.h"
#include "generator/spec/syntax.h"

namespace kw::generator {

/// All statements that parse; each mistake is reported and its line skipped.
std::vector<StatementSyntax> parse_body(std::string_view text, const TextPlace& place, Diagnostics& diagnostics);
/// One expression; null after a mistake.
SyntaxRef parse_expression(std::string_view text, const TextPlace& place, Diagnostics& diagnostics);
/// "matmul(A, B) -> bias -> relu"; empty after a mistake.
std::vector<ChainStep> parse_chain(std::string_view text, const TextPlace& place, Diagnostics& diagnostics);

// Builders of syntax, used by the parser and the sugar.
SyntaxRef syntax_integer(std::int64_t value, const SourceRange& where);
SyntaxRef syntax_name(std::string name, const SourceRange& where);
SyntaxRef syntax_read(std::string name, std::vector<SyntaxRef> subscripts, const SourceRange& where);
SyntaxRef syntax_call(std::string name, std::vector<std::string> brackets, std::vector<SyntaxRef> operands, const SourceRange& where);
SyntaxRef syntax_operator(Function function, std::vector<SyntaxRef> operands, const SourceRange& where);

}  // namespace kw::generator
