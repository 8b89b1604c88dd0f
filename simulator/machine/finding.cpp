// Names and texts of findings, and their collection.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/machine/finding.h"

#include <array>

#include <fmt/format.h>

namespace kw::simulate {
namespace {

constexpr std::array<std::string_view, 17> kKindNames = {"out_of_bounds",
                                                         "misaligned",
                                                         "uninitialised",
                                                         "race",
                                                         "missing_proxy_fence",
                                                         "write_to_read_only",
                                                         "barrier_misuse",
                                                         "mbarrier_misuse",
                                                         "divergent_aligned",
                                                         "deadlock",
                                                         "livelock",
                                                         "budget",
                                                         "bad_address",
                                                         "bad_operand",
                                                         "async_misuse",
                                                         "unsupported",
                                                         "trap"};

}  // namespace

std::string_view to_text(FindingKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<FindingKind> finding_kind_from_text(std::string_view text) {
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind) {
    if (kKindNames[kind] == text) return static_cast<FindingKind>(kind);
  }
  return std::nullopt;
}

bool Findings::count_again(FindingKind kind, std::uint32_t pc, std::uint32_t other_pc) {
  const auto known = index_.find(Key{kind, pc, other_pc});
  if (known == index_.end()) return false;
  if (known->second < findings_.size()) {
    ++findings_[known->second].count;
  } else {
    ++num_dropped_;
  }
  return true;
}

void Findings::add(Finding finding) {
  const std::uint32_t other_pc = finding.other ? finding.other->pc : 0xffffffffu;
  if (count_again(finding.kind, finding.where.pc, other_pc)) return;
  index_[Key{finding.kind, finding.where.pc, other_pc}] = findings_.size() < max_kept_ ? findings_.size() : max_kept_;
  if (findings_.size() < max_kept_) {
    findings_.push_back(std::move(finding));
  } else {
    ++num_dropped_;
  }
}

std::string to_text(const Place& place) {
  std::string text = fmt::format("cta {} warp {}", place.cta, place.warp);
  if (place.lane >= 0) text += fmt::format(" lane {}", place.lane);
  return text + fmt::format(" pc {}", place.pc);
}

std::string to_text(const Finding& finding) {
  std::string text = fmt::format("{}: {}\n  {} {}\n", to_text(finding.kind), finding.message, to_text(finding.where), finding.where.role);
  if (finding.other) text += fmt::format("  {} {}\n", to_text(*finding.other), finding.other->role);
  if (!finding.remedy.empty()) text += fmt::format("  remedy: {}\n", finding.remedy);
  if (finding.count > 1) text += fmt::format("  seen {} times\n", finding.count);
  return text;
}

}  // namespace kw::simulate
