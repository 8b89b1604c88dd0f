// Texts of the enums that leave the process, and back.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/status.h"

namespace kw {

std::string_view to_text(TrialStatus status) {
  switch (status) {
    case TrialStatus::kOk:
      return "ok";
    case TrialStatus::kPredicted:
      return "predicted";
    case TrialStatus::kRefused:
      return "refused";
    case TrialStatus::kEmitFailed:
      return "emit_failed";
    case TrialStatus::kCompileFailed:
      return "compile_failed";
    case TrialStatus::kCompileCrashed:
      return "compile_crashed";
    case TrialStatus::kCompileTimeout:
      return "compile_timeout";
    case TrialStatus::kSpillsRefused:
      return "spills_refused";
    case TrialStatus::kLaunchFailed:
      return "launch_failed";
    case TrialStatus::kOutOfMemory:
      return "out_of_memory";
    case TrialStatus::kWrongResult:
      return "wrong_result";
    case TrialStatus::kOutOfBounds:
      return "out_of_bounds";
    case TrialStatus::kHung:
      return "hung";
    case TrialStatus::kUnderFloor:
      return "under_floor";
    case TrialStatus::kDeviceLost:
      return "device_lost";
  }
  return "unknown";
}

const std::vector<TrialStatus>& all_trial_statuses() {
  static const std::vector<TrialStatus> all = {TrialStatus::kOk,
                                               TrialStatus::kPredicted,
                                               TrialStatus::kRefused,
                                               TrialStatus::kEmitFailed,
                                               TrialStatus::kCompileFailed,
                                               TrialStatus::kCompileCrashed,
                                               TrialStatus::kCompileTimeout,
                                               TrialStatus::kSpillsRefused,
                                               TrialStatus::kLaunchFailed,
                                               TrialStatus::kOutOfMemory,
                                               TrialStatus::kWrongResult,
                                               TrialStatus::kOutOfBounds,
                                               TrialStatus::kHung,
                                               TrialStatus::kUnderFloor,
                                               TrialStatus::kDeviceLost};
  return all;
}

std::optional<TrialStatus> trial_status_from_text(std::string_view text) {
  for (const TrialStatus status : all_trial_statuses())
    if (to_text(status) == text) return status;
  return std::nullopt;
}

bool is_refusal(TrialStatus status) { return status == TrialStatus::kRefused || status == TrialStatus::kSpillsRefused; }

std::string_view to_text(VerifyLevel level) {
  switch (level) {
    case VerifyLevel::kNone:
      return "none";
    case VerifyLevel::kSimulated:
      return "simulated";
    case VerifyLevel::kDevice:
      return "device";
  }
  return "unknown";
}

std::optional<VerifyLevel> verify_level_from_text(std::string_view text) {
  for (const VerifyLevel level : {VerifyLevel::kNone, VerifyLevel::kSimulated, VerifyLevel::kDevice})
    if (to_text(level) == text) return level;
  return std::nullopt;
}

std::string_view to_text(MatchKind kind) {
  switch (kind) {
    case MatchKind::kExact:
      return "exact";
    case MatchKind::kNear:
      return "near";
    case MatchKind::kModelled:
      return "modelled";
    case MatchKind::kOtherDevice:
      return "other_device";
    case MatchKind::kNone:
      return "none";
  }
  return "unknown";
}

}  // namespace kw
