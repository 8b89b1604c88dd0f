// Puts values, types, hook texts and the kernel's name into a flattened template: see template_text.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/rewrite/template_text.h"
#include "generator/rewrite/tokens.h"

namespace kw::generator {
namespace {

struct Filler {
  const std::string& text;
  const SpecialiseRequest& request;
  std::vector<CppToken> tokens;
  std::vector<Edit> edits;
  std::set<std::string> filled_hooks;
  std::set<std::string> filled_members;

  std::string word(std::size_t i) const { return i < tokens.size() ? text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) : ""; }

  static Error misfit(const std::string& message) { return {Stage::kEmit, Code::kInternal, message, {}, {}}; }

  bool is_annotation(std::size_t i) const {
    const auto& names = annotation_names();
    return tokens[i].kind == CppToken::Kind::kIdentifier && word(i + 1) == "(" &&
           std::find(names.begin(), names.end(), word(i)) != names.end();
  }

  /// Index of the first of the comments that stand directly above token i, or i.
  std::size_t with_comments_above(std::size_t i) const {
    while (i > 0 && tokens[i - 1].kind == CppToken::Kind::kComment) {
      const std::string_view gap(text.data() + tokens[i - 1].end, tokens[i].begin - tokens[i - 1].end);
      if (std::count(gap.begin(), gap.end(), '\n') != 1) break;
      --i;
    }
    return i;
  }

  Status fill_hook(std::size_t annotation, const std::string& name) {
    if (filled_hooks.empty() && !request.prologue.empty()) {
      const std::size_t at = tokens[with_comments_above(annotation)].begin;
      edits.push_back({at, at, request.prologue + "\n\n"});
    }
    filled_hooks.insert(name);
    const auto hook = request.hooks.find(name);
    if (hook == request.hooks.end()) return {};
    std::size_t open = matching_bracket(text, tokens, annotation + 1) + 1;
    while (open < tokens.size() && word(open) != "{") open = word(open) == "(" ? matching_bracket(text, tokens, open) + 1 : open + 1;
    const std::size_t close = open < tokens.size() ? matching_bracket(text, tokens, open) : open;
    if (close >= tokens.size()) return fail(misfit(fmt::format("hook \"{}\": no body in braces behind it", name)));
    edits.push_back({tokens[open].begin, tokens[close].end, hook->second});
    return {};
  }

  /// Annotations go; hooks are filled on the way.
  Status take_annotations() {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!is_annotation(i)) continue;
      const std::size_t close = matching_bracket(text, tokens, i + 1);
      if (close >= tokens.size()) return fail(misfit(fmt::format("{}: \"(\" is not closed", word(i))));
      if (word(i) == "HOOK") {
        const std::string quoted = word(i + 2);
        KW_TRY_VOID(fill_hook(i, quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : quoted));
      }
      const std::size_t next = close + 1 < tokens.size() ? tokens[close + 1].begin : tokens[close].end;
      const bool is_directly_followed = text.find_first_not_of(" \n", tokens[close].end) == next;
      edits.push_back({tokens[i].begin, is_directly_followed ? next : tokens[close].end, ""});
      i = close;
    }
    return {};
  }

  std::size_t end_of_declaration(std::size_t i) const {
    while (i < tokens.size() && word(i) != ";")
      i = (word(i) == "(" || word(i) == "{" || word(i) == "[") ? matching_bracket(text, tokens, i) + 1 : i + 1;
    return i;
  }

  /// One declaration of Config, tokens [begin, end): the initialiser becomes the requested value.
  Status fill_member(std::size_t begin, std::size_t end) {
    std::size_t equals = begin;
    while (equals < end && word(equals) != "=") equals = word(equals) == "(" ? matching_bracket(text, tokens, equals) + 1 : equals + 1;
    if (equals >= end) return {};
    bool is_bool = false;
    std::string name;
    for (std::size_t i = begin; i < equals; ++i) {
      if (tokens[i].kind != CppToken::Kind::kIdentifier) continue;
      if (is_annotation(i)) {
        i = matching_bracket(text, tokens, i + 1);
        continue;
      }
      is_bool = is_bool || word(i) == "bool";
      name = word(i);
    }
    const auto value = request.values.find(name);
    const auto type = request.types.find(name);
    if (value == request.values.end() && type == request.types.end()) return {};
    filled_members.insert(name);
    std::string filled = type != request.types.end() ? type->second : std::to_string(value->second);
    if (type == request.types.end() && is_bool) filled = value->second != 0 ? "true" : "false";
    edits.push_back({tokens[equals + 1].begin, tokens[end].begin, filled});
    return {};
  }

  Status fill_config() {
    std::size_t open = 0;
    while (open + 2 < tokens.size() && !(word(open) == "struct" && word(open + 1) == "Config" && word(open + 2) == "{")) ++open;
    open += 2;
    if (open >= tokens.size()) return fail(misfit("no `struct Config {` in the template"));
    const std::size_t close = matching_bracket(text, tokens, open);
    for (std::size_t begin = open + 1; begin < close;) {
      const std::size_t end = end_of_declaration(begin);
      KW_TRY_VOID(fill_member(begin, std::min(end, close)));
      begin = end + 1;
    }
    return {};
  }

  Status check_complete() const {
    std::vector<std::string> missing;
    for (const Tunable& tunable : request.info->tunables) {
      if (!filled_members.contains(tunable.name)) missing.push_back(tunable.name);
    }
    for (const Binding& binding : request.info->bindings) {
      if (!filled_members.contains(binding.name)) missing.push_back(binding.name);
    }
    if (!missing.empty()) return fail(misfit(fmt::format("{}: no value given for {}", request.info->name, fmt::join(missing, ", "))));
    for (const auto& [name, value] : request.values) {
      if (!filled_members.contains(name))
        return fail(misfit(fmt::format("{}: {} = {}: Config has no such member", request.info->name, name, value)));
    }
    for (const auto& [name, type] : request.types) {
      if (!filled_members.contains(name))
        return fail(misfit(fmt::format("{}: {} = {}: Config has no such type", request.info->name, name, type)));
    }
    for (const auto& [name, body] : request.hooks) {
      if (!filled_hooks.contains(name)) return fail(misfit(fmt::format("{}: the template has no hook \"{}\"", request.info->name, name)));
    }
    return {};
  }

  void rename_kernel() {
    if (request.kernel_name.empty()) return;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind == CppToken::Kind::kIdentifier && word(i) == request.info->name)
        edits.push_back({tokens[i].begin, tokens[i].end, request.kernel_name});
      if (!request.smem_name.empty() && tokens[i].kind == CppToken::Kind::kIdentifier && word(i) == "smem")
        edits.push_back({tokens[i].begin, tokens[i].end, request.smem_name});
    }
  }
};

}  // namespace

Result<std::string> fill_template(const std::string& flat, const SpecialiseRequest& request) {
  Filler filler{flat, request, tokenize(flat), {}, {}, {}};
  KW_TRY_VOID(filler.take_annotations());
  KW_TRY_VOID(filler.fill_config());
  KW_TRY_VOID(filler.check_complete());
  filler.rename_kernel();
  std::string out = apply_edits(flat, std::move(filler.edits));
  if (filler.filled_hooks.empty() && !request.prologue.empty()) out = request.prologue + "\n\n" + out;
  return out;
}

}  // namespace kw::generator
