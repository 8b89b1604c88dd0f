// Annotations and include lines of template texts: see template_text.h. fill_template() is in fill_template.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/template_text.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "generator/rewrite/tokens.h"

namespace kw::generator {
namespace {

using CppTokens = std::vector<CppToken>;

bool is_text(std::string_view text, const CppTokens& tokens, std::size_t i, std::string_view expected) {
  return i < tokens.size() && spelling(text, tokens[i]) == expected;
}

std::size_t skip_comments(const CppTokens& tokens, std::size_t i) {
  while (i < tokens.size() && tokens[i].kind == CppToken::Kind::kComment) ++i;
  return i;
}

bool is_annotation(std::string_view text, const CppTokens& tokens, std::size_t i) {
  const auto& names = annotation_names();
  return i + 1 < tokens.size() && tokens[i].kind == CppToken::Kind::kIdentifier &&
         std::find(names.begin(), names.end(), spelling(text, tokens[i])) != names.end() && is_text(text, tokens, i + 1, "(");
}

/// Past the ">" that closes the "<" at `open`.
std::size_t past_angle_brackets(std::string_view text, const CppTokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (is_text(text, tokens, i, "(")) i = matching_bracket(text, tokens, i);
    if (is_text(text, tokens, i, "<")) ++depth;
    if (is_text(text, tokens, i, ">") && --depth == 0) return i + 1;
  }
  return tokens.size();
}

/// Past `template <...>`, `extern "C"` and `struct` in front of a declaration.
std::size_t past_declaration_head(std::string_view text, const CppTokens& tokens, std::size_t i) {
  for (;;) {
    i = skip_comments(tokens, i);
    if (is_text(text, tokens, i, "template") && is_text(text, tokens, i + 1, "<")) {
      i = past_angle_brackets(text, tokens, i + 1);
    } else if (is_text(text, tokens, i, "extern") && is_text(text, tokens, i + 1, "\"C\"")) {
      i += 2;
    } else if (is_text(text, tokens, i, "struct") || is_text(text, tokens, i, "class")) {
      return i + 1;
    } else {
      return i;
    }
  }
}

bool is_capitalised(std::string_view word) {
  return word.size() > 2 &&
         std::all_of(word.begin(), word.end(), [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

}  // namespace

const std::vector<std::string>& annotation_names() {
  static const std::vector<std::string> kNames = {"BIND", "COMPUTES", "ESTIMATE", "HOOK", "LAUNCH", "REQUIRES_ARCH", "RULE", "TUNE"};
  return kNames;
}

std::string move_annotations_inward(std::string_view text) {
  const CppTokens tokens = tokenize(text);
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_annotation(text, tokens, i)) continue;
    const std::size_t first = i;
    std::size_t after = i;
    while (is_annotation(text, tokens, after)) after = std::min(matching_bracket(text, tokens, after + 1) + 1, tokens.size());
    const std::size_t inner = past_declaration_head(text, tokens, after);
    i = after - 1;
    if (inner == skip_comments(tokens, after) || inner >= tokens.size()) continue;
    const std::size_t end = tokens[after - 1].end;
    edits.push_back({tokens[first].begin, end, ""});
    edits.push_back(
        {tokens[inner].begin, tokens[inner].begin, std::string(text.substr(tokens[first].begin, end - tokens[first].begin)) + " "});
  }
  // No line may vanish (places in messages), so this is not apply_edits().
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    out += text.substr(at, edit.begin - at);
    out += edit.text;
    at = edit.end;
  }
  return out += text.substr(at);
}

Status check_annotation_names(std::string_view text, const std::string& file) {
  const CppTokens tokens = tokenize(text);
  bool is_start = true;  // at the start of a declaration
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == CppToken::Kind::kComment || tokens[i].kind == CppToken::Kind::kDirective) continue;
    const std::string word(spelling(text, tokens[i]));
    if (is_start && is_annotation(text, tokens, i)) {
      i = matching_bracket(text, tokens, i + 1);
      continue;
    }
    if (is_start && is_capitalised(word) && is_text(text, tokens, i + 1, "(")) {
      const std::size_t next = skip_comments(tokens, matching_bracket(text, tokens, i + 1) + 1);
      if (next < tokens.size() && tokens[next].kind == CppToken::Kind::kIdentifier) {
        const std::string nearest = nearest_name(word, annotation_names());
        return fail(Stage::kTemplate, Code::kBadInput,
                    fmt::format("{}: unknown annotation{}", word, nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)),
                    {file, line_of(text, tokens[i].begin), 0});
      }
    }
    is_start = word == ";" || word == "{" || word == "}";
  }
  return {};
}

