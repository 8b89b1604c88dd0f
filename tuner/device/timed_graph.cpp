// See timed_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/timed_graph.h"

#include <algorithm>
#include <cmath>

#include "tuner/measure/statistics.h"

namespace kw::tuner {
namespace {

constexpr int kMaxLaunchesPerGraph = 4096;
constexpr double kFirstWarmupMs = 5;  // before the first estimate: an idle GPU runs at a low clock

CudaResult<double> time_replays(const LaunchGraph& graph, const Stopwatch& watch, int num_replays) {
  KW_CUDA_TRY_VOID(watch.begin());
  for (int replay = 0; replay < num_replays; ++replay) KW_CUDA_TRY_VOID(graph.replay());
  KW_CUDA_TRY_VOID(watch.end());
  KW_CUDA_TRY(const double elapsed_ms, watch.elapsed_ms());
  return elapsed_ms / num_replays;
}

int replays_for(double wanted_ms, double replay_ms) {
  return static_cast<int>(std::clamp(std::ceil(wanted_ms / std::max(replay_ms, 1e-6)), 1.0, 1e6));
}

}  // namespace

CudaResult<TimedGraph> make_timed_graph(DeviceContext& device, const EnqueueSet& enqueue, std::size_t num_sets, const Protocol& protocol,
                                        const Stopwatch& watch) {
  const int sets_per_turn = static_cast<int>(num_sets);
  TimedGraph timed;
  timed.num_input_sets = sets_per_turn;
  // The first launch sets attributes and loads lazily: neither may happen inside a capture.
  KW_CUDA_TRY_VOID(enqueue(0));
  KW_CUDA(device.driver, "first launch", device.driver.stream_synchronize(device.stream));
  KW_CUDA_TRY(timed.graph, LaunchGraph::capture(device, enqueue, num_sets, sets_per_turn));
  KW_CUDA_TRY(timed.replay_ms, time_replays(*timed.graph, watch, 1));
  KW_CUDA_TRY_VOID(warm_up(timed, watch, std::min(kFirstWarmupMs, protocol.warmup_ms)));
  // The final graph: whole turns over the sets, at least min_graph_ms long.
  const double turn_ms = std::max(timed.replay_ms, 1e-6);
  const int max_turns = std::max(1, kMaxLaunchesPerGraph / sets_per_turn);
  const int num_turns = std::clamp(static_cast<int>(std::ceil(std::min(protocol.min_graph_ms / turn_ms, 1e6))), 1, max_turns);
  if (num_turns > 1) {
    KW_CUDA_TRY(timed.graph, LaunchGraph::capture(device, enqueue, num_sets, num_turns * sets_per_turn));
    timed.replay_ms = turn_ms * num_turns;
  }
  return timed;
}

CudaResult<void> warm_up(TimedGraph& timed, const Stopwatch& watch, double wanted_ms) {
  for (double spent_ms = 0; spent_ms < wanted_ms;) {
    // In steps: the estimate from a cold clock is too long by a factor, the rest of the warm-up would be short of launches.
    const int num_replays = std::min(replays_for((wanted_ms - spent_ms) / 2, timed.replay_ms), replays_for(wanted_ms, timed.replay_ms));
    KW_CUDA_TRY(timed.replay_ms, time_replays(*timed.graph, watch, num_replays));
    if (timed.replay_ms <= 0) break;  // an empty graph
    spent_ms += timed.replay_ms * num_replays;
  }
  return {};
}

CudaResult<double> run_round(DeviceContext& device, TimedGraph& timed, const Stopwatch& watch, const Protocol& protocol,
                             std::uint64_t& reasons, DeviceState* state) {
  const int num_replays = replays_for(protocol.round_ms, timed.replay_ms);
  KW_CUDA_TRY_VOID(watch.begin());
  for (int replay = 0; replay < num_replays; ++replay) KW_CUDA_TRY_VOID(timed.graph->replay());
  KW_CUDA_TRY_VOID(watch.end());
  reasons |= device.state.throttle_reasons();
  if (state != nullptr) *state = device.state.read();
  KW_CUDA_TRY(const double elapsed_ms, watch.elapsed_ms());
  timed.replay_ms = elapsed_ms / num_replays;
  return timed.replay_ms * 1e3 / timed.graph->num_launches();
}

CudaResult<MeasureOutcome> time_rounds(DeviceContext& device, TimedGraph& timed, const Stopwatch& watch, const Protocol& protocol) {
  KW_CUDA_TRY_VOID(warm_up(timed, watch, protocol.warmup_ms));
  MeasureOutcome outcome;
  outcome.launches_per_graph = timed.graph->num_launches();
  outcome.num_input_sets = timed.num_input_sets;
  std::uint64_t reasons = 0;
  for (int round = 0; round < protocol.num_rounds; ++round) {
    DeviceState* const state = round == 0 ? &outcome.before : round == protocol.num_rounds - 1 ? &outcome.after : nullptr;
    KW_CUDA_TRY(const double sample_us, run_round(device, timed, watch, protocol, reasons, state));
    if (round > 0 || protocol.num_rounds == 1) outcome.samples_us.push_back(sample_us);
  }
  outcome.after.throttle_reasons |= reasons;
  outcome.dirty_reason = disturbance(outcome.before, outcome.after, reasons);
  outcome.is_dirty = !outcome.dirty_reason.empty();
  outcome.median_us = median(outcome.samples_us);
  outcome.p10_us = percentile(outcome.samples_us, 0.1);
  outcome.p90_us = percentile(outcome.samples_us, 0.9);
  return outcome;
}

}  // namespace kw::tuner
