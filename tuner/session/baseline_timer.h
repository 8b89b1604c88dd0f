// Times what a user would call instead of our kernel: the library's algorithms for the same work, checked and timed in the GPU's worker by
// the protocol of our kernels, stored once. Nothing that goes wrong here ends a tune: it becomes a sentence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/baseline.h"
#include "tuner/device/baseline_job.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"
#include "tuner/session/verification_data.h"

namespace kw::tuner {

inline constexpr const char* kCublasLt = "cublaslt";  ///< `--baseline cublaslt`, and the column `library`

/// What became of a baseline in one run.
struct BaselineSummary {
  std::optional<db::BaselineRecord> record;
  bool is_reused = false;  ///< stored by an earlier run
  std::string note;        ///< one sentence: why there is none, or which algorithms were left out; empty: all went well
};

struct BaselineRequest {
  const LoadedSpec& spec;
  const Problem& problem;
  db::TrialKey group;  ///< op, problem, device, toolchain: the driver is taken from it
  Protocol early, final;
  double floor_us = 0;
  bool retunes = false;
  const std::atomic<bool>* stop_requested = nullptr;
  ProgressSink progress;
  std::string session;  ///< command line, for provenance
};

/// Where the work is done; functions, so that a stored baseline starts no worker.
struct BaselineServices {
  std::function<Result<LibraryFile>()> find_library;
  std::function<Result<GpuWorker*>()> gpu_worker;
  std::function<Result<db::Database*>()> database;
  int& num_launches;
};

/// The steps in order: find_stored, screen, time_next until has_next is false, store. An Error is one of the database.
class BaselineTimer {
 public:
  BaselineTimer(BaselineRequest request, BaselineServices services, VerificationSource& verification);

  Status find_stored();  ///< is the op one call of the library, is the library there, is the time known already?
  void screen();         ///< every algorithm by the early rung
  bool has_next() const { return !is_done_ && next_ < finalists_.size(); }
  void time_next();  ///< one of the fastest by the full protocol; the caller times a kernel of ours between two of them
  Status store();
  const BaselineSummary& summary() const { return summary_; }

 private:
  struct Tried {
    BaselineAlgorithm algorithm;
    double early_us = -1;
    std::optional<BaselineOutcome> timed;  ///< by the full protocol
  };
  /// Checked and timed once more when it was disturbed. Nothing: this algorithm is left out, or the baseline is given up.
  std::optional<BaselineOutcome> time(const BaselineAlgorithm& algorithm, const Protocol& protocol);
  void give_up(const std::string& why);
  bool is_stopped() const { return request_.stop_requested != nullptr && request_.stop_requested->load(); }
  void report(std::size_t done, std::size_t total) const;
  db::BaselineRow row_of(const Tried& best) const;

  BaselineRequest request_;
  BaselineServices services_;
  VerificationSource& verification_;
  db::BaselineKey key_;
  BaselineJob job_;
  std::shared_ptr<const VerificationData> data_;
  std::vector<Tried> tried_;
  std::vector<std::size_t> finalists_;
  std::size_t next_ = 0, num_left_out_ = 0;
  std::string first_left_out_;
  bool is_done_ = false;  ///< nothing more to time
  BaselineSummary summary_;
};

/// Of a measured trial and the time of a library for the same problem.
struct BaselineRatio {
  db::BaselineRecord record;
  double ratio = 0;             ///< the library's time over ours: above 1 we are faster
  std::string to_text() const;  ///< "1.04x cuBLASLt (best of 32)"
};
BaselineRatio ratio_of(const db::BaselineRecord& baseline, double median_us);
/// Of every library that is stored for the trial's problem, device model and protocol. None for a trial that was not measured.
Result<std::vector<BaselineRatio>> baseline_ratios(db::Database& database, const db::TrialRecord& trial);
nlohmann::json to_json(const BaselineRatio& ratio);

}  // namespace kw::tuner