namespace {

/// Lines of the comment block a file opens with: [0, end).
std::size_t end_of_opening_comment(std::string_view text) {
  std::size_t at = 0;
  while (text.substr(at, 2) == "//") at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return at;
}

}  // namespace

std::string opening_comment(std::string_view text) {
  std::string out;
  const std::size_t end = end_of_opening_comment(text);
  for (std::size_t at = 0; at < end;) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at + 2, line_end - at - 2);
    at = line_end + 1;
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (line.find("SPDX-License-Identifier") == std::string_view::npos) out += std::string(line) + "\n";
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

namespace {

/// Normalised path of an include: relative to the tree's root, or to the including file for names that are not in the root.
std::string resolve_include(const SourceTree& sources, const std::string& including_file, const std::string& name) {
  if (sources.contains(name)) return name;
  const std::size_t slash = including_file.rfind('/');
  const std::string beside = slash == std::string::npos ? name : including_file.substr(0, slash + 1) + name;
  return sources.contains(beside) ? beside : "";
}

struct Flattener {
  const SourceTree& sources;
  std::set<std::string> done;

  /// The file's text with every include line replaced by what it includes (nothing the second time).
  Result<std::string> flat(const std::string& file) {
    done.insert(file);
    const std::string& text = sources.at(file);
    const bool has_conditionals = file == "parts/annotations.cuh";  // the one file with #ifdef: the macros themselves
    std::vector<Edit> edits = {{0, end_of_opening_comment(text), ""}};
    std::size_t conditional_begin = 0;
    for (const CppToken& token : tokenize(text)) {
      if (token.kind != CppToken::Kind::kDirective) continue;
      const std::string line(spelling(text, token));
      const SourceRange where = {file, line_of(text, token.begin), 0};
      if (line.starts_with("#include")) {
        KW_TRY(std::string included, include(file, line, where));
        edits.push_back({token.begin, token.end, std::move(included)});
      } else if (has_conditionals && line.starts_with("#if")) {
        conditional_begin = token.begin;
      } else if (has_conditionals && line.starts_with("#endif")) {
        edits.push_back({conditional_begin, token.end, ""});
      } else if (line.starts_with("#pragma") && line.find("once") != std::string::npos) {
        edits.push_back({token.begin, token.end, ""});
      } else if (!line.starts_with("#pragma") && !has_conditionals) {
        return fail(Stage::kTemplate, Code::kNotSupported,
                    fmt::format("{}: a template may use no preprocessor line but #include and #pragma", line), where);
      }
    }
    return apply_edits(text, std::move(edits));
  }

  Result<std::string> include(const std::string& file, const std::string& line, const SourceRange& where) {
    const std::size_t open = line.find('"');
    const std::size_t close = open == std::string::npos ? open : line.find('"', open + 1);
    if (close == std::string::npos) {
      return fail(Stage::kTemplate, Code::kNotSupported, fmt::format("{}: a template may include only files of the template folder", line),
                  where);
    }
    const std::string name = line.substr(open + 1, close - open - 1);
    const std::string path = resolve_include(sources, file, name);
    if (path.empty())
      return fail(Stage::kTemplate, Code::kNotFound, fmt::format("#include \"{}\": no such file in the template folder", name), where);
    if (done.contains(path)) return std::string();
    KW_TRY(std::string included, flat(path));
    return "\n" + included + "\n";
  }
};

}  // namespace

Result<std::string> flatten_includes(const SourceTree& sources, const std::string& file) {
  if (!sources.contains(file)) return fail(Stage::kTemplate, Code::kNotFound, fmt::format("{}: no such template", file));
  return Flattener{sources, {}}.flat(file);
}

}  // namespace kw::generator
