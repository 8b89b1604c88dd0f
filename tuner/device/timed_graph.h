// Protocol v1, timing, for any work that a stream takes: warm-up, then rounds of replays of one CUDA Graph whose work rotates over the
// input sets, between two events. A kernel of ours and a call of a library are timed by this same code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tuner/device/launch_graph.h"

namespace kw::tuner {

/// A graph, and about how long a replay takes.
struct TimedGraph {
  std::unique_ptr<LaunchGraph> graph;
  double replay_ms = 0;
  int num_input_sets = 0;
};

/// `enqueue` runs once outside of a capture, then is captured: whole turns over the sets, at least protocol.min_graph_ms long.
CudaResult<TimedGraph> make_timed_graph(DeviceContext& device, const EnqueueSet& enqueue, std::size_t num_sets, const Protocol& protocol,
                                        const Stopwatch& watch);

/// Replays until `wanted_ms` of device time are spent; refreshes the estimate.
CudaResult<void> warm_up(TimedGraph& timed, const Stopwatch& watch, double wanted_ms);

/// One round: enough replays for round_ms; time of one launch in us. NVML is read while they run; `state` only when it is asked for.
CudaResult<double> run_round(DeviceContext& device, TimedGraph& timed, const Stopwatch& watch, const Protocol& protocol,
                             std::uint64_t& reasons, DeviceState* state);

/// Warm-up and all rounds: samples, their order statistics, and what disturbed them.
CudaResult<MeasureOutcome> time_rounds(DeviceContext& device, TimedGraph& timed, const Stopwatch& watch, const Protocol& protocol);

}  // namespace kw::tuner
