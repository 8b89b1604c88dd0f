// See tune_values.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/tune_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace kw::generator {
namespace {

const Tunable* find_tunable(const TemplateInfo& info, const std::string& name) {
  const auto found = std::find_if(info.tunables.begin(), info.tunables.end(), [&](const Tunable& tunable) { return tunable.name == name; });
  return found == info.tunables.end() ? nullptr : &*found;
}

bool takes(const TemplateInfo& info, const std::string& name, std::int64_t value) {
  const Tunable* tunable = find_tunable(info, name);
  // Whether a value is the problem's is a rule of the template.
  return tunable != nullptr &&
         (!tunable->problem_variable.empty() || std::find(tunable->values.begin(), tunable->values.end(), value) != tunable->values.end());
}

/// "gemm_simt takes 8, 16, 32".
std::string values_text(const TemplateInfo& info, const std::string& name) {
  const Tunable& tunable = *find_tunable(info, name);
  return fmt::format("{} takes {}{}", info.name, fmt::join(tunable.values, ", "),
                     tunable.problem_variable.empty() ? "" : " and the problem's " + tunable.problem_variable);
}

/// Whether the template makes the program on the target or, for a specific or later target, on its own.
bool serves(const TemplateLibrary& library, const TemplateInfo& info, const Program& untuned, Arch arch) {
  if (VariantFactory::create(library, info, untuned, arch)) return true;
  const std::optional<Arch> least = arch_from_text(info.min_arch);
  return least && *least != arch && VariantFactory::create(library, info, untuned, *least).has_value();
}

std::vector<const TemplateInfo*> serving_templates(const TemplateLibrary& library, const Program& program, Arch arch) {
  Program untuned = program;
  untuned.tune.values.clear();
  std::vector<const TemplateInfo*> serving;
  for (const TemplateInfo& info : library.templates()) {
    if (serves(library, info, untuned, arch)) serving.push_back(&info);
  }
  return serving;
}

/// The templates whose values count for a name: those that serve the op and have it, else all that have it.
std::vector<const TemplateInfo*> holders_of(const std::string& name, const TemplateLibrary& library,
                                            const std::vector<const TemplateInfo*>& serving) {
  std::vector<const TemplateInfo*> holders;
  for (const TemplateInfo* info : serving) {
    if (find_tunable(*info, name) != nullptr) holders.push_back(info);
  }
  if (!holders.empty()) return holders;
  for (const TemplateInfo& info : library.templates()) {
    if (find_tunable(info, name) != nullptr) holders.push_back(&info);
  }
  return holders;
}

/// What a template leaves of the values of one of its names; empty when nothing.
std::string note_of(const TemplateInfo& info, const std::string& name, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> left;
  std::copy_if(values.begin(), values.end(), std::back_inserter(left), [&](std::int64_t value) { return !takes(info, name, value); });
  if (left.empty()) return "";
  const std::string effect = left.size() == values.size() ? "is left out" : "goes without it";
  return fmt::format("[tune] {} = {}: {}, and {}", name, fmt::join(left, ", "), values_text(info, name), effect);
}

SourceRange place_of(const Program& program, const std::string& name) {
  const auto place = program.tune.places.find(name);
  return place == program.tune.places.end() ? SourceRange{} : place->second;
}

}  // namespace

Result<TuneValues> narrowed_values(const TemplateLibrary& library, const TemplateInfo& info, const Program& program) {
  TuneValues narrowed;
  for (const auto& [name, values] : program.tune.values) {
    if (find_tunable(info, name) == nullptr) {
      const bool is_of_another = std::any_of(library.templates().begin(), library.templates().end(),
                                             [&](const TemplateInfo& other) { return find_tunable(other, name) != nullptr; });
      if (!is_of_another) narrowed[name] = values;
      continue;
    }
    std::vector<std::int64_t>& kept = narrowed[name];
    for (const std::int64_t value : values) {
      if (takes(info, name, value)) kept.push_back(value);
    }
    if (kept.empty())
      return fail(Stage::kSpace, Code::kNotSupported,
                  fmt::format("{}: left out by [tune] {} = {}: it takes {}", info.name, name, fmt::join(values, ", "),
                              fmt::join(find_tunable(info, name)->values, ", ")));
  }
  return narrowed;
}

Result<std::vector<std::string>> check_tune_values(const TemplateLibrary& library, const Program& program, Arch arch) {
  std::vector<std::string> notes;
  if (program.tune.values.empty()) return notes;
  const std::vector<const TemplateInfo*> serving = serving_templates(library, program, arch);
  Diagnostics mistakes;
  for (const auto& [name, values] : program.tune.values) {
    const std::vector<const TemplateInfo*> holders = holders_of(name, library, serving);
    if (holders.empty()) continue;  // a name that no template has: refused by the enumeration, with a suggestion
    for (const std::int64_t value : values) {
      if (std::any_of(holders.begin(), holders.end(), [&](const TemplateInfo* info) { return takes(*info, name, value); })) continue;
      std::string lists;
      for (const TemplateInfo* info : holders) lists += (lists.empty() ? "" : "; ") + values_text(*info, name);
      mistakes.add({Stage::kSpace,
                    Code::kBadInput,
                    fmt::format("[tune] {} = {}: no template has this value: {}", name, value, lists),
                    place_of(program, name),
                    {}});
    }
    for (const TemplateInfo* info : holders) {
      const std::string note = note_of(*info, name, values);
      if (!note.empty()) notes.push_back(to_text(Error{.message = note, .where = place_of(program, name), .detail = {}}));
    }
  }
  if (!mistakes.has_errors()) return notes;
  std::string text = mistakes.to_text();
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return fail(Stage::kSpace, Code::kBadInput, std::move(text));
}

}  // namespace kw::generator
