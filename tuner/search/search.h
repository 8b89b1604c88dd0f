// Which variants to try, and which of them to time again: the search as pure decisions on numbers. Nothing here runs a kernel.
// In: the model's order. Out: indices into it. The session (tuner/session) compiles, verifies and times what is chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kw::tuner {

enum class SearchKind { kHalving = 0, kExhaustive = 1, kRandom = 2 };
std::string_view to_text(SearchKind kind);
std::optional<SearchKind> search_kind_from_text(std::string_view text);

struct SearchOptions {
  SearchKind kind = SearchKind::kHalving;
  double budget_seconds = 60;
  std::uint64_t seed = 1;         ///< of the random search
  std::size_t max_per_class = 8;  ///< halving: of configs that the model cannot tell apart, so many are tried
  int max_first_rung = 64;        ///< halving and random: how many variants are compiled at most
};

/// Variants of the first rung, in the order to try them: positions in the model's order. `class_of[i]` says which configs the model
/// holds for alike. Halving takes the model's best, at most max_per_class of a class, so that the first places are not one shape in
/// many spellings; one place in eight is filled from further down, so that a wrong model is noticed. A run that its budget ends has seen
/// many classes: two of each are tried before a third of any.
std::vector<std::size_t> choose_first_rung(const std::vector<std::size_t>& class_of, const SearchOptions& options);
/// The same where every config is a class of its own.
std::vector<std::size_t> choose_first_rung(std::size_t num_ranked, const SearchOptions& options);

/// `chosen` with these positions before all others; those it lacks are added.
std::vector<std::size_t> put_first(const std::vector<std::size_t>& chosen, const std::vector<std::size_t>& first);

/// Of the early times (us, in any order; negative: not measured), those to time by the full protocol: the fastest quarter,
/// at least 4 and at most 12, and all within `tie_band` of the fastest up to 16.
std::vector<std::size_t> choose_finalists(const std::vector<double>& early_us, double tie_band);

/// Of the final times, those that may be the winner: within `tie_band` of the fastest, fastest first, at most `max_count`.
std::vector<std::size_t> choose_duellists(const std::vector<double>& final_us, double tie_band, std::size_t max_count);

}  // namespace kw::tuner
