// Solves the extents of indices: stated ones first, then uses on axes, then links through intermediates until nothing changes.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/extents.h"

#include <fmt/format.h>

#include <set>

namespace kw::generator {

bool is_same_extent(const IntExpr& a, const IntExpr& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return a.constant() == b.constant();
  std::set<std::string> names;
  a.collect_variables(names);
  b.collect_variables(names);
  // Two polynomials that agree at points of distinct primes are taken as equal; the shape check sees the numbers anyway.
  for (const std::int64_t seed : {5039, 7919, 10007}) {
    IntBindings bindings;
    std::int64_t value = seed;
    for (const std::string& name : names) {
      bindings[name] = value;
      value = value * 31 % 104729 + 840;
    }
    const Result<std::int64_t> left = a.evaluate(bindings), right = b.evaluate(bindings);
    if (!left || !right || *left != *right) return false;
  }
  return true;
}

void ExtentSolver::state(const std::string& index, const IntExpr& extent) { stated_[index] = extent; }

void ExtentSolver::use(const std::string& index, const IntExpr& extent, const std::string& axis, const SourceRange& where) {
  uses_.push_back({index, extent, axis, where});
}

void ExtentSolver::link(const std::string& index, const std::string& other, const SourceRange& where) {
  if (index != other) links_.push_back({index, other, where});
}

void ExtentSolver::mention(const std::string& index, const SourceRange& where) {
  if (is_mentioned_.emplace(index, true).second) order_.emplace_back(index, where);
}

std::vector<std::pair<std::string, IntExpr>> ExtentSolver::solve(Diagnostics& diagnostics, bool reports_unknown) const {
  struct Known {
    IntExpr extent;
    std::string axis;
  };
  std::map<std::string, Known> known;
  std::set<std::string> wrong;
  const auto report = [&](const std::string& index, std::string message, const SourceRange& where) {
    if (wrong.insert(index).second) diagnostics.add({Stage::kSpec, Code::kBadInput, std::move(message), where, {}});
  };
  for (const auto& [index, extent] : stated_) known[index] = {extent, "[index]"};
  for (const Use& use : uses_) {
    const auto [entry, is_new] = known.emplace(use.index, Known{use.extent, use.axis});
    if (is_new || stated_.contains(use.index) || is_same_extent(entry->second.extent, use.extent)) continue;
    report(use.index,
           fmt::format("index {} has two extents: {} ({}) and {} ({}); state the right one under [index], or use two indices", use.index,
                       entry->second.extent.to_text(), entry->second.axis, use.extent.to_text(), use.axis),
           use.where);
  }
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const Link& link : links_) {
      const auto a = known.find(link.index), b = known.find(link.other);
      if (a == known.end() && b != known.end()) {
        known[link.index] = Known(b->second);
        is_changed = true;
      } else if (a != known.end() && b == known.end()) {
        known[link.other] = Known(a->second);
        is_changed = true;
      }
    }
  }
  for (const Link& link : links_) {
    const auto a = known.find(link.index), b = known.find(link.other);
    if (a == known.end() || b == known.end() || stated_.contains(link.index) || is_same_extent(a->second.extent, b->second.extent))
      continue;
    report(link.index,
           fmt::format("index {} has two extents: {} ({}) and {} (that of {})", link.index, a->second.extent.to_text(), a->second.axis,
                       b->second.extent.to_text(), link.other),
           link.where);
  }
  std::vector<std::pair<std::string, IntExpr>> extents;
  for (const auto& [index, where] : order_) {
    const auto found = known.find(index);
    if (found == known.end()) {
      if (!reports_unknown) continue;
      report(index,
             fmt::format("the extent of index {} does not follow from its uses: state it under [index]: {} = {{ extent = \"...\" }}", index,
                         index),
             where);
    } else {
      extents.emplace_back(index, found->second.extent);
    }
  }
  return extents;
}

}  // namespace kw::generator
