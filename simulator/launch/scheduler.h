// The scheduling loop: admits clusters, runs their warps in turn, lands asynchronous copies, finds stand-stills and endless loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "simulator/launch/check_request.h"

namespace kw::simulate {

class Scheduler {
 public:
  Scheduler(const CheckedLaunch& launch, const LaunchRequest& request, Machine& machine, Executor& executor);
  /// Runs until all threads have exited (true) or a finding ends the launch (false).
  bool run();
  std::uint64_t num_executed() const { return num_executed_; }
  std::uint64_t num_ctas_run() const { return num_ctas_run_; }
  std::vector<WaitingGroup> waiting() const;

 private:
  struct Warp {
    Cta* cta = nullptr;
    std::uint32_t warp = 0;
    bool has_exited = false;
    bool is_parked = false;
    std::uint64_t parked_at = 0;  // the machine's wake_count
  };
  struct Resident {
    std::uint64_t cluster = 0;
    std::vector<Cta*> ctas;
  };

  void admit_next();
  bool can_admit() const;
  void retire_finished();
  /// One turn over all warps. False: a fault ended the launch.
  bool turn(bool& has_progress);
  WarpStep step(Warp& warp, std::uint64_t max_instructions);
  /// Nothing moved: lands a copy or admits a cluster; false when the launch is stuck.
  bool unblock();
  bool is_livelock();
  bool spins(Warp& warp);
  void report_stuck(FindingKind kind, std::string message, std::string remedy);
  std::uint64_t event_count() const { return machine_.store_count() + machine_.wake_count() + num_exited_; }

  const LaunchRequest& request_;
  Machine& machine_;
  Executor& executor_;
  std::vector<std::uint64_t> order_;  // of clusters; empty: ascending
  std::uint64_t num_clusters_;
  std::uint64_t next_ = 0;          // in the order
  std::uint64_t max_residents_;     // that the device and the memory cap allow
  std::uint64_t target_residents_;  // that run now
  std::vector<Resident> residents_;
  std::vector<Warp> warps_;
  std::uint64_t num_executed_ = 0;
  std::uint64_t num_ctas_run_ = 0;
  std::uint64_t num_exited_ = 0;
  std::uint64_t last_event_count_ = 0;
  std::uint64_t quiet_since_ = 0;  // num_executed_ at the last event
  std::uint64_t quiet_limit_;
  bool is_shuffled_;
  std::mt19937_64 random_;
};

/// Memory of one resident cluster with its shadow and registers.
std::uint64_t resident_bytes(const LaunchShape& shape, const Program& program, bool checks_races);

}  // namespace kw::simulate
