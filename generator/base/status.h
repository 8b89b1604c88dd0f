// Status of a trial: what became of one variant on one problem. Leaves the process, so values are explicit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kw {

enum class TrialStatus {
  kOk = 0,
  kPredicted = 1,
  kRefused = 2,
  kEmitFailed = 3,
  kCompileFailed = 4,
  kCompileCrashed = 5,
  kCompileTimeout = 6,
  kSpillsRefused = 7,
  kLaunchFailed = 8,
  kOutOfMemory = 9,
  kWrongResult = 10,
  kOutOfBounds = 11,
  kHung = 12,
  kUnderFloor = 13,
  kDeviceLost = 14,
};
std::string_view to_text(TrialStatus status);
std::optional<TrialStatus> trial_status_from_text(std::string_view text);
const std::vector<TrialStatus>& all_trial_statuses();
/// Compiled, and refused for what the compiler made of it (spilled registers, serialised wgmma): no failure of template or compiler.
bool is_refusal(TrialStatus status);

/// How a kernel was checked. `simulated` and `device` are never mixed up.
enum class VerifyLevel { kNone = 0, kSimulated = 1, kDevice = 2 };
std::string_view to_text(VerifyLevel level);
std::optional<VerifyLevel> verify_level_from_text(std::string_view text);

/// How well a stored kernel answers a query.
enum class MatchKind { kExact = 0, kNear = 1, kModelled = 2, kOtherDevice = 3, kNone = 4 };
std::string_view to_text(MatchKind kind);

}  // namespace kw
