// Findings: what the machine reports about a run. A finding names its kind, the place, the two accesses and what would order them.
// Equal findings (kind, pc, other pc) are counted, not repeated. The launch adds lines of PTX and source before it prints them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kw::simulate {

/// Leaves the process in reports, so values are explicit.
enum class FindingKind : std::uint8_t {
  kOutOfBounds = 0,
  kMisaligned = 1,
  kUninitialised = 2,
  kRace = 3,               ///< no order between the two accesses
  kMissingProxyFence = 4,  ///< ordered, but across the generic and the async proxy without a fence
  kWriteToReadOnly = 5,
  kBarrierMisuse = 6,     ///< named barrier: id, count, count mismatch
  kMbarrierMisuse = 7,    ///< not initialised, over-arrival, tx overflow, count 0, ...
  kDivergentAligned = 8,  ///< .aligned instruction that some lanes never reach
  kDeadlock = 9,
  kLivelock = 10,
  kBudget = 11,       ///< instruction budget or memory cap
  kBadAddress = 12,   ///< wrong window or space, a CTA that has exited
  kBadOperand = 13,   ///< an operand that the hardware refuses (sizes, coordinates, descriptors)
  kAsyncMisuse = 14,  ///< registers or memory touched while an asynchronous operation owns them; groups left open
  kUnsupported = 15,
  kTrap = 16
};
std::string_view to_text(FindingKind kind);
std::optional<FindingKind> finding_kind_from_text(std::string_view text);

/// One access or wait of a finding.
struct Place {
  std::uint32_t cta = 0;  ///< linear index in the grid
  std::uint32_t warp = 0;
  int lane = -1;  ///< -1: the whole warp
  std::uint32_t pc = 0;
  std::string role;  ///< "reads shared 'smem' + 128 (4 bytes)", "arrives at barrier 1"
};

/// A synchronising instruction that one of two warps passed between their accesses.
struct PassedStep {
  bool is_of_earlier = false;  ///< by the warp of the earlier access
  Place place;
};

struct Finding {
  FindingKind kind = FindingKind::kRace;
  std::string message;  ///< one sentence: subject, value, rule
  Place where;
  std::optional<Place> other;           ///< the earlier access, for races and fences
  std::string remedy;                   ///< what would order the two, or which rule to keep
  std::uint64_t count = 1;              ///< how often the same pair was seen
  std::vector<PassedStep> passed = {};  ///< in the order of the run; the latest few of each warp
};

/// Collects findings; keeps the first `max_kept` distinct ones and counts the rest.
class Findings {
 public:
  explicit Findings(std::size_t max_kept = 64) : max_kept_(max_kept) {}
  void add(Finding finding);
  bool empty() const { return findings_.empty(); }
  const std::vector<Finding>& all() const { return findings_; }
  std::uint64_t num_dropped() const { return num_dropped_; }
  /// True when the pair is already there (counts it): lets hot paths skip composing a message.
  bool count_again(FindingKind kind, std::uint32_t pc, std::uint32_t other_pc);

 private:
  using Key = std::tuple<FindingKind, std::uint32_t, std::uint32_t>;
  std::size_t max_kept_;
  std::uint64_t num_dropped_ = 0;
  std::vector<Finding> findings_;
  std::map<Key, std::size_t> index_;
};

/// "cta 3 warp 1 lane 4 pc 57": the form without lines, for logs and tests.
std::string to_text(const Place& place);
std::string to_text(const Finding& finding);

}  // namespace kw::simulate
